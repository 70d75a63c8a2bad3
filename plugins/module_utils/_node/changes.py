# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a bundle changes on a node: the same answer for a run and for check mode."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from . import health
from .bundle import File
from .disk import Disk
from .errors import Unhealthy
from .generations import Drift, Home
from .live import Live
from .node import Node
from .record import MOUNTED, Record, Recorded
from .secrecy import shown
from .seeds import Seeds
from .systemd import UnitState


@dataclass(frozen=True)
class Seen:
    """A service as it is found on the node."""

    record: Record | None
    state: UnitState
    drift: tuple[Drift, ...] = ()
    unfinished: bool = False
    restart_pending: bool = False


@dataclass(frozen=True)
class Changes:
    """The difference between what is found and what is wanted."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    ground: tuple[str, ...] = ()
    image: tuple[str, str] | None = None
    digest: bool = False
    unfinished: bool = False
    unhealthy: str = ""
    #: Why it is not healthy where it lacks only what it works with: then nothing is done about it.
    waits: str = ""
    record: bool = False
    #: Files outside the generation, and whether the service was never told of those that changed before.
    live: tuple[str, ...] = ()
    unread: bool = False

    @property
    def switch(self) -> bool:
        """Whether the service must be started anew."""
        files = self.added or self.removed or self.changed or self.units
        return bool(files or self.image or self.digest or self.unfinished or self.unhealthy)

    @property
    def any(self) -> bool:
        """Whether anything is to be done at all."""
        return bool(self.switch or self.ground or self.record or self.reload)

    @property
    def reload(self) -> bool:
        """Whether the service must read its live files again."""
        return bool(self.live or self.unread)

    def with_live(self, paths: tuple[str, ...], *, unread: bool) -> Changes:
        """The same with changes of live files."""
        return replace(self, live=paths, unread=unread)


def look(node: Node, home: Home, unit: str) -> Seen:
    """Find out how a service is, without touching it."""
    record = home.record(home.current)
    state = node.systemd.state(unit)
    pending = home.note("pending.json").get("invocation", "")
    return Seen(
        record=record,
        state=state,
        drift=(*home.drift(record), *Live(node, home).drift(), *Seeds(node, home).drift()) if record else (),
        unfinished=home.intent is not None,
        restart_pending=bool(pending) and pending == state.invocation,
    )


def compare(node: Node, seen: Seen, wanted: Record, lacking: tuple[str, ...], *, wait: bool) -> Changes:
    """What is to be done. Whether the service answers is asked only where nothing else is."""
    old = {file.path: file for file in seen.record.files} if seen.record else {}
    new = {file.path: file for file in wanted.files}
    drifted = {one.name for one in seen.drift}
    strange = {one.name for one in seen.drift if one.what == "added"}
    before = seen.record.image if seen.record else ""
    found = Changes(
        added=_own(new.keys() - old.keys() - strange),
        removed=_own((old.keys() | strange) - new.keys()),
        changed=_own({path for path in new if path in strange or _differs(path, old, new, drifted)}),
        units=_placed(seen.record, wanted, drifted),
        ground=lacking,
        image=None if before == wanted.image else (before, wanted.image),
        digest=seen.record is None or seen.record.digest != wanted.digest,
        unfinished=seen.unfinished or (seen.restart_pending and wanted.restart == "restart"),
        record=seen.record != wanted,
    )
    if found.switch:
        return found
    ill = _illness(node, seen, wanted, wait=wait)
    unhealthy, waits = ("", "") if ill is None else ("", ill.text) if ill.waits else (ill.text, "")
    return Changes(ground=lacking, record=found.record, unhealthy=unhealthy, waits=waits)


def differences(disk: Disk, home: Home, seen: Seen, wanted: Record, files: tuple[File, ...]) -> list[dict[str, str]]:
    """Before and after of every file that changes, as Ansible shows them; secrets are masked."""
    new = {file.path: file for file in files}
    old = {file.path: file for file in seen.record.files} if seen.record else {}
    live = home.generation(seen.record.digest) if seen.record else home.folder
    at = {one.source: one.path for one in (*(seen.record.placed if seen.record else ()), *wanted.placed)}
    strange = {one.name for one in seen.drift if one.what == "added"}
    listed = []
    for path in sorted(old.keys() | new.keys() | strange):
        before = disk.read(Path(at[path]) if path in at else live / path)
        after = new[path].content if path in new else None
        if before == after:
            continue
        secret = path in strange or any(one.secret for one in (old.get(path), new.get(path)) if one)
        name = at.get(path, f"{home.name}/{path}")
        listed.append(
            {
                "before_header": name,
                "after_header": name,
                "before": shown(before, secret, "before"),
                "after": shown(after, secret, "after"),
            }
        )
    return listed


def _illness(node: Node, seen: Seen, wanted: Record, *, wait: bool) -> health.Fault | None:
    """What is wrong with a service that is as it should be otherwise. One that is up has its time to get well."""
    if wanted.restart == "never" and seen.state.is_active:
        return None
    told = health.fault(node, wanted, seen.state)
    if told is None or not wait or seen.state.active not in ("active", "activating", "reloading"):
        return told
    try:
        health.await_health(node, wanted)
    except Unhealthy as error:
        return health.Fault(str(error), error.waits)
    return None


def _own(paths: set[str]) -> tuple[str, ...]:
    """Only the service's files; units and settings are told apart."""
    return tuple(sorted(path for path in paths if not path.startswith(("units/", "node/"))))


def _differs(path: str, old: dict[str, Recorded], new: dict[str, Recorded], drifted: set[str]) -> bool:
    if path not in old:
        return False
    one, other = old[path], new[path]
    return path in drifted or (one.sha256, one.mode) != (other.sha256, other.mode)


def _placed(record: Record | None, wanted: Record, drifted: set[str]) -> tuple[str, ...]:
    old = {one.path: (one.sha256, one.mode) for one in record.placed} if record else {}
    new = {one.path: (one.sha256, one.mode) for one in wanted.placed}
    kept = {one.path for one in wanted.placed if one.source in drifted or one.path in drifted}
    kept |= {name for name in drifted if name.startswith(f"{MOUNTED}/")}
    return tuple(sorted(kept | {path for path in old.keys() | new.keys() if old.get(path) != new.get(path)}))
