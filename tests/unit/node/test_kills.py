# SPDX-License-Identifier: GPL-3.0-or-later
"""The plug is pulled at every step of a run, and what is found then is always whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import Bundle, Image, LiveFile, NodeFile, Seed
from ansible_collections.edpm.services.plugins.module_utils._node.errors import Failed, NodeRefused, NothingBefore
from ansible_collections.edpm.services.plugins.module_utils._node.seeds import Seeds

from .fakes import away, back, bundle_of, deploy, everything_in, text, wipe, world_in
from .plug import Killed, Plug
from .programs import IMAGE, QUADLET, UNIT, World

OLD = {"01-nova.conf": b"[DEFAULT]\nold = 1\n", "02-gone.conf": b"gone = 1\n"}
NEW = {"01-nova.conf": b"[DEFAULT]\nnew = 1\n", "03-more.conf": b"more = 1\n"}
DEADLY = {"01-nova.conf": b"die = 1\n"}
A, B = "a" * 64, "b" * 64
SIDECAR, BESIDE = "edpm_nova_compute-side.container", "edpm_nova_compute-side.service"


def old(world: World) -> Bundle:
    return bundle_of(world, A, OLD, units={QUADLET: text(world), SIDECAR: text(world)}, guards={"cell": "nova-cell1"})


def new(world: World, files: Mapping[str, bytes] = NEW, **others: Any) -> Bundle:
    changed = {QUADLET: text(world, extra="Pull=never\n")}
    return bundle_of(world, B, files, units=changed, tmpfiles=("d /run/x",), guards={"cell": "nova-cell1"}, **others)


def same_units(files: Mapping[str, bytes]) -> Callable[[World], Bundle]:
    """The old bundle with other files."""
    return lambda world: replace(old(world), digest=B, files=bundle_of(world, B, files).files)


def beside(extra: str) -> Callable[[World], Bundle]:
    """Units that mount `current`; only the companion's changes."""

    def make(world: World) -> Bundle:
        units = {QUADLET: text(world, pinned=False), SIDECAR: text(world, extra=extra, pinned=False)}
        return bundle_of(world, B if extra else A, NEW if extra else OLD, units=units)

    return make


def pushed(name: str, made: Callable[[World], Bundle]) -> Callable[[World], Bundle]:
    """A bundle with a tag that is always pulled, and means another image each time."""

    def make(world: World) -> Bundle:
        world.registry.add(IMAGE)
        world.pushed[IMAGE] = name
        return replace(made(world), image=Image(IMAGE, "always"))

    return make


def deadly(world: World) -> Bundle:
    return new(world, DEADLY)


def offer_packages(world: World) -> None:
    world.fabric.available.add("multipath-tools")
    world.places.etc.mkdir(exist_ok=True)
    (world.places.etc / "os-release").write_text("ID=debian\n")


def all_of_it(world: World, files: Mapping[str, bytes] = NEW) -> Bundle:
    """A service that asks for everything that a node can give."""
    state = world.places.root.parent / "state"
    world.fabric.files.update({"iscsid.socket": "disabled", "other.socket": "enabled"})
    offer_packages(world)
    if world.fabric.ruleset is None:
        world.fabric.chain("INPUT", "drop")
    return new(
        world,
        files,
        container="nova_compute",
        node_files=(NodeFile(str(state / "node.conf"), next(iter(files.values())), 0o640),),
        live=(LiveFile(str(state / "ca.crt"), b"PEM", 0o644), LiveFile(str(state / "key"), b"KEY", secret=True)),
        seeds=(Seed(str(state / "compute_id")),),
        ports=("tcp 5900-6923", "udp 53"),
        packages={"apt": ("multipath-tools",)},
        node_units=("iscsid.socket", "multipath-tools.service"),
        masked=("other.socket",),
        reload=("kill", "-HUP", "1"),
    )


