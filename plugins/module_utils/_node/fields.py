# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read JSON into values of known types, with sentences that name the field where it is wrong."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from .errors import BadBundle

T = TypeVar("T")


def bad(fault: str) -> BadBundle:
    """The sentence about a bundle that cannot be used."""
    return BadBundle(
        f"The bundle cannot be used: {fault}; let the action plugin and the module of the same version of "
        "edpm.services make and read it."
    )


class Fields:
    """An object of the JSON. Each field is taken once; `close` refuses those that nobody knows."""

    def __init__(self, data: Any, where: str) -> None:
        if not isinstance(data, Mapping):
            raise bad(f"{where or 'it'} is not an object")
        self._data = dict(data)
        self._where = where

    def take(self, name: str, kind: type[T], default: T | None = None) -> T:
        """A field of this type; without a default it must be there."""
        value = self._data.pop(name, None)
        if value is None:
            if default is None:
                raise bad(f"{self.at(name)} is missing")
            return default
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise bad(f"{self.at(name)} is not of the type {kind.__name__}")
        return value

    def text(self, name: str, pattern: str = r"[^\0]*", default: str | None = None) -> str:
        """A text of this form."""
        value = self.take(name, str, default)
        if value != default and not re.fullmatch(pattern, value, re.DOTALL):
            raise bad(f"{self.at(name)} has the value {value[:80]!r}, which is not allowed there")
        return value

    def word(self, name: str, words: tuple[str, ...], default: str) -> str:
        """One of several words."""
        value = self.take(name, str, default)
        if value not in words:
            raise bad(f"{self.at(name)} is {value[:80]!r} and not one of {', '.join(words)}")
        return value

    def number(self, name: str, default: int, least: int = 0) -> int:
        """A whole number that is not too small."""
        value = self.take(name, int, default)
        if value < least:
            raise bad(f"{self.at(name)} is {value}, and at least {least} is needed")
        return value

    def optional_number(self, name: str) -> int | None:
        """A whole number, or none."""
        if self._data.get(name) is None:
            self._data.pop(name, None)
            return None
        return self.number(name, 0)

    def mode(self, name: str, default: int) -> int:
        """Permission bits, written as in `0600`."""
        return int(self.text(name, r"0?[0-7]{3,4}", f"{default:04o}"), 8)

    def data(self, name: str) -> bytes:
        """Bytes, written in base64."""
        return decoded(self.take(name, str), self.at(name))

    def texts(self, name: str, pattern: str = r"[^\0]*") -> tuple[str, ...]:
        """A list of texts of this form."""
        values = self.take(name, list, [])
        for value in values:
            if not isinstance(value, str) or not re.fullmatch(pattern, value, re.DOTALL):
                raise bad(f"{self.at(name)} holds {str(value)[:80]!r}, which is not allowed there")
        return tuple(values)

    def mapping(self, name: str, key: str, value: str = r"[^\0]*") -> dict[str, str]:
        """A mapping of texts to texts, both of given forms, in the order of the keys."""
        found = self.take(name, dict, {})
        for one, other in found.items():
            if not re.fullmatch(key, one):
                raise bad(f"{self.at(name)} has the key {one[:80]!r}, which is not allowed there")
            if not isinstance(other, str) or not re.fullmatch(value, other, re.DOTALL):
                raise bad(f"{self.at(name)} has for {one!r} a value that is not allowed there")
        return dict(sorted(found.items()))

    def lists(self, name: str, key: str, value: str) -> dict[str, tuple[str, ...]]:
        """A mapping of texts to lists of texts, all of given forms, in the order of the keys."""
        found = self.take(name, dict, {})
        for one in found:
            if not re.fullmatch(key, one):
                raise bad(f"{self.at(name)} has the key {one[:80]!r}, which is not allowed there")
        inner = Fields(found, self.at(name))
        return {one: inner.texts(one, value) for one in sorted(found)}

    def each(self, name: str, make: Callable[[Fields], T]) -> tuple[T, ...]:
        """A list of objects."""
        values = self.take(name, list, [])
        return tuple(closed(value, f"{self.at(name)}[{index}]", make) for index, value in enumerate(values))

    def part(self, name: str, make: Callable[[Fields], T]) -> T | None:
        """An object in the object, or none."""
        value = self._data.pop(name, None)
        return None if value is None else closed(value, self.at(name), make)

    def needed(self, name: str, make: Callable[[Fields], T]) -> T:
        """An object in the object that must be there."""
        return closed(self.take(name, dict), self.at(name), make)

    def at(self, name: str) -> str:
        """The field's place, for a person."""
        return f"{self._where}.{name}" if self._where else name

    def close(self) -> None:
        """All that is left is unknown."""
        if self._data:
            raise bad(f"{self.at(min(map(str, self._data)))} is a field that this version does not know")


def closed(value: Any, where: str, make: Callable[[Fields], T]) -> T:
    """What `make` reads from an object, all of whose fields it must know."""
    fields = Fields(value, where)
    made = make(fields)
    fields.close()
    return made


def decoded(text: str, where: str) -> bytes:
    """Bytes from base64."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise bad(f"{where} is not base64") from None
