# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a run for a person and for a program, and the file by which what failed is run again."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .._report.lines import Line, Tone, as_text, columns
from .._report.table import NOTHING, short_image
from .._report.written import write
from .course import Course, Mode
from .outcome import AGAIN, Fate, NodeOutcome, counted

#: In a table of more nodes than this, those where nothing happened are only counted.
MOST = 40
_TONES = {Fate.CHANGED: Tone.GOOD, Fate.UNCHANGED: Tone.PLAIN, Fate.WAITING: Tone.REMARK, Fate.HELD: Tone.REMARK}


@dataclass(frozen=True)
class Ending:
    """A whole run. `stopped` says why not everyone's turn came."""

    course: Course
    nodes: Sequence[NodeOutcome]
    seconds: float
    check: bool = False
    stopped: str = ""
    retry_file: str = ""

    @property
    def again(self) -> list[str]:
        """The nodes that are worth a second run."""
        return [one.name for one in self.nodes if one.fate in AGAIN]

    def failing(self, *, strict: bool) -> list[str]:
        """The nodes that make the run a failed one; when it is strict, those too where a service is blocked."""
        return [one.name for one in self.nodes if one.fate in AGAIN or (strict and one.blocked)]

    @property
    def said(self) -> str:
        """All in one line."""
        counts = counted(self.nodes)
        words = {"changed": "would change"} if self.check else {}
        first, *others = [f"{count} {words.get(fate, fate)}" for fate, count in counts.items()]
        number, _space, word = first.partition(" ")
        nodes = f"{number} node{'' if number == '1' else 's'} {word}"
        restarts = sum(one.restarts for one in self.nodes)
        due = "would be due" if self.check and restarts else ""
        parts = [
            ", ".join([nodes, *others]),
            f"{restarts} restart{'' if restarts == 1 else 's'} {due}".rstrip(),
            _clock(self.seconds),
        ]
        if self.again and self.retry_file:
            parts.append(f"what failed can be run again with: --limit @{self.retry_file}")
        return " · ".join(parts)

    def data(self) -> dict[str, Any]:
        """For a program; it names no contents."""
        return {
            "playbook": self.course.mode.value,
            "check": self.check,
            "nodes": [one.data() for one in self.nodes],
            "counts": {fate.replace(" ", "_"): count for fate, count in counted(self.nodes).items()},
            "restarts": sum(one.restarts for one in self.nodes),
            "seconds": round(self.seconds, 1),
            "stopped": self.stopped,
            "retry": self.again,
            "summary": self.said,
        }

    def lines(self) -> list[Line]:
        """The table, why it stopped, and all in one line."""
        shown = [one for one in self.nodes if len(self.nodes) <= MOST or one.fate is not Fate.UNCHANGED]
        rows = [(row, tone) for one in shown for row, tone in _rows(one)]
        table: list[Line] = []
        if rows:
            texts = columns([("NODE", "CELL", "SERVICE", "IMAGE", "STATE"), *(row for row, _tone in rows)])
            tones = [Tone.HEADING, *(tone for _row, tone in rows)]
            table = [Line(text, tone) for text, tone in zip(texts, tones, strict=True)]
        stopped = [Line(f"stopped: {self.stopped}.", Tone.BAD)] if self.stopped else []
        verdict = Tone.BAD if self.again else Tone.GOOD
        return [*table, *stopped, Line(self.said, verdict)]

    def shown(self, output: str) -> list[Line]:
        """As text or as JSON."""
        if output == "json":
            return [Line(text) for text in json.dumps(self.data(), indent=2).split("\n")]
        return self.lines()

    def write(self, output: str, output_file: str) -> bool:
        """Write the report where one is asked for, and the names of those to run again."""
        changed = bool(output_file) and write(output_file, as_text(self.shown(output)), check=self.check)
        if self.again and self.retry_file and not self.check:
            write(self.retry_file, "".join(f"{name}\n" for name in self.again), check=False)
        return changed


def _rows(one: NodeOutcome) -> list[tuple[tuple[str, str, str, str, str], Tone]]:
    first = (one.name, one.cell or NOTHING)
    if one.fate in (Fate.UNREACHABLE, Fate.NOT_STARTED) or not one.services:
        said = f"{one.fate.value}: {one.reason}" if one.reason else one.fate.value
        return [((*first, NOTHING, NOTHING, said), _TONES.get(one.fate, Tone.BAD))]
    rows = []
    for number, service in enumerate(one.services):
        names = first if number == 0 else ("", "")
        tone = Tone.BAD if service.bad else _TONES.get(one.fate, Tone.PLAIN)
        rows.append(((*names, service.name, short_image(service.image), service.says), tone))
    told = any(service.state in ("failed", "undeployable") for service in one.services)
    if one.fate is Fate.FAILED and not told:
        rows.append((("", "", "", "", f"failed: {one.reason}"), Tone.BAD))
    return rows


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes:02}:{rest:02}"


def ending(course: Course, nodes: Sequence[NodeOutcome], **others: Any) -> Ending:
    """The end of a run that began when its course was set."""
    return Ending(course, nodes, time.time() - course.begun, **others)


#: Where the names of those to run again are written unless somebody says otherwise.
RETRY_FILES = {mode: f"edpm-{mode.value}.retry" for mode in Mode}
