# SPDX-License-Identifier: GPL-3.0-or-later
"""A real firewalld on a node of the lab: ports come, move, last and go, and those of others stay.

The tests build on each other: each leaves the probe live, with FIRST's ports open, and firewalld up.
"""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import Bundle
from edpm_lab import images
from edpm_lab.labs import Lab
from edpm_lab.nodes import Nodes

from tests.e2e.node.probe import Caller, bundle

NAME, IMAGE = "edpm-firewalld-0", "node-firewalld"
SERVICE = "edpm_probe"
OLD, NEW, SHARED = 8099, 8100, 8101
#: Answers on all of them, so that what does not answer is closed.
ANSWERS = f"""import socket, time
heard = [socket.create_server(("", port), backlog=1000) for port in ({OLD}, {NEW}, {SHARED})]
time.sleep(1e9)
"""
FIRST = (f"tcp {OLD}", f"tcp {SHARED}", "udp 6000-6010")
SECOND = (f"tcp {NEW}", f"tcp {SHARED}", "udp 6005-6020")
ALL = "for zone in $(firewall-cmd --get-zones); do firewall-cmd --info-zone=$zone; done"
#: Of ports that were open before a service came, while it is there.
NOTES = "edpm_firewalld"
PERMANENT = ALL.replace("firewall-cmd --info", "firewall-cmd --permanent --info")


@pytest.fixture(scope="module")
def image() -> str:
    return images.image("base")


