# SPDX-License-Identifier: GPL-3.0-or-later
"""A way to pull the plug of a run at any step that changes something."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.edpm.services.plugins.module_utils._node.disk import Disk, New


class Killed(BaseException):
    """The process is gone; nothing of it runs any more, no cleaning up either."""


@dataclass
class Plug:
    """Counts the steps that change anything, and pulls itself at one of them: before it, half-way or after it."""

    at: int = -1
    when: str = "before"
    steps: int = 0
    names: list[str] = field(default_factory=list)
    dead: bool = False

    def around(self, name: str, whole: Callable[[], object], half: Callable[[], object] = lambda: None) -> object:
        if self.dead:
            raise Killed
        mine = self.steps == self.at
        self.steps += 1
        self.names.append(name)
        if not mine:
            return whole()
        if self.when == "half":
            half()
        if self.when == "after":
            whole()
        self.dead = True
        raise Killed


class PluggedDisk(Disk):
    def __init__(self, plug: Plug) -> None:
        self.plug = plug

    def create(self, new: New) -> None:
        self.plug.around(
            f"create {new.path.name}",
            lambda: Disk.create(self, new),
            lambda: Disk.create(self, New(new.path, new.content[: len(new.content) // 2])),
        )

    def rename(self, source: Path, target: Path, *, settle: bool = True) -> None:
        self.plug.around(f"rename to {target.name}", lambda: Disk.rename(self, source, target, settle=settle))

    def symlink(self, path: Path, target: str) -> None:
        self.plug.around(f"link {path.name}", lambda: Disk.symlink(self, path, target))

    def remove(self, path: Path) -> None:
        if path.exists() or path.is_symlink():
            self.plug.around(f"remove {path.name}", lambda: Disk.remove(self, path))

    def make_folder(self, path: Path, mode: int = 0o700, above: int = 0o700, *, settle: bool = True) -> None:
        if not path.is_dir():
            self.plug.around(f"make {path.name}", lambda: Disk.make_folder(self, path, mode, above, settle=settle))

    def remove_tree(self, path: Path) -> None:
        if path.exists():
            self.plug.around(f"remove all of {path.name}", lambda: Disk.remove_tree(self, path), lambda: _maim(path))


def _maim(folder: Path) -> None:
    for count, path in enumerate(sorted(folder.rglob("*"))):
        if path.is_file() and count % 2 == 0:
            path.unlink()
