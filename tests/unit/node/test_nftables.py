# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports of a service in nftables."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import (
    Bundle,
)
from ansible_collections.edpm.services.plugins.module_utils._node.commands import Result

from .fakes import bundle_of, deploy, told
from .node_programs import NO_MATCH
from .programs import World
from .samples import SECOND, A, B

TAG = "edpm_nova_compute"
DROP: list[dict[str, Any]] = [{"counter": {"packets": 0, "bytes": 0}}, {"drop": None}]
REJECT_OF_IPTABLES: list[dict[str, Any]] = [{"counter": None}, {"xt": {"type": "target", "name": "REJECT"}}]


def open_for(world: World, *ports: str, digest: str = A) -> Bundle:
    return bundle_of(world, digest, {"1.conf": digest.encode()}, ports=ports)


RULESETS: dict[str, tuple[tuple[str, str, tuple[list[dict[str, Any]], ...]], ...]] = {
    "policy drop": (("INPUT", "drop", ()),),
    "drop at the end": (("INPUT", "accept", ([NO_MATCH, {"accept": None}], DROP)),),
    "iptables' reject": (("INPUT", "accept", (REJECT_OF_IPTABLES,)),),
    "drop in a chain that is called": (
        ("INPUT", "accept", ([NO_MATCH, {"jump": {"target": "DEEP"}}],)),
        ("DEEP", "", ([{"goto": {"target": "DEEPER"}}],)),
        ("DEEPER", "", ([{"log": None}, {"reject": None}],)),
    ),
}


@pytest.mark.parametrize("case", RULESETS)
def test_ports_are_opened_at_the_top_of_a_chain_that_closes_them(world: World, case: str) -> None:
    for name, policy, rules in RULESETS[case]:
        world.fabric.chain(name, policy, rules)
    made = open_for(world, "tcp 5900-6923", "udp 53")
    outcome = deploy(world, made)
    assert outcome.changes.ground == ("port tcp 5900-6923", "port udp 53", "ports at start")
    assert sorted(world.fabric.rules()) == [f"tcp 5900-6923 {TAG}", f"udp 53 {TAG}"]
    assert world.fabric.ruleset is not None
    assert world.fabric.ruleset[0]["rule"]["comment"] == TAG
    assert not deploy(world, made).changes.any


OPEN: dict[str, tuple[list[dict[str, Any]], ...]] = {
    "policy accept": (),
    "only some are dropped": ([NO_MATCH, {"drop": None}],),
    "a circle": ([{"jump": {"target": "INPUT"}}],),
}


@pytest.mark.parametrize("case", OPEN)
def test_a_chain_that_lets_all_pass_is_left_alone(world: World, case: str) -> None:
    world.fabric.chain("INPUT", "accept", OPEN[case])
    before = list(world.fabric.ruleset or ())
    assert deploy(world, open_for(world, "tcp 22")).changes.ground == ()
    assert world.fabric.ruleset == before
    assert not (world.places.etc / "systemd").exists()


def test_a_node_without_a_firewall_needs_nothing(world: World) -> None:
    assert deploy(world, open_for(world, "tcp 22")).changes.ground == ()
    world.calls.clear()
    deploy(world, bundle_of(world, B, SECOND))
    assert world.argv("nft") == []


def test_ports_come_back_with_the_service_and_with_the_next_deployment(world: World) -> None:
    world.fabric.chain("INPUT", "drop")
    made = open_for(world, "tcp 22")
    deploy(world, made)
    dropin = world.places.etc / f"systemd/system/{TAG}.service.d/50-{TAG}-ports.conf"
    assert dropin.read_text().splitlines()[1:] == [
        *("[Unit]", "After=nftables.service", "", "[Service]"),
        f'ExecStartPre=+-/bin/sh -c "nft list ruleset | grep -qF \'comment \\"{TAG}\\"\' || '
        f'{{ nft insert rule inet filter INPUT tcp dport 22 accept comment \'\\"{TAG}\\"\'; }}"',
    ]
    world.fabric.ruleset = None
    world.fabric.chain("INPUT", "drop")
    assert told(world)["drift"] == [{"name": "port tcp 22", "what": "missing"}]
    world.calls.clear()
    outcome = deploy(world, made)
    assert (outcome.changes.ground, outcome.restarted) == (("port tcp 22",), False)
    assert world.fabric.rules() == [f"tcp 22 {TAG}"]
    dropin.unlink()
    assert told(world)["drift"] == [{"name": "ports at start", "what": "missing"}]
    deploy(world, made)
    assert dropin.exists()


def test_ports_that_are_no_longer_needed_are_closed_and_others_stay(world: World) -> None:
    world.fabric.chain("INPUT", "drop")
    theirs = {"family": "inet", "table": "filter", "chain": "INPUT", "handle": 7, "comment": "admin"}
    match = {"op": "==", "left": {"payload": {"protocol": "tcp", "field": "dport"}}, "right": 22}
    assert world.fabric.ruleset is not None
    world.fabric.ruleset.append({"rule": {**theirs, "expr": [{"match": match}, {"accept": None}]}})
    deploy(world, open_for(world, "tcp 22", "tcp 23"))
    deploy(world, open_for(world, "tcp 23", digest=B))
    assert sorted(world.fabric.rules()) == ["tcp 22 admin", f"tcp 23 {TAG}"]
    deploy(world, open_for(world, digest="c" * 64))
    assert world.fabric.rules() == ["tcp 22 admin"]
    assert not (world.places.etc / f"systemd/system/{TAG}.service.d").exists()


def test_a_ruleset_that_nobody_can_read_is_none(world: World) -> None:
    world.refuse["nft --json"] = Result(0, "no JSON")
    assert deploy(world, open_for(world, "tcp 22")).changes.ground == ()
