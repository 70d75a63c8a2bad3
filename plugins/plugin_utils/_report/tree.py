# SPDX-License-Identifier: GPL-3.0-or-later
"""A folder on the controller that holds what nodes would hold, and remembers what was put there.

Its record names every file by node and service. Only what the record names is ever removed, so files that somebody else
puts beside them are safe, and a folder with files and no record is not ours at all.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from .overview import Question
from .written import NotWrittenError

RECORD = ".edpm-rendered.json"
_VERSION = 1
_FOLDER_MODE = 0o700

#: By node and service, the paths below the node's folder.
Listing = dict[str, dict[str, tuple[str, ...]]]


@dataclass(frozen=True)
class Entry:
    """A file, or a link where `target` is not empty; `shown` is its content as it may be shown."""

    content: bytes = field(default=b"", repr=False)
    shown: bytes = field(default=b"", repr=False)
    mode: int = 0o600
    target: str = ""


#: By node and service, the entries by their paths below the node's folder.
Tree = Mapping[str, Mapping[str, Mapping[str, Entry]]]


@dataclass(frozen=True)
class Change:
    """A path that changes, and its content before and after; None where there is none."""

    path: str
    before: bytes | None = field(repr=False)
    after: Entry | None


class Output:
    """The folder. Nothing is read or written before it is asked for."""

    def __init__(self, folder: str) -> None:
        self.named = folder
        self._root = Path(folder).expanduser().absolute()

    def changes(self, tree: Tree, node: str, service: str) -> list[Change]:
        """What differs; what is no longer planned counts only as far as node and service were asked for."""
        with _told(self.named):
            known = self._listing()
            wanted = {f"{one}/{path}": entry for one, path, entry in _entries(tree)}
            changes = [Change(path, self._before(path), entry) for path, entry in sorted(wanted.items())]
            gone = sorted(set(_paths(_asked(known, node, service))) - wanted.keys())
            return [
                *(one for one in changes if one.after and self._differs(one.path, one.after)),
                *(Change(path, self._before(path), None) for path in gone if os.path.lexists(self._at(path))),
            ]

    def write(self, changes: list[Change], tree: Tree, node: str, service: str) -> bool:
        """Carry out the changes; whether the record changed too. A run that is cut off leaves nothing unrecorded."""
        with _told(self.named):
            old = self._listing()
            new = {one: {name: tuple(sorted(entries)) for name, entries in made.items()} for one, made in tree.items()}
            asked = _asked(old, node, service)
            kept = {
                one: {name: paths for name, paths in made.items() if name not in asked.get(one, {})}
                for one, made in old.items()
            }
            self._root.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
            self._remember(_joined(old, new))
            for one in changes:
                if one.after:
                    self._put(one.path, one.after)
                else:
                    self._remove(one.path)
            return self._remember(_joined(kept, new))

    def _listing(self) -> Listing:
        record = self._root / RECORD
        if not record.exists():
            if self._root.exists() and (not self._root.is_dir() or any(self._root.iterdir())):
                raise NotWrittenError(
                    f"{self.named} is not empty and nothing was rendered there before; name a new folder or an empty "
                    "one, so that no file of yours is replaced."
                )
            return {}
        try:
            rendered = json.loads(record.read_bytes())["rendered"]
            listing = {
                str(node): {str(name): tuple(map(_below, paths)) for name, paths in made.items()}
                for node, made in rendered.items()
            }
        except (ValueError, TypeError, KeyError, AttributeError):
            raise NotWrittenError(
                f"{self.named}/{RECORD} cannot be read, so it is not known what was rendered there; remove the folder, "
                "or name another."
            ) from None
        return listing

    def _remember(self, listing: Listing) -> bool:
        rendered = {node: made for node, made in listing.items() if made}
        content = json.dumps({"version": _VERSION, "rendered": rendered}, indent=1, sort_keys=True).encode() + b"\n"
        entry = Entry(content)
        differs = self._differs(RECORD, entry)
        if differs:
            self._put(RECORD, entry)
        return differs

    def _at(self, path: str) -> Path:
        """The path in the folder; a link on the way to it would lead out of what is ours."""
        at = self._root / _below(path)
        for parent in at.relative_to(self._root).parents:
            if (self._root / parent).is_symlink() and parent != Path():
                raise NotWrittenError(f"{self.named}/{parent} is a link, where render has a folder; remove it.")
        return at

    def _before(self, path: str) -> bytes | None:
        at = self._at(path)
        if at.is_symlink():
            return bytes(at.readlink())
        return at.read_bytes() if at.is_file() else None

    def _differs(self, path: str, entry: Entry) -> bool:
        at = self._at(path)
        if entry.target:
            return not at.is_symlink() or str(at.readlink()) != entry.target
        if at.is_symlink() or not at.is_file():
            return True
        return at.read_bytes() != entry.content or at.stat().st_mode & 0o777 != entry.mode

    def _put(self, path: str, entry: Entry) -> None:
        at = self._at(path)
        for parent in reversed(at.relative_to(self._root).parents):
            (self._root / parent).mkdir(mode=_FOLDER_MODE, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".edpm-", dir=at.parent)
        with _cleared(name):
            with os.fdopen(handle, "wb") as file:
                file.write(entry.content)
            if entry.target:
                Path(name).unlink()
                Path(name).symlink_to(entry.target)
            else:
                Path(name).chmod(entry.mode)
            Path(name).replace(at)

    def _remove(self, path: str) -> None:
        at = self._at(path)
        at.unlink(missing_ok=True)
        for parent in at.relative_to(self._root).parents:
            if parent == Path() or any((self._root / parent).iterdir()):
                break
            (self._root / parent).rmdir()


@contextmanager
def _told(folder: str) -> Iterator[None]:
    """What the disk refuses, as a sentence."""
    try:
        yield
    except OSError as error:
        raise NotWrittenError(
            f"{error.filename or folder} cannot be written: {error.strerror}; name another folder."
        ) from None


@contextmanager
def _cleared(name: str) -> Iterator[None]:
    """No half-written file stays behind."""
    try:
        yield
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def _below(path: object) -> str:
    parts = PurePosixPath(str(path)).parts
    if not parts or {"..", "."} & set(parts) or parts[0] == "/":
        raise ValueError(path)
    return "/".join(parts)


def _entries(tree: Tree) -> Iterator[tuple[str, str, Entry]]:
    for node, made in tree.items():
        for entries in made.values():
            yield from ((node, path, entry) for path, entry in entries.items())


def _paths(listing: Listing) -> Iterator[str]:
    return (f"{node}/{path}" for node, made in listing.items() for paths in made.values() for path in paths)


def _asked(listing: Listing, node: str, service: str) -> Listing:
    """The part of a listing that a question is about."""
    question = Question(service=service)
    return {
        one: {name: paths for name, paths in made.items() if question.asks(name)}
        for one, made in listing.items()
        if node in ("", one)
    }


def _joined(first: Listing, second: Listing) -> Listing:
    return {
        node: {
            name: tuple(sorted({*first.get(node, {}).get(name, ()), *second.get(node, {}).get(name, ())}))
            for name in {**first.get(node, {}), **second.get(node, {})}
        }
        for node in {**first, **second}
    }
