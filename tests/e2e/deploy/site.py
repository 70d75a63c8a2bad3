# SPDX-License-Identifier: GPL-3.0-or-later
"""A small data plane in manifests over nodes of the lab, and the playbooks, called as a person calls them.

Every node runs libvirt and the SR-IOV agent: both get healthy without a cloud, the agent once it has reached its
message bus.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from edpm_lab import images
from edpm_lab.cloud import Cloud
from edpm_lab.labs import Lab
from edpm_lab.nodes import Nodes

NAMESPACE = "openstack"
AGENT = "neutron_sriov_agent"
#: It must not show up anywhere; the agent gets it with its bus.
MARK = "mArk3d-5ecret"
CONFIG = """[DEFAULT]
state_path = /var/lib/neutron
transport_url = {bus}
[agent]
root_helper = sudo neutron-rootwrap /etc/neutron/rootwrap.conf
[oslo_concurrency]
lock_path = /var/lib/neutron/lock
[oslo_messaging_notifications]
driver = noop
transport_url = rabbit://agent:{mark}@127.0.0.1:5672/
"""
#: Seconds for a playbook; on an idle machine none takes a tenth of it.
LIMIT = 900


@dataclass(frozen=True)
class Answer:
    """What a playbook said and how it ended."""

    code: int
    shown: str

    def recap(self, node: str) -> dict[str, int]:
        """Ansible's own count for a node."""
        found = re.search(rf"^{node} +: (.*)$", self.shown, re.MULTILINE)
        assert found, self.shown
        return {name: int(count) for name, count in re.findall(r"(\w+)=(\d+)", found[1])}

    @property
    def said(self) -> str:
        """The line that sums the run up."""
        found = re.findall(r"^\d+ nodes? .* · \d+ restarts?.* · \d\d:\d\d.*$", self.shown, re.MULTILINE)
        assert found, self.shown
        return str(found[-1])


