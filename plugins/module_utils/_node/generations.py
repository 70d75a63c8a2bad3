# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The folder of a service on a node: its generations, which of them is live, and what a run has begun."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .bundle import File, Health
from .disk import KEPT, Disk, New
from .originals import Originals
from .record import FILE, GENERATIONS, MOUNTED, UNITS, Placed, Places, Record, read_record, sha256

_STAGING = ".staging"
_NOTES = ("intent.json", "identity.json", "pending.json", "live.json", "claims.json", "early.json", "originals.json")
_OWN_FILES = ("current", "previous", *_NOTES)
#: By any of these a folder is known as that of a service.
_SIGNS = (GENERATIONS, *_OWN_FILES)
#: How a service is on its way: to a new generation, back to the one before, or off the node.
FORTH, BACK, AWAY = "forth", "back", "away"


@dataclass(frozen=True)
class Intent:
    """Something that has begun and has not ended: from which generation, to which, and what for."""

    good: str
    next: str
    way: str = FORTH


@dataclass(frozen=True)
class Drift:
    """A live file that is not what the record says."""

    name: str
    what: str


class Home:
    """`<root>/<service>[@<instance>]`."""

    def __init__(self, disk: Disk, places: Places, name: str) -> None:
        self._disk = disk
        self.places = places
        self.name = name
        self.folder = places.root / name
        self.generations = self.folder / GENERATIONS
        self.mounted = self.folder / MOUNTED
        self.staging = self.generations / _STAGING
        self._originals = Originals(disk, self)

    # --- looking ---------------------------------------------------------------------------------------------------
    def generation(self, digest: str) -> Path:
        """The folder of a generation."""
        return self.generations / digest

    @property
    def current(self) -> str:
        """The digest of the live generation, empty when there is none."""
        return self._pointed("current")

    @property
    def previous(self) -> str:
        """The digest of the one before, empty when there is none."""
        return self._pointed("previous")

    @property
    def intent(self) -> Intent | None:
        """What a run that was cut off had begun."""
        data = self.note("intent.json")
        return Intent(data.get("good", ""), data.get("next", ""), data.get("way", FORTH)) if data else None

    @property
    def good(self) -> str:
        """The digest of the generation to go back to: the live one, unless it is not proven yet."""
        intent = self.intent
        digest = intent.good if intent else self.current
        return digest if digest and self.generation(digest).is_dir() else ""

    def record(self, digest: str) -> Record | None:
        """What a generation is made of; where its record is spoilt, at least its units are known."""
        if not digest or not self.generation(digest).is_dir():
            return None
        text = self._disk.read(self.generation(digest) / FILE)
        return read_record(text or b"") or self._salvaged(digest)

    def drift(self, record: Record) -> tuple[Drift, ...]:
        """How the live files differ from what was written."""
        return (*self._changed(record), *self._added(record), *self._displaced(record))

    def note(self, name: str) -> dict[str, Any]:
        """A small file of this folder; one that is spoilt counts as empty."""
        try:
            data = json.loads(self._disk.read(self.folder / name) or b"{}")
        except ValueError:
            return {}
        return data if isinstance(data, dict) else {}

    def neighbours(self) -> Iterator[Home]:
        """The other services of the node."""
        for home in homes(self._disk, self.places):
            if home.name != self.name:
                yield home

    # --- changing --------------------------------------------------------------------------------------------------
    def write_note(self, name: str, data: Mapping[str, Any]) -> None:
        """Write a small file of this folder."""
        self._disk.make_folder(self.folder)
        self._disk.write(self.folder / name, json.dumps(data, sort_keys=True).encode())

    def begin(self, intent: Intent) -> None:
        """Note what is begun, so that a run that is cut off can be finished."""
        self.write_note("intent.json", asdict(intent))

    def end(self) -> None:
        """Whatever was begun has ended."""
        self.remove_note("intent.json")

    def remove_note(self, name: str) -> None:
        """Remove a small file of this folder."""
        self._disk.remove(self.folder / name)

    def tidy(self) -> None:
        """Remove what a killed run left half-written."""
        if self.staging.exists():
            self._disk.remove_tree(self.staging)
        for name in _OWN_FILES:
            self._disk.sweep(self.folder / name)

    def stage(self, files: tuple[File, ...], record: Record) -> Path:
        """Write a generation beside its place."""
        try:
            self._disk.make_folder(self.generations)
            self._disk.make_folder(self.staging, settle=False)
            for file in files:
                path = self.staging / file.path
                self._disk.make_folder(path.parent, settle=False)
                self._disk.create(New(path, file.content, file.mode))
            self._disk.create(New(self.staging / FILE, record.text()))
            self._disk.settle_all(self.staging)
        except Exception:
            self.unstage()
            raise
        return self.staging

    def unstage(self) -> None:
        """Forget what was staged; a service that never was live leaves no folder behind."""
        self._disk.remove_tree(self.staging)
        self._disk.remove_empty(self.generations)
        self._disk.remove_empty(self.folder)

    def adopt(self, record: Record) -> None:
        """Make a generation of what was staged; one that is there is repaired file by file and never away."""
        target = self.generation(record.digest)
        if target.is_dir():
            self._repair(record, target)
        else:
            self._disk.rename(self.staging, target)

    def flip(self, digest: str) -> None:
        """Make a generation the live one."""
        self._disk.link(self.folder / "current", f"{GENERATIONS}/{digest}")

    def remember(self, digest: str) -> None:
        """Note the generation that was live before."""
        self._disk.link(self.folder / "previous", f"{GENERATIONS}/{digest}")

    def mount(self, record: Record) -> None:
        """Let the generation be what its units mount, unless they name its own folder."""
        if record.link and self._astray(record):
            self._disk.make_folder(self.mounted)
            self._disk.link(self.mounted / record.link, f"../{GENERATIONS}/{record.digest}")

    def mounting(self, record: Record) -> tuple[Placed, ...]:
        """Those of a generation's units that mount it, in whichever way."""
        folder, own = self.generation(record.digest), f"{self.folder}/".encode()
        units = (one for one in record.placed if one.unit)
        return tuple(one for one in units if own in (self._disk.read(folder / one.source) or b""))

    def place(self, record: Record) -> tuple[str, ...]:
        """Put the generation's units, settings and files where the node finds them; the answer is what changed."""
        self._originals.keep(one.path for one in record.placed if one.is_file)
        changed = [one for one in record.placed if difference(Path(one.path), one.sha256, one.mode)]
        for one in changed:
            self._disk.make_folder(Path(one.path).parent, 0o755, 0o755)
        folder = self.generation(record.digest)
        contents = (self._disk.read(folder / one.source) or b"" for one in changed)
        self._disk.write_all([New(Path(one.path), text, one.mode) for one, text in zip(changed, contents)])
        return tuple(one.path for one in changed)

    def has_units(self, record: Record) -> bool:
        """Whether the generation's units are in place as they should be."""
        return not any(difference(Path(one.path), one.sha256, one.mode) for one in record.placed if one.unit)

    def misplaced(self, record: Record | None) -> tuple[Placed, ...]:
        """What generations of this service have placed and this one does not want."""
        wanted = {one.path for one in record.placed} if record else set()
        found = {one.path: one for each in self.records() for one in each.placed}
        there = {path for path in found if os.path.lexists(path)} | self._originals.kept().keys()
        return tuple(found[path] for path in sorted(found) if path not in wanted and path in there)

    def displaces(self, record: Record) -> bool:
        """Whether a container of another generation goes when this one comes."""
        return any(one.unit.endswith(".container") for one in self.misplaced(record))

    def displace(self, placed: tuple[Placed, ...]) -> tuple[str, ...]:
        """Take files away that were placed; the answer names those in whose place the node's own are back."""
        files = [one.path for one in placed if one.is_file]
        back = self._originals.give_back(files)
        for one in placed:
            if one.path not in back:
                self._disk.take(Path(one.path))
        self._originals.forget(files)
        return back

    def files(self, record: Record) -> tuple[File, ...]:
        """A generation's files with their contents; those that are gone are left out."""
        folder = self.generation(record.digest)
        read = ((one, self._disk.read(folder / one.path)) for one in record.files)
        return tuple(File(one.path, content, one.mode, one.secret) for one, content in read if content is not None)

    def spoilt(self, record: Record) -> tuple[str, ...]:
        """The files of a generation that are not what was written."""
        return tuple(one.name for one in (*self._changed(record), *self._added(record)))

    def records(self) -> Iterator[Record]:
        """Those of all generations."""
        for digest in self.digests():
            record = self.record(digest)
            if record:
                yield record

    def digests(self) -> list[str]:
        """All generations, the newest first."""
        if not self.generations.is_dir():
            return []
        found = [one for one in self.generations.iterdir() if one.is_dir() and not one.name.startswith(".")]
        return [one.name for one in sorted(found, key=lambda one: (-one.stat().st_mtime_ns, one.name))]

    def discard(self, digest: str) -> None:
        """Remove a generation, unless it is live or was so before."""
        if digest not in (self.current, self.previous):
            self._disk.remove_tree(self.generation(digest))
            self._unmount()

    def leave(self) -> None:
        """Nothing of this service is live any more."""
        self._disk.remove(self.folder / "current")
        self._disk.remove(self.folder / "previous")
        self._disk.remove_tree(self.mounted)

    def prune(self, keep: int) -> tuple[str, ...]:
        """Remove the oldest generations beyond a number, never the live one nor the one before it."""
        held = {self.current, self.previous}
        spare = [digest for digest in self.digests() if digest not in held]
        gone = spare[max(0, keep - len(held - {""})) :]
        for digest in gone:
            self._disk.remove_tree(self.generation(digest))
        self._unmount()
        return tuple(gone)

    # --- inside ----------------------------------------------------------------------------------------------------
    def _pointed(self, name: str) -> str:
        folder, _slash, digest = self._disk.target(self.folder / name).rpartition("/")
        return digest if folder == GENERATIONS else ""

    def _astray(self, record: Record) -> str:
        """What is wrong with the link by which the generation is mounted."""
        path = self.mounted / record.link
        if self._disk.target(path) == f"../{GENERATIONS}/{record.digest}":
            return ""
        return "changed" if os.path.lexists(path) else "missing"

    def _unmount(self) -> None:
        """Remove links that lead nowhere, and what a killed run left beside one."""
        for path in sorted(self.mounted.iterdir()) if self.mounted.is_dir() else ():
            if not path.is_dir() or path.name.startswith("."):
                self._disk.remove(path)
        self._disk.remove_empty(self.mounted)

    def _salvaged(self, digest: str) -> Record:
        service, _at, instance = self.name.partition("@")
        units = sorted((self.generation(digest) / UNITS).glob("edpm_*"))
        placed = tuple(Placed(f"{UNITS}/{one.name}", str(self.places.units / one.name), "") for one in units)
        return Record(service, instance, digest, "", "", (), placed, Health())

    def _changed(self, record: Record) -> Iterator[Drift]:
        for file in record.files:
            path = self.generation(record.digest) / file.path
            what = difference(path, file.sha256, file.mode)
            if what:
                yield Drift(file.path, what)

    def _added(self, record: Record) -> Iterator[Drift]:
        for path in self._strangers(record):
            yield Drift(str(path.relative_to(self.generation(record.digest))), "added")

    def _displaced(self, record: Record) -> Iterator[Drift]:
        what = self._astray(record) if record.link else ""
        if what:
            yield Drift(f"{MOUNTED}/{record.link}", what)
        for one in record.placed:
            what = difference(Path(one.path), one.sha256, one.mode)
            if what:
                yield Drift(one.path, what)

    def _strangers(self, record: Record) -> list[Path]:
        generation = self.generation(record.digest)
        known = {FILE, *(file.path for file in record.files)}
        found = []
        for place, folders, files in os.walk(generation):
            links = [name for name in folders if (Path(place) / name).is_symlink()]
            paths = [Path(place) / name for name in (*files, *links)]
            found += [path for path in paths if str(path.relative_to(generation)) not in known]
        return sorted(found)

    def _repair(self, record: Record, target: Path) -> None:
        for path in self._strangers(record):
            self._disk.remove(path)
        for file in (*record.files, None):
            name = file.path if file else FILE
            if file and not difference(target / name, file.sha256, file.mode):
                continue
            if (target / name).is_dir() and not (target / name).is_symlink():
                self._disk.remove_tree(target / name)
            self._disk.make_folder((target / name).parent)
            self._disk.rename(self.staging / name, target / name)
        self._disk.remove_tree(self.staging)


def homes(disk: Disk, places: Places) -> list[Home]:
    """The services of a node, by name, and those of which only a note is left, as of a first deployment that failed."""
    found = sorted(places.root.iterdir()) if places.root.is_dir() else []
    return [Home(disk, places, one.name) for one in found if any(os.path.lexists(one / name) for name in _SIGNS)]


def difference(path: Path, digest: str, mode: int, owner: tuple[int, int] = KEPT) -> str:
    """How a file differs from what it should be, empty when it does not."""
    try:
        status = path.lstat()
        if not path.is_file() or path.is_symlink():
            return "replaced"
        if sha256(path.read_bytes()) != digest:
            return "changed"
    except (FileNotFoundError, NotADirectoryError):
        return "missing"
    uid, gid = owner
    owned = status.st_uid == (os.geteuid() if uid < 0 else uid) and (gid < 0 or status.st_gid == gid)
    return "" if status.st_mode & 0o7777 == mode and owned else "mode or owner"
