# SPDX-License-Identifier: GPL-3.0-or-later

"""For every option of a conf.d: the value that the service gets, and every place that sets it."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Collection, Iterable

from .layers import ConfD
from .options import DEFAULT, Setting, normalized, parse, parse_errors
from .sources import Source
from .substitution import OptionKey, Resolved, Substitution

# Options whose values add up over all files instead of replacing each other. Only a service's own definitions tell,
# so these are the ones that people set on such nodes; `*` is any group (a cinder backend has one of its own).
ACCUMULATING: frozenset[OptionKey] = frozenset(
    {
        ("pci", "alias"),
        ("pci", "device_spec"),
        ("pci", "passthrough_whitelist"),
        ("filter_scheduler", "available_filters"),
        ("oslo_messaging_notifications", "driver"),
        ("oslo_policy", "policy_dirs"),
        ("service_providers", "service_provider"),
        ("*", "replication_device"),
    }
)


@dataclasses.dataclass(frozen=True)
class Place:
    """One line that sets an option. `value` is its text as oslo.config takes it, before substitution."""

    object: str
    field: str
    file: str
    line: int
    value: str = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True)
class Option:
    """An option with its effective values (one, unless it accumulates) and its places, the winner last.

    `references` are the options whose text went into the values. `unresolved` are references to what no file sets:
    they stand in the value as they are written, and the service puts its own default there.
    """

    group: str
    name: str
    values: tuple[str, ...] = dataclasses.field(repr=False)
    places: tuple[Place, ...]
    accumulates: bool = False
    references: frozenset[OptionKey] = frozenset()
    unresolved: tuple[str, ...] = ()
    endless: bool = False

    @property
    def value(self) -> str:
        """The effective value; of an option that accumulates, the last one."""
        return self.values[-1]

    @property
    def full_name(self) -> str:
        """As a person types it: `DEFAULT.debug`."""
        return f"{self.group}.{self.name}"


@dataclasses.dataclass(frozen=True)
class Explanation:
    """All options, DEFAULT first; what a person should know; what keeps the service from reading its files."""

    options: tuple[Option, ...] = ()
    notes: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()

    def find(self, full_name: str) -> Option | None:
        """The option `group.name`, or `name` in DEFAULT; None when no file sets it."""
        group, dot, name = full_name.rpartition(".")
        wanted = (normalized(group) if dot else DEFAULT, name)
        return next((option for option in self.options if (option.group, option.name) == wanted), None)


def explain(
    conf_d: ConfD, *, base: Iterable[Source] = (), accumulating: Collection[OptionKey] = ACCUMULATING
) -> Explanation:
    """Explain a folder, and the files that the service reads before it (`base`, such as nova.conf itself).

    A file that oslo.config cannot read is an error, and its options are left out; the others are explained.
    """
    files = (*base, *conf_d.files)
    places = _places(files)
    multi = {key for key in places if key in accumulating or ("*", key[1]) in accumulating}
    raw = {key: [place.value for place in found] for key, found in places.items()}
    substitution = Substitution(raw, multi)
    options = tuple(
        _option(key, places[key], substitution.resolve(key), key in multi) for key in sorted(places, key=_order)
    )
    errors = (*parse_errors(files), *(_endless(option) for option in options if option.endless))
    return Explanation(options, tuple(note for option in options for note in _notes(option)), errors)


def _order(key: OptionKey) -> tuple[bool, OptionKey]:
    return key[0] != DEFAULT, key


def _places(files: Iterable[Source]) -> dict[OptionKey, list[Place]]:
    places: dict[OptionKey, list[Place]] = defaultdict(list)
    for file in files:
        for setting in parse(file.content).settings:
            places[setting.group, setting.name].append(_place(file, setting))
    return places


def _place(file: Source, setting: Setting) -> Place:
    return Place(file.object, file.field, file.name, setting.line, setting.value)


def _option(key: OptionKey, places: list[Place], resolved: Resolved, accumulates: bool) -> Option:
    group, name = key
    return Option(
        group,
        name,
        values=resolved.values,
        places=tuple(places),
        accumulates=accumulates,
        references=resolved.references,
        unresolved=resolved.unresolved,
        endless=resolved.endless,
    )


def _endless(option: Option) -> str:
    return f"{_where(option.places[-1])}: the references of {option.name} lead in a circle; write its value out"


def _notes(option: Option) -> Iterable[str]:
    """What oslo.config does without a word, and hardly anybody means."""
    place = option.places[-1]
    if option.group == "default":
        yield f"{_where(place)}: [default] is not [DEFAULT], and no service reads it; write the group in capitals"
    if "-" in option.name:
        right = option.name.replace("-", "_")
        yield f"{_where(place)}: oslo.config looks for {right}, not for {option.name}; write it with underscores"


def _where(place: Place) -> str:
    return f"{place.object}, {place.field}, line {place.line}"
