# SPDX-License-Identifier: GPL-3.0-or-later
"""Users, folders, kernel modules and settings that a service stands on."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import Bundle, Folder, Group, User
from ansible_collections.edpm.services.plugins.module_utils._node.commands import Result
from ansible_collections.edpm.services.plugins.module_utils._node.errors import NodeError

from .fakes import bundle_of, deploy
from .programs import World

A = "a" * 64
FILES = {"1.conf": b"x = 1\n"}


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def made(world: World, state: Path) -> Bundle:
    (world.places.settings / "net/ipv4").mkdir(parents=True)
    (world.places.settings / "net/ipv4/ip_forward").write_text("0\n")
    (world.places.settings / "net/ipv4/tcp_mem").write_text("1\t2\t3\n")
    world.accounts["group mine"] = os.getegid()
    return bundle_of(
        world,
        A,
        FILES,
        groups=(Group("nova", 42436), Group("kolla", 42400)),
        users=(User("nova", 42436, groups=("kolla",)),),
        folders=(Folder(str(state / "deep"), 0o2750, group="mine"), Folder(str(state))),
        tmpfiles=("d /run/nova 0755 root root -",),
        sysctls={"net.ipv4.ip_forward": "1", "net.ipv4.tcp_mem": "1 2 3"},
        modules=("br_netfilter",),
    )


LACKING = ("group nova", "group kolla", "user nova", "kernel module br_netfilter", "kernel setting net.ipv4.ip_forward")


def test_what_is_asked_for_is_there_before_the_service_starts(world: World, made: Bundle, state: Path) -> None:
    outcome = deploy(world, made)
    assert set(outcome.changes.ground) == {*LACKING, f"folder {state}", f"folder {state / 'deep'}"}
    assert {name: world.accounts[name] for name in ("user nova", "group nova", "nova in kolla")} == {
        "user nova": 42436,
        "group nova": 42436,
        "nova in kolla": 1,
    }
    assert (state / "deep").stat().st_mode & 0o7777 == 0o2750
    assert state.stat().st_mode & 0o7777 == 0o755
    assert (world.places.settings / "net/ipv4/ip_forward").read_text() == "1\n"
    verbs = [call[0] for call in world.calls]
    assert verbs.index("systemd-tmpfiles") < [call[:2] for call in world.calls].index(["systemctl", "restart"])
    assert "net.ipv4.ip_forward = 1" in (world.places.etc / "sysctl.d/60-edpm_nova_compute.conf").read_text()
    assert "br_netfilter" in (world.places.etc / "modules-load.d/edpm_nova_compute.conf").read_text()
    assert "d /run/nova" in (world.places.etc / "tmpfiles.d/edpm_nova_compute.conf").read_text()
    assert not deploy(world, made).changes.any


def test_what_was_lost_since_is_set_right_without_a_restart(world: World, made: Bundle, state: Path) -> None:
    deploy(world, made)
    (world.places.settings / "net/ipv4/ip_forward").write_text("0\n")
    (state / "deep").chmod(0o777)
    world.calls.clear()
    outcome = deploy(world, made)
    assert outcome.changes.ground == (f"folder {state / 'deep'}", "kernel setting net.ipv4.ip_forward")
    assert world.done("restart") == []
    assert not deploy(world, made).changes.any


def test_settings_go_with_the_generation_that_wanted_them(world: World, made: Bundle) -> None:
    deploy(world, made)
    deploy(world, bundle_of(world, "b" * 64, FILES))
    assert [path for path in world.places.etc.rglob("*") if path.is_file()] == []


def test_check_mode_makes_no_account_and_no_folder(world: World, made: Bundle, state: Path) -> None:
    deploy(world, made, check=True)
    assert "user nova" not in world.accounts
    assert not state.exists()


REFUSED: dict[str, tuple[dict[str, Any], dict[str, int], dict[str, Result], str]] = {
    "another number": (
        {},
        {"user nova": 1000},
        {},
        "The user nova has the number 1000 on the node, and the service needs",
    ),
    "no group": (
        {},
        {},
        {"groupadd": Result(4, "", "GID exists")},
        "The group nova cannot be made on the node: GID exists",
    ),
    "no module": (
        {},
        {},
        {"modprobe": Result(1, "", "not found")},
        "The kernel module br_netfilter of nova_compute cannot",
    ),
    "no setting": ({"sysctls": {"vm.none": "1"}}, {}, {}, "The node's kernel has no setting vm.none"),
    "no owner": (
        {"folders": (Folder("/srv", owner="ghost"),)},
        {},
        {},
        "belongs to ghost, whom the node does not know",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_node_refuses_is_told_and_the_service_is_not_touched(world: World, made: Bundle, case: str) -> None:
    others, accounts, refuse, says = REFUSED[case]
    world.accounts.update(accounts)
    world.refuse.update(refuse)
    with pytest.raises(NodeError) as caught:
        deploy(world, dataclasses.replace(made, **others))
    assert says in str(caught.value)
    assert (world.processes, (world.places.root / "nova_compute").exists()) == ({}, False)
