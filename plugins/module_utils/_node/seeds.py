# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files whose content the node makes once and never anew, such as the UUID by which Nova knows a compute.

They are written down before they are written, so that one that is lost comes back as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from uuid import uuid4

from .bundle import Seed
from .errors import Guarded
from .generations import Drift, Home
from .guards import FILE
from .node import Node

_KEY = "seeds"


class Seeds:
    """The seeds of one service."""

    def __init__(self, node: Node, home: Home, new: Callable[[], object] = uuid4) -> None:
        self._node = node
        self._home = home
        self._new = new

    def known(self) -> dict[str, str]:
        """What the node remembers of them, by path."""
        found = self._home.note(FILE).get(_KEY, {})
        return dict(found) if isinstance(found, dict) else {}

    def lacking(self, wanted: Sequence[Seed]) -> tuple[str, ...]:
        """Those to be remembered or written; one that has become another is refused."""
        known = self.known()
        return tuple(f"seed {one.path}" for one in wanted if self._lacks(one, known))

    def have(self, wanted: Sequence[Seed]) -> None:
        """Remember those that are there, bring back those that are lost, and make those that never were."""
        known = self.known()
        values = {one.path: self._text(one.path) or known.get(one.path) or self._made() for one in wanted}
        told = {**known, **{path: value for path, value in values.items() if value}}
        if told != known:
            self._home.write_note(FILE, {**self._home.note(FILE), _KEY: told})
        for one in wanted:
            if values[one.path] and not self._text(one.path):
                self._write(one, values[one.path])

    def drift(self) -> Iterator[Drift]:
        """Those that are not what the node remembers."""
        for path, value in sorted(self.known().items()):
            found = self._text(path)
            if found != value:
                yield Drift(path, "changed" if found else "missing")

    def remove(self) -> tuple[str, ...]:
        """Take away those that are still what the node remembers."""
        gone = self.removable()
        for path in gone:
            self._node.disk.take(Path(path))
        return gone

    def removable(self) -> tuple[str, ...]:
        """Those that `remove` takes away."""
        return tuple(path for path, value in sorted(self.known().items()) if self._text(path) == value)

    def _lacks(self, one: Seed, known: dict[str, str]) -> bool:
        found, old = self._text(one.path), known.get(one.path, "")
        if found and old and found != old:
            raise Guarded(
                f"{self._home.name} on this node is known by {old}, and {one.path} says {found}; write {old} back into "
                "it, or remove the service from the node first. Nothing was touched."
            )
        return found != old or not (found or old or self._home.current)

    def _made(self) -> str:
        """A service that has been live without it makes its own, or has its reasons."""
        return "" if self._home.current else str(self._new())

    def _text(self, path: str) -> str:
        return (self._node.disk.read(Path(path)) or b"").decode("utf-8", "replace").strip()

    def _write(self, one: Seed, value: str) -> None:
        path, disk = Path(one.path), self._node.disk
        owner = self._node.accounts.numbers(f"The file {one.path} of {self._home.name}", one.owner, one.group)
        disk.refuse_detours(path)
        disk.make_folder(path.parent, 0o755, 0o755)
        disk.write(path, f"{value}\n".encode(), one.mode, owner)
        self._node.labels.restore([path])
