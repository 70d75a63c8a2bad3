# SPDX-License-Identifier: GPL-3.0-or-later
"""Generations over time: drift, faults of the disk, pruning, units that come and go, two runs at once."""

from __future__ import annotations

import dataclasses
import errno
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import Bundle, File
from ansible_collections.edpm.services.plugins.module_utils._node.commands import Result
from ansible_collections.edpm.services.plugins.module_utils._node.disk import Disk, New
from ansible_collections.edpm.services.plugins.module_utils._node.errors import Failed, NodeError
from ansible_collections.edpm.services.plugins.module_utils._node.lock import held
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .fakes import back, bundle_of, deploy, everything_in, text, world_in
from .programs import QUADLET, UNIT, World
from .samples import FIRST, SECOND, A, B, C, D, generations, home, live


def _linked(live: Path, _unit: Path) -> None:
    (live / "kolla.json").unlink()
    (live / "kolla.json").symlink_to("/etc/passwd")


EDITS: dict[str, tuple[Callable[[Path, Path], object], str, str]] = {
    "changed": (lambda live, _unit: (live / "conf.d/01-nova.conf").write_text("x"), "conf.d/01-nova.conf", "changed"),
    "removed": (lambda live, _unit: (live / "conf.d/01-nova.conf").unlink(), "conf.d/01-nova.conf", "missing"),
    "opened": (lambda live, _unit: (live / "conf.d/01-nova.conf").chmod(0o644), "conf.d/01-nova.conf", "mode or owner"),
    "added": (lambda live, _unit: (live / "conf.d/99.conf").write_text("x"), "conf.d/99.conf", "added"),
    "linked": (_linked, "kolla.json", "replaced"),
    "unit": (lambda _live, unit: unit.write_text("[Container]\nImage=evil\n"), QUADLET, "changed"),
    "unit gone": (lambda _live, unit: unit.unlink(), QUADLET, "missing"),
    "unit mode": (lambda _live, unit: unit.chmod(0o666), QUADLET, "mode or owner"),
}


@pytest.mark.parametrize(("edit", "name", "what"), EDITS.values(), ids=EDITS)
def test_drift_is_told_by_name_and_repaired_with_one_restart(
    world: World, edit: Callable[[Path, Path], object], name: str, what: str
) -> None:
    made = bundle_of(world, A, FIRST, kolla="{}")
    deploy(world, made)
    before = everything_in(world.places.root.parent)
    edit(home(world) / "current", world.places.units / QUADLET)
    world.calls.clear()
    outcome = deploy(world, made)
    assert [(Path(one.name).name, one.what) for one in outcome.drift] == [(Path(name).name, what)]
    assert len(world.done("restart")) == 1
    assert everything_in(world.places.root.parent) == before
    assert not deploy(world, made).changes.any


def test_a_spoilt_record_is_written_anew(world: World, deployed: Bundle) -> None:
    (home(world) / "current/bundle.json").write_text("{")
    assert deploy(world, deployed).changes.any
    assert not deploy(world, deployed).changes.any


def test_old_generations_go_and_the_live_and_the_one_before_stay(world: World) -> None:
    for count, digest in enumerate((A, B, C, D)):
        outcome = deploy(world, bundle_of(world, digest, {"1": str(count).encode()}, keep=2))
        os.utime(home(world) / "generations" / digest, (count, count))
    assert generations(world) == [C, D]
    assert outcome.pruned == (B,)
    deploy(world, bundle_of(world, A, {"1": b"0"}, keep=1))
    assert generations(world) == [A, D]


