# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of text with a tone; what colour a tone has, if any, is the display's to say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from .._dataplane.wording import one_line

GAP = "  "


class Tone(StrEnum):
    """What a line is to its reader."""

    PLAIN = "plain"
    HEADING = "heading"
    GOOD = "good"
    BAD = "bad"
    REMARK = "remark"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of output."""

    text: str
    tone: Tone = Tone.PLAIN


def as_text(lines: Iterable[Line]) -> str:
    """All lines, each with its end."""
    return "".join(f"{line.text}\n" for line in lines)


def blocks(lines: Iterable[Line]) -> Iterator[tuple[str, Tone]]:
    """Neighbours of one tone in one piece: a display is called as seldom as the colours allow."""
    for tone, same in groupby(lines, key=lambda line: line.tone):
        yield "\n".join(line.text for line in same), tone


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """The rows with every column but the last as wide as its widest text, and nothing in them to upset a terminal."""
    rows = [[one_line(text) for text in row] for row in rows]
    widths = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:-1]]
    padded = ([f"{text:<{width}}" for text, width in zip(row[:-1], widths, strict=True)] + [row[-1]] for row in rows)
    return [GAP.join(row).rstrip() for row in padded]
