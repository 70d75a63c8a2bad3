# SPDX-License-Identifier: GPL-3.0-or-later
"""How a unit finds its generation, and what a change of files alone costs the node."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import Bundle, Image
from ansible_collections.edpm.services.plugins.module_utils._node.errors import Failed
from ansible_collections.edpm.services.plugins.module_utils._node.generations import Drift

from .fakes import back, bundle_of, deploy, everything_in, text, told
from .plug import Killed, Plug
from .programs import IMAGE, QUADLET, UNIT, World
from .samples import FIRST, SECOND, A, B, C, D, home

SIDE = "edpm_nova_compute-side"
MOUNT = "type=bind,source=@GENERATION@/conf.d,target=/x"


def links(world: World) -> dict[str, str]:
    """Which generation is mounted by which link."""
    folder = home(world) / "mounted"
    return {one.name: one.resolve().name for one in folder.iterdir()} if folder.exists() else {}


def unit(world: World) -> str:
    return (world.places.units / QUADLET).read_text()


@pytest.mark.usefixtures("deployed")
def test_a_change_of_files_restarts_the_service_and_leaves_systemds_units_alone(world: World) -> None:
    before = unit(world)
    outcome = deploy(world, bundle_of(world, B, SECOND))
    assert outcome.sentence(check=False) == "nova_compute bbbbbbb is live: 1 file changed, 1 restart."
    assert {call[1] for call in world.calls if call[0] == "systemctl"} == {"show", "reset-failed", "restart"}
    assert len(world.done("restart")) == 1
    assert not any("generator" in call[0] for call in world.calls)
    assert (unit(world), list(links(world).values())) == (before, [B])
    assert dict(world.processes[UNIT].files) == SECOND


@pytest.mark.usefixtures("deployed")
def test_a_change_of_units_has_a_link_of_its_own_so_that_the_old_unit_never_sees_new_files(world: World) -> None:
    (old,) = links(world)
    deploy(world, bundle_of(world, B, SECOND, units={QUADLET: text(world, extra="User=1\n")}))
    (new,) = links(world).keys() - {old}
    assert links(world) == {old: A, new: B}
    assert new in unit(world)
    assert len(world.done("daemon-reload")) == 1


def test_a_link_goes_with_the_last_generation_behind_it(world: World) -> None:
    for digest, extra in ((A, ""), (B, "User=1\n"), (C, "User=2\n"), (D, "User=2\n")):
        deploy(world, bundle_of(world, digest, {"1": b"x"}, units={QUADLET: text(world, extra=extra)}, keep=2))
    assert list(links(world).values()) == [D]
    with pytest.raises(Failed):
        deploy(world, bundle_of(world, A, {"1": b"die"}, units={QUADLET: text(world, extra="User=3\n")}))
    assert list(links(world).values()) == [D]


@pytest.mark.usefixtures("deployed")
def test_a_generation_that_dies_gives_its_link_back(world: World) -> None:
    before = everything_in(world.places.root.parent)
    with pytest.raises(Failed, match="generation aaaaaaa runs again as before"):
        deploy(world, bundle_of(world, B, {"01.conf": b"die\n"}))
    assert everything_in(world.places.root.parent) == before
    assert dict(world.processes[UNIT].files) == FIRST


@pytest.mark.usefixtures("deployed")
def test_a_rollback_moves_the_link_too(world: World) -> None:
    deploy(world, bundle_of(world, B, SECOND))
    back(world)
    assert list(links(world).values()) == [A]
    assert dict(world.processes[UNIT].files) == FIRST


def test_whatever_mounts_the_files_is_restarted_with_them_and_nothing_else(world: World) -> None:
    other = f"[Container]\nImage={IMAGE}\n"
    units = {QUADLET: text(world), f"{SIDE}.container": text(world), f"{SIDE}2.container": other}
    deploy(world, bundle_of(world, A, FIRST, units=units))
    world.calls.clear()
    deploy(world, bundle_of(world, B, SECOND, units=units))
    assert [call[3:] for call in world.done("restart")] == [[UNIT, f"{SIDE}.service"]]


@pytest.mark.parametrize(
    "line",
    [
        *(f"Volume=@GENERATION@/conf.d:/x:{options}" for options in ("z", "Z", "ro,z", "z,ro", "ro,Z,rslave")),
        *('PodmanArgs="--volume=@GENERATION@:/x:z" --privileged', "PodmanArgs=-v @GENERATION@:/x:Z --privileged"),
        *(f"Mount={MOUNT},relabel=shared", f"Mount=relabel=private,{MOUNT}"),
    ],
)
def test_a_unit_that_wants_labels_names_the_folder_since_podman_would_label_the_link(world: World, line: str) -> None:
    units = {QUADLET: text(world, extra=f"{line}\n")}
    deploy(world, bundle_of(world, A, FIRST, units=units))
    assert (f"{home(world)}/generations/{A}/conf.d" in unit(world), links(world)) == (True, {})
    world.calls.clear()
    deploy(world, bundle_of(world, B, SECOND, units=units))
    assert len(world.done("daemon-reload")) == 1
    assert dict(world.processes[UNIT].files) == SECOND


@pytest.mark.parametrize(
    "line",
    [
        *("Volume=@GENERATION@/conf.d:/x:ro,zone", "Volume=@GENERATION@/z:/z", "Volume=/var/lib/nova:/z:z"),
        *(
            f"Mount={MOUNT},ro=true",
            f"Volume=@GENERATION@:/x:ro\nMount={MOUNT.replace('@GENERATION@', '/y')},relabel=shared",
        ),
    ],
)
def test_other_options_and_other_mounts_are_no_reason(world: World, line: str) -> None:
    deploy(world, bundle_of(world, A, FIRST, units={QUADLET: text(world, extra=f"{line}\n")}))
    assert list(links(world).values()) == [A]


def test_a_unit_that_does_not_mount_its_generation_has_no_link(world: World) -> None:
    deploy(world, bundle_of(world, A, FIRST, units={QUADLET: text(world, pinned=False)}))
    assert not (home(world) / "mounted").exists()


def test_an_image_of_a_generations_own_is_a_change_of_the_unit(world: World) -> None:
    world.registry.add(IMAGE)
    for digest in (A, B):
        deploy(world, bundle_of(world, digest, {"1": digest.encode()}, image=Image(IMAGE, "always")))
    assert sorted(links(world).values()) == [A, B]


@pytest.mark.parametrize(("target", "what"), [("../generations/" + B, "changed"), ("", "missing")])
def test_a_link_that_somebody_moved_is_drift_and_is_moved_back(
    world: World, deployed: Bundle, target: str, what: str
) -> None:
    before = everything_in(world.places.root.parent)
    (name,) = links(world)
    path = home(world) / "mounted" / name
    path.unlink()
    if target:
        path.symlink_to(target)
    assert told(world)["drift"] == [{"name": f"mounted/{name}", "what": what}]
    announced = deploy(world, deployed, check=True)
    assert (announced.changes.units, announced.restarted) == ((f"mounted/{name}",), True)
    assert deploy(world, deployed).drift == (Drift(f"mounted/{name}", what),)
    assert everything_in(world.places.root.parent) == before


def test_a_generation_from_before_there_were_links_stays_as_it_was_made(world: World, deployed: Bundle) -> None:
    (name,) = links(world)
    generation = home(world) / "generations" / A
    for path in (generation / "units" / QUADLET, world.places.units / QUADLET):
        path.write_text(path.read_text().replace(f"mounted/{name}", f"generations/{A}"))
    _without_link(generation)
    (home(world) / "mounted" / name).unlink()
    (home(world) / "mounted").rmdir()
    world.reload()
    before = unit(world)
    assert not deploy(world, deployed).changes.any
    deploy(world, bundle_of(world, B, SECOND))
    assert list(links(world).values()) == [B]
    back(world)
    assert dict(world.processes[UNIT].files) == FIRST
    assert unit(world) == before


def _without_link(generation: Path) -> None:
    """The record as it was written then, with the digest of the unit that was written then."""
    path = generation / "bundle.json"
    data = json.loads(path.read_text())
    del data["link"]
    digest = sha256((generation / "units" / QUADLET).read_bytes()).hexdigest()
    for one in (*data["files"], *data["placed"]):
        if QUADLET in one["path"]:
            one["sha256"] = digest
    path.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n")


@pytest.mark.usefixtures("deployed")
def test_a_unit_that_systemd_has_not_read_is_read_before_the_restart(world: World) -> None:
    """Somebody changed it, let systemd read that, and changed it back."""
    world.loaded[UNIT] = world.loaded[UNIT].replace("Image=", "User=evil\nImage=")
    deploy(world, bundle_of(world, B, SECOND))
    assert len(world.done("daemon-reload")) == 1
    assert "evil" not in world.processes[UNIT].text


def test_a_companion_that_a_killed_run_had_placed_is_read_by_systemd_before_it_is_restarted(world: World) -> None:
    def made(digest: str, extra: str) -> Bundle:
        side = f"[Container]\nImage={IMAGE}\n{extra}Volume={home(world)}/current/conf.d:/x:ro\n"
        return bundle_of(world, digest, FIRST, units={QUADLET: text(world, pinned=False), f"{SIDE}.container": side})

    deploy(world, made(A, ""))
    plug = Plug()
    deploy(world, made(B, "User=1\n"), plug=plug)
    deploy(world, made(A, ""))
    with pytest.raises(Killed):
        deploy(world, made(B, "User=1\n"), plug=Plug(plug.names.index("daemon-reload"), "before"))
    deploy(world, made(B, "User=1\n"))
    assert "User=1" in world.processes[f"{SIDE}.service"].text
