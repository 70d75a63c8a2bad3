# SPDX-License-Identifier: GPL-3.0-or-later
"""Computes in two cells, brought by `deploy` and taken away by `remove`: OpenStack itself says what became of them.

The tests build on each other, in the order of a compute's life, and print what OpenStack answered.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from edpm_lab import images, ovn
from edpm_lab.cloud import Cloud
from edpm_lab.labs import Lab
from edpm_lab.nodes import Nodes

CELLS = {"edpm-cell1-0": "cell1", "edpm-cell2-0": "cell2"}
FIRST, SECOND = CELLS
RATIO = 3.0
GROUP = "dataplane.openstack.org/v1beta1"
IMAGES = {"LIBVIRT": "libvirt", "COMPUTE": "nova-compute"}
BOOT = """
flavor = cloud.compute.find_flavor("nano") or cloud.compute.create_flavor(name="nano", ram=64, vcpus=1, disk=1)
image = cloud.image.find_image("nothing") or cloud.image.create_image(
    name="nothing", disk_format="raw", container_format="bare", data=bytes(1 << 20), validate_checksum=False)
server = cloud.compute.create_server(
    name=given, flavor_id=flavor.id, image_id=image.id, networks="none", availability_zone="nova:" + given)
end = time.monotonic() + 240
while server.status not in ("ACTIVE", "ERROR") and time.monotonic() < end:
    time.sleep(1)
    server = cloud.compute.get_server(server.id)
answer = [server.id, server.status, server.compute_host, server.instance_name]
"""
DELETE = """
cloud.compute.delete_server(given)
cloud.compute.wait_for_delete(cloud.compute.get_server(given), interval=1, wait=120)
answer = None
"""
RATIOS = """
answer = {}
for one in cloud.placement.resource_providers():
    inventory = cloud.placement.get("/resource_providers/%s/inventories" % one.id).json()["inventories"]
    answer[one.name] = inventory.get("VCPU", {}).get("allocation_ratio")
"""


@dataclass(frozen=True)
class Site:
    """The lab's cloud, two nodes, and a data plane in manifests that puts each of them into a cell."""

    cloud: Cloud
    nodes: Nodes
    folder: Path

    def play(self, playbook: str, *words: str, code: int = 0) -> str:
        """Run a playbook as a person does; the answer is what it showed."""
        argv = [str(Path(sys.executable).parent / "ansible-playbook"), f"edpm.services.{playbook}"]
        discover = json.dumps({"edpm_discover_command": self.cloud.discover_argv()})
        argv += ["-i", str(self.folder / "site.dataplane.yml"), "-e", discover, *words]
        default = {
            f"RELATED_IMAGE_NOVA_{name}_IMAGE_URL_DEFAULT": images.image(image) for name, image in IMAGES.items()
        }
        env = {**os.environ, **default, "ANSIBLE_NOCOLOR": "1"}
        done = subprocess.run(argv, env=env, cwd=self.folder, capture_output=True, text=True, timeout=900, check=False)
        shown = done.stdout + done.stderr
        assert done.returncode == code, shown
        return shown

    def computes(self) -> dict[str, tuple[str, str]]:
        """State and status of every compute of ours, as Nova tells them."""
        services = self.cloud.openstack("compute.services", binary="nova-compute")
        said = {one["host"]: (one["state"], one["status"]) for one in services if one["host"] in CELLS}
        print(f"compute services: {said}")
        return said

    def mapped(self) -> dict[str, str]:
        """The cell that each host is mapped to."""
        shown = self.cloud.inside("su", "-s", "/bin/sh", "nova", "-c", "nova-manage cell_v2 list_hosts").stdout
        rows = re.findall(r"^\| +(\S+) +\| +\S+ +\| +(\S+) +\|$", shown, re.MULTILINE)
        said = {host: cell for cell, host in rows if host in CELLS}
        print(f"hosts: {said}")
        return said

    def ratios(self) -> dict[str, float]:
        """The CPU allocation ratio of every resource provider, as Placement tells it."""
        said: dict[str, float] = self.cloud.python(RATIOS)
        print(f"allocation ratios: {said}")
        return said

    def sh(self, node: str, script: str) -> str:
        return self.nodes.ssh(node, "bash", "-c", script).stdout.strip()


