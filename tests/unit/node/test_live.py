# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that a running service takes up without a restart, and files that are made once and never anew."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import Bundle, LiveFile, Seed
from ansible_collections.edpm.services.plugins.module_utils._node.commands import Result
from ansible_collections.edpm.services.plugins.module_utils._node.disk import Disk
from ansible_collections.edpm.services.plugins.module_utils._node.errors import Failed, Guarded, NodeError

from .fakes import bundle_of, deploy, everything_in, told
from .plug import Killed, Plug
from .programs import UNIT, World
from .samples import FIRST, SECOND, A, B, home

RELOAD = "podman exec nova_compute kill -HUP 1"


@pytest.fixture
def state(world: World) -> Path:
    return world.places.root.parent / "state"


def with_live(world: World, digest: str = A, content: bytes = b"first", **others: Any) -> Bundle:
    state = world.places.root.parent / "state"
    live = (LiveFile(str(state / "ca.crt"), content, 0o644), LiveFile(str(state / "deep/key"), b"sesame", secret=True))
    fields = {"live": live, "container": "nova_compute", "reload": ("kill", "-HUP", "1"), **others}
    return bundle_of(world, digest, FIRST, **fields)


@pytest.fixture
def shown(world: World) -> Bundle:
    made = with_live(world)
    deploy(world, made)
    world.calls.clear()
    return made


def reloads(world: World) -> int:
    return sum(" ".join(call) == RELOAD for call in world.calls)


def test_live_files_are_there_before_the_service_starts_and_cause_no_reload_then(
    world: World, shown: Bundle, state: Path
) -> None:
    assert ((state / "ca.crt").read_bytes(), (state / "ca.crt").stat().st_mode & 0o777) == (b"first", 0o644)
    assert ((state / "deep/key").read_bytes(), (state / "deep/key").stat().st_mode & 0o777) == (b"sesame", 0o600)
    plug = Plug()
    assert not deploy(world, shown, plug=plug).changes.any
    assert plug.names == []
    assert reloads(world) == 0
    assert set(told(world)["live"]) == {str(state / "ca.crt"), str(state / "deep/key")}
    assert "sesame" not in (home(world) / "live.json").read_text()


@pytest.mark.usefixtures("shown")
def test_a_new_content_is_read_by_the_running_service_without_a_restart(world: World, state: Path) -> None:
    process = world.processes[UNIT]
    outcome = deploy(world, with_live(world, content=b"second"))
    result = outcome.result(check=False)
    assert (result["changed"], result["restarted"], result["reloaded"]) == (True, False, True)
    assert result["live"] == (str(state / "ca.crt"),)
    assert result["msg"] == "nova_compute aaaaaaa is live: 1 live file set, read again by the service, no restart."
    assert (reloads(world), world.processes[UNIT]) == (1, process)
    assert (state / "ca.crt").read_bytes() == b"second"
    assert not deploy(world, with_live(world, content=b"second")).changes.any


@pytest.mark.usefixtures("shown")
def test_check_mode_says_the_same_and_the_diff_masks_what_is_secret(world: World, state: Path) -> None:
    live = (LiveFile(str(state / "deep/key"), b"open", secret=True), LiveFile(str(state / "new"), b"new"))
    made = dataclasses.replace(with_live(world), live=live)
    before = everything_in(world.places.root.parent)
    foreseen = deploy(world, made, check=True)
    assert everything_in(world.places.root.parent) == before
    assert foreseen == deploy(world, made)
    shown = {Path(one["after_header"]).name: (one["before"], one["after"]) for one in foreseen.diff}
    assert shown == {
        "ca.crt": ("first", ""),
        "key": ("(secret, before)\n", "(secret, after)\n"),
        "new": ("", "new"),
    }


@pytest.mark.usefixtures("shown")
def test_one_that_is_no_longer_wanted_goes_and_the_service_is_told(world: World, state: Path) -> None:
    made = dataclasses.replace(with_live(world), live=())
    assert deploy(world, made).changes.live == (str(state / "ca.crt"), str(state / "deep/key"))
    assert [path for path in state.rglob("*") if path.is_file()] == []
    assert reloads(world) == 1
    assert not (home(world) / "live.json").exists()


