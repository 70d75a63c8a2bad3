# SPDX-License-Identifier: GPL-3.0-or-later
"""What is refused, in which words, and that nothing was touched by then; images and where they come from."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import Image
from ansible_collections.edpm.services.plugins.module_utils._node.commands import NOT_FOUND, Result
from ansible_collections.edpm.services.plugins.module_utils._node.errors import NodeError
from ansible_collections.edpm.services.plugins.module_utils._node.prefetch import prefetch

from .fakes import away, bundle_of, deploy, everything_in, node_of, wipe
from .plug import Killed, Plug
from .programs import IMAGE, QUADLET, World
from .samples import FIRST, JUDGE, SECOND, A, B, home

NEWER = "registry.example.org/nova-compute:31"


def _as_it_is(_world: World) -> None:
    """The fault is in what is asked for."""


Break = Callable[[World], object]
JUDGED = {"validation": JUDGE}
#: How the node or the bundle is broken, what is asked for, and what the message says. Nothing may be touched.
REFUSED: dict[str, tuple[Break, dict[str, Any], dict[str, bytes], str]] = {
    "no podman": (
        lambda world: world.refuse.update({"podman --version": Result(NOT_FOUND)}),
        {},
        SECOND,
        "The node has no podman; install podman 4.4 or newer.",
    ),
    "old podman": (
        lambda world: setattr(world, "version", "podman version 4.3.1"),
        {},
        SECOND,
        "The node's podman 4.3 is too old; install 4.4 or newer, which brings Quadlet.",
    ),
    "broken podman": (
        lambda world: world.refuse.update({"podman --version": Result(1, "", "cannot open storage")}),
        {},
        SECOND,
        "podman does not work on the node: cannot open storage; repair it",
    ),
    "no Quadlet": (
        lambda world: (world.places.root.parent / "generator").unlink(),
        {},
        SECOND,
        "The node has no Quadlet",
    ),
    "no systemd": (
        lambda world: world.refuse.update({"systemctl show": Result(1, "", "System has not been booted with systemd")}),
        {},
        SECOND,
        "The node does not run systemd",
    ),
    "refused by the registry": (
        _as_it_is,
        {"image": Image("registry.example.org/no:1")},
        SECOND,
        "The image registry.example.org/no:1 cannot be pulled: initializing source: unauthorized; see to its name",
    ),
    "image never pulled": (
        _as_it_is,
        {"image": Image("registry.example.org/no:1", "never")},
        SECOND,
        "is not on the node and pulling is switched off; load it there (podman load)",
    ),
    "unit refused": (
        _as_it_is,
        {"units": {QUADLET: "[Container]\nNonsense=1\n"}},
        SECOND,
        f'Quadlet makes no service of {QUADLET}: converting "{QUADLET}": unsupported key Nonsense; correct its text',
    ),
    "unit unreadable": (
        _as_it_is,
        {"units": {QUADLET: "unreadable"}},
        SECOND,
        f"Quadlet makes no service of {QUADLET}",
    ),
    "unknown option": (
        _as_it_is,
        JUDGED,
        {**FIRST, "1": b"unknown_option = 1"},
        f"by the image {IMAGE}: 1: unknown_option",
    ),
    "not parsed": (_as_it_is, JUDGED, {"1": b"not oslo"}, "cannot be parsed; correct what it names"),
    "parsed by nobody under warn": (
        _as_it_is,
        {"validation": dataclasses.replace(JUDGE, policy="warn")},
        {"1": b"not oslo"},
        "cannot be parsed; correct what it names. The running service was not touched.",
    ),
    "another cell": (
        _as_it_is,
        {"guards": {"cell": "nova-cell2"}},
        FIRST,
        "belongs to the cell nova-cell1 and was asked to join nova-cell2; Nova cannot move a compute between cells",
    ),
    "another host": (
        _as_it_is,
        {"guards": {"host": "compute-9"}},
        FIRST,
        "goes by the host name compute-0 and was asked to take the name compute-9",
    ),
}


@pytest.mark.parametrize(("broken", "others", "files", "says"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_is_refused_in_a_sentence_before_anything_is_touched(
    world: World, broken: Break, others: dict[str, Any], files: dict[str, bytes], says: str
) -> None:
    deploy(world, bundle_of(world, A, FIRST, guards={"cell": "nova-cell1", "host": "compute-0"}))
    broken(world)
    before, processes = everything_in(world.places.root.parent), dict(world.processes)
    with pytest.raises(NodeError) as caught:
        deploy(world, bundle_of(world, B, files, **others))
    assert says in str(caught.value)
    assert str(caught.value).endswith(".")
    assert "hunter2" not in str(caught.value)
    assert (everything_in(world.places.root.parent), world.processes) == (before, processes)


def test_a_first_deployment_that_is_refused_leaves_no_folder(world: World) -> None:
    with pytest.raises(NodeError):
        deploy(world, bundle_of(world, A, {"1": b"unknown_option"}, validation=JUDGE))
    assert not home(world).exists()


@pytest.mark.parametrize(("policy", "warned"), [("warn", 1), ("off", 0)])
def test_a_lenient_policy_goes_on(world: World, policy: str, warned: int) -> None:
    judge = dataclasses.replace(JUDGE, policy=policy)
    files = {"1-secret": b"unknown_option\npassword = hunter2hunter2"}
    outcome = deploy(world, bundle_of(world, A, files, validation=judge))
    assert len(outcome.warnings) == warned
    assert "hunter2" not in "".join(outcome.warnings)


def test_what_the_image_remarks_of_files_that_it_accepts_is_told_without_their_secrets(world: World) -> None:
    world.remarks = "01.conf: debgu is unknown\n\n05.conf: password = hunter2hunter2\n"
    outcome = deploy(world, bundle_of(world, A, FIRST, validation=JUDGE))
    said = "The image of nova_compute says of its configuration:"
    assert outcome.warnings == (f"{said} 01.conf: debgu is unknown", f"{said} 05.conf: ********")
    assert outcome.result(check=False)["warnings"] == list(outcome.warnings)
    assert deploy(world, bundle_of(world, A, FIRST, validation=JUDGE)).warnings == (), "nothing was judged"


def test_no_more_is_told_than_anybody_reads(world: World) -> None:
    world.remarks = "\n".join(f"{number} {'x' * 1000}" for number in range(25))
    told = deploy(world, bundle_of(world, A, FIRST, validation=JUDGE)).warnings
    assert (len(told), told[-1].rpartition(": ")[2]) == (11, "and 15 more lines")
    assert max(map(len, told)) < 400


def test_what_the_image_remarked_is_told_of_a_run_that_fails_too(world: World) -> None:
    world.remarks = "01.conf: debgu is unknown"
    with pytest.raises(NodeError) as caught:
        deploy(world, bundle_of(world, A, {"1": b"die"}, validation=JUDGE))
    assert [warning.rpartition(": ")[2] for warning in caught.value.warnings] == ["debgu is unknown"]


PULLS = [
    (IMAGE, "always", 1),
    (IMAGE, "missing", 0),
    (f"{IMAGE}@sha256:{A}", "always", 0),
]


@pytest.mark.parametrize(("reference", "pull", "warned"), PULLS)
def test_a_tag_that_is_always_pulled_is_warned_of(world: World, reference: str, pull: str, warned: int) -> None:
    world.images.add(reference)
    world.registry.add(reference)
    made = bundle_of(world, A, FIRST, image=Image(reference, pull))
    for check in (True, False, True, False):
        told = deploy(world, made, check=check).warnings
        assert len(told) == warned
        assert not told or told[0].startswith(f"nova_compute is to pull {IMAGE} always, which is a tag that may move")
        assert not any("goes back" in one or "go back" in one for one in told)


@pytest.mark.usefixtures("deployed")
def test_an_image_that_is_there_is_never_looked_for_elsewhere(world: World) -> None:
    deploy(world, bundle_of(world, B, SECOND))
    assert [call for call in world.argv("podman") if call[1] == "pull"] == []


def test_credentials_lie_in_memory_while_the_image_is_pulled_and_no_longer(world: World) -> None:
    seen = {}

    class Watching(dict[str, Result]):
        def items(self) -> Any:
            scratch = world.places.scratch
            if scratch.exists():
                seen.update(everything_in(scratch))
            return super().items()

    world.refuse = Watching()
    world.images.clear()
    world.registry.add(IMAGE)
    image = Image(IMAGE, auth="{token}", certificates={"ca.crt": "PEM"}, registries="[[registry]]")
    deploy(world, bundle_of(world, A, FIRST, image=image))
    assert seen == {
        "auth.json": "100600 b'{token}'",
        "certificates": "folder",
        "certificates/ca.crt": "100600 b'PEM'",
        "registries.conf": "100600 b'[[registry]]'",
    }
    assert world.mirrors == [str(world.places.scratch / "registries.conf")]
    assert not world.places.scratch.exists()


def test_credentials_that_a_killed_run_left_are_gone_after_the_next_one_of_any_kind(world: World) -> None:
    made = bundle_of(world, A, FIRST, image=Image(IMAGE, auth="{token}"))
    world.images.clear()
    world.registry.add(IMAGE)
    plug = Plug()
    deploy(world, made, plug=plug)
    runs: tuple[Callable[[], object], ...] = (
        lambda: deploy(world, made),
        lambda: prefetch(node_of(world), made, check=False, patience=0),
        lambda: away(world),
    )
    for run in runs:
        wipe(world.places.root.parent / "run")
        world.images.clear()
        with pytest.raises(Killed):
            prefetch(node_of(world, Plug(plug.names.index("pull"))), made, check=False, patience=0)
        assert (world.places.scratch / "auth.json").exists()
        world.images.add(IMAGE)
        run()
        assert not world.places.scratch.exists()


def test_a_refusing_registry_leaves_no_credentials_either(world: World) -> None:
    with pytest.raises(NodeError):
        deploy(world, bundle_of(world, A, FIRST, image=Image("registry.example.org/no:1", auth="{token}")))
    assert not world.places.scratch.exists()


# --- ahead of the switch -------------------------------------------------------------------------------------------
def test_an_image_is_brought_ahead_and_nothing_else_is_touched(world: World) -> None:
    made = bundle_of(world, A, FIRST, image=Image(NEWER))
    world.registry.add(NEWER)
    before = everything_in(world.places.root.parent)
    foreseen = prefetch(node_of(world), made, check=True, patience=0)
    assert (foreseen.pulled, NEWER in world.images, everything_in(world.places.root.parent)) == (True, False, before)
    assert foreseen.sentence(check=True) == f"The image {NEWER} of nova_compute would be pulled."
    fetched = prefetch(node_of(world), made, check=False, patience=0)
    assert (fetched.result(check=False)["changed"], NEWER in world.images, world.processes) == (True, True, {})
    again = prefetch(node_of(world), made, check=False, patience=0)
    assert again.result(check=False)["changed"] is False
    assert not home(world).exists()


def test_what_needs_no_image_is_not_looked_for(world: World) -> None:
    made = bundle_of(world, A, FIRST, image=Image(""), units={}, node_units=("a.service",))
    assert not prefetch(node_of(world), made, check=False, patience=0).pulled
    assert world.calls == []


def test_a_pinned_image_is_asked_for_by_its_digest(world: World) -> None:
    pinned = "registry.example.org/nova-compute@sha256:" + "0" * 64
    world.registry.add(pinned)
    deploy(world, bundle_of(world, A, FIRST, image=Image(pinned)))
    assert [call[-1] for call in world.argv("podman") if call[1] == "pull"] == [pinned]
