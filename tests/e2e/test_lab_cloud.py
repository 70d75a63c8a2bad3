# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's cloud is OpenStack itself: its own services are asked, and what they answer is printed."""

from __future__ import annotations

import http.client
import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from edpm_lab import labs, ovn
from edpm_lab.cloud import NAME, Cloud
from edpm_lab.cloud_settings import CATALOG, CELLS
from edpm_lab.labs import Lab
from edpm_lab.nodes import Nodes
from edpm_lab.openstack_calls import OpenStackError

NODE = "edpm-compute-9"
COMPUTE = "nova-compute"


def test_keystone_gives_a_token_for_the_credentials_that_the_manifests_hold(cloud: Cloud, tmp_path: Path) -> None:
    cloud.manifests(tmp_path)
    documents = [yaml.safe_load(file.read_text()) for file in tmp_path.glob("*openstack-config*")]
    data = {
        key: text for one in documents for key, text in {**one.get("data", {}), **one.get("stringData", {})}.items()
    }
    public, secret = (
        yaml.safe_load(data[name])["clouds"]["default"]["auth"] for name in ("clouds.yaml", "secure.yaml")
    )
    status, token = ask_for_a_token(cloud, {**public, **secret})
    print(f"Keystone answers {status}, the token is for {token.get('user', {}).get('name')}")
    assert (status, token["user"]["name"]) == (201, "admin")
    assert {role["name"] for role in token["roles"]} >= {"admin"}
    status, _ = ask_for_a_token(cloud, {**public, "password": "another"})
    assert status == 401


def test_every_service_is_in_the_catalog_and_answers_there(cloud: Cloud) -> None:
    services, endpoints = cloud.ask([("identity.services", [], {}), ("identity.endpoints", [], {})])
    names = {service["id"]: service["name"] for service in services}
    urls = {names[each["service_id"]]: each["url"] for each in endpoints if each["interface"] == "public"}
    print(json.dumps(urls, indent=2))
    assert urls == {name: f"http://{cloud.address}{place}" for name, _, place in CATALOG} | {
        "keystone": f"http://{cloud.address}:5000/v3"
    }
    asked = [
        "compute.flavors",
        "image.images",
        "network.networks",
        "block_storage.volumes",
        "placement.resource_providers",
    ]
    assert all(isinstance(found, list) for found in cloud.ask([(path, [], {}) for path in asked]))


def control_services(cloud: Cloud) -> Counter[str]:
    """The services of Nova that are up, without the computes, which are other tests'."""
    listed = cloud.openstack("compute.services")
    return Counter(each["binary"] for each in listed if each["state"] == "up" and each["binary"] != COMPUTE)


def test_nova_has_two_cells_each_with_a_bus_and_a_conductor_of_its_own(cloud: Cloud) -> None:
    listed = cloud.inside("su", "-s", "/bin/sh", "nova", "-c", "nova-manage cell_v2 list_cells --verbose").stdout
    print(listed.replace(cloud.site.passwords.database, "***"))
    for cell in CELLS:
        (line,) = [line for line in listed.splitlines() if f"| {cell} " in line]
        assert cloud.site.transport_url(cell) in line
    up = control_services(cloud)
    assert up == {"nova-conductor": 3, "nova-scheduler": 1}
    reported = [service_records(cloud, f"nova_{cell}") for cell in ("cell0", *CELLS)]
    # A cell may have been given a metadata service by another test.
    others = {COMPUTE, "nova-metadata"}
    assert [set(cell) - others for cell in reported[1:]] == [{"nova-conductor"}, {"nova-conductor"}]


def test_the_volume_service_and_the_bus_of_agents_are_up(cloud: Cloud) -> None:
    services = cloud.openstack("block_storage.services", binary="cinder-scheduler")
    print([(each["binary"], each["state"]) for each in services])
    assert [(each["binary"], each["state"]) for each in services] == [("cinder-scheduler", "up")]
    assert cloud.inside("systemctl", "is-active", "neutron-rpc-server").stdout.strip() == "active"


def test_metadata_is_served_and_refuses_a_stranger(cloud: Cloud) -> None:
    connection = http.client.HTTPConnection(cloud.address, 8775, timeout=60)
    connection.request("GET", "/openstack/latest/meta_data.json", headers={"X-Instance-ID": "not-mine"})
    answer = connection.getresponse()
    print(f"nova-metadata answers {answer.status}: {answer.read(80)!r}")
    assert answer.status in (400, 403)


