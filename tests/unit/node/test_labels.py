# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels of SELinux on what a service has on its node."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import (
    Bundle,
    Folder,
    LiveFile,
    Seed,
)
from ansible_collections.edpm.services.plugins.module_utils._node.commands import Result
from ansible_collections.edpm.services.plugins.module_utils._node.errors import NodeError

from .fakes import bundle_of, deploy, world_in
from .plug import Killed, Plug
from .programs import World
from .samples import FIRST, A


@pytest.fixture
def selinux(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    (world.places.kernel / "fs/selinux").mkdir(parents=True)
    (world.places.kernel / "fs/selinux/enforce").touch()

    def label(path: Path, _name: str, *, follow_symlinks: bool) -> bytes:
        assert not follow_symlinks
        # What is made in a folder has the type of the folder.
        kinds = (world.fabric.kinds.get(str(one)) for one in (path, *path.parents))
        kind = next(filter(None, kinds), "var_lib_t")
        return f"system_u:object_r:{kind}:s0\0".encode()

    monkeypatch.setattr("os.getxattr", label, raising=False)
    return world


def labelled(world: World) -> Bundle:
    state = world.places.root.parent / "state"
    return bundle_of(
        world,
        A,
        FIRST,
        folders=(Folder(str(state / "shared"), setype="container_file_t"), Folder(str(state / "plain"))),
        live=(LiveFile(str(state / "plain/ca.crt"), b"PEM"), LiveFile(str(state / "shared/ca.crt"), b"PEM")),
        seeds=(Seed(str(state / "compute_id")),),
        tmpfiles=("d /run/x",),
    )


def test_what_lies_outside_the_generations_gets_the_label_of_its_place(selinux: World) -> None:
    state = selinux.places.root.parent / "state"
    deploy(selinux, labelled(selinux))
    assert sorted(selinux.fabric.labels) == sorted(
        (
            f"container_file_t {state / 'shared'}",
            *(f"restored {path}" for path in (state / "plain", state / "plain/ca.crt", state / "compute_id")),
            f"restored {selinux.places.etc / 'tmpfiles.d/edpm_nova_compute.conf'}",
            f"restored {selinux.places.units / 'edpm_nova_compute.container'}",
        )
    )
    assert not any(str(selinux.places.root) in line for line in selinux.fabric.labels)
    assert not any("-F" in call for call in selinux.argv("restorecon"))


def test_a_file_in_a_folder_that_containers_share_stays_theirs(selinux: World) -> None:
    """As Debian's policy has it, restorecon would take the file away from them."""
    path = selinux.places.root.parent / "state/shared/ca.crt"
    made = labelled(selinux)
    deploy(selinux, made)
    selinux.fabric.kinds[str(path)] = "var_lib_t"
    renewed = dataclasses.replace(made, live=(made.live[0], LiveFile(str(path), b"renewed PEM")))
    assert deploy(selinux, renewed).changes.live == (str(path),)
    assert selinux.fabric.kinds[str(path)] == "container_file_t"
    assert f"restored {path}" not in selinux.fabric.labels


def test_a_folder_with_another_label_is_set_right(selinux: World) -> None:
    state = selinux.places.root.parent / "state"
    deploy(selinux, labelled(selinux))
    assert not deploy(selinux, labelled(selinux)).changes.any
    selinux.fabric.kinds[str(state / "shared")] = "var_lib_t"
    assert deploy(selinux, labelled(selinux)).changes.ground == (f"folder {state / 'shared'}",)
    assert not deploy(selinux, labelled(selinux)).changes.any


def test_a_run_that_was_cut_off_before_it_set_a_label_is_made_up_for(selinux: World, tmp_path: Path) -> None:
    plug, other = Plug(), tmp_path / "other"
    other.mkdir()
    deploy(world_in(other), labelled(world_in(other)), plug=plug)
    with pytest.raises(Killed):
        deploy(selinux, labelled(selinux), plug=Plug(plug.names.index("rename to ca.crt"), "after"))
    restored = f"restored {selinux.places.root.parent / 'state/plain/ca.crt'}"
    assert restored not in selinux.fabric.labels
    deploy(selinux, labelled(selinux))
    assert restored in selinux.fabric.labels


def test_a_label_that_cannot_be_set_is_told(selinux: World) -> None:
    selinux.refuse["restorecon"] = Result(255, "", "Operation not supported")
    with pytest.raises(NodeError, match=r"The SELinux label of .* cannot be set on the node: Operation not supported"):
        deploy(selinux, labelled(selinux))


def test_without_selinux_no_label_is_asked_for_or_set(world: World) -> None:
    deploy(world, labelled(world))
    assert (world.argv("restorecon"), world.argv("chcon")) == ([], [])