def with_daemon(world: World) -> Bundle:
    """A service that needs no more of the node than a daemon."""
    offer_packages(world)
    return new(world, packages={"apt": ("multipath-tools",)}, node_units=("multipath-tools.service",))


def refused(world: World) -> Bundle:
    """One that stops and masks what runs on the node, and then needs what its packages do not bring."""
    made = all_of_it(world)
    if "other.socket" not in world.fabric.behind_masks:
        world.fabric.up.add("other.socket")
    return replace(made, node_units=("iscsid.socket", "no.service"))


def edited(world: World) -> None:
    (world.places.root / "nova_compute/current/conf.d/01-nova.conf").write_bytes(b"edited = 1\n")
    (world.places.root / "nova_compute/current/conf.d/99-stray.conf").write_bytes(b"stray = 1\n")
    (world.places.units / QUADLET).write_text("[Container]\nImage=other\n")


def poisoned(world: World) -> None:
    """From now on the old generation dies."""
    world.poison = b"old = 1"


def lost(world: World) -> None:
    """Whatever lies outside the generations is changed by hand."""
    state = world.places.root.parent / "state"
    (state / "ca.crt").write_text("edited")
    (state / "compute_id").unlink()
    world.fabric.ruleset = [one for one in world.fabric.ruleset or [] if "chain" in one]


def uninstalled(world: World) -> None:
    """A package is taken off the node, and its daemon goes with it."""
    world.fabric.packages.clear()
    world.fabric.files.pop("multipath-tools.service")
    world.fabric.up.discard("multipath-tools.service")


Act = Callable[[World, "Plug | None"], object]


def deploying(made: Callable[[World], Bundle]) -> Act:
    return lambda world, plug: deploy(world, made(world), plug=plug)


def going_back(world: World, plug: Plug | None) -> object:
    return back(world, plug=plug)


def removing(world: World, plug: Plug | None) -> object:
    return away(world, plug=plug)


@dataclass(frozen=True)
class Case:
    """What is on the node, what is done, how that ends, and what runs then."""

    before: tuple[Callable[[World], Any], ...]
    act: Act
    runs: Mapping[str, bytes] | None
    end: str = "ran"
    #: What is done after the kill, where it is not the same once more; then only what runs is looked at.
    again: Act | None = None


CASES = {
    "first": Case((), deploying(new), NEW),
    "update": Case((old,), deploying(new), NEW),
    "repair": Case((old, edited), deploying(old), OLD),
    "fails and goes back": Case((old,), deploying(lambda world: new(world, DEADLY)), OLD, "failed"),
    "fails at first": Case((), deploying(lambda world: new(world, DEADLY)), None, "failed"),
    "update of files": Case((old,), deploying(same_units(NEW)), NEW),
    "update of files, then a rollback": Case((old,), deploying(same_units(NEW)), OLD, again=going_back),
    "update of files, then of units": Case((old,), deploying(same_units(NEW)), NEW, again=deploying(new)),
    "fails and goes back to files": Case((old,), deploying(same_units(DEADLY)), OLD, "failed"),
    "update of files and a companion": Case((beside(""),), deploying(beside("User=1\n")), NEW),
    "rollback of files": Case((old, same_units(NEW)), going_back, OLD),
    "removal after files": Case((old, same_units(NEW)), removing, None),
    "all of it": Case((old,), deploying(all_of_it), NEW),
    "all of it again": Case((all_of_it, lost), deploying(all_of_it), NEW),
    "all of it fails": Case((), deploying(lambda world: all_of_it(world, DEADLY)), None, "failed"),
    "refused": Case((old,), deploying(refused), OLD, "refused"),
    "refused at first": Case((), deploying(refused), None, "refused"),
    "tag moves": Case((pushed("old", old),), deploying(pushed("new", new)), NEW),
    "tag moves, fails": Case((pushed("old", old),), deploying(pushed("new", deadly)), OLD, "failed"),
    "tag moves, fails at first": Case((), deploying(pushed("new", deadly)), None, "failed"),
    "tag moves, rollback": Case((pushed("old", old), pushed("new", new)), going_back, OLD),
    "tag moves, removal": Case((pushed("old", old), pushed("new", new)), removing, None),
    "rollback": Case((old, new), going_back, OLD),
    "rollback fails": Case((old, new, poisoned), going_back, NEW, "failed"),
    "rollback of all of it": Case((old, all_of_it), going_back, OLD),
    "rollback, then an update": Case((old, new), going_back, NEW, again=deploying(new)),
    "update, then a rollback": Case((old,), deploying(new), OLD, again=going_back),
    "removal": Case((old, new), removing, None),
    "removal of all of it": Case((old, all_of_it), removing, None),
    "removal of what failed": Case((old, edited), removing, None),
    "removal, then a deployment": Case((old,), removing, NEW, again=deploying(new)),
    "update, then a removal": Case((old,), deploying(all_of_it), None, again=removing),
}


