# SPDX-License-Identifier: GPL-3.0-or-later
"""Three computes in two cells of the lab's cloud, the playbooks as a person calls them, and OpenStack to ask."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from edpm_lab import images, ovn, servers
from edpm_lab.ceph import Ceph
from edpm_lab.cloud import WITHOUT_UPTIME, Cloud
from edpm_lab.data_plane import DataPlane
from edpm_lab.errors import LabError
from edpm_lab.labs import Lab
from edpm_lab.nodes import Nodes
from edpm_lab.pki import create_authority
from edpm_lab.servers import Server

#: Two computes in one cell, so that a server can move, and one in the other.
CELLS = {"edpm-cell1-0": "cell1", "edpm-cell1-1": "cell1", "edpm-cell2-0": "cell2"}
FIRST, SECOND, THIRD = CELLS
RATIO = 3.0
SNIPPET = f"[DEFAULT]\ncpu_allocation_ratio = {RATIO}\n"
IMAGES = {
    "NOVA_LIBVIRT": "libvirt",
    "NOVA_COMPUTE": "nova-compute",
    "EDPM_OVN_METADATA_AGENT": "neutron",
    "EDPM_NEUTRON_SRIOV_AGENT": "neutron",
    "EDPM_CINDER_VOLUME": "cinder-volume",
}
ANNOTATIONS = {
    FIRST: {"neutron.openstack.org/ovn-metadata-agent": "true"},
    SECOND: {"neutron.openstack.org/sriov-agent": "true", "cinder.openstack.org/volume": "true"},
}
LIMIT = 900
#: What a node's Open vSwitch and OVN know of its guests' ports.
PORTS = """ovs-vsctl show
tail -n 30 /var/log/ovn/ovn-controller.log /var/log/openvswitch/ovs-vswitchd.log
ip -brief link
"""
RATIOS = """
answer = {}
for one in cloud.placement.resource_providers():
    inventory = cloud.placement.get("/resource_providers/%s/inventories" % one.id).json()["inventories"]
    answer[one.name] = inventory.get("VCPU", {}).get("allocation_ratio")