@pytest.mark.parametrize("years", [-40, 40])
def test_a_clock_that_jumped_takes_neither_the_live_generation_nor_the_one_before(world: World, years: int) -> None:
    for digest in (A, B):
        deploy(world, bundle_of(world, digest, {"1": digest.encode()}))
    for digest, far in ((A, years), (B, -years)):
        when = home(world).stat().st_mtime + far * 365 * 86400
        os.utime(home(world) / "generations" / digest, (when, when))
    assert not deploy(world, bundle_of(world, B, {"1": B.encode()})).changes.any
    deploy(world, bundle_of(world, C, {"1": C.encode()}, keep=1))
    assert (live(world), generations(world)) == (C, [B, C])
    assert back(world).digest == B


def test_a_unit_that_the_new_bundle_has_not_is_stopped_and_removed_and_comes_back_with_a_rollback(world: World) -> None:
    side = "edpm_nova_compute-side.container"
    deploy(world, bundle_of(world, A, FIRST, units={QUADLET: text(world), side: text(world)}))
    with pytest.raises(Failed):
        deploy(world, bundle_of(world, B, {"1": b"die"}))
    assert (world.places.units / side).exists()
    assert "edpm_nova_compute-side.service" in world.processes
    deploy(world, bundle_of(world, C, SECOND))
    assert not (world.places.units / side).exists()
    assert "edpm_nova_compute-side.service" not in world.processes


@pytest.mark.usefixtures("deployed")
def test_a_full_disk_while_staging_is_told_and_nothing_is_left(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    before = everything_in(world.places.root.parent)
    create = Disk.create

    def full(self: Disk, new: New) -> None:
        if new.path.name == "01-nova.conf":
            monkeypatch.setattr("os.fchmod", _no_space)
        create(self, new)

    monkeypatch.setattr(Disk, "create", full)
    with pytest.raises(NodeError, match=r"01-nova.conf: No space left on device; make room on that file system"):
        deploy(world, bundle_of(world, B, SECOND))
    assert everything_in(world.places.root.parent) == before


def _no_space(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_fault_before_the_restart_leaves_the_running_process_alone(world: World, deployed: Bundle) -> None:
    process = world.processes[UNIT]
    world.refuse["systemctl daemon-reload"] = Result(1, "", "Access denied")
    with pytest.raises(Failed, match=r"cannot be switched to generation bbbbbbb: .*Access denied"):
        deploy(world, bundle_of(world, B, SECOND, units={QUADLET: text(world, extra="User=1\n")}))
    assert world.processes[UNIT] == process
    assert live(world) == A
    world.refuse.clear()
    deploy(world, deployed)
    assert dict(world.processes[UNIT].files) == FIRST


@pytest.mark.usefixtures("deployed")
def test_of_two_runs_at_once_the_second_is_told_who_is_first(world: World) -> None:
    with (
        held(world.places.lock, 0, lambda _: None, lambda: 0),
        pytest.raises(NodeError, match=rf"process {os.getpid()} holds {re.escape(str(world.places.lock))}; wait until"),
    ):
        deploy(world, bundle_of(world, B, SECOND))
    assert live(world) == A


def test_two_instances_know_nothing_of_each_other(world: World, deployed: Bundle) -> None:
    unit = {"edpm_nova_compute@ironic.container": text(world)}
    deploy(world, bundle_of(world, B, SECOND, instance="ironic", units=unit))
    assert not deploy(world, deployed).changes.any
    assert dict(world.processes["edpm_nova_compute@ironic.service"].files) == SECOND


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(st.lists(st.binary(max_size=200), min_size=1, max_size=5), st.integers(0, 0o777))
def test_files_are_staged_verbatim_with_their_modes(tmp_path: Path, contents: list[bytes], mode: int) -> None:
    place = tmp_path / os.urandom(8).hex()
    place.mkdir()
    world = world_in(place)
    files = tuple(File(f"keys/{count}", content, mode) for count, content in enumerate(contents))
    deploy(world, dataclasses.replace(bundle_of(world, A, {}), files=files))
    for file in files:
        path = home(world) / "current" / file.path
        assert (path.read_bytes(), path.stat().st_mode & 0o777) == (file.content, file.mode)
