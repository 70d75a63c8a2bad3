# SPDX-License-Identifier: GPL-3.0-or-later
"""Typed reading of API JSON: what has the wrong type is noted as a fault of its object, and reading goes on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import lru_cache
from typing import Any

import yaml

from .model import Condition, Fault, Metadata, Reference
from .values import Value, Variables

#: Most of what is read has one of these very types, which is quicker to see than whether it could pass for one.
_TEXT = frozenset({str})
_SCALARS = frozenset({str, bool, int, float, type(None)})


class Fields:
    """A mapping inside an object, the path to it, and the faults found so far in the whole object.

    Absent, null and empty all read as None or as nothing: see the module `model`.
    """

    __slots__ = ("_data", "_path", "faults", "ref")

    def __init__(self, data: Mapping[str, Any], ref: Reference, path: str = "", faults: list[Fault] | None = None):
        self._data = data
        self._path = path
        self.ref = ref
        self.faults: list[Fault] = [] if faults is None else faults

    def path(self, key: str) -> str:
        """The key with all that leads to it."""
        return f"{self._path}.{key}" if self._path else key

    def fault(self, key: str, problem: str) -> None:
        """Note what is wrong with a field."""
        self.faults.append(Fault(self.ref, f"{self.ref}, field {self.path(key)}: {problem}"))

    def text(self, key: str) -> str | None:
        """A text field."""
        value = self._data.get(key)
        if value is None or value == "":
            return None
        if isinstance(value, str) and value.isascii():
            return value
        if not isinstance(value, str):
            self._wrong_type(key, "text", value)
            return None
        if not _encodes(value):
            self.fault(key, "holds characters that UTF-8 cannot carry; write it anew.")
            return None
        return value

    def needed_text(self, key: str) -> str:
        """A text field that the object is nothing without."""
        value = self.text(key)
        if value is None and self._data.get(key) in (None, ""):
            self.fault(key, "is missing; set it.")
        return value or ""

    def integer(self, key: str) -> int | None:
        """A field with a whole number."""
        value = self._data.get(key)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool):
            self._wrong_type(key, "a whole number", value)
            return None
        return value

    def boolean(self, key: str) -> bool | None:
        """A field that is true or false."""
        value = self._data.get(key)
        if value is None or isinstance(value, bool):
            return value
        self._wrong_type(key, "true or false without quotes", value)
        return None

    def texts(self, key: str) -> tuple[str, ...] | None:
        """A list of texts."""
        values = self._list(key)
        for value in values:
            if not isinstance(value, str):
                self._wrong_type(key, "a list of texts", value)
                return None
        return tuple(values) or None

    def inner(self, key: str) -> Fields:
        """The mapping under a key; an empty one where there is none."""
        return Fields(self._mapping(key), self.ref, self.path(key), self.faults)

    def items(self, key: str) -> Iterator[Fields]:
        """The mappings in the list under a key."""
        for number, value in enumerate(self._list(key)):
            if isinstance(value, dict | Mapping):
                yield Fields(value, self.ref, f"{self.path(key)}[{number}]", self.faults)
            else:
                self._wrong_type(key, "a list of mappings", value)

    def members(self, key: str) -> Iterator[tuple[str, Fields]]:
        """The mappings by name under a key, each with faults of its own."""
        for name, value in sorted(self._mapping(key).items()):
            member = Fields(value if isinstance(value, Mapping) else {}, self.ref, f"{self.path(key)}.{name}")
            if not isinstance(value, Mapping) and value is not None:
                self._wrong_type(f"{key}.{name}", "a mapping", value, member.faults)
            yield name, member

    def text_map(self, key: str) -> dict[str, str]:
        """A mapping of texts."""
        inner = self.inner(key)
        return {name: value for name in inner if (value := inner.text(name)) is not None}

    def has(self, key: str) -> bool:
        """Whether the key is there and not null."""
        return self._data.get(key) is not None

    def __iter__(self) -> Iterator[str]:
        """The keys in byte order."""
        return iter(sorted(self._data))

    def value(self, key: str) -> Value:
        """A field of any shape."""
        return plain(self._data.get(key)) or None

    def variables(self, key: str) -> Variables | None:
        """Ansible variables: a mapping, or the same as one text in YAML."""
        value = self._data.get(key)
        if isinstance(value, str):
            try:
                value = yaml.load(value, Loader=TextLoader)  # noqa: S506  a safe loader with fewer types
            except yaml.YAMLError as error:
                fault = " ".join(str(getattr(error, "problem", None) or "it cannot be read").split())
                self.fault(key, f"is not YAML ({fault}); quote values that hold braces or colons.")
                return None
        if not value:
            return None
        if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
            self.fault(key, "must be a mapping of variables, or the same as one text in YAML; correct it.")
            return None
        try:
            return {name: plain(inner) for name, inner in value.items()}
        except RecursionError:
            self.fault(key, "holds a YAML anchor that contains itself; write the values out.")
            return None

    def metadata(self) -> Metadata:
        """Read last: it takes the faults of all that was read before."""
        meta = self.inner("metadata")
        owners = tuple((owner.text("kind") or "", owner.text("name") or "") for owner in meta.items("ownerReferences"))
        annotations = _annotations(meta)
        conditions = _conditions(self)
        deleting = meta.has("deletionTimestamp")
        return Metadata(self.ref, annotations, owners, conditions, deleting, tuple(self.faults))

    def _mapping(self, key: str) -> Mapping[str, Any]:
        value = self._data.get(key)
        if value is None:
            return {}
        if isinstance(value, dict) and _TEXT.issuperset(map(type, value)):
            return value
        if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
            self._wrong_type(key, "a mapping", value)
            return {}
        return value

    def _list(self, key: str) -> Sequence[Any]:
        value = self._data.get(key)
        if value is None:
            return ()
        if not isinstance(value, list | tuple):
            self._wrong_type(key, "a list", value)
            return ()
        return value

    def _wrong_type(self, key: str, wanted: str, value: object, faults: list[Fault] | None = None) -> None:
        sentence = f"{self.ref}, field {self.path(key)}: must be {wanted}, not {_type(value)}; correct it."
        (self.faults if faults is None else faults).append(Fault(self.ref, sentence))


def plain(value: Any) -> Value:
    """The value as JSON has it: what YAML made a date is text again."""
    if type(value) in _SCALARS:
        return value  # type: ignore[no-any-return]  # the set holds JSON scalars only
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, str | int | float):
        return value
    return value.isoformat() if isinstance(value, date) else str(value)


def _annotations(meta: Fields) -> dict[str, str]:
    """Annotations with empty ones kept: an empty cell has a meaning."""
    inner = meta.inner("annotations")
    found: dict[str, str] = {}
    for name in inner:
        if name.startswith("kubectl.kubernetes.io/"):
            continue  # a copy of the whole object, for kubectl alone
        value = inner._data[name]
        if isinstance(value, str) or value is None:
            found[name] = value or ""  # the API server, too, reads null as an empty text
        else:
            inner._wrong_type(name, "text in quotes", value)
    return found


def _conditions(fields: Fields) -> dict[str, Condition] | None:
    if not fields._data.get("status"):
        return None
    return {
        condition.text("type") or "": _condition(condition.text("status") or "", condition.text("message") or "")
        for condition in fields.inner("status").items("conditions")
    }


@lru_cache(maxsize=1024)
def _condition(status: str, message: str) -> Condition:
    """Nodes by the thousand say the same: they share it."""
    return Condition(status, message)


def _encodes(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _type(value: object) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", str: "text", dict: "a mapping", list: "a list"}
    return "null" if value is None else names.get(type(value), f"a {type(value).__name__}")


class TextLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # which one depends on the machine
    """A safe loader: values that look like dates stay text, as in JSON."""


TextLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
