# SPDX-License-Identifier: GPL-3.0-or-later
"""Options with their values, who set them and who was overridden; masked before anybody sees them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from .._bundle.bundle import explanation
from .._config.masking import masked_explanation
from .._config.options import DEFAULT
from .._config.provenance import Explanation, Option
from .._dataplane.wording import one_line
from .lines import Line, Tone, columns
from .near import NotThereError, did_you_mean
from .overview import Overview, PlannedService, Question

WINNER = "◄"


@dataclass(frozen=True)
class Explained:
    """A service on a node, and its options as they may be shown."""

    service: PlannedService
    explanation: Explanation

    @property
    def title(self) -> str:
        """Whose options they are."""
        return one_line(f"{self.service.node.name} · {self.service.plan.name}")


def explained(seen: Overview, question: Question) -> tuple[Explained, ...]:
    """All services that have options, or those that set the one which is asked about."""
    found = [Explained(one, masked_explanation(explanation(one.bundle))) for one in seen.services if one.plan.conf_d]
    if not found:
        raise NotThereError(_nothing_to_explain(seen, question))
    if not question.option:
        return tuple(found)
    chosen = tuple(replace(one, explanation=only) for one in found if (only := _only(one, question.option)))
    if not chosen:
        raise NotThereError(_no_option(found, question.option))
    return chosen


def explained_lines(found: tuple[Explained, ...], question: Question) -> Iterator[Line]:
    """For a terminal: one option in full, or all of each service below a title."""
    for number, one in enumerate(found):
        if number:
            yield Line("")
        if question.option:
            yield from _option(one.explanation.options[0], before=f"{one.title} · ", indent="")
        else:
            yield Line(one.title, Tone.HEADING)
            for option in one.explanation.options:
                yield from _option(option, before="", indent="  ")
        for sentence in one.service.reasons:
            yield Line(one_line(f"blocked: {sentence}"), Tone.BAD)
        for note in one.explanation.notes:
            yield Line(one_line(f"note: {note}"), Tone.REMARK)


def _option(option: Option, before: str, indent: str) -> Iterator[Line]:
    yield Line(f"{indent}{before}{_headline(option)}", Tone.HEADING)
    last = len(option.places) - 1
    rows = [
        (place.value, WINNER if number == last or option.accumulates else "",
         f"{place.file}:{place.line}", f"{place.object}, {place.field}")
        for number, place in enumerate(option.places)
    ]  # fmt: skip
    for text, row in zip(columns(rows), rows, strict=True):
        yield Line(f"{indent}  {text}", Tone.GOOD if row[1] else Tone.PLAIN)
    for reference in option.unresolved:
        said = f"${one_line(reference)} is set nowhere; the service puts its own default there"
        yield Line(f"{indent}  {said}", Tone.REMARK)


def _headline(option: Option) -> str:
    name = f"[{one_line(option.group)}] {one_line(option.name)}"
    if option.accumulates and len(option.values) > 1:
        return f"{name}: {len(option.values)} values, which add up"
    return f"{name} = {one_line(option.value)}"


def _only(one: Explained, name: str) -> Explanation | None:
    option = one.explanation.find(name)
    return replace(one.explanation, options=(option,), notes=()) if option else None


def _nothing_to_explain(seen: Overview, question: Question) -> str:
    if question.node and seen.left_alone and not seen.nodes:
        return f"{question.node} runs nothing of ours: {seen.left_alone[0].sentence}."
    who = question.service or "What runs there"
    return f"{who} has no configuration of oslo.config's kind, so there is nothing to explain."


def _no_option(found: list[Explained], name: str) -> str:
    known = dict.fromkeys(option.full_name for one in found for option in one.explanation.options)
    name = name if "." in name else f"{DEFAULT}.{name}"
    where = f"of {found[0].service.plan.name} on {found[0].service.node.name} " if len(found) == 1 else ""
    return f"No file {where}sets {name}; {did_you_mean(name, known, 'options')}"
