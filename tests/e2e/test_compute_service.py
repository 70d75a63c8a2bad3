# SPDX-License-Identifier: GPL-3.0-or-later
"""What OpenStack is told about a compute, asked of OpenStack itself: a real nova-compute comes, serves, and goes.

The tests build on each other, in the order of a compute's life.
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
from edpm_lab import cloud_settings, images, ovn
from edpm_lab.cloud import WITHOUT_UPTIME, Cloud
from edpm_lab.labs import Lab
from edpm_lab.nodes import Nodes
from edpm_lab.quadlet import start_compute

HOST = "edpm-compute-7"

BOOT = """
flavor = cloud.compute.find_flavor("nano") or cloud.compute.create_flavor(name="nano", ram=64, vcpus=1, disk=1)
image = cloud.image.find_image("nothing") or cloud.image.create_image(
    name="nothing", disk_format="raw", container_format="bare", data=bytes(1 << 20), validate_checksum=False)
server = cloud.compute.create_server(
    name=given["name"],
    flavor_id=flavor.id,
    image_id=image.id,
    networks="none",
    availability_zone="nova:" + given["host"],
)
end = time.monotonic() + 200
while server.status not in ("ACTIVE", "ERROR") and time.monotonic() < end:
    time.sleep(1)
    server = cloud.compute.get_server(server.id)
answer = [server.id, server.status, server.compute_host]
"""
DELETE = """
cloud.compute.delete_server(given)
cloud.compute.wait_for_delete(cloud.compute.get_server(given), interval=1, wait=120)
answer = None
"""


@dataclass(frozen=True)
class Site:
    """A cloud, a compute in its first cell, and a controller that has credentials."""

    cloud: Cloud
    nodes: Nodes
    folder: Path

    def tell(self, *flags: str, pair: bool = False, **options: Any) -> dict[str, Any]:
        """Call the module with credentials in clouds.yaml, or as a `pair` with those of the data plane's manifests."""
        given = {"hosts": [HOST], **({} if pair else {"cloud": "default"}), **options}
        argv = [str(Path(sys.executable).parent / "ansible"), "localhost", "-m", "edpm.services.compute_service"]
        argv += ["-a", json.dumps(given), "-i", str(self.folder / "site.dataplane.yml"), *flags]
        env = {**os.environ, "OS_CLIENT_CONFIG_FILE": str(self.folder / "clouds.yaml"), "ANSIBLE_NOCOLOR": "1"}
        shown = subprocess.run(argv, capture_output=True, text=True, timeout=400, env=env, check=False).stdout
        assert self.cloud.site.passwords.admin not in shown
        found = re.search(r"^localhost \| (\w+)!? => (?=\{)", shown, re.MULTILINE)
        assert found, shown
        answer: dict[str, Any] = json.JSONDecoder().raw_decode(shown[found.end() :])[0]
        print(f"{options}: {answer['msg']}")
        return {"failed": found[1] == "FAILED", **answer}

    def known(self) -> dict[str, Any]:
        """What OpenStack itself says about the compute."""
        services, hypervisors, providers = self.cloud.ask(
            [
                ("compute.services", [], {"host": HOST}),
                ("compute.hypervisors", [], {"details": True, "microversion": WITHOUT_UPTIME}),
                ("placement.resource_providers", [], {"name": HOST}),
            ]
        )
        said = {
            "services": [(one["state"], one["status"], one["disabled_reason"]) for one in services],
            "hypervisors": [one["name"] for one in hypervisors if one["service_details"]["host"] == HOST],
            "providers": [one["name"] for one in providers],
        }
        print(f"OpenStack says: {said}")
        return said