def test_a_node_with_ovn_joins_and_neutron_sees_its_controller(cloud: Cloud, lab: Lab) -> None:
    nodes = Nodes(lab)
    nodes.up([NODE], image=ovn.IMAGE)
    idle = nodes.execute(NODE, "systemctl", "is-active", "libvirtd", "openvswitch-switch", "ovn-host", check=False)
    assert idle.stdout.split() == ["inactive"] * 3
    assert cloud.address in nodes.execute(NODE, "getent", "hosts", NAME).stdout
    ovn.join(nodes, NODE, cloud.site.southbound)
    limit, agents = time.monotonic() + 60, list[dict[str, Any]]()
    while not any(agent["is_alive"] for agent in agents) and time.monotonic() < limit:
        agents = [agent for agent in cloud.openstack("network.agents") if agent["host"] == NODE]
    print(json.dumps(agents, indent=2))
    assert [(agent["binary"], agent["is_alive"]) for agent in agents] == [("ovn-controller", True)]
    nodes.reboot(NODE)
    connected = "for _ in $(seq 150); do ovn-appctl -t ovn-controller connection-status && exit; sleep 0.2; done"
    assert "connected" in nodes.execute(NODE, "sh", "-c", connected).stdout


def test_libvirt_of_the_node_starts_when_it_is_asked_to(lab: Lab) -> None:
    nodes = Nodes(lab)
    nodes.up([NODE], image=ovn.IMAGE)
    nodes.execute(NODE, "systemctl", "start", "libvirtd.socket", "virtlogd.socket")
    version = nodes.execute(NODE, "virsh", "-c", "qemu:///system", "version").stdout
    print(version)
    assert "Running hypervisor: QEMU" in version
    nodes.execute(NODE, "systemctl", "stop", "libvirtd.socket", "libvirtd.service", "virtlogd.socket", check=False)


def test_a_cells_bus_gets_a_new_password_and_the_old_one_opens_nothing(cloud: Cloud) -> None:
    old = {cell: cloud.site.passwords.bus[cell] for cell in CELLS}
    cloud.rotate_bus("cell1")
    new = {cell: cloud.site.passwords.bus[cell] for cell in CELLS}
    assert new["cell1"] != old["cell1"]
    assert new["cell2"] == old["cell2"]
    assert opens(cloud, "nova-cell1", new["cell1"])
    assert not opens(cloud, "nova-cell1", old["cell1"])
    up = control_services(cloud)
    assert up == {"nova-conductor": 3, "nova-scheduler": 1}


def test_what_openstack_refuses_is_told_in_its_words(cloud: Cloud) -> None:
    with pytest.raises(OpenStackError, match=r"^OpenStack: .*could not be found"):
        cloud.openstack("compute.get_flavor", "no-such-flavor")


def test_a_bus_alone_serves_both_cells_and_nothing_else() -> None:
    with labs.opened(f"test-{os.getpid()}-bus") as small:
        bus = Cloud(small).up(["bus"])
        assert bus.parts() == ["bus"]
        assert all(opens(bus, f"nova-{cell}", bus.site.passwords.bus[cell]) for cell in CELLS)
        listening = bus.inside("ss", "-Hltn").stdout
        assert ":5672 " in listening
        assert ":3306 " not in listening


def ask_for_a_token(cloud: Cloud, auth: dict[str, str]) -> tuple[int, dict[str, Any]]:
    user = {"name": auth["username"], "domain": {"name": auth["user_domain_name"]}, "password": auth["password"]}
    scope = {"project": {"name": auth["project_name"], "domain": {"name": auth["project_domain_name"]}}}
    body = {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": scope}}
    connection = http.client.HTTPConnection(cloud.address, 5000, timeout=60)
    connection.request("POST", "/v3/auth/tokens", json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    token: dict[str, Any] = json.loads(answer.read()).get("token", {})
    return answer.status, token


def service_records(cloud: Cloud, database: str) -> list[str]:
    asked = f"SELECT DISTINCT `binary` FROM {database}.services WHERE deleted = 0"
    return cloud.inside("mariadb", "--skip-column-names", "--execute", asked).stdout.split()


def opens(cloud: Cloud, user: str, password: str) -> bool:
    return cloud.inside("rabbitmqctl", "--quiet", "authenticate_user", user, password, check=False).returncode == 0
