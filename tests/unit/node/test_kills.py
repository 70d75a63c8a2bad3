# SPDX-License-Identifier: GPL-3.0-or-later
"""The plug is pulled at every step of a run, and what is found then is always whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import Bundle
from ansible_collections.edpm.services.plugins.module_utils._node.errors import Failed

from .fakes import bundle_of, deploy, everything_in, text, wipe, world_in
from .plug import Killed, Plug
from .programs import QUADLET, UNIT, World

OLD = {"01-nova.conf": b"[DEFAULT]\nold = 1\n", "02-gone.conf": b"gone = 1\n"}
NEW = {"01-nova.conf": b"[DEFAULT]\nnew = 1\n", "03-more.conf": b"more = 1\n"}
DEADLY = {"01-nova.conf": b"die = 1\n"}
A, B = "a" * 64, "b" * 64
SIDECAR = "edpm_nova_compute-side.container"


def old(world: World) -> Bundle:
    return bundle_of(world, A, OLD, units={QUADLET: text(world), SIDECAR: text(world)}, guards={"cell": "nova-cell1"})


def new(world: World, files: Mapping[str, bytes] = NEW) -> Bundle:
    changed = {QUADLET: text(world, extra="Pull=never\n")}
    return bundle_of(world, B, files, units=changed, tmpfiles=("d /run/x",), guards={"cell": "nova-cell1"})


def edited(world: World) -> None:
    (world.places.root / "nova_compute/current/conf.d/01-nova.conf").write_bytes(b"edited = 1\n")
    (world.places.root / "nova_compute/current/conf.d/99-stray.conf").write_bytes(b"stray = 1\n")
    (world.places.units / QUADLET).write_text("[Container]\nImage=other\n")


#: What is on the node, what is asked for, and whether that will run.
CASES = {
    "first": (None, new),
    "update": (old, new),
    "repair": (old, old),
    "fails and goes back": (old, lambda world: new(world, DEADLY)),
    "fails at first": (None, lambda world: new(world, DEADLY)),
}


def prepared(folder: Path, case: str) -> tuple[World, Bundle]:
    wipe(folder)
    world = world_in(folder)
    before, wanted = CASES[case]
    if before:
        deploy(world, before(world))
    if case == "repair":
        edited(world)
    return world, wanted(world)


def attempt(world: World, bundle: Bundle, plug: Plug | None = None) -> str:
    try:
        deploy(world, bundle, plug=plug)
    except Failed:
        return "failed"
    except Killed:
        return "killed"
    return "ran"


def steps(folder: Path, case: str) -> list[str]:
    world, bundle = prepared(folder, case)
    plug = Plug()
    attempt(world, bundle, plug)
    return plug.names


@pytest.mark.parametrize("when", ["before", "half", "after"])
@pytest.mark.parametrize("case", CASES)
def test_a_run_killed_at_any_step_leaves_old_or_new_and_the_next_run_finishes(
    tmp_path: Path, case: str, when: str
) -> None:
    end = "failed" if "fails" in case else "ran"
    world, bundle = prepared(tmp_path, case)
    attempt(world, bundle)
    finished = everything_in(tmp_path)
    names = steps(tmp_path, case)
    assert len(names) > 15
    for number, name in enumerate(names):
        if when == "half" and not name.startswith(("create", "remove all")):
            continue
        told = f"killed {when} step {number}: {name}"
        world, bundle = prepared(tmp_path, case)
        assert attempt(world, bundle, Plug(number, when)) == "killed", told
        assert_whole(world, case, told)
        assert attempt(world, bundle) == end, told
        assert everything_in(tmp_path) == finished, told
        assert_end(world, bundle, end, told)


def assert_whole(world: World, case: str, told: str) -> None:
    """What runs, and what would run after a crash of the service or a reboot of the node, is one generation."""
    known = [OLD, DEADLY if "fails" in case else NEW]
    process = world.processes.get(UNIT)
    if case in ("update", "repair", "fails and goes back"):
        assert process is not None, told
    moments: list[Callable[[], object]] = [dict, lambda: world.start(UNIT), world.reload, lambda: world.start(UNIT)]
    for moment in moments:
        moment()
        process = world.processes.get(UNIT)
        if process is not None and case != "repair":
            assert dict(process.files) in known, told
            assert ("Pull=never" in process.text) == (dict(process.files) != OLD), told


def assert_end(world: World, bundle: Bundle, end: str, told: str) -> None:
    process = world.processes.get(UNIT)
    if end == "ran":
        assert process is not None, told
        assert {f"conf.d/{name}": content for name, content in process.files.items()} == {
            file.path: file.content for file in bundle.files
        }, told
        again = deploy(world, bundle)
        assert not again.changes.any, told
    else:
        assert process is None or dict(process.files) == OLD, told
        assert process is None or not process.fails, told


def test_a_cut_off_run_is_announced_by_check_mode_and_finished_with_one_restart(tmp_path: Path) -> None:
    restart = steps(tmp_path, "update").index("restart")
    world, bundle = prepared(tmp_path, "update")
    assert attempt(world, bundle, Plug(restart, "before")) == "killed"

    announced = deploy(world, bundle, check=True)
    assert (announced.changes.unfinished, announced.restarted) == (True, True)
    world.calls.clear()
    finished = deploy(world, bundle)

    assert finished.changes.unfinished
    assert len(world.done("restart")) == 1
