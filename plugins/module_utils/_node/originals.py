# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files of the node whose place a service's own have taken, kept until those go: a package's settings, for instance.

That there was none is noted as well, so that a run that was cut off does not take its own file for the node's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from .disk import Disk, New

_NOTE = "originals.json"
_FOLDER = "originals"


class Notes(Protocol):
    """The folder of a service, and the small files in it."""

    folder: Path

    def note(self, name: str) -> dict[str, Any]: ...
    def write_note(self, name: str, data: Mapping[str, Any]) -> None: ...
    def remove_note(self, name: str) -> None: ...


class Originals:
    """Those of one service, in its folder."""

    def __init__(self, disk: Disk, home: Notes) -> None:
        self._disk, self._home = disk, home
        self._folder = home.folder / _FOLDER

    def kept(self) -> dict[str, dict[str, Any]]:
        """What is known of them, by path; empty for a place where there was nothing."""
        return {path: one for path, one in self._home.note(_NOTE).items() if isinstance(one, dict)}

    def keep(self, paths: Iterable[str]) -> None:
        """Keep what lies at these paths, before anything is put there for the first time."""
        known = self.kept()
        new = {path: self._taken(Path(path)) for path in paths if path not in known}
        if new:
            self._home.write_note(_NOTE, {**known, **new})

    def give_back(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Put back what was kept of these paths; the answer names it."""
        known = self.kept()
        return tuple(path for path in paths if self._restored(path, known.get(path) or {}))

    def forget(self, paths: Iterable[str]) -> None:
        """These places are the node's again, all of them."""
        known, gone = self.kept(), set(paths)
        left = {path: one for path, one in known.items() if path not in gone}
        if left and left != known:
            self._home.write_note(_NOTE, left)
        elif known and not left:
            self._home.remove_note(_NOTE)
        self._forget_copies(left)

    def _taken(self, path: Path) -> dict[str, Any]:
        link = self._disk.target(path)
        if link:
            return {"link": link}
        content = self._disk.read(path) if path.is_file() else None
        if content is None:
            return {}
        status = path.stat()
        self._disk.make_folder(self._folder)
        self._disk.write(self._copy(str(path)), content)
        return {"mode": status.st_mode & 0o7777, "owner": [status.st_uid, status.st_gid]}

    def _restored(self, path: str, one: Mapping[str, Any]) -> bool:
        if one.get("link"):
            self._disk.link(Path(path), str(one["link"]))
            return True
        content = self._disk.read(self._copy(path)) if "mode" in one else None
        if content is None:
            return False
        uid, gid = one["owner"]
        self._disk.write_all([New(Path(path), content, one["mode"], (uid, gid))])
        return True

    def _forget_copies(self, left: Iterable[str]) -> None:
        """Remove the copies of all others, also those that a run which was cut off has left."""
        kept = {self._copy(path) for path in left}
        for one in sorted(self._folder.iterdir()) if self._folder.is_dir() else ():
            if one not in kept:
                self._disk.remove(one)
        self._disk.remove_empty(self._folder)

    def _copy(self, path: str) -> Path:
        return self._folder / sha256(path.encode()).hexdigest()
