# SPDX-License-Identifier: GPL-3.0-or-later
"""Whom the computes of a cell know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from hashlib import sha256

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import Plan
from ansible_collections.edpm.services.plugins.plugin_utils._rollout.known_hosts import fingerprints, gather

from .nodes import answer, compute, node, service

PATH = "/var/lib/nova/.ssh/known_hosts"
NAMES = ("c0", "c1", "c2")
PLAN = Plan(nodes=(*(node(name, compute(name)) for name in NAMES), node("other", compute("other", "nova-cell2"))))


class Network:
    """Answers for some hosts, and remembers who was asked."""

    def __init__(self, **keys: str) -> None:
        self.keys = keys
        self.asked: list[list[str]] = []

    def __call__(self, addresses: Iterable[str], port: int) -> Mapping[str, Mapping[str, str]]:
        assert port == 22
        self.asked.append(sorted(addresses))
        return {f"address-of-{name}": {"ssh-ed25519": key} for name, key in self.keys.items()}


def keys(name: str) -> dict[str, dict[str, str]]:
    return {"ssh_host_keys": {"ssh-ed25519": f"key-of-{name}"}}


def test_the_whole_cell_is_known_also_when_the_run_has_one_node_of_it() -> None:
    network = Network(c1="key-of-c1", c2="key-of-c2")
    found = gather(PLAN, {"c0": keys("c0")}, network)
    assert set(found) == {"nova-cell1"}
    assert network.asked == [["address-of-c1", "address-of-c2"]]
    lines = found["nova-cell1"].text.decode().splitlines()
    assert lines == [f"address-of-{name},{name} ssh-ed25519 key-of-{name}" for name in NAMES]
    assert not found["nova-cell1"].unasked


def test_a_node_that_moves_guests_over_tls_is_known_where_it_has_a_key() -> None:
    tls = {"edpm_nova_compute_migration": "tls"}
    with_key = replace(compute("c1"), options=tls)
    without = replace(with_key, sources=())
    plan = Plan(nodes=(node("c0", compute("c0")), node("c1", with_key), node("c2", without)))
    found = gather(plan, {name: keys(name) for name in NAMES}, Network())["nova-cell1"]
    assert [line.split()[-1] for line in found.text.decode().splitlines()] == ["key-of-c0", "key-of-c1"]
    nothing = {"services": {"nova_compute": answer(with_key)}}
    assert (found.differs(with_key, nothing), found.differs(without, nothing)) == (True, False)


def test_nobody_is_asked_where_all_have_told_or_nobody_wants_it() -> None:
    network = Network()
    gather(PLAN, {name: keys(name) for name in NAMES}, network)
    assert gather(Plan(nodes=(node("n", service()),)), {"n": keys("n")}, network) == {}
    assert network.asked == []


def test_who_cannot_be_asked_keeps_the_lines_that_a_node_has() -> None:
    known = gather(PLAN, {"c0": keys("c0")}, Network(c1="key-of-c1"))["nova-cell1"]
    assert known.unasked == {"c2", "address-of-c2"}
    before = "c2,address-of-c2 ssh-ed25519 old-key\nstranger ssh-ed25519 gone\nc1 ssh-ed25519 old\n"
    lines = known.beside(before).decode().splitlines()
    assert lines == [
        "address-of-c0,c0 ssh-ed25519 key-of-c0",
        "address-of-c1,c1 ssh-ed25519 key-of-c1",
        "c2,address-of-c2 ssh-ed25519 old-key",
    ]


@pytest.mark.parametrize(("content", "differs"), [(b"", True), (None, False), (b"other", True)])
def test_a_node_gets_work_when_it_does_not_know_all(content: bytes | None, differs: bool) -> None:
    known = gather(PLAN, {name: keys(name) for name in NAMES})["nova-cell1"]
    text = known.text if content is None else content
    found = answer(compute("c0"), live={PATH: sha256(text).hexdigest()})
    assert known.differs(compute("c0"), {"services": {"nova_compute": found}}) is differs


def test_one_silent_host_does_not_make_everybody_work() -> None:
    known = gather(PLAN, {"c0": keys("c0"), "c1": keys("c1")}, Network())["nova-cell1"]
    whole = known.text.decode() + "c2 ssh-ed25519 key-of-c2\n"
    there = {"known_hosts": {PATH: fingerprints(whole)}, "services": {"nova_compute": {"live": {PATH: "0"}}}}
    assert not known.differs(compute("c0"), there)
    assert known.differs(compute("c0"), {**there, "known_hosts": {PATH: fingerprints("c2 ssh-ed25519 key-of-c2")}})