@pytest.fixture(scope="module")
def caller(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Caller:
    nodes = Nodes(lab)
    nodes.up([NAME], IMAGE)
    made = Caller(nodes, NAME, tmp_path_factory.mktemp("calls"))
    made.nodes.ssh(NAME, "tee", "/srv/answers.py", stdin=ANSWERS)
    made.sh("systemctl enable --now firewalld.service")
    answer(made)
    return made


def answer(caller: Caller) -> None:
    caller.sh("systemd-run --unit=answers python3 /srv/answers.py")
    caller.until(f"ss -Hltn sport = {SHARED} | grep -q .")


def first(image: str) -> Bundle:
    return bundle(image, {"01.conf": b"value = one\n"}, ports=FIRST)


def second(image: str, text: bytes = b"value = two\n") -> Bundle:
    return bundle(image, {"01.conf": text}, ports=SECOND)


def open_ports(caller: Caller) -> set[int]:
    """What answers from outside."""
    return {port for port in (OLD, NEW, SHARED) if caller.reaches(port)}


def kept(caller: Caller) -> set[str]:
    """What the service of firewalld opens for good."""
    asked = f"firewall-cmd --permanent --zone=public --query-service={SERVICE} >&2"
    return set(caller.sh(f"{asked}; firewall-cmd --permanent --service={SERVICE} --get-ports").split())


def listed(caller: Caller) -> set[str]:
    """The ports that the default zone has by themselves."""
    return set(caller.sh("firewall-cmd --list-ports").split())


def deployed(caller: Caller, made: Bundle) -> dict[str, Any]:
    said = caller.deploy(made)
    assert (said["failed"], said["changed"]) == (False, True), said["shown"]
    assert caller.deploy(made)["changed"] is False
    return said


def test_ports_are_open_at_once_and_for_good_and_a_second_deployment_changes_nothing(
    caller: Caller, image: str
) -> None:
    assert open_ports(caller) == set()
    state = f"{ALL}; {PERMANENT}; find /etc/firewalld -type f -exec sha256sum {{}} +; find /run -name '{NOTES}'"
    before = caller.sh(state)
    announced = caller.deploy(first(image), "--check")
    assert announced["changed"], announced["shown"]
    assert caller.sh(state) == before
    assert announced["node"] == deployed(caller, first(image))["node"], announced["shown"]
    assert announced["node"][-len(FIRST) :] == [f"port {port}" for port in FIRST]
    assert open_ports(caller) == {OLD, SHARED}
    assert listed(caller) == kept(caller) == {f"{OLD}/tcp", f"{SHARED}/tcp", "6000-6010/udp"}
    for port in kept(caller):
        assert caller.sh(f"firewall-cmd --query-port={port}") == "yes"
    after = caller.sh(state)
    assert caller.deploy(first(image), "--check")["changed"] is False
    assert caller.deploy(second(image), "--check")["changed"] is True
    assert caller.remove("--check")["changed"] is True
    assert caller.sh(state) == after


@pytest.mark.parametrize("again", ["firewall-cmd --reload", "systemctl restart firewalld.service", "reboot"])
def test_ports_last_over_a_new_start(caller: Caller, image: str, again: str) -> None:
    if again == "reboot":
        caller.nodes.reboot(NAME)
        caller.until(f"systemctl is-active -q {SERVICE}.service && systemctl is-active -q firewalld.service")
        answer(caller)
    else:
        caller.sh(again)
    assert open_ports(caller) == {OLD, SHARED}
    assert listed(caller) == set()
    assert caller.sh(f"firewall-cmd --query-service={SERVICE}") == "yes"
    assert caller.deploy(first(image))["changed"] is False
    assert caller.facts()["drift"] == []


@pytest.mark.parametrize("between", ["true", "firewall-cmd --reload"])
def test_other_ports_take_the_place_of_the_old_ones_and_a_way_back_brings_these(
    caller: Caller, image: str, between: str
) -> None:
    said = deployed(caller, second(image))
    assert f"port tcp {OLD}, no longer needed" in said["node"], said["shown"]
    for _once in range(2):
        assert open_ports(caller) == {NEW, SHARED}
        assert kept(caller) == {f"{NEW}/tcp", f"{SHARED}/tcp", "6005-6020/udp"}
        caller.sh(between)
    back = caller.go_back()
    assert (back["failed"], back["digest"]) == (False, first(image).digest), back["shown"]
    assert open_ports(caller) == {OLD, SHARED}
    assert kept(caller) == {f"{OLD}/tcp", f"{SHARED}/tcp", "6000-6010/udp"}
    assert listed(caller) == kept(caller)
    assert caller.deploy(first(image))["changed"] is False
    caller.sh(between)
    assert open_ports(caller) == {OLD, SHARED}


def test_a_service_that_does_not_come_up_gets_the_former_ports_back(caller: Caller, image: str) -> None:
    said = caller.deploy(second(image, b"die\n"))
    assert said["failed"], said["shown"]
    assert open_ports(caller) == {OLD, SHARED}
    assert kept(caller) == {f"{OLD}/tcp", f"{SHARED}/tcp", "6000-6010/udp"}
    assert caller.deploy(first(image))["changed"] is False


def test_a_removal_leaves_what_others_have_opened(caller: Caller, image: str) -> None:
    caller.remove()
    # By hand until the next start, by hand for good, for some packets alone, and a range that ours runs into.
    caller.sh(f"firewall-cmd --add-port={NEW}/tcp --add-port=6020-6030/udp")
    caller.sh("firewall-cmd --permanent --add-port=6000-6003/udp; firewall-cmd --add-port=6000-6003/udp")
    rich = 'rule family="ipv4" source address="192.0.2.1" port port="6010" protocol="udp" accept'
    caller.sh(f"firewall-cmd --permanent --add-rich-rule='{rich}'")
    before = sorted(caller.sh(f"{ALL}; {PERMANENT}").split())
    other = bundle(image, {"01.conf": b""}, instance="other", ports=(f"tcp {SHARED}",))
    deployed(caller, other)
    deployed(caller, first(image))
    deployed(caller, second(image))
    assert open_ports(caller) == {NEW, SHARED}
    assert listed(caller) == {f"{NEW}/tcp", f"{SHARED}/tcp", "6000-6003/udp", "6005-6030/udp"}

    assert caller.remove()["changed"]
    assert open_ports(caller) == {NEW, SHARED}
    assert caller.deploy(other)["changed"] is False
    assert caller.begin("service", {"state": "absent", "service": "probe", "instance": "other"})()["changed"]
    assert open_ports(caller) == {NEW}
    assert sorted(caller.sh(f"{ALL}; {PERMANENT}").split()) == before
    assert caller.sh(f"find /etc/firewalld -name '*edpm_*'; find /run -name '{NOTES}'") == ""

    caller.sh("firewall-cmd --permanent --remove-port=6000-6003/udp")
    caller.sh(f"firewall-cmd --permanent --remove-rich-rule='{rich}'; firewall-cmd --reload")
    deployed(caller, first(image))


def test_a_removal_leaves_the_ports_of_others_where_the_service_is_loaded(caller: Caller, image: str) -> None:
    other = bundle(image, {"01.conf": b""}, instance="other", ports=(f"tcp {SHARED}",))
    deployed(caller, other)
    caller.sh(f"firewall-cmd --reload; firewall-cmd --add-port={OLD}/tcp")
    assert caller.remove()["changed"]
    assert open_ports(caller) == {OLD, SHARED}
    assert caller.begin("service", {"state": "absent", "service": "probe", "instance": "other"})()["changed"]
    assert open_ports(caller) == {OLD}
    caller.sh(f"firewall-cmd --remove-port={OLD}/tcp")
    deployed(caller, first(image))


def test_zones_in_use_get_the_ports_and_lists_of_those_shut_out_do_not(caller: Caller, image: str) -> None:
    caller.sh(
        "firewall-cmd --zone=drop --add-source=198.51.100.0/24; firewall-cmd --zone=trusted --add-source=10.88.0.0/16"
    )
    assert caller.deploy(first(image))["changed"] is False
    caller.sh("firewall-cmd --zone=internal --add-interface=eth0")
    assert open_ports(caller) == set()
    assert [one["name"] for one in caller.facts()["drift"]] == [f"port {port}" for port in FIRST]
    deployed(caller, first(image))
    assert open_ports(caller) == {OLD, SHARED}
    caller.sh("firewall-cmd --zone=internal --remove-interface=eth0")
    assert caller.deploy(first(image))["changed"] is False
    assert caller.remove()["changed"]
    assert "8099" not in caller.sh(f"{ALL}; {PERMANENT}")
    assert SERVICE not in caller.sh(f"{ALL}; {PERMANENT}")
    caller.sh("firewall-cmd --reload")
    deployed(caller, first(image))


def test_a_firewalld_that_is_down_closes_nothing_and_opens_the_ports_when_it_starts(caller: Caller, image: str) -> None:
    caller.sh("systemctl stop firewalld.service")
    assert open_ports(caller) == {OLD, NEW, SHARED}
    assert caller.deploy(first(image))["changed"] is False
    said = deployed(caller, second(image))
    assert f"port tcp {NEW} in firewalld" in said["node"], said["shown"]
    caller.sh("systemctl start firewalld.service")
    assert open_ports(caller) == {NEW, SHARED}
    assert caller.deploy(second(image))["changed"] is False

    caller.sh("systemctl stop firewalld.service")
    assert caller.remove()["changed"]
    assert caller.sh("find /etc/firewalld -name '*edpm_*'") == ""
    assert caller.sh("grep -r --include='*.xml' edpm_ /etc/firewalld || true") == ""
    deployed(caller, first(image))
    caller.sh("systemctl start firewalld.service")
    assert open_ports(caller) == {OLD, SHARED}
    assert caller.deploy(first(image))["changed"] is False


def test_one_that_is_switched_off_is_left_alone(caller: Caller, image: str) -> None:
    assert caller.remove()["changed"]
    caller.sh("systemctl disable --now firewalld.service")
    deployed(caller, first(image))
    assert caller.sh("find /etc/firewalld -name '*edpm_*'") == ""
    assert caller.remove()["changed"]
    caller.sh("systemctl enable --now firewalld.service")
    assert open_ports(caller) == set()
