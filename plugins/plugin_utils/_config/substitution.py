# SPDX-License-Identifier: GPL-3.0-or-later

"""What `$name` and `${group.name}` stand for, by oslo.config's own template and its order of lookup.

Two things only the service itself knows: the defaults of options that no file sets, and the types of options. A
reference to what no file sets therefore stays in the value as it is written, and is named; what is set is substituted
as text (oslo.config would write a boolean option's `yes` as `True`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from .options import DEFAULT, OsloConfigMissingError

OptionKey = tuple[str, str]

# A service gives up with a RecursionError at about as many; and a few lines can double a text without end.
_DEEPEST = 100
_LONGEST = 1 << 20


@dataclass(frozen=True)
class Resolved:
    """An option's effective values, and what they were made from.

    `references` are all options whose text went into them, `unresolved` the references that stayed as written,
    `endless` is true when they lead in a circle or too far: the service fails on reading the option.
    """

    values: tuple[str, ...] = field(repr=False)
    references: frozenset[OptionKey] = frozenset()
    unresolved: tuple[str, ...] = ()
    endless: bool = False


class Substitution:
    """Resolves the options of one folder, each once."""

    def __init__(self, raw: Mapping[OptionKey, Sequence[str]], multi: Collection[OptionKey]) -> None:
        self._raw = raw
        self._multi = multi
        self._groups = frozenset(group for group, _name in raw if group != DEFAULT)
        self._done: dict[OptionKey, Resolved] = {}
        self._under_way: set[OptionKey] = set()

    def resolve(self, key: OptionKey) -> Resolved:
        """The option's values: the last one set, or all of them when it accumulates."""
        if key not in self._done:
            self._under_way.add(key)
            self._done[key] = self._substituted(key)
            self._under_way.discard(key)
        return self._done[key]

    def _substituted(self, key: OptionKey) -> Resolved:
        effective = self._raw[key] if key in self._multi else self._raw[key][-1:]
        lookup = _Lookup(self, key[0])
        values = tuple(_template(text).safe_substitute(lookup) for text in effective)
        return Resolved(values, frozenset(lookup.references), tuple(lookup.unresolved), lookup.endless)

    def find(self, group: str, reference: str) -> OptionKey | None:
        """The option that a reference in this group means: in the group itself, else in DEFAULT."""
        if "." in reference:
            named, name = reference.split(".", 1)
            if named not in self._groups:
                return None
            first = (named, name)
        else:
            first = (group, reference)
        # A group's own name stands before an option of DEFAULT, and a group has no text.
        hidden = (DEFAULT, reference) if reference in self._groups else None
        return next((key for key in (first, (DEFAULT, reference)) if key in self._raw and key != hidden), None)

    def follow(self, key: OptionKey) -> Resolved | None:
        """The option behind a reference; None where following it has no end."""
        if key in self._under_way or len(self._under_way) >= _DEEPEST:
            return None
        return self.resolve(key)

    def text(self, key: OptionKey, resolved: Resolved) -> str:
        """What a reference to the option puts in: for an option that accumulates, oslo.config writes its list."""
        return str(list(resolved.values)) if key in self._multi else resolved.values[-1]


class _Lookup(Mapping[str, str]):
    """The mapping that oslo.config's template asks; a KeyError makes it leave the reference as written."""

    def __init__(self, substitution: Substitution, group: str) -> None:
        self._substitution = substitution
        self._group = group
        self._left = _LONGEST
        self.references: set[OptionKey] = set()
        self.unresolved: dict[str, None] = {}
        self.endless = False

    def __getitem__(self, reference: str) -> str:
        key = self._substitution.find(self._group, reference)
        if key is None:
            self.unresolved[reference] = None
            raise KeyError(reference)
        self.references.add(key)
        resolved = self._substitution.follow(key)
        if resolved is None:
            self.endless = True
            raise KeyError(reference)
        return self._taken(reference, self._substitution.text(key, resolved), resolved)

    def _taken(self, reference: str, text: str, resolved: Resolved) -> str:
        self.references |= resolved.references
        self.unresolved.update(dict.fromkeys(resolved.unresolved))
        self._left -= len(text)
        self.endless = self.endless or resolved.endless or self._left < 0
        if self._left < 0:
            raise KeyError(reference)
        return text

    def __iter__(self) -> Any:
        raise TypeError

    def __len__(self) -> int:
        raise TypeError


def _template(text: str) -> Any:
    # oslo.config reads a backslash before a dollar sign as the template's own $$.
    return _template_class()(text.replace(r"\$", "$$"))


@cache
def _template_class() -> Any:
    try:
        from oslo_config import cfg  # noqa: PLC0415  (the rest of the collection works without it)
    except ImportError as missing:
        raise OsloConfigMissingError from missing
    return cfg.ConfigOpts.Template