def _linked(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/passwd")


EDITS: dict[str, Callable[[Path], object]] = {
    "changed": lambda path: path.write_text("edited"),
    "missing": lambda path: path.unlink(),
    "mode or owner": lambda path: path.chmod(0o666),
    "replaced": _linked,
}


@pytest.mark.parametrize("what", EDITS)
def test_drift_of_a_live_file_is_told_and_repaired_without_a_restart(
    world: World, shown: Bundle, state: Path, what: str
) -> None:
    before = everything_in(state)
    EDITS[what](state / "ca.crt")
    drift = [{"name": str(state / "ca.crt"), "what": what}]
    assert told(world)["drift"] == drift
    outcome = deploy(world, shown)
    assert (outcome.result(check=False)["drift"], outcome.restarted) == (drift, False)
    assert everything_in(state) == before
    assert told(world)["drift"] == []


@pytest.mark.usefixtures("shown")
def test_a_reload_that_fails_is_a_failure_and_is_tried_again(world: World) -> None:
    world.refuse[RELOAD] = Result(1, "", "cannot read sesame")
    made = with_live(world, content=b"second")
    with pytest.raises(Failed, match=r"has new files and cannot be made to read them: cannot read sesame; it runs on"):
        deploy(world, made)
    assert told(world)["unfinished"]
    world.refuse.clear()
    outcome = deploy(world, made)
    assert (outcome.changes.live, outcome.reloaded, outcome.restarted) == ((), True, False)
    assert not told(world)["unfinished"]


@pytest.mark.usefixtures("shown")
def test_a_run_killed_before_the_service_was_told_is_finished_by_the_next(world: World) -> None:
    made = with_live(world, content=b"second")
    plug = Plug()
    deploy(world, made, plug=plug)
    last = plug.names.index("rename to ca.crt")
    with pytest.raises(Killed):
        deploy(world, with_live(world, content=b"third"), plug=Plug(last, "after"))
    world.calls.clear()
    outcome = deploy(world, with_live(world, content=b"third"))
    assert (outcome.changes.live, outcome.reloaded, reloads(world)) == ((), True, 1)


@pytest.mark.usefixtures("shown")
def test_a_service_that_does_not_get_over_its_new_files_is_told(world: World) -> None:
    made = with_live(world, content=b"second")

    class Dying(dict[str, Result]):
        def items(self) -> Any:
            if world.calls and " ".join(world.calls[-1]) == RELOAD:
                world.processes[UNIT] = dataclasses.replace(world.processes[UNIT], fails=True)
            return super().items()

    world.refuse = Dying()
    with pytest.raises(Failed, match=r"nova_compute is not well since it read its new files: .* failed"):
        deploy(world, made)


def test_without_a_command_to_read_them_nothing_is_run(world: World) -> None:
    deploy(world, with_live(world, reload=()))
    world.calls.clear()
    outcome = deploy(world, with_live(world, content=b"second", reload=()))
    assert (outcome.changes.any, outcome.reloaded, world.argv("podman")) == (True, False, [])
    assert not told(world)["unfinished"]


def test_an_owner_is_given_and_one_that_nobody_knows_is_refused(world: World, state: Path) -> None:
    world.accounts.update({"user me": os.geteuid(), "group mine": os.getegid()})
    mine = LiveFile(str(state / "mine"), b"x", owner="me", group="mine")
    deploy(world, bundle_of(world, A, FIRST, live=(mine,)))
    assert not deploy(world, bundle_of(world, A, FIRST, live=(mine,))).changes.any
    ghost = dataclasses.replace(mine, owner="ghost")
    with pytest.raises(NodeError, match=r"The file .*/mine of nova_compute belongs to ghost, whom the node does not"):
        deploy(world, bundle_of(world, B, SECOND, live=(ghost,)))


def test_a_file_is_written_with_the_numbers_of_its_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr("os.fchown", lambda _number, uid, gid: asked.append((uid, gid)))
    Disk().write(tmp_path / "x", b"", 0o600, (42436, -1))
    assert asked == [(42436, -1)]


def test_root_writes_nothing_through_somebody_elses_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    Disk().refuse_detours(tmp_path / "link/authorized_keys")
    lstat = Path.lstat

    def theirs(path: Path) -> os.stat_result:
        values = list(lstat(path))
        values[4] = 4711
        return os.stat_result(values)

    monkeypatch.setattr(Path, "lstat", theirs)
    with pytest.raises(NodeError, match=r"the link .*/link on the way belongs to the user with the number 4711, who"):
        Disk().refuse_detours(tmp_path / "link/authorized_keys")
    Disk().refuse_detours(tmp_path / "real/authorized_keys")


# --- seeds ---------------------------------------------------------------------------------------------------------
@pytest.fixture
def seed(state: Path) -> Seed:
    return Seed(str(state / "compute_id"), 0o640)


def seeded(world: World, seed: Seed, digest: str = A) -> Bundle:
    return bundle_of(world, digest, {"1.conf": digest.encode()}, seeds=(seed,))


def test_a_seed_is_made_once_and_never_anew(world: World, seed: Seed) -> None:
    path = Path(seed.path)
    outcome = deploy(world, seeded(world, seed))
    assert outcome.changes.ground == (f"seed {seed.path}",)
    first = path.read_text()
    assert str(UUID(first.strip())) == first.strip()
    assert path.stat().st_mode & 0o777 == 0o640
    assert not deploy(world, seeded(world, seed)).changes.any
    deploy(world, seeded(world, seed, B))
    path.unlink()
    assert told(world)["drift"] == [{"name": seed.path, "what": "missing"}]
    outcome = deploy(world, seeded(world, seed, B))
    assert (outcome.changes.ground, outcome.restarted) == ((f"seed {seed.path}",), False)
    assert path.read_text() == first
    assert told(world)["seeds"] == {seed.path: first.strip()}
    assert told(world)["identity"] == {}


def test_one_that_is_there_already_is_remembered_as_it_is(world: World, seed: Seed) -> None:
    Path(seed.path).parent.mkdir()
    Path(seed.path).write_text("5f0c\n")
    deploy(world, seeded(world, seed))
    assert Path(seed.path).read_text() == "5f0c\n"
    Path(seed.path).write_text("")
    deploy(world, seeded(world, seed))
    assert Path(seed.path).read_text() == "5f0c\n"


@pytest.mark.usefixtures("deployed")
def test_one_that_a_live_service_never_had_is_left_to_the_service(world: World, seed: Seed) -> None:
    deploy(world, seeded(world, seed, B))
    assert not Path(seed.path).exists()
    assert not deploy(world, seeded(world, seed, B)).changes.any
    Path(seed.path).parent.mkdir()
    Path(seed.path).write_text("its own\n")
    assert deploy(world, seeded(world, seed, B)).changes.ground == (f"seed {seed.path}",)
    assert told(world)["seeds"] == {seed.path: "its own"}


@pytest.mark.parametrize("check", [True, False])
def test_one_that_has_become_another_is_refused(world: World, seed: Seed, check: bool) -> None:
    deploy(world, seeded(world, seed))
    first = Path(seed.path).read_text().strip()
    Path(seed.path).write_text("other\n")
    assert told(world)["drift"] == [{"name": seed.path, "what": "changed"}]
    with pytest.raises(
        Guarded, match=f"nova_compute on this node is known by {first}, and {seed.path} says other; write"
    ):
        deploy(world, seeded(world, seed, B), check=check)


def test_a_first_start_that_fails_keeps_the_seed_that_others_may_know_by_now(world: World, seed: Seed) -> None:
    with pytest.raises(Failed):
        deploy(world, dataclasses.replace(seeded(world, seed), files=bundle_of(world, A, {"1": b"die"}).files))
    first = Path(seed.path).read_text()
    deploy(world, seeded(world, seed))
    assert Path(seed.path).read_text() == first
