# SPDX-License-Identifier: GPL-3.0-or-later
"""A large data plane, made by counting: the same sizes give the same objects, filled as real ones are.

Every Node belongs to a Role and through it to a cell. Every tenth Node has annotations of its own, among them the
cell, and a NovaExternalCompute with a snippet; the others have none yet, as before reconcile has run. Every tenth
Role has its ansibleVars as one text in YAML, the older form.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

NAMESPACE = "openstack"
DATAPLANE = "dataplane.openstack.org/v1beta1"
NOVA = "nova.openstack.org/v1beta1"
CELL = "nova.openstack.org/cell"
SSH_KEY_SECRET = "dataplane-ansible-ssh-private-key-secret"
OWN_WORDS_EVERY = 10
NETWORKS = ("ctlplane", "internalapi", "storage", "tenant", "external")

Body = dict[str, Any]


@dataclass(frozen=True)
class Size:
    """How many there are of each."""

    nodes: int = 10_000
    roles: int = 100
    cells: int = 10


def objects(size: Size) -> Iterator[Body]:
    """All objects, those that others name first."""
    yield _secret(SSH_KEY_SECRET, {"ssh-privatekey": _private_key()})
    yield _secret(
        "nova-metadata-compute-config", {"05-nova-metadata.conf": "[DEFAULT]\nnova_metadata_host = metadata\n"}
    )
    yield _nova(size)
    for number in range(size.cells):
        yield _cell(number)
        yield _secret(f"{cell_name(number)}-compute-config", {"01-nova.conf": _config(number), "nova-blank.conf": ""})
        yield _profile(number)
    yield _thing(DATAPLANE, "OpenStackDataPlane", "openstack-edpm", {"deployStrategy": {"deploy": True}})
    for number in range(size.roles):
        yield _role(number, size)
    for number in range(size.nodes):
        yield _node(number, size)
        if number % OWN_WORDS_EVERY == 0:
            yield _compute(number, size)


def cell_name(number: int) -> str:
    """The name of a NovaCell."""
    return f"nova-cell{number + 1}"


def node_name(number: int) -> str:
    """The name of a Node."""
    return f"edpm-compute-{number}"


def _cell_of(number: int, size: Size) -> str:
    return cell_name(number % size.roles % size.cells)


def _thing(api_version: str, kind: str, name: str, spec: Body, **metadata: Any) -> Body:
    named = {"name": name, "namespace": NAMESPACE, "labels": {"app.kubernetes.io/part-of": "edpm"}, **metadata}
    return {"apiVersion": api_version, "kind": kind, "metadata": named, "spec": spec}


def _node(number: int, size: Size) -> Body:
    name = node_name(number)
    addresses = {network: _address(place, number) for place, network in enumerate(NETWORKS)}
    spec = {
        "hostName": name,
        "ansibleHost": addresses["ctlplane"],
        "role": f"edpm-compute-{number % size.roles}",
        "deployStrategy": {"deploy": True},
        "networkAttachments": ["ctlplane"],
        "node": {
            "networks": [
                {"name": network, "subnetName": "subnet1", "fixedIP": address, "defaultRoute": network == "ctlplane"}
                for network, address in addresses.items()
            ],
            "ansibleVars": {
                "canonical_hostname": f"{name}.ctlplane.example.com",
                "fqdn_internal_api": f"{name}.internalapi.example.com",
                "edpm_rack": f"rack-{number // 40}",
                "edpm_chassis_bay": number % 40,
                "edpm_kernel_args": "default_hugepagesz=1GB hugepagesz=1G hugepages=64 iommu=pt intel_iommu=on",
            },
        },
    }
    annotations = (
        {
            CELL: _cell_of(number, size),
            "neutron.openstack.org/sriov-agent": "true",
            "example.com/owner": "site-operations",
        }
        if number % OWN_WORDS_EVERY == 0
        else {}
    )
    return _thing(DATAPLANE, "OpenStackDataPlaneNode", name, spec, annotations=annotations) | _status(
        "Ready", "DataPlaneNodeReady", "SetupReady", "ConfigureNetworkReady", "InstallOSReady", "ConfigureOSReady"
    )


def _role(number: int, size: Size) -> Body:
    variables = {
        "timesync_ntp_servers": [{"hostname": f"ntp{one}.example.com"} for one in range(3)],
        "edpm_network_config_os_net_config_mappings": {"edpm": {"nic1": "eno1", "nic2": "eno2"}},
        "edpm_network_config_template": _NETWORK_TEMPLATE,
        "edpm_sshd_allowed_ranges": ["192.168.122.0/24", "172.16.0.0/12"],
        "edpm_sshd_configure_firewall": True,
        "neutron_physical_bridge_name": "br-ex",
        "neutron_public_interface_name": "eth0",
        "dns_search_domains": ["example.com"],
        **{f"edpm_tuning_{one}": one * 1024 for one in range(12)},
    }
    spec = {
        "dataPlane": "openstack-edpm",
        "deployStrategy": {"deploy": True},
        "networkAttachments": ["ctlplane"],
        "services": ["configure-network", "validate-network", "install-os", "configure-os", "run-os"],
        "nodeTemplate": {
            "ansibleUser": "cloud-admin",
            "ansiblePort": 22,
            "ansibleSSHPrivateKeySecret": SSH_KEY_SECRET,
            "managementNetwork": "ctlplane",
            "ansibleVars": yaml.safe_dump(variables) if number % OWN_WORDS_EVERY == 0 else variables,
        },
    }
    annotations = {
        CELL: _cell_of(number, size),
        "neutron.openstack.org/ovn-metadata-agent": "true",
        "edpm.openstack.org/profile-nova_compute": f"compute-{number % size.cells}",
    }
    return _thing(
        DATAPLANE, "OpenStackDataPlaneRole", f"edpm-compute-{number}", spec, annotations=annotations
    ) | _status("Ready", "SetupReady")


def _compute(number: int, size: Size) -> Body:
    spec = {
        "dataplaneNodeName": node_name(number),
        "cellName": _cell_of(number, size),
        "sshKeySecretName": SSH_KEY_SECRET,
        "inventoryConfigMapName": f"dataplanenode-{node_name(number)}",
        "networkAttachments": ["ctlplane"],
        "deploy": True,
        "novaComputeContainerImage": "quay.io/podified/openstack-nova-compute:30",
        "novaLibvirtContainerImage": "quay.io/podified/openstack-nova-libvirt:30",
        "customServiceConfig": f"[DEFAULT]\ncpu_allocation_ratio = {number % 8 + 1}.0\n\n[libvirt]\nvirt_type = kvm\n",
    }
    owner = {
        "apiVersion": DATAPLANE,
        "kind": "OpenStackDataPlaneNode",
        "name": node_name(number),
        "uid": f"00000000-0000-0000-0000-{number:012}",
        "controller": True,
    }
    return _thing(NOVA, "NovaExternalCompute", node_name(number), spec, ownerReferences=[owner]) | _status("Ready")


def _nova(size: Size) -> Body:
    spec = {
        "secret": "osp-secret",
        "metadataServiceTemplate": {"enabled": True},
        "cellTemplates": {"cell0": {"hasAPIAccess": True}}
        | {cell_name(number).removeprefix("nova-"): {"hasAPIAccess": True} for number in range(size.cells)},
    }
    return _thing(NOVA, "Nova", "nova", spec) | _status("Ready")


def _cell(number: int) -> Body:
    spec = {"cellName": cell_name(number).removeprefix("nova-"), "cellMessageBusSecretName": f"rabbitmq-{number}"}
    return _thing(NOVA, "NovaCell", cell_name(number), spec) | _status("Ready", "NovaCellDBSyncReady")


def _profile(number: int) -> Body:
    spec = {"service": "nova_compute", "customServiceConfig": f"[compute]\nmax_concurrent_disk_ops = {number + 1}\n"}
    return _thing("edpm.openstack.org/v1beta1", "ServiceProfile", f"compute-{number}", spec)


def _secret(name: str, texts: dict[str, str]) -> Body:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "stringData": texts,
    }


def _status(*conditions: str) -> Body:
    return {
        "status": {
            "conditions": [
                {
                    "type": name,
                    "status": "True",
                    "reason": "Ready",
                    "message": f"{name.removesuffix('Ready') or 'Setup'} complete",
                    "lastTransitionTime": "2026-11-01T08:00:00Z",
                }
                for name in conditions
            ]
        }
    }


def _address(network: int, number: int) -> str:
    """Room for 65,536 nodes in each network."""
    return f"10.{network}.{number // 256}.{number % 256}"


def _config(number: int) -> str:
    return (
        f"[DEFAULT]\ntransport_url = rabbit://nova:not-a-real-password@rabbitmq-{number}.openstack.svc:5671/?ssl=1\n"
        + (
            "".join(
                f"\n[section_{one}]\nauth_url = https://keystone.openstack.svc:5000\ntimeout = 60\n"
                for one in range(12)
            )
        )
    )


def _private_key() -> str:
    return (
        ed25519.Ed25519PrivateKey.generate()
        .private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption())
        .decode()
    )


_NETWORK_TEMPLATE = """\
---
{% set mtu_list = [ctlplane_mtu] %}
{% for network in nodeset_networks %}
{{ mtu_list.append(lookup('vars', networks_lower[network] ~ '_mtu')) }}
{%- endfor %}
network_config:
- type: ovs_bridge
  name: {{ neutron_physical_bridge_name }}
  use_dhcp: false
  dns_servers: {{ ctlplane_dns_nameservers }}
"""
