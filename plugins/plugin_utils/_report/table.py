# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan as a table for a terminal, and what a person should know beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .._bundle.digest import short
from .._dataplane.wording import one_line
from .lines import Line, Tone, columns
from .near import listed
from .overview import Overview, PlannedNode, PlannedService, State

NOTHING = "–"
HEADINGS = ("NODE", "CELL", "SERVICE", "IMAGE", "STATE", "")
_TONES = {State.READY: Tone.GOOD, State.HELD: Tone.REMARK, State.BLOCKED: Tone.BAD}
_LONGEST_DIGEST = len("sha256:") + 12


@dataclass(frozen=True)
class _Row:
    texts: tuple[str, str, str, str, str, str]
    tone: Tone


def table(seen: Overview) -> list[Line]:
    """The table, the remarks below it and the sum of it all."""
    rows = [row for node in seen.nodes for row in _node(node)]
    texts = columns([HEADINGS, *(row.texts for row in rows)])
    tones = [Tone.HEADING, *(row.tone for row in rows)]
    lines = [Line(text, tone) for text, tone in zip(texts, tones, strict=True)] if rows else []
    return [*lines, *_remarks(seen), Line(summary(seen))]


def summary(seen: Overview) -> str:
    """How many nodes and services are in which state."""
    waiting = sum(1 for node in seen.nodes if node.reasons)
    of_nodes = {State.READY: len(seen.nodes) - waiting, State.BLOCKED: waiting}
    of_services = Counter(service.state for service in seen.services)
    alone = f" · {len(seen.left_alone)} left alone" if seen.left_alone else ""
    return f"{_counted('node', of_nodes)} · {_counted('service', of_services)}{alone}"


def short_image(image: str | None) -> str:
    """The image without its registry, and with as much of a digest as tells it from others."""
    if image is None:
        return NOTHING
    place, slash, rest = image.rpartition("/")
    name, at, digest = rest.partition("@")
    cut = f"{digest[:_LONGEST_DIGEST]}…" if len(digest) > _LONGEST_DIGEST else digest
    return f"{'…/' if place else slash}{name}{at}{cut}"


def _counted(thing: str, counts: Counter[State] | dict[State, int]) -> str:
    total = sum(counts.values())
    parts = ", ".join(f"{counts[state]} {state}" for state in State if counts.get(state))
    return f"{total} {thing}{'' if total == 1 else 's'}" + (f": {parts}" if parts else "")


def _node(node: PlannedNode) -> Iterator[_Row]:
    """A row for each service, the node's own reasons in the first; more reasons have lines of their own."""
    first = (node.plan.name, node.plan.cell or NOTHING)
    if not node.services:
        yield from _rows((*first, NOTHING, NOTHING), State.BLOCKED, node.own_reasons)
    for number, service in enumerate(node.services):
        names = first if number == 0 else ("", "")
        row = (*names, service.plan.name, short_image(service.bundle.image))
        yield from _rows(row, service.state, _says(node, service, first=number == 0))


def _says(node: PlannedNode, service: PlannedService, *, first: bool) -> tuple[str, ...]:
    if service.state is State.BLOCKED:
        return (*(node.own_reasons if first else ()), *service.own_reasons) or ("with its node",)
    digest = short(service.bundle.digest)
    return (f"{digest}  {service.plan.hold}",) if service.plan.hold else (digest,)


def _rows(first: tuple[str, str, str, str], state: State, sentences: tuple[str, ...]) -> Iterator[_Row]:
    yield _Row((*first, state.value, sentences[0] if sentences else ""), _TONES[state])
    for sentence in sentences[1:]:
        yield _Row(("", "", "", "", "", sentence), _TONES[state])


def _remarks(seen: Overview) -> Iterator[Line]:
    """Each sentence once, with those whom it concerns, since a whole role has the same ones."""
    for title, told in (("notes:", _notes(seen)), ("left out:", _left_out(seen))):
        by_sentence: dict[str, dict[str, None]] = {}
        for sentence, node in told:
            by_sentence.setdefault(sentence, {})[node] = None
        if by_sentence:
            yield Line(title, Tone.HEADING)
        for sentence, nodes in by_sentence.items():
            yield Line(one_line(f"  {sentence} ({listed(nodes)})"))
    for alone in seen.left_alone:
        yield Line(one_line(f"left alone: {alone.name} ({alone.sentence})"), Tone.REMARK)
    for sentence in dict.fromkeys((*(one.sentence for one in seen.left_to_operator), *_leaving(seen))):
        yield Line(one_line(sentence), Tone.REMARK)
    for sentence in (*seen.warnings, *seen.errors):
        yield Line(one_line(sentence), Tone.BAD if sentence in seen.errors else Tone.REMARK)


def _leaving(seen: Overview) -> Iterable[str]:
    return (one.sentence for one in seen.leaving)


def _notes(seen: Overview) -> Iterator[tuple[str, str]]:
    for node in seen.nodes:
        for note in (*node.plan.notes, *(note for service in node.services for note in service.bundle.notes)):
            yield note, node.plan.name


def _left_out(seen: Overview) -> Iterator[tuple[str, str]]:
    for service in seen.services:
        for one in service.plan.left_out:
            yield one.sentence, service.node.name
