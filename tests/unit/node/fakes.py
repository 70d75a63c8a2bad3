# SPDX-License-Identifier: GPL-3.0-or-later
"""A node in a folder: real files, programs of a few lines, a clock that nobody waits for."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from ansible_collections.edpm.services.plugins.module_utils._node.bundle import Bundle, File, Health, Image
from ansible_collections.edpm.services.plugins.module_utils._node.converge import converge
from ansible_collections.edpm.services.plugins.module_utils._node.node import Clock, Node
from ansible_collections.edpm.services.plugins.module_utils._node.outcome import Outcome
from ansible_collections.edpm.services.plugins.module_utils._node.podman import Podman
from ansible_collections.edpm.services.plugins.module_utils._node.record import Places
from ansible_collections.edpm.services.plugins.module_utils._node.systemd import Systemd

from .plug import Plug, PluggedDisk
from .programs import IMAGE, QUADLET, FakeAccounts, FakeRun, World


def world_in(folder: Path) -> World:
    names = ("root", "units", "etc", "run", "settings", "kernel")
    (folder / "generator").touch()
    return World(Places(**{name: folder / name for name in names}))


def node_of(world: World, plug: Plug | None = None) -> Node:
    """A run's view of the node; each run has its own."""
    plug = plug or Plug()
    run, disk = FakeRun(world, plug), PluggedDisk(plug)
    generator = str(world.places.root.parent / "generator")

    def sleep(seconds: float) -> None:
        world.seconds += seconds

    clock = Clock(lambda: world.seconds, sleep)
    podman = Podman(run, disk, world.places.scratch)
    return Node(world.places, disk, run, Systemd(run, [generator]), podman, FakeAccounts(run), clock)


def deploy(world: World, bundle: Bundle, *, check: bool = False, plug: Plug | None = None) -> Outcome:
    return converge(node_of(world, plug), bundle, check=check, patience=0)


def text(world: World, name: str = "nova_compute", extra: str = "", pinned: bool = True) -> str:
    folder = "@GENERATION@" if pinned else f"{world.places.root}/{name}/current"
    return f"[Container]\nImage={IMAGE}\n{extra}Volume={folder}/conf.d:/etc/nova/nova.conf.d:ro\n"


def bundle_of(world: World, digest: str, files: Mapping[str, bytes], **others: object) -> Bundle:
    """A small service; files lie in conf.d and those with `secret` in their name are secret."""
    made = tuple(File(f"conf.d/{name}", content, secret="secret" in name) for name, content in sorted(files.items()))
    fields: dict[str, object] = {
        "service": "nova_compute",
        "digest": digest,
        "image": Image(IMAGE),
        "units": {QUADLET: text(world)},
        "files": made,
        "health": Health(settle=1, timeout=10),
        **others,
    }
    return Bundle(**fields)  # type: ignore[arg-type]


def everything_in(folder: Path) -> dict[str, str]:
    """Every file below a folder, with its contents or target, and every folder."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        else:
            found[name] = f"{path.stat().st_mode:o} {path.read_bytes()!r}" if path.is_file() else "folder"
    return found


def wipe(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
