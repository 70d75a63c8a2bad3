# SPDX-License-Identifier: GPL-3.0-or-later
"""Back to the generation before: from the node alone, with the same care as forth."""

from __future__ import annotations

import dataclasses

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import Bundle, LiveFile
from ansible_collections.edpm.services.plugins.module_utils._node.commands import Result
from ansible_collections.edpm.services.plugins.module_utils._node.errors import Failed, NodeError

from .fakes import away, back, bundle_of, deploy, everything_in, text
from .plug import Killed, Plug
from .programs import IMAGE, QUADLET, UNIT, World
from .samples import FIRST, SECOND, A, B, home, live

CELL = {"guards": {"cell": "nova-cell1"}}


@pytest.fixture
def twice(world: World, deployed: Bundle) -> Bundle:
    """A second generation over the first, with another unit."""
    del deployed
    made = bundle_of(world, B, SECOND, units={QUADLET: text(world, extra="Pull=never\n")}, **CELL)
    deploy(world, made)
    world.calls.clear()
    return made


@pytest.mark.usefixtures("twice")
def test_the_generation_before_runs_again_after_one_restart_and_can_be_left_again(world: World) -> None:
    outcome = back(world)
    result = outcome.result(check=False)
    assert (result["changed"], result["digest"], result["digest_before"]) == (True, A, B)
    assert result["files"]["changed"] == ("conf.d/01-nova.conf",)
    assert len(world.done("restart")) == 1
    assert (dict(world.processes[UNIT].files), "Pull=never" in world.processes[UNIT].text) == (FIRST, False)
    assert (live(world), (home(world) / "previous").readlink().name) == (A, B)
    assert back(world).digest == B
    assert (dict(world.processes[UNIT].files), live(world)) == (SECOND, B)


@pytest.mark.usefixtures("twice")
def test_nothing_is_pulled_or_validated_and_the_nodes_memory_stays(world: World) -> None:
    before = (home(world) / "identity.json").read_bytes()
    back(world)
    assert {call[1] for call in world.argv("podman")} == {"--version", "image"}
    assert (home(world) / "identity.json").read_bytes() == before


@pytest.mark.usefixtures("twice")
def test_check_mode_says_the_same_as_the_run_and_touches_nothing(world: World) -> None:
    before = everything_in(world.places.root.parent)
    foreseen = back(world, check=True)
    assert everything_in(world.places.root.parent) == before
    assert foreseen == back(world)
    shown = {one["after_header"]: (one["before"], one["after"]) for one in foreseen.diff}
    assert shown["nova_compute/conf.d/01-nova.conf"] == ("[DEFAULT]\nvalue = two\n", "[DEFAULT]\nvalue = one\n")


@pytest.mark.usefixtures("twice")
def test_where_the_old_one_does_not_get_well_the_node_is_put_back_to_where_it_was(world: World) -> None:
    world.poison = b"value = one"
    with pytest.raises(
        Failed, match=r"does not run as generation aaaaaaa: .*; generation bbbbbbb runs again as before"
    ):
        back(world)
    assert (live(world), dict(world.processes[UNIT].files)) == (B, SECOND)
    assert (home(world) / "previous").readlink().name == A
    world.poison = b"die"
    assert back(world).digest == A


@pytest.mark.usefixtures("twice")
def test_live_files_stay_as_they_are(world: World) -> None:
    path = world.places.root.parent / "ca.crt"
    made = bundle_of(world, "c" * 64, FIRST, live=(LiveFile(str(path), b"PEM"),))
    deploy(world, made)
    back(world)
    assert path.read_bytes() == b"PEM"


def test_settings_and_ports_are_those_of_the_generation_that_runs(world: World) -> None:
    world.fabric.chain("INPUT", "drop")
    (world.places.settings / "vm").mkdir(parents=True)
    (world.places.settings / "vm/swappiness").write_text("60\n")
    old = bundle_of(world, A, FIRST, ports=("tcp 22",), sysctls={"vm.swappiness": "1"}, tmpfiles=("d /run/old",))
    deploy(world, old)
    deploy(world, bundle_of(world, B, SECOND, ports=("tcp 23",), sysctls={"vm.swappiness": "2"}))
    assert world.fabric.rules() == ["tcp 23 edpm_nova_compute"]
    outcome = back(world)
    assert outcome.changes.ground == ("port tcp 22", "port tcp 23, no longer needed", "ports at start")
    assert world.fabric.rules() == ["tcp 22 edpm_nova_compute"]
    assert (world.places.settings / "vm/swappiness").read_text() == "1\n"
    assert (world.places.etc / "tmpfiles.d/edpm_nova_compute.conf").exists()
    assert not deploy(world, old).changes.any


@pytest.mark.usefixtures("deployed")
def test_a_switch_that_was_cut_off_goes_back_to_where_it_came_from(world: World) -> None:
    made = bundle_of(world, B, SECOND)
    plug = Plug()
    deploy(world, made, plug=plug)
    deploy(world, bundle_of(world, A, FIRST))
    with pytest.raises(Killed):
        deploy(world, bundle_of(world, "c" * 64, {"1.conf": b"x"}), plug=Plug(plug.names.index("restart"), "after"))
    assert back(world).digest == A
    assert (live(world), (home(world) / "previous").readlink().name) == (A, B)


def _image_gone(world: World) -> None:
    world.images.clear()


def _edited(world: World) -> None:
    (home(world) / "previous/conf.d/01-nova.conf").write_text("edited")


def _record_gone(world: World) -> None:
    (home(world) / "previous/bundle.json").unlink()


REFUSED = {
    "the image is gone": (_image_gone, f"The image {IMAGE} of generation aaaaaaa of nova_compute is no longer on the"),
    "edited": (_edited, "Generation aaaaaaa of nova_compute is not what was written (conf.d/01-nova.conf); deploy"),
    "no record": (_record_gone, "Generation aaaaaaa of nova_compute is not what was written ("),
    "pruned": (
        lambda world: (home(world) / "previous").unlink(),
        "nova_compute on this node has no generation before bbbbbbb; deploy the one that is wanted.",
    ),
    "removed": (away, "nova_compute is not on this node, so it cannot go back; deploy it."),
    "no podman": (
        lambda world: world.refuse.update({"podman --version": Result(127)}),
        "The node has no podman; install podman 4.4 or newer.",
    ),
}


@pytest.mark.usefixtures("twice")
@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("check", [True, False])
def test_what_cannot_go_back_is_refused_in_a_sentence_and_not_touched(world: World, case: str, check: bool) -> None:
    broken, says = REFUSED[case]
    broken(world)  # type: ignore[operator]
    before, processes = everything_in(world.places.root.parent), dict(world.processes)
    with pytest.raises(NodeError) as caught:
        back(world, check=check)
    assert says in str(caught.value)
    assert (everything_in(world.places.root.parent), world.processes) == (before, processes)


def test_a_removal_that_was_cut_off_is_not_gone_back_from(world: World, twice: Bundle) -> None:
    plug = Plug()
    away(world, plug=plug)
    deploy(world, dataclasses.replace(twice, guards={}))
    with pytest.raises(Killed):
        away(world, plug=Plug(plug.names.index("stop"), "after"))
    with pytest.raises(NodeError, match="The removal of nova_compute was cut off; run it again, or deploy the service"):
        back(world)