@pytest.fixture(scope="module")
def site(cloud: Cloud, lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    images.build_all([ovn.IMAGE, "nova-compute"])
    folder = tmp_path_factory.mktemp("compute-service")
    cloud.manifests(folder / "manifests")
    (folder / "site.dataplane.yml").write_text("plugin: edpm.services.dataplane\nmanifests: manifests\n")
    secure, clouds = yaml.safe_load(cloud.site.secure()), yaml.safe_load(cloud.site.clouds())
    clouds["clouds"]["default"]["auth"] |= secure["clouds"]["default"]["auth"]
    (folder / "clouds.yaml").write_text(yaml.safe_dump(clouds))
    nodes = Nodes(lab)
    nodes.up([HOST], image=ovn.IMAGE)
    start_compute(nodes, HOST, cloud_settings.compute(cloud.site, "cell1"))
    yield Site(cloud, nodes, folder)
    nodes.execute(HOST, "systemctl", "stop", "nova_compute.service", check=False)


def test_a_compute_that_has_reported_is_mapped_by_the_sites_command(site: Site) -> None:
    discover: dict[str, Any] = {"state": "discovered", "discover_command": site.cloud.discover_argv(), "timeout": 300}
    announced = site.tell("--check", **discover)
    assert (announced["changed"], announced["failed"]) == (True, False)
    assert site.known()["hypervisors"] == []
    first = site.tell(**discover)
    assert (first["changed"], first["changed_hosts"]) == (True, [HOST]), first
    assert site.known() == {"services": [("up", "enabled", None)], "hypervisors": [HOST], "providers": [HOST]}
    assert not site.tell(**discover)["changed"]


def test_a_command_that_fails_is_told_with_what_it_said(site: Site) -> None:
    answer = site.tell(hosts=["edpm-compute-none"], state="discovered", timeout=3)
    assert answer["failed"]
    assert "edpm-compute-none has not reported to Nova within 3 s" in answer["msg"]


def test_the_data_planes_own_credentials_disable_it_and_a_second_time_nothing_happens(site: Site) -> None:
    told: dict[str, Any] = {"state": "disabled", "reason": "new disks", "pair": True}
    assert site.tell("--check", **told)["changed"]
    assert site.known()["services"] == [("up", "enabled", None)]
    assert [site.tell(**told)["changed"] for _ in range(2)] == [True, False]
    assert site.known()["services"] == [("up", "disabled", "new disks")]
    assert site.tell(state="enabled", pair=True)["changed"]


def test_a_compute_with_a_server_is_neither_drained_nor_removed(site: Site) -> None:
    server, status, host = site.cloud.python(BOOT, {"name": "guest", "host": HOST}, timeout=260)
    assert (status, host) == ("ACTIVE", HOST)
    try:
        for state in ("drained", "absent"):
            answer = site.tell(state=state)
            assert answer["failed"]
            assert f"1 server is (guest) on {HOST}" in answer["msg"]
        assert site.known()["services"] == [("up", "enabled", None)]
    finally:
        site.cloud.python(DELETE, server)


def test_an_empty_compute_is_drained_then_removed_from_nova_and_placement(site: Site) -> None:
    assert [site.tell(state="drained")["changed"] for _ in range(2)] == [True, False]
    assert site.known()["services"][0][1] == "disabled"
    site.nodes.execute(HOST, "systemctl", "stop", "nova_compute.service", timeout=120)
    assert site.tell("--check", state="absent")["changed"]
    assert site.known()["providers"] == [HOST]
    gone = site.tell(state="absent", pair=True)
    assert (gone["changed"], gone["failed"]) == (True, False), gone
    assert site.known() == {"services": [], "hypervisors": [], "providers": []}
    assert not site.tell(state="absent")["changed"]


def test_a_wrong_password_is_one_sentence(site: Site) -> None:
    clouds = site.folder / "clouds.yaml"
    right = clouds.read_text()
    clouds.write_text(right.replace(site.cloud.site.passwords.admin, "another"))
    try:
        answer = site.tell(state="disabled")
    finally:
        clouds.write_text(right)
    assert answer["failed"]
    assert re.match(r"OpenStack does not let us in: .*; see to the credentials\.$", answer["msg"])
