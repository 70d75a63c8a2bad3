# SPDX-License-Identifier: GPL-3.0-or-later
"""From a question about a plan to what is displayed, written and returned."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from .._dataplane.planned import Plan
from .data import explained_data, plan_data
from .explained import explained, explained_lines
from .lines import Line, as_text
from .near import NotThereError
from .overview import Question, overview
from .page import page
from .table import summary, table
from .written import write

Output = Literal["text", "json", "html"]


@dataclass(frozen=True)
class Answer:
    """`lines` are for the display, `result` is what the module returns."""

    lines: tuple[Line, ...]
    result: dict[str, Any]


def answer(
    plan: Plan,
    question: Question,
    *,
    explain: bool = False,
    output: Output = "text",
    output_file: str = "",
    check: bool = False,
) -> Answer:
    """Show the plan or explain its options; NotThereError where what is asked for is not there."""
    seen = overview(plan, question)
    data: dict[str, Any] = {"plan": plan_data(seen)}
    lines = table(seen)
    if explain or question.option:
        found = explained(seen, question)
        data = {"explanations": explained_data(found)}
        lines = list(explained_lines(found, question))
    if output == "json":
        lines = [Line(text) for text in json.dumps(data, indent=2).split("\n")]
    elif output == "html":
        if not output_file:
            raise NotThereError(
                "An HTML page is for a file; name it with output_file, for example output_file=plan.html."
            )
        lines = [Line(page(seen).rstrip("\n"))]
    told = {**data, "msg": summary(seen)}
    if not output_file:
        return Answer(tuple(lines), {"changed": False, **told})
    changed = write(output_file, as_text(lines), check=check)
    said = f"{output_file} {_FATES[changed, check]}. {summary(seen)}."
    return Answer((Line(said),), {"changed": changed, **told, "msg": said})


_FATES = {
    (True, False): "is written",
    (True, True): "would be written",
    (False, False): "is up to date",
    (False, True): "is up to date",
}
