# SPDX-License-Identifier: GPL-3.0-or-later
"""A measurement beside what it is compared with, and how both are shown."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from edpm_lab import table

TREE = Path(__file__).resolve().parents[2]
MEBIBYTE = 1024 * 1024
#: How many turns something short has in each round.
SHORT = 5


@dataclass(frozen=True)
class Figure:
    """One measurement beside what it is compared with, and the ratio that it must not go over, where one is set."""

    name: str
    measured: float
    compared_with: str
    reference: float
    limit: float | None = None
    unit: str = "s"

    @property
    def ratio(self) -> float:
        """Below one: less than what it is compared with."""
        return self.measured / self.reference

    @property
    def holds(self) -> bool:
        """Whether the ratio is within its limit."""
        return self.limit is None or self.ratio <= self.limit

    @property
    def verdict(self) -> str:
        """What a person reads of the limit."""
        if self.limit is None:
            return "–"
        return f"≤ {_ratio(self.limit)} {'holds' if self.holds else 'IS BROKEN'}"


def text(figures: Iterable[Figure]) -> str:
    """The figures as a table."""
    rows = [
        (
            f.name,
            _amount(f.measured, f.unit),
            f.compared_with,
            _amount(f.reference, f.unit),
            _ratio(f.ratio),
            f.verdict,
        )
        for f in figures
    ]
    return table.text(("MEASURED", "", "COMPARED WITH", "", "RATIO", "LIMIT"), rows)


def data(figures: Iterable[Figure]) -> dict[str, dict[str, Any]]:
    """The figures by name, for a program."""
    return {f.name: {**asdict(f), "ratio": round(f.ratio, 3), "holds": f.holds} for f in figures}


def timed(work: Callable[[], object]) -> float:
    """Seconds that something takes."""
    start = time.monotonic()
    work()
    return time.monotonic() - start


def best(work: Callable[[], object], tries: int = 3) -> float:
    """The quickest of several tries: noise only ever adds."""
    return min(timed(work) for _ in range(tries))


def in_turns(ways: Mapping[str, Callable[[], object]], tries: int) -> dict[str, list[float]]:
    """Several tries of each. They take turns, so that a bad minute of the machine is not one's alone."""
    rounds = [{name: timed(way) for name, way in ways.items()} for _ in range(tries)]
    return {name: [one[name] for one in rounds] for name in ways}


def medians(ways: Mapping[str, Callable[[int], object]], runs: int, short: Sequence[str] = ()) -> dict[str, float]:
    """The time in the middle of each, for what does something new each time: it is given the number of the run.

    They take turns, so that all have the same share of a machine's better and worse minutes. What is short has several
    turns before what is long has one, since a hiccup of the machine is a larger part of it. The round 0 is not counted.
    """
    turns = [*[name for name in ways if name in short] * SHORT, *[name for name in ways if name not in short]]
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _round in range(1 + runs):
        for name in turns:
            taken[name].append(timed(partial(ways[name], len(taken[name]))))
    return {name: statistics.median(all_of_it[turns.count(name) :]) for name, all_of_it in taken.items()}


def _ratio(value: float) -> str:
    """With as many digits as tell two ratios apart that are both small."""
    return f"{value:.2f}" if value >= 1 else f"{value:.3g}"


def _amount(value: float, unit: str) -> str:
    return f"{value:.2f} {unit}"