"""


@dataclass
class Site:
    """The lab's cloud, the nodes, and a data plane in manifests; what a test changes in it is written by `play`."""

    cloud: Cloud
    nodes: Nodes
    ceph: Ceph
    folder: Path
    plane: DataPlane
    metadata: str = "global"
    running: dict[str, Server] = field(default_factory=dict)

    def play(self, playbook: str, *words: str, code: int = 0) -> str:
        """Run a playbook as a person does; the answer is what it showed."""
        return self.begin(playbook, *words)(code)

    def begin(self, playbook: str, *words: str) -> Callable[..., str]:
        """Start a playbook; the answer waits for its end with one of the exit codes that it is given."""
        self.write()
        argv = [str(Path(sys.executable).parent / "ansible-playbook"), f"edpm.services.{playbook}"]
        discover = json.dumps({"edpm_discover_command": self.cloud.discover_argv()})
        argv += ["-i", str(self.folder / "site.dataplane.yml"), "-e", discover, *words]
        default = {f"RELATED_IMAGE_{name}_IMAGE_URL_DEFAULT": images.image(image) for name, image in IMAGES.items()}
        process = subprocess.Popen(
            argv,
            env={**os.environ, **default, "ANSIBLE_NOCOLOR": "1"},
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

        def end(*codes: int) -> str:
            try:
                shown = process.communicate(timeout=LIMIT)[0]
            except subprocess.TimeoutExpired:
                process.kill()
                raise
            assert process.returncode in codes, shown
            return shown

        return end

    def write(self) -> None:
        """The manifests as they are now: the operators' and the deployer's."""
        control = self.folder / "control-plane"
        for old in control.glob("*.yaml"):
            old.unlink()
        self.cloud.manifests(control, metadata=self.metadata)
        self.plane.write(self.folder / "data-plane")

    def migrate_over_tls(self, *names: str) -> None:
        """From the next deployment on: with certificates as the data plane operator has them made."""
        ca = create_authority(self.folder / "ca", "rootca-libvirt")
        for name in names:
            made = ca.server(name, [f"{name}.ctlplane.example.com", self.nodes.address(name)])
            files = {"tls.crt": made.certificate, "tls.key": made.key, "ca.crt": ca.certificate}
            self.plane.certificates[name] = {key: path.read_text() for key, path in files.items()}
            self.plane.variables[name] = {"edpm_nova_compute_migration": "tls"}

    def told_to_guest(self, node: str, after: int = 0) -> tuple[int, str]:
        """When the Linux guest of a node got its metadata, and its UUID there; else the ports of the node are shown."""
        try:
            return servers.metadata(self.cloud, self.running[node].uuid, after=after)
        except LabError:
            print(self.sh(node, PORTS))
            raise

    def computes(self) -> dict[str, tuple[str, str]]:
        """State and status of every compute of ours, as Nova tells them."""
        return {one["host"]: (one["state"], one["status"]) for one in self._services()}

    def all_up(self, limit: float = 120) -> bool:
        """Whether Nova hears of every compute from now on, and says that it is up and enabled, or does so in a moment.

        For a minute after it heard of one last, Nova calls it up, whatever has become of it.
        """
        asked, end = datetime.now(UTC).replace(microsecond=0), time.monotonic() + limit
        while not self._all_up_since(asked):
            if time.monotonic() > end:
                return False
            time.sleep(1)
        return True

    def _all_up_since(self, moment: datetime) -> bool:
        up = [one for one in self._services() if (one["state"], one["status"]) == ("up", "enabled")]
        return {one["host"] for one in up if _moment(one["updated_at"]) >= moment} == CELLS.keys()

    def _services(self) -> list[dict[str, str]]:
        """Every compute of ours, as Nova tells of it."""
        found = self.cloud.openstack("compute.services", binary="nova-compute")
        ours = [one for one in found if one["host"] in CELLS]
        print("compute services:", *(f"{one['host']} {one['state']} {one['status']}," for one in ours))
        return ours

    def hypervisors(self) -> dict[str, str]:
        """The hypervisors that Nova lists, by host, with their kind."""
        listed = self.cloud.openstack("compute.hypervisors", details=True, microversion=WITHOUT_UPTIME)
        said = {one["name"]: one["hypervisor_type"] for one in listed if one["name"] in CELLS}
        print(f"hypervisors: {said}")
        return said

    def mapped(self) -> dict[str, str]:
        """The cell that each host is mapped to."""
        said = {host: cell for host, cell in self.cloud.mapped_hosts().items() if host in CELLS}
        print(f"hosts: {said}")
        return said

    def ratios(self) -> dict[str, float]:
        """The CPU allocation ratio of every resource provider, as Placement tells it."""
        said: dict[str, float] = self.cloud.python(RATIOS)
        print(f"allocation ratios: {said}")
        return said

    def same_ratio(self, node: str, other: str, limit: float = 120) -> bool:
        """Whether Placement has one ratio for both, or has in a moment: a compute reports itself as it starts."""
        end = time.monotonic() + limit
        while (said := self.ratios())[node] != said[other]:
            if time.monotonic() > end:
                return False
            time.sleep(1)
        return True

    def agents(self, node: str) -> dict[str, bool]:
        """The agents of a node in Neutron's list, and whether they are alive."""
        said = {one["binary"]: one["is_alive"] for one in self.cloud.openstack("network.agents") if one["host"] == node}
        print(f"Neutron's agents on {node}: {said}")
        return said

    def volume_services(self) -> dict[str, str]:
        """The services that Cinder lists, by host, with their state."""
        listed = self.cloud.openstack("block_storage.services", binary="cinder-volume")
        said = {one["host"]: one["state"] for one in listed}
        print(f"volume services: {said}")
        return said

    def sh(self, node: str, script: str) -> str:
        return self.nodes.execute(node, "bash", "-c", script, timeout=120).stdout.strip()

    def domains(self, node: str) -> list[str]:
        """The domains that libvirt on a node runs."""
        said = self.sh(node, "podman exec edpm_libvirt virsh list --name").split()
        print(f"libvirt on {node} runs: {said}")
        return said

    def started(self, server: Server) -> str:
        """The process of a server's domain and when it began: both are others after a stop."""
        pid = self.sh(server.host, f"cat /run/libvirt/qemu/{server.domain}.pid")
        began = self.sh(server.host, f"cut -d ' ' -f 22 /proc/{pid}/stat")
        return f"process {pid} since {began}"

    def invocations(self) -> dict[str, str]:
        """What changes with every start, by node and service."""
        asked = "for unit in $(systemctl list-units --plain --no-legend 'edpm_*.service' | cut -d ' ' -f 1); do "
        asked += "echo $unit $(systemctl show --value -p InvocationID $unit); done"
        found = {}
        for node in CELLS:
            for line in self.sh(node, asked).splitlines():
                unit, _space, number = line.partition(" ")
                found[f"{node} {unit}"] = number
        return found


def _moment(told: str | None) -> datetime:
    """When Nova heard of a compute last; before all time where it never did."""
    return datetime.fromisoformat(told).replace(tzinfo=UTC) if told else datetime.min.replace(tzinfo=UTC)


def make(cloud: Cloud, lab: Lab, folder: Path) -> Site:
    """Nodes, Ceph and the data plane; nothing is deployed yet."""
    images.build_all([ovn.IMAGE, "ceph", "guest", *IMAGES.values()])
    nodes = Nodes(lab)
    nodes.up(list(CELLS), image=ovn.IMAGE)
    ceph = Ceph(lab).up()
    for name in CELLS:
        ovn.join(nodes, name, cloud.site.southbound)
    inventory = {"plugin": "edpm.services.dataplane", "manifests": ["control-plane", "data-plane"]}
    (folder / "site.dataplane.yml").write_text(json.dumps(inventory))
    annotations = {name: dict(more) for name, more in ANNOTATIONS.items()}
    plane = DataPlane(
        lab, dict(CELLS), annotations=annotations, snippets={FIRST: SNIPPET}, ceph=ceph, volumes_on=SECOND
    )
    return Site(cloud, nodes, ceph, folder, plane)


def clear(site: Site) -> None:
    """Leave nothing that another test would meet."""
    servers.delete(site.cloud, *(one.uuid for one in servers.listed(site.cloud) if one.host in CELLS))
    for name in CELLS:
        site.nodes.execute(name, "bash", "-c", "systemctl stop 'edpm_*'", check=False)
