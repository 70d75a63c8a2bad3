# SPDX-License-Identifier: GPL-3.0-or-later
"""A node in a folder: real files, programs of a few lines, a clock that nobody waits for."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible_collections.edpm.services.plugins.module_utils._node.bundle import Bundle, File, Health, Image
from ansible_collections.edpm.services.plugins.module_utils._node.converge import converge
from ansible_collections.edpm.services.plugins.module_utils._node.facts import facts
from ansible_collections.edpm.services.plugins.module_utils._node.firewall import Firewall
from ansible_collections.edpm.services.plugins.module_utils._node.labels import Labels
from ansible_collections.edpm.services.plugins.module_utils._node.node import Clock, Node
from ansible_collections.edpm.services.plugins.module_utils._node.outcome import Outcome, Removed
from ansible_collections.edpm.services.plugins.module_utils._node.packages import Packages
from ansible_collections.edpm.services.plugins.module_utils._node.podman import Podman
from ansible_collections.edpm.services.plugins.module_utils._node.previous import go_back
from ansible_collections.edpm.services.plugins.module_utils._node.record import Places
from ansible_collections.edpm.services.plugins.module_utils._node.removal import remove
from ansible_collections.edpm.services.plugins.module_utils._node.systemd import Systemd

from .plug import Plug, PluggedDisk
from .programs import IMAGE, QUADLET, FakeAccounts, FakeRun, World


def world_in(folder: Path) -> World:
    names = ("root", "units", "etc", "run", "proc", "kernel")
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
    systemd, labels = Systemd(run, [generator]), Labels(run, world.places.kernel)
    return Node(
        places=world.places,
        disk=disk,
        run=run,
        systemd=systemd,
        podman=Podman(run, disk, world.places.scratch),
        accounts=FakeAccounts(run),
        packages=Packages(run, world.places.etc),
        firewall=Firewall(run, disk, systemd, labels, world.places),
        labels=labels,
        clock=clock,
    )


def deploy(world: World, bundle: Bundle, *, check: bool = False, plug: Plug | None = None) -> Outcome:
    return converge(node_of(world, plug), bundle, check=check, patience=0)


def back(world: World, *, check: bool = False, plug: Plug | None = None) -> Outcome:
    return go_back(node_of(world, plug), "nova_compute", check=check, patience=0)


def away(
    world: World,
    name: str = "nova_compute",
    *,
    force: bool = False,
    purge: bool = False,
    check: bool = False,
    plug: Plug | None = None,
) -> Removed:
    return remove(node_of(world, plug), name, force=force, purge=purge, check=check, patience=0)


def told(world: World) -> dict[str, Any]:
    """What service_facts says of the small service."""
    found: dict[str, Any] = facts(node_of(world), ask=True)["nova_compute"]
    return found


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


def everything_on(world: World) -> tuple[object, ...]:
    """All that a refusal must leave as it is."""
    fabric = world.fabric
    folders = (everything_in(one) for one in (world.places.root, world.places.etc))
    return dict(fabric.files), set(fabric.up), fabric.rules(), dict(world.processes), *folders
