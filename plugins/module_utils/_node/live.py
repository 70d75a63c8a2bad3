# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files outside the generations that a running service takes up without a restart: certificates, keys, known hosts.

What is to be written is written down first, and so is that the service must still read it. A run that is cut off in
between leaves a note by which the next one goes on, and by which removal finds all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .bundle import LiveFile
from .disk import New
from .generations import Drift, Home, difference
from .node import Node
from .record import sha256
from .secrecy import shown

_NOTE = "live.json"


@dataclass(frozen=True)
class Known:
    """A live file as it was written."""

    path: str
    sha256: str
    mode: int
    owner: str = ""
    group: str = ""
    secret: bool = False


class Live:
    """The live files of one service."""

    def __init__(self, node: Node, home: Home) -> None:
        self._node = node
        self._home = home

    # --- looking ---------------------------------------------------------------------------------------------------
    def known(self) -> dict[str, Known]:
        """Those that were written, by path."""
        try:
            found = [Known(**one) for one in self._home.note(_NOTE).get("files", ())]
        except TypeError:
            found = []
        return {one.path: one for one in found}

    @property
    def unread(self) -> bool:
        """Whether the service has yet to be told that some of them changed."""
        return self._home.note(_NOTE).get("unread") is True

    def changes(self, wanted: Sequence[LiveFile]) -> tuple[str, ...]:
        """The paths where something is to be written or taken away."""
        new = {one.path for one in wanted}
        gone = {path for path in self.known() if path not in new}
        return tuple(sorted(gone | {one.path for one in wanted if self._differs(_known(one))}))

    def drift(self) -> Iterator[Drift]:
        """How they differ from what was written."""
        for path, one in sorted(self.known().items()):
            what = self._differs(one)
            if what:
                yield Drift(path, what)

    def differences(self, wanted: Sequence[LiveFile]) -> list[dict[str, str]]:
        """Before and after of every file that changes, as Ansible shows them; secrets are masked."""
        known, new = self.known(), {one.path: one for one in wanted}
        return [self._difference(path, known.get(path), new.get(path)) for path in self.changes(wanted)]

    # --- changing --------------------------------------------------------------------------------------------------
    def have(self, wanted: Sequence[LiveFile]) -> None:
        """Write what differs, and take away what is no longer wanted."""
        if self.unread:  # a run that was cut off may not have come to it
            self._node.labels.restore(path for one in wanted if (path := Path(one.path)).exists())
        changed, known = self.changes(wanted), self.known()
        new = {one.path: _known(one) for one in wanted}
        if not changed and new == known:
            return
        unread = self.unread or bool(changed)
        self._note({**known, **new}.values(), unread=unread)
        self._write([one for one in wanted if one.path in changed])
        self._take_away(path for path in changed if path not in new)
        self._note(new.values(), unread=unread)

    def read(self) -> None:
        """The service has taken up all of them."""
        if self.unread:
            self._note(self.known().values(), unread=False)

    def remove(self) -> tuple[str, ...]:
        """Take all of them away."""
        gone = tuple(sorted(self.known()))
        self._take_away(gone)
        self._home.remove_note(_NOTE)
        return gone

    # --- inside ----------------------------------------------------------------------------------------------------
    def _differs(self, one: Known) -> str:
        accounts = self._node.accounts
        uid, gid = (accounts.uid(one.owner) if one.owner else -1, accounts.gid(one.group) if one.group else -1)
        if uid is None or gid is None:
            return "mode or owner"
        return difference(Path(one.path), one.sha256, one.mode, (uid, gid))

    def _difference(self, path: str, old: Known | None, new: LiveFile | None) -> dict[str, str]:
        secret = any(one.secret for one in (old, new) if one)
        before, after = self._node.disk.read(Path(path)), new.content if new else None
        return {
            "before_header": path,
            "after_header": path,
            "before": shown(before, secret, "before"),
            "after": shown(after, secret, "after"),
        }

    def _write(self, files: Sequence[LiveFile]) -> None:
        new = [self._new(one) for one in files]
        self._node.disk.write_all(new)
        self._node.labels.restore(one.path for one in new)

    def _new(self, one: LiveFile) -> New:
        path, disk = Path(one.path), self._node.disk
        owner = self._node.accounts.numbers(f"The file {one.path} of {self._home.name}", one.owner, one.group)
        disk.refuse_detours(path)
        disk.make_folder(path.parent, 0o755, 0o755)
        return New(path, one.content, one.mode, owner)

    def _take_away(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._node.disk.take(Path(path))

    def _note(self, files: Iterable[Known], *, unread: bool) -> None:
        listed: list[dict[str, Any]] = [asdict(one) for one in sorted(files, key=lambda one: one.path)]
        if listed or unread:
            self._home.write_note(_NOTE, {"files": listed, "unread": unread})
        else:
            self._home.remove_note(_NOTE)


def _known(one: LiveFile) -> Known:
    return Known(one.path, sha256(one.content), one.mode, one.owner, one.group, one.secret)
