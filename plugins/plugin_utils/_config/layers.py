# SPDX-License-Identifier: GPL-3.0-or-later

"""From the sources of a service to the files of its conf.d, in the order in which oslo.config reads them.

oslo.config reads the names that match `*.conf`, no dotfiles, sorted by code point (which for UTF-8 is byte order);
of two files that set an option the later wins. So names decide, and nothing here looks into a file or changes a byte.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count

from .sources import Layer, Source

# The human's snippet wins over all that was generated, a profile over what the cell generated.
_WINS_OVER: dict[Layer, frozenset[Layer]] = {
    Layer.GENERATED: frozenset(),
    Layer.PROFILE: frozenset({Layer.GENERATED}),
    Layer.HOST: frozenset(),
    Layer.OVERRIDE: frozenset({Layer.GENERATED, Layer.HOST, Layer.PROFILE}),
    Layer.DEPLOYER: frozenset(),
}
_SNIPPETS = frozenset({Layer.PROFILE, Layer.OVERRIDE})
_RANK = {layer: rank for rank, layer in enumerate(Layer)}
_LONGEST_NAME = 255


@dataclass(frozen=True)
class ConfD:
    """The files of a folder in reading order; what a person should know of it; what forbids to use it."""

    files: tuple[Source, ...] = ()
    notes: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The files' names, in reading order."""
        return tuple(file.name for file in self.files)


def layer(sources: Iterable[Source]) -> ConfD:
    """Put the sources in order; the result does not depend on the order in which they come.

    With errors, `files` holds what can be shown all the same, and must not be deployed.
    """
    errors: list[str] = []
    notes: list[str] = []
    present = [source for source in _counted_once(sources) if not _is_blank_snippet(source)]
    files = _without_collisions(_well_named(present, errors), errors)
    files = _well_named(_placed(files, notes), errors)
    return ConfD(tuple(sorted(files, key=_name)), tuple(notes), tuple(errors))


def _name(source: Source) -> str:
    return source.name


def _counted_once(sources: Iterable[Source]) -> list[Source]:
    """A Secret that is both derived and listed by a deployer is one source; as what was derived it counts."""
    ordered = sorted(sources, key=lambda source: (source.name, source.object, source.field, _RANK[source.layer]))
    once = {(source.name, source.object, source.field): source for source in reversed(ordered)}
    return list(reversed(once.values()))


def _is_blank_snippet(source: Source) -> bool:
    return source.layer in _SNIPPETS and not source.content.strip()


def _well_named(sources: Iterable[Source], errors: list[str]) -> list[Source]:
    kept = []
    for source in sources:
        fault = name_fault(source.name)
        if fault:
            errors.append(f"{source.origin}: the file name {source.name!r} {fault}")
        else:
            kept.append(source)
    return kept


def name_fault(name: str) -> str | None:
    """What keeps a name out of conf.d, with the remedy; None for a name that oslo.config reads."""
    return next((words for is_so, words in _NAME_FAULTS if is_so(name)), None)


_NAME_FAULTS: tuple[tuple[Callable[[str], bool], str], ...] = (
    (lambda name: not name, "is empty; give it a name that ends in .conf"),
    (lambda name: "/" in name, "holds a slash; name a file, not a path"),
    (lambda name: name.startswith("."), "begins with a dot, and oslo.config does not read such files; rename it"),
    (lambda name: not name.isprintable(), "holds characters that cannot be printed; rename it"),
    (lambda name: not name.endswith(".conf"), "does not end in .conf, and oslo.config reads no others; rename it"),
    (lambda name: len(name.encode()) > _LONGEST_NAME, f"is longer than {_LONGEST_NAME} bytes; shorten it"),
)


def _without_collisions(sources: Iterable[Source], errors: list[str]) -> list[Source]:
    by_name: dict[str, list[Source]] = defaultdict(list)
    for source in sources:
        by_name[source.name].append(source)
    for name, same in by_name.items():
        if len(same) > 1:
            origins = " and from ".join(source.origin for source in same)
            errors.append(f"{name} comes from {origins}; rename one of them, each file has one source")
    return [same[0] for same in by_name.values()]


def _placed(wanted: list[Source], notes: list[str]) -> list[Source]:
    """Every file behind those that it must win over; files that must win over none keep their names."""
    placed = list(wanted)
    for position, source in sorted(enumerate(wanted), key=lambda item: _RANK[item[1].layer]):
        beaten = [placed[index].name for index, other in enumerate(wanted) if _wins(source, other)]
        if beaten and max(beaten) > source.name:
            name = _later_name(source.name, beaten, {file.name for file in placed})
            passed = sorted((file for file in placed if source.name < file.name < name), key=_name)
            notes.append(_moved_note(source, name, passed))
            placed[position] = replace(source, name=name)
    return placed


def _wins(source: Source, other: Source) -> bool:
    """By layer; and a node's own host and addresses stay behind a profile that they were behind, wherever it goes."""
    stays_behind = source.layer is Layer.HOST and other.layer is Layer.PROFILE and source.name > other.name
    return stays_behind or other.layer in _WINS_OVER[source.layer]


def _later_name(wanted: str, beaten: Collection[str], taken: Collection[str]) -> str:
    """The wanted name put behind a beaten one: it sorts right after that file, and a deployer's later file stays later.

    A prettier name (`99-late-override.conf`) would sort before `99-late.conf`: a dash comes before a dot.
    """
    last = max(beaten)
    return next(name for name in _candidates(wanted, beaten) if name > last and name not in taken)


def _candidates(wanted: str, beaten: Collection[str]) -> Iterator[str]:
    for name in sorted(beaten):
        yield f"{name}-{wanted}"
    for number in count(2):
        yield f"{max(beaten)}-{number}-{wanted}"


def _moved_note(snippet: Source, name: str, passed: Iterable[Source]) -> str:
    listed = ", ".join(f"{file.name} ({file.origin})" for file in passed)
    return f"{snippet.origin}: its file is named {name} instead of {snippet.name}, to win over {listed}"