@pytest.fixture(autouse=True)
def _one_uuid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs make the same seed, so that their nodes can be compared."""
    monkeypatch.setattr(f"{Seeds.__module__}.Seeds._made", lambda self: "" if self._home.current else "0c5a")


def prepared(folder: Path, case: Case) -> World:
    wipe(folder)
    world = world_in(folder)
    for step in case.before:
        made = step(world)
        if isinstance(made, Bundle):
            deploy(world, made)
    return world


def attempt(world: World, act: Act, plug: Plug | None = None) -> str:
    try:
        act(world, plug)
    except Failed:
        return "failed"
    except NodeRefused:
        return "refused"
    except Killed:
        return "killed"
    return "ran"


def steps(folder: Path, case: Case) -> list[str]:
    plug = Plug()
    assert attempt(prepared(folder, case), case.act, plug) == case.end
    return plug.names


@pytest.mark.parametrize("when", ["before", "half", "after"])
@pytest.mark.parametrize("name", CASES)
def test_a_run_killed_at_any_step_leaves_old_or_new_and_the_next_run_finishes(
    tmp_path: Path, name: str, when: str
) -> None:
    case = CASES[name]
    names = steps(tmp_path, case)
    finished = everything_in(tmp_path)
    assert len(names) > 8
    if "rollback" in name and when == "after":
        # After its last step a rollback is done, and one more would be another one.
        names.pop()
    for number, step in enumerate(names):
        if when == "half" and not step.startswith(("create", "remove all")):
            continue
        told = f"killed {when} step {number}: {step}"
        world = prepared(tmp_path, case)
        assert attempt(world, case.act, Plug(number, when)) == "killed", told
        assert_whole(world, name, told)
        if case.again is None:
            assert attempt(world, case.act) == case.end, told
            assert everything_in(tmp_path) == finished, told
        else:
            attempt_again(world, case.again)
        assert_end(world, case, told)


def attempt_again(world: World, act: Act) -> None:
    """Where the kill came so soon that nothing had begun, there may be nothing to go back to."""
    with suppress(NothingBefore):
        act(world, None)


def assert_whole(world: World, name: str, told: str) -> None:
    """What runs, and what would run after a crash of the service or a reboot of the node, is one generation."""
    process = world.processes.get(UNIT)
    if name.startswith(("update", "repair", "fails and", "rollback")):
        assert process is not None, told
    moments: list[Callable[[], object]] = [dict, lambda: world.start(UNIT), world.reload, lambda: world.start(UNIT)]
    for moment in moments:
        moment()
        process = world.processes.get(UNIT)
        if process is not None and not name.startswith(("repair", "removal")):
            assert dict(process.files) in (OLD, NEW, DEADLY), told
            assert "files" in name or ("Pull=never" in process.text) == (dict(process.files) != OLD), told
            if name.startswith("tag moves"):
                assert process.image == ("old" if dict(process.files) == OLD else "new"), told


def assert_end(world: World, case: Case, told: str) -> None:
    process = world.processes.get(UNIT)
    kept = {name.rpartition(":")[2] for name in world.images if name.startswith("localhost/")}
    assert kept <= {one.name for one in world.places.root.glob("nova_compute/generations/*")}, told
    if case.runs is None:
        assert process is None, told
        assert list(world.places.units.glob("*")) == [], told
        assert case.end != "refused" or "other.socket" in world.fabric.up, told
        assert world.fabric.rules() == [], told
        assert "masked" not in world.fabric.files.values(), told
    else:
        assert process is not None, told
        assert (dict(process.files), process.fails) == (case.runs, False), told
        other = world.processes.get(BESIDE)
        assert other is None or other.files == process.files, told
        assert not (world.places.root / "nova_compute/intent.json").exists(), told
        assert case.runs == OLD or world.fabric.early == set(), told
        made = old(world) if case.runs == OLD else None
        if made:
            assert not deploy(world, made).changes.switch, told


def test_a_removal_killed_anywhere_and_run_again_leaves_nothing_but_the_data(tmp_path: Path) -> None:
    case = CASES["removal of all of it"]
    for number, step in enumerate(steps(tmp_path, case)):
        world = prepared(tmp_path, case)
        assert attempt(world, case.act, Plug(number)) == "killed"
        away(world)
        assert [*world.places.root.rglob("*"), *(tmp_path / "state").rglob("*")] == [], step
        assert not away(world).paths


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_daemon_that_came_with_a_package_reads_its_files_although_the_run_that_brought_it_was_killed(
    tmp_path: Path, when: str
) -> None:
    case = Case((with_daemon, uninstalled), deploying(with_daemon), NEW)
    for number, step in enumerate(steps(tmp_path, case)):
        told = f"killed {when} step {number}: {step}"
        world = prepared(tmp_path, case)
        assert attempt(world, case.act, Plug(number, when)) == "killed", told
        assert attempt(world, case.act) == case.end, told
        assert_end(world, case, told)


def test_a_cut_off_run_is_announced_by_check_mode_and_finished_with_one_restart(tmp_path: Path) -> None:
    case = CASES["update"]
    restart = steps(tmp_path, case).index("restart")
    world = prepared(tmp_path, case)
    assert attempt(world, case.act, Plug(restart, "before")) == "killed"

    announced = deploy(world, new(world), check=True)
    assert (announced.changes.unfinished, announced.restarted) == (True, True)
    world.calls.clear()
    finished = deploy(world, new(world))

    assert finished.changes.unfinished
    assert len(world.done("restart")) == 1
    assert not deploy(world, new(world)).changes.any


def on_node(world: World) -> Bundle:
    """The service from the node's packages instead of a container, with a socket of the node's own."""
    units = ("proxy.service", "proxy.socket")
    for unit in units:
        world.fabric.files.setdefault(unit, "disabled")
    world.fabric.triggers["proxy.socket"] = "proxy.service"
    return bundle_of(world, B, {}, image=Image(""), units={}, node_units=units, guards={"cell": "nova-cell1"})


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_change_from_a_container_to_the_nodes_own_units_is_finished_and_no_socket_has_two_owners(
    tmp_path: Path, when: str
) -> None:
    case = Case((old,), deploying(on_node), None)
    names = steps(tmp_path, case)
    finished = everything_in(tmp_path)
    for number, step in enumerate(names):
        told = f"killed {when} step {number}: {step}"
        world = prepared(tmp_path, case)
        assert attempt(world, case.act, Plug(number, when)) == "killed", told
        assert world.processes.get(UNIT) is None or "proxy.socket" not in world.fabric.up, told
        assert attempt(world, case.act) == case.end, told
        assert everything_in(tmp_path) == finished, told
        assert world.fabric.up == {"proxy.service", "proxy.socket"}, told
        assert world.processes.get(UNIT) is None, told
