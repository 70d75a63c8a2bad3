# SPDX-License-Identifier: GPL-3.0-or-later
"""What a deployer writes about the lab's nodes: a Role, a Node for each of them, keys, and settings of their own.

Together with what the control plane's operators write (`cloud_manifests`) it is a whole data plane.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from . import command
from .access import Access
from .ceph import Ceph
from .cloud_manifests import Manifest, apply, in_namespace, resource, secret, service
from .cloud_settings import CELLS
from .labs import Lab
from .nodes import Nodes

GROUP = "dataplane.openstack.org/v1beta1"
ROLE = "edpm-compute"
PROFILE = "lab"
SSH_KEY = "dataplane-ssh"
MIGRATION_KEY = "nova-migration-ssh-key"
CEPH_FILES = "ceph-client"

#: The nodes of one host would all be one machine to libvirt, which then refuses to move guests between them.
_LIBVIRTD = """\
unix_sock_group = "libvirt"
unix_sock_rw_perms = "0770"
auth_unix_ro = "none"
auth_unix_rw = "none"
host_uuid_source = "machine-id"
"""
_MACHINE_ID = "/etc/machine-id"

#: A guest that does not listen to its power button is not waited for.
_SETTINGS = "[DEFAULT]\nshutdown_timeout = 2\n"


def spread(lab: Lab) -> dict[str, str]:
    """All nodes of a lab, dealt out to the cells in turn."""
    names = [node.name for node in Nodes(lab).list()]
    return {name: CELLS[number % len(CELLS)] for number, name in enumerate(names)}


@dataclass
class DataPlane:
    """The data plane over nodes of a lab; whoever changes it writes it again."""

    lab: Lab
    #: Each node and the cell that it belongs to; an empty one means that it has none.
    cells: dict[str, str]
    #: Annotations of nodes beside the one that names the cell.
    annotations: dict[str, dict[str, str]] = field(default_factory=dict)
    #: The customServiceConfig of nodes, for nova-compute.
    snippets: dict[str, str] = field(default_factory=dict)
    #: Variables of nodes beside those that all have.
    variables: dict[str, dict[str, str]] = field(default_factory=dict)
    #: The keys of the Secrets with the certificates of nodes, for libvirt.
    certificates: dict[str, Mapping[str, str]] = field(default_factory=dict)
    #: What all computes are told.
    profile: str = ""
    ceph: Ceph | None = None
    #: The node that cinder-volume runs on, if there is Ceph.
    volumes_on: str = ""

    def manifests(self) -> list[Manifest]:
        """All of it; objects come after those that they name."""
        return [in_namespace(one) for one in (*self._shared(), *self._nodes())]

    def write(self, folder: Path) -> Path:
        """One file, readable to its owner alone since it holds keys."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "data-plane.yaml"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            yaml.safe_dump_all(self.manifests(), file, sort_keys=False, width=1000)
        return path

    def apply(self, server: Access) -> None:
        """Write it into a cluster."""
        apply(server, self.manifests())

    def _shared(self) -> Iterator[Manifest]:
        nodes = Nodes(self.lab)
        yield secret(SSH_KEY, {"ssh-privatekey": nodes.private_key.read_text()})
        yield secret(MIGRATION_KEY, self._migration_key())
        yield resource("v1", "ConfigMap", "libvirt-lab", data={"libvirtd.conf": _LIBVIRTD})
        computes, guests = [MIGRATION_KEY], ["libvirt-lab"]
        if self.ceph:
            yield secret(CEPH_FILES, self.ceph.files())
            computes.append(CEPH_FILES)
            guests.append(CEPH_FILES)
        yield service("nova", computes)
        yield self._libvirt(service("libvirt", guests[1:], guests[:1]))
        yield resource(
            "edpm.openstack.org/v1beta1",
            "ServiceProfile",
            PROFILE,
            spec={"service": "nova_compute", "customServiceConfig": self._profile()},
        )
        yield resource(GROUP, "OpenStackDataPlaneRole", ROLE, self._role_annotations(), spec=self._role(nodes))

    def _libvirt(self, plain: Manifest) -> Manifest:
        """The service, with certificates as the data plane operator's own has them."""
        if not self.certificates:
            return plain
        wanted = {"contents": ["dnsnames", "ips"], "networks": ["ctlplane"]}
        return {**plain, "spec": {**plain["spec"], "tlsCerts": {"default": wanted}}}

    def _role_annotations(self) -> dict[str, str]:
        return {"edpm.openstack.org/profile-nova_compute": PROFILE}

    def _role(self, nodes: Nodes) -> Manifest:
        reached = yaml.safe_load(nodes.inventory())["all"]["vars"]
        mount = {
            "propagation": ["libvirt"],
            "volumes": [{"name": "machine-id", "hostPath": {"path": _MACHINE_ID, "type": "File"}}],
            "mounts": [{"name": "machine-id", "mountPath": _MACHINE_ID, "readOnly": True}],
        }
        return {
            "nodeTemplate": {
                "ansibleUser": reached["ansible_user"],
                "ansibleSSHPrivateKeySecret": SSH_KEY,
                "ansibleVars": {"ansible_ssh_common_args": reached["ansible_ssh_common_args"]},
                "extraMounts": [mount],
            }
        }

    def _profile(self) -> str:
        return _SETTINGS + (self.ceph.computes() if self.ceph else "") + self.profile

    def _nodes(self) -> Iterator[Manifest]:
        nodes = Nodes(self.lab)
        for name, cell in self.cells.items():
            annotations = {"nova.openstack.org/cell": f"nova-{cell}" if cell else "", **self.annotations.get(name, {})}
            spec: Manifest = {"role": ROLE, "hostName": name, "ansibleHost": nodes.address(name)}
            if name in self.variables:
                spec["node"] = {"ansibleVars": self.variables[name]}
            yield resource(GROUP, "OpenStackDataPlaneNode", name, annotations, spec=spec)
        for name, keys in self.certificates.items():
            yield secret(f"cert-libvirt-default-{name}", keys)
        for name, snippet in self.snippets.items():
            compute = {"dataplaneNodeName": name, "cellName": f"nova-{self.cells[name]}"}
            yield resource(
                "nova.openstack.org/v1beta1",
                "NovaExternalCompute",
                name,
                spec={**compute, "customServiceConfig": snippet},
            )
        if self.ceph and self.volumes_on:
            told = {"dataplaneNodeName": self.volumes_on, "customServiceConfig": self.ceph.backend()}
            yield resource("cinder.openstack.org/v1beta1", "CinderExternalVolume", self.volumes_on, spec=told)

    def _migration_key(self) -> Mapping[str, str]:
        """The key pair with which computes reach each other; it stays the same for a lab."""
        path = self.lab.folder / "id_migration"
        if not path.exists():
            command.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "nova", "-f", path])
        return {"ssh-privatekey": path.read_text(), "ssh-publickey": path.with_suffix(".pub").read_text()}