@dataclass
class Site:
    """The data plane; what a test changes in it is written with the next call."""

    lab: Lab
    names: list[str]
    folder: Path
    snippets: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, dict[str, str]] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)
    left_out: set[str] = field(default_factory=set)
    manifests: str = "manifests"
    config: str = ""
    images: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.images = {
            "RELATED_IMAGE_NOVA_LIBVIRT_IMAGE_URL_DEFAULT": images.image("libvirt"),
            "RELATED_IMAGE_EDPM_NEUTRON_SRIOV_AGENT_IMAGE_URL_DEFAULT": images.image("neutron"),
        }
        self.addresses = {node.name: node.address for node in self.nodes.list() if node.name in self.names}
        self.config = CONFIG.format(bus=Cloud(self.lab).up(["bus"]).site.transport_url(), mark=MARK)

    @cached_property
    def nodes(self) -> Nodes:
        return Nodes(self.lab)

    @property
    def inventory(self) -> Path:
        return self.folder / "site.dataplane.yml"

    def play(self, playbook: str, *words: str, env: Mapping[str, str] | None = None) -> Answer:
        """Run a playbook of the collection to its end."""
        return self.begin(playbook, *words, env=env)()

    def begin(self, playbook: str, *words: str, env: Mapping[str, str] | None = None) -> Callable[[], Answer]:
        """Start a playbook; the answer waits for its end."""
        self.write()
        program = str(Path(sys.executable).parent / "ansible-playbook")
        process = subprocess.Popen(
            [program, f"edpm.services.{playbook}", "-i", str(self.inventory), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.folder,
            env={**os.environ, "ANSIBLE_NOCOLOR": "1", **self.images, **(env or {})},
        )

        def end() -> Answer:
            try:
                shown = process.communicate(timeout=LIMIT)[0]
            except subprocess.TimeoutExpired:
                process.kill()
                raise
            return Answer(process.returncode, shown)

        return end

    def sh(self, node: str, script: str, *, check: bool = True) -> str:
        return self.nodes.execute(node, "bash", "-c", script, check=check).stdout.strip()

    def live(self, node: str, service: str) -> str:
        """The digest of the live generation, asked without Ansible."""
        return self.sh(node, f"readlink /var/lib/openstack/{service}/current || true").rpartition("/")[2]

    def override(self, node: str) -> str:
        """The human's snippet as it lies on the node, byte for byte."""
        path = f"/var/lib/openstack/{AGENT}/current/conf.d/99-override.conf"
        return self.nodes.execute(node, "sh", "-c", f"cat {path} 2>/dev/null || true").stdout

    def invocations(self, node: str) -> dict[str, str]:
        """What changes with every start, by service."""
        asked = {name: f"systemctl show --value -p InvocationID edpm_{name}.service" for name in ("libvirt", AGENT)}
        return {name: self.sh(node, script) for name, script in asked.items()}

    def tree(self, node: str) -> str:
        """All that a deployment may write on a node, with times and digests."""
        places = "/var/lib/openstack /etc/containers/systemd /etc/tmpfiles.d /etc/passwd /etc/group"
        found = f"find {places} 2>/dev/null"
        return self.sh(
            node, f"{found} -printf '%p %m %u %T@ %l\\n' | sort; {found} -type f -exec sha256sum {{}} + | sort"
        )

    def clear(self) -> None:
        """Take everything off the nodes, without the collection."""
        script = (
            "systemctl stop 'edpm_*'; rm -rf /etc/containers/systemd/edpm_* /var/lib/openstack /etc/tmpfiles.d/edpm_*;"
            "systemctl daemon-reload; systemctl reset-failed"
        )
        for name in self.names:
            self.sh(name, script, check=False)

    def write(self) -> None:
        """The manifests and the inventory as they are now."""
        manifests = self.folder / "manifests"
        manifests.mkdir(exist_ok=True)
        (manifests / "all.yaml").write_text(yaml.safe_dump_all(self._objects(), sort_keys=False))
        self.inventory.write_text(yaml.safe_dump({"plugin": "edpm.services.dataplane", "manifests": self.manifests}))

    def _lab_variables(self) -> dict[str, str]:
        shared: dict[str, str] = yaml.safe_load(self.nodes.inventory())["all"]["vars"]
        return shared

    def _objects(self) -> list[dict[str, Any]]:
        group = "dataplane.openstack.org/v1beta1"
        annotations = {"edpm.openstack.org/service-libvirt": "true", "neutron.openstack.org/sriov-agent": "true"}
        template = {
            "ansibleUser": "root",
            "ansibleSSHPrivateKeySecret": "ssh",
            "ansibleVars": {"ansible_ssh_common_args": self._lab_variables()["ansible_ssh_common_args"]},
        }
        service = {"edpmServiceType": "neutron-sriov", "dataSources": [{"secretRef": {"name": "sriov-config"}}]}
        return [
            _object("v1", "Secret", "ssh", stringData={"ssh-privatekey": self.nodes.private_key.read_text()}),
            _object("v1", "Secret", "sriov-config", stringData={"01-agent.conf": self.config}),
            _object(group, "OpenStackDataPlaneService", "neutron-sriov", spec=service),
            _object(
                group,
                "OpenStackDataPlaneRole",
                "edge",
                annotations,
                spec={"services": ["neutron-sriov"], "nodeTemplate": template},
            ),
            *(
                _object(
                    group,
                    "OpenStackDataPlaneNode",
                    name,
                    self.annotations.get(name),
                    spec={"role": "edge", "hostName": name, "ansibleHost": self.addresses[name]},
                )
                for name in self.names
                if name not in self.left_out
            ),
            *(
                _object(
                    "neutron.openstack.org/v1beta1",
                    "NeutronSriovAgent",
                    name,
                    spec={"dataplaneNodeName": name, "customServiceConfig": text},
                )
                for name, text in self.snippets.items()
            ),
        ]


def _object(
    version: str, kind: str, name: str, annotations: Mapping[str, str] | None = None, **rest: Any
) -> dict[str, Any]:
    about: dict[str, Any] = {"name": name, "namespace": NAMESPACE}
    if annotations:
        about["annotations"] = dict(annotations)
    return {"apiVersion": version, "kind": kind, "metadata": about, **rest}