@pytest.fixture(scope="module")
def site(cloud: Cloud, lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    images.build_all([ovn.IMAGE, *IMAGES.values()])
    folder = tmp_path_factory.mktemp("cloud")
    nodes = Nodes(lab)
    nodes.up(list(CELLS), image=ovn.IMAGE)
    for name in CELLS:
        ovn.join(nodes, name, cloud.site.southbound)
    cloud.manifests(folder / "manifests")
    (folder / "manifests/nodes.yaml").write_text(yaml.safe_dump_all(_data_plane(nodes)))
    (folder / "site.dataplane.yml").write_text("plugin: edpm.services.dataplane\nmanifests: manifests\n")
    yield Site(cloud, nodes, folder)
    for name in CELLS:
        nodes.ssh(name, "bash", "-c", "systemctl stop 'edpm_*'", check=False)


def _data_plane(nodes: Nodes) -> list[dict[str, Any]]:
    shared = yaml.safe_load(nodes.inventory())["all"]["vars"]
    template = {
        "ansibleUser": "root",
        "ansibleSSHPrivateKeySecret": "ssh",
        "ansibleVars": {"ansible_ssh_common_args": shared["ansible_ssh_common_args"]},
    }
    snippet = f"[DEFAULT]\ncpu_allocation_ratio = {RATIO}\n"
    compute = {"dataplaneNodeName": FIRST, "cellName": "nova-cell1", "customServiceConfig": snippet}
    return [
        _object("v1", "Secret", "ssh", stringData={"ssh-privatekey": nodes.private_key.read_text()}),
        _object(GROUP, "OpenStackDataPlaneRole", "compute", spec={"nodeTemplate": template}),
        _object("nova.openstack.org/v1beta1", "NovaExternalCompute", FIRST, spec=compute),
        *(
            _object(
                GROUP,
                "OpenStackDataPlaneNode",
                name,
                {"nova.openstack.org/cell": f"nova-{cell}"},
                spec={"role": "compute", "hostName": name, "ansibleHost": nodes.address(name)},
            )
            for name, cell in CELLS.items()
        ),
    ]


def _object(version: str, kind: str, name: str, annotations: dict[str, str] | None = None, **rest: Any) -> Any:
    metadata = {"name": name, "namespace": "openstack", "annotations": annotations or {}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **rest}


def test_both_computes_are_up_and_mapped_in_their_cells(site: Site) -> None:
    shown = site.play("deploy")
    print(shown[shown.rindex("NODE ") :])
    assert site.computes() == dict.fromkeys(CELLS, ("up", "enabled"))
    assert site.mapped() == CELLS


def test_the_snippet_shows_in_placement_for_its_node_and_for_no_other(site: Site) -> None:
    ratios = site.ratios()
    assert ratios[FIRST] == RATIO
    assert ratios[SECOND] != RATIO


def test_a_second_deployment_changes_nothing(site: Site) -> None:
    shown = site.play("deploy")
    recaps = re.findall(r"^(\S+) +: ok=\d+ +changed=(\d+)", shown, re.MULTILINE)
    assert {name: count for name, count in recaps if name in CELLS} == dict.fromkeys(CELLS, "0"), shown
    assert re.search(r"^0 nodes changed, 2 unchanged", shown, re.MULTILINE), shown


def test_a_server_boots_on_each_and_is_a_domain_of_libvirt(site: Site) -> None:
    for name in CELLS:
        server, status, host, domain = site.cloud.python(BOOT, name, timeout=300)
        print(f"server {server}: {status} on {host}")
        assert (status, host) == ("ACTIVE", name)
        assert site.sh(name, "podman exec edpm_libvirt virsh list --name") == domain
        if name == SECOND:
            site.cloud.python(DELETE, server)


def test_a_compute_with_a_server_is_not_removed(site: Site) -> None:
    shown = site.play("remove", "-e", f"node={FIRST}", code=2)
    assert "1 server" in shown
    assert site.sh(FIRST, "systemctl is-active edpm_nova_compute edpm_libvirt").split() == ["active", "active"]


def test_an_empty_one_is_gone_from_nova_placement_and_its_node_and_stays_away(site: Site) -> None:
    site.play("remove", "-e", f"node={SECOND}")
    assert SECOND not in site.computes()
    assert SECOND not in site.ratios()
    assert site.sh(SECOND, "ls /etc/containers/systemd /var/lib/openstack 2>/dev/null | grep nova || true") == ""
    site.nodes.reboot(SECOND)
    assert "edpm_nova_compute" not in site.sh(SECOND, "podman ps --all --format '{{.Names}}'")
    assert site.computes() == {FIRST: ("up", "enabled")}
