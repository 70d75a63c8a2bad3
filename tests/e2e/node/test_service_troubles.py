# SPDX-License-Identifier: GPL-3.0-or-later
"""Trouble on a real node: a full disk, lost power, a podman that is gone or too old, a clock that jumped, a firewall.

The tests build on each other: each leaves the probe live and healthy.
"""

from __future__ import annotations

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import Bundle
from ansible_collections.edpm.services.plugins.module_utils._node.travel import written
from edpm_lab import images
from edpm_lab.labs import Lab
from edpm_lab.nodes import Nodes

from .probe import Caller, bundle

FIRST = {"01.conf": b"value = one\n"}
SECOND = {"01.conf": b"value = two\n"}
HOME = "/var/lib/openstack/probe"
SMALL = "/mnt/small"
PORT = 8099
#: A node that lets nothing in but its administrators, and chains in which others decide.
RULES = """flush ruleset
table inet filter {
    chain INPUT {
        type filter hook input priority 0; policy accept;
        iif lo accept
        tcp dport 22 accept
        jump SITE
    }
    chain SITE {
        tcp sport 1024-65535 tcp dport 9999 accept comment "site"
        counter drop
    }
}
"""


@pytest.fixture(scope="module")
def image() -> str:
    return images.image("base")


@pytest.fixture(scope="module")
def caller(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Caller:
    nodes = Nodes(lab)
    nodes.up(["edpm-trouble-0"])
    return Caller(nodes, "edpm-trouble-0", tmp_path_factory.mktemp("calls"))


@pytest.fixture
def live(caller: Caller, image: str) -> Bundle:
    wanted = bundle(image, FIRST)
    if not caller.runs(wanted.digest):
        answer = caller.deploy(wanted)
        assert not answer["failed"], answer["shown"]
    return wanted


def test_a_disk_that_is_full_while_staging_leaves_the_service_as_it_was(caller: Caller, image: str) -> None:
    caller.sh(f"mkdir -p {SMALL}; mount -t tmpfs -o size=160k tmpfs {SMALL}")
    small = bundle(image, FIRST, instance="small")
    assert caller.deploy(small, root=SMALL)["changed"]
    files, running = caller.sh(f"find {SMALL} | sort"), caller.sh("podman ps -q --no-trunc")
    large = bundle(image, {**FIRST, "99-large.conf": b"x" * 400_000}, instance="small")
    refused = caller.deploy(large, root=SMALL)
    assert refused["failed"], refused["shown"]
    assert "No space left on device; make room on that file system" in refused["msg"]
    assert (caller.sh(f"find {SMALL} | sort"), caller.sh("podman ps -q --no-trunc")) == (files, running)
    caller.sh(f"mount -o remount,size=4m {SMALL}")
    assert caller.deploy(large, root=SMALL)["changed"]
    gone = caller.begin("service", {"state": "absent", "service": "probe", "instance": "small", "root": SMALL})()
    assert gone["changed"], gone["shown"]
    caller.sh(f"umount {SMALL}")


def test_a_node_that_loses_its_power_in_the_middle_comes_up_whole(caller: Caller, image: str, live: Bundle) -> None:
    slow = bundle(image, SECOND, settle=60)
    run = caller.begin("service", {"bundle": written(slow)})
    caller.until(f"test -e {HOME}/intent.json && podman exec edpm_probe grep -q two /etc/probe/01.conf 2>/dev/null")
    caller.nodes.kill(caller.node)
    run()
    caller.nodes.start(caller.node)
    caller.until("systemctl is-active -q edpm_probe.service")
    assert caller.sh("podman exec edpm_probe cat /etc/probe/01.conf") in ("value = one", "value = two")
    assert caller.facts()["unfinished"]
    answer = caller.deploy(bundle(image, SECOND))
    assert (answer["changed"], answer["unfinished"]) == (True, True), answer["shown"]
    found = caller.facts()
    assert (found["unfinished"], found["healthy"], found["previous"]) == (False, True, live.digest)
    again = caller.deploy(bundle(image, SECOND))
    assert again["changed"] is False, again["shown"]


def test_after_a_reboot_nothing_is_to_be_done(caller: Caller, live: Bundle) -> None:
    caller.nodes.reboot(caller.node)
    caller.until("systemctl is-active -q edpm_probe.service")
    answer = caller.deploy(live)
    assert (answer["changed"], answer["drift"]) == (False, []), answer["shown"]


def test_without_a_podman_that_knows_quadlet_nothing_is_touched(caller: Caller, image: str, live: Bundle) -> None:
    tree, invocation = caller.tree(), caller.invocation()
    caller.sh("mv /usr/bin/podman /usr/bin/podman.away")
    try:
        none = caller.deploy(bundle(image, SECOND))
        caller.sh("printf '#!/bin/sh\\necho podman version 4.3.1\\n' > /usr/bin/podman; chmod +x /usr/bin/podman")
        old = caller.deploy(bundle(image, SECOND))
    finally:
        caller.sh("mv /usr/bin/podman.away /usr/bin/podman")
    assert none["msg"] == "The node has no podman; install podman 4.4 or newer.", none["shown"]
    assert "The node's podman 4.3 is too old; install 4.4 or newer" in old["msg"], old["shown"]
    assert (caller.tree(), caller.invocation()) == (tree, invocation)
    assert caller.runs(live.digest)


def test_a_clock_that_jumped_takes_no_generation_that_is_needed(caller: Caller, image: str, live: Bundle) -> None:
    caller.deploy(bundle(image, SECOND))
    caller.deploy(live)
    caller.sh(f"touch -d 2099-01-01 {HOME}/generations/*; touch -d 1999-01-01 {HOME}/generations/{live.digest}")
    assert caller.deploy(live)["changed"] is False
    third = bundle(image, {"01.conf": b"value = three\n"}, keep=1)
    assert caller.deploy(third)["changed"]
    assert set(caller.sh(f"ls {HOME}/generations").split()) == {third.digest, live.digest}
    assert caller.go_back()["digest"] == live.digest


@pytest.mark.usefixtures("live")
def test_ports_are_open_while_the_service_is_there_and_closed_afterwards(caller: Caller, image: str) -> None:
    _answer(caller)
    caller.nodes.execute(caller.node, "tee", "/etc/nftables.conf", stdin=RULES)
    assert caller.reaches(PORT)
    caller.sh("systemctl enable --now nftables.service")
    assert not caller.reaches(PORT)
    wanted = bundle(image, FIRST, ports=(f"tcp {PORT}", "udp 6000-6010"))
    announced = caller.deploy(wanted, "--check")
    answer = caller.deploy(wanted)
    for one in (announced, answer):
        assert one["node"] == [f"port tcp {PORT}", "port udp 6000-6010", "ports at start"], one["shown"]
    assert answer["restarted"] is False
    assert caller.reaches(PORT)
    assert caller.deploy(wanted)["changed"] is False
    assert caller.sh("nft list chain inet filter INPUT | grep -c edpm_probe") == "2"

    caller.sh("systemctl reload nftables.service")
    assert not caller.reaches(PORT)
    drift = [{"name": f"port tcp {PORT}", "what": "missing"}, {"name": "port udp 6000-6010", "what": "missing"}]
    assert caller.facts()["drift"] == drift
    assert caller.deploy(wanted)["restarted"] is False
    assert caller.reaches(PORT)

    caller.sh("systemctl reload nftables.service; systemctl restart edpm_probe.service")
    assert caller.reaches(PORT)
    assert caller.sh("nft list chain inet filter INPUT | grep -c edpm_probe") == "2"
    assert caller.deploy(wanted)["changed"] is False

    caller.nodes.reboot(caller.node)
    caller.until("systemctl is-active -q edpm_probe.service")
    _answer(caller)
    assert caller.reaches(PORT)
    assert caller.deploy(wanted)["changed"] is False

    gone = caller.remove()
    assert "port udp 6000-6010" in gone["node"], gone["shown"]
    assert not caller.reaches(PORT)
    assert caller.sh("nft list ruleset | grep -c edpm_probe || true") == "0"
    assert caller.sh("nft list ruleset | grep -c site") == "1"
    assert caller.sh("find /etc/systemd/system -name '*edpm_probe*'") == ""


def _answer(caller: Caller) -> None:
    """Have something that answers at the port."""
    caller.sh(f"systemd-run --unit=answers python3 -m http.server {PORT}")
    caller.until(f"ss -Hltn sport = {PORT} | grep -q .")
