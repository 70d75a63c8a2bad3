# SPDX-License-Identifier: GPL-3.0-or-later
"""What a document must look like, as data, and the sentences about one that does not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, TypeAlias

_LONGEST = 60
_MOST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Text:
    """A text of a form; `like` says in words what it must be."""

    pattern: str
    like: str


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number."""

    least: int = 0
    most: int = _MOST


@dataclass(frozen=True, slots=True)
class Truth:
    """True or false."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A list of things of one form."""

    of: Kind


@dataclass(frozen=True, slots=True)
class Named:
    """A mapping whose keys are not fixed."""

    key: Text
    of: Kind


@dataclass(frozen=True, slots=True)
class Either:
    """A word out of a few, or the mapping that says more."""

    words: tuple[str, ...]
    shape: Shape


@dataclass(frozen=True, slots=True)
class Shape:
    """A mapping with known fields."""

    fields: Mapping[str, Kind]
    needed: tuple[str, ...] = field(default=())


Kind: TypeAlias = Text | Whole | Truth | Listed | Named | Either | Shape


@dataclass(frozen=True, slots=True)
class Wrong:
    """A field that is wrong, what is wrong with it and what to do."""

    path: str
    problem: str

    @property
    def first(self) -> str:
        """The outermost field that it lies in."""
        return re.split(r"[.\[]", self.path, maxsplit=1)[0]


def faults(kind: Kind, value: Any, path: str = "") -> Iterator[Wrong]:
    """All that is wrong with a value."""
    match kind:
        case Text():
            if not isinstance(value, str) or not re.fullmatch(kind.pattern, value, re.DOTALL):
                yield Wrong(path, f"{_shown(value)} is not {kind.like}; correct it.")
        case Whole():
            if not isinstance(value, int) or isinstance(value, bool) or not kind.least <= value <= kind.most:
                most = f" and at most {kind.most}" if kind.most < _MOST else ""
                yield Wrong(path, f"{_shown(value)} is not a whole number of at least {kind.least}{most}; correct it.")
        case Truth():
            if not isinstance(value, bool):
                yield Wrong(path, f"{_shown(value)} is neither true nor false; write one of them without quotes.")
        case Listed():
            yield from _listed(kind, value, path)
        case Named():
            yield from _named(kind, value, path)
        case Either():
            yield from _either(kind, value, path)
        case Shape():
            yield from _shape(kind, value, path)


def _listed(kind: Listed, value: Any, path: str) -> Iterator[Wrong]:
    if not isinstance(value, list):
        yield Wrong(path, f"{_shown(value)} is not a list; write one entry to a line, each after a dash.")
        return
    for number, one in enumerate(value):
        yield from faults(kind.of, one, f"{path}[{number}]")


def _named(kind: Named, value: Any, path: str) -> Iterator[Wrong]:
    if not isinstance(value, Mapping):
        yield Wrong(path, f"{_shown(value)} is not a mapping; write `name: value` to a line.")
        return
    for name, one in value.items():
        yield from faults(kind.key, name, f"{path}.{name}")
        yield from faults(kind.of, one, f"{path}.{name}")


def _either(kind: Either, value: Any, path: str) -> Iterator[Wrong]:
    if isinstance(value, Mapping):
        yield from _shape(kind.shape, value, path)
    elif value not in kind.words:
        yield Wrong(path, f"{_shown(value)} is neither {' nor '.join(kind.words)} nor a mapping; correct it.")


def _shape(kind: Shape, value: Any, path: str) -> Iterator[Wrong]:
    if not isinstance(value, Mapping):
        yield Wrong(path, f"{_shown(value)} is not a mapping of fields; its fields are {', '.join(kind.fields)}.")
        return
    inner = f"{path}." if path else ""
    for name in kind.needed:
        if value.get(name) is None:
            yield Wrong(f"{inner}{name}", "is missing; add it.")
    for name, one in value.items():
        if name not in kind.fields:
            yield Wrong(f"{inner}{name}", f"is not known; {_meant(str(name), kind.fields)}")
        elif one is not None:
            yield from faults(kind.fields[name], one, f"{inner}{name}")


def _meant(name: str, known: Mapping[str, Kind]) -> str:
    near = get_close_matches(name.casefold().replace("-", "_"), known, n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else f"the fields there are {', '.join(known)}."


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = "nothing" if value is None else f'"{value}"' if isinstance(value, str) else str(value).lower()
    return text if len(text) <= _LONGEST else f'{text[:_LONGEST]}…"'
