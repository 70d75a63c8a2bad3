# SPDX-License-Identifier: GPL-3.0-or-later
"""A podman that was found to be new enough is not asked again, for as long as it is the same program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node.commands import Result
from ansible_collections.edpm.services.plugins.module_utils._node.converge import converge
from ansible_collections.edpm.services.plugins.module_utils._node.disk import Disk
from ansible_collections.edpm.services.plugins.module_utils._node.errors import NotPrepared
from ansible_collections.edpm.services.plugins.module_utils._node.podman import Podman

from .fakes import bundle_of, everything_in, node_of
from .plug import Plug
from .programs import FakeRun, World
from .samples import FIRST, SECOND, A, B


@pytest.fixture
def program(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the node's podman, which is found as a shell finds it."""
    path = tmp_path / "programs/podman"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    world.places.run.mkdir(exist_ok=True)
    monkeypatch.setenv("PATH", str(path.parent))
    return path


def podman(world: World) -> Podman:
    return Podman(FakeRun(world, Plug()), Disk(), world.places.scratch, world.places.podman)


def asked(world: World) -> int:
    """How often it was asked since the last time."""
    count = sum(call == ["podman", "--version"] for call in world.calls)
    world.calls.clear()
    return count


def test_it_is_asked_once(world: World, program: Path) -> None:
    assert program.exists()
    for times in (1, 0, 0):
        podman(world).require(note=True)
        assert asked(world) == times


def _written_again(path: Path) -> None:
    path.write_text("#!/bin/bash\n")


def _another_in_its_place(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    other.chmod(0o755)
    other.replace(path)


def _one_before_it(path: Path) -> None:
    (path.parent.parent / "first").mkdir()
    path.rename(path.parent.parent / "first/podman")


@pytest.mark.parametrize("change", [_written_again, _another_in_its_place, _one_before_it])
def test_another_one_is_asked_and_refused_where_it_is_too_old(
    world: World, program: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    podman(world).require(note=True)
    change(program)
    monkeypatch.setenv("PATH", f"{program.parent.parent / 'first'}:{program.parent}")
    world.version = "podman version 4.3.1"
    for _again in range(2):
        with pytest.raises(NotPrepared, match="too old"):
            podman(world).require(note=True)
    assert asked(world) == 3


def test_one_that_is_gone_is_missed(world: World, program: Path) -> None:
    podman(world).require(note=True)
    program.unlink()
    world.refuse["podman --version"] = Result(127)
    with pytest.raises(NotPrepared, match="has no podman"):
        podman(world).require(note=True)


def test_a_run_notes_it_and_one_in_check_mode_does_not(world: World, program: Path) -> None:
    assert program.exists()

    def run(digest: str, files: dict[str, bytes], *, check: bool) -> int:
        node = replace(node_of(world), podman=podman(world))
        converge(node, bundle_of(world, digest, files), check=check, patience=0)
        return asked(world)

    before = everything_in(world.places.run)
    assert run(A, FIRST, check=True) == 1
    assert everything_in(world.places.run) == before
    assert not world.places.podman.exists()
    assert [run(A, FIRST, check=False), run(B, SECOND, check=True), run(B, SECOND, check=False)] == [1, 0, 0]
