# SPDX-License-Identifier: GPL-3.0-or-later
"""A measurement beside what it is compared with, and how both are shown."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from edpm_lab import table

TREE = Path(__file__).resolve().parents[2]
MEBIBYTE = 1024 * 1024


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
        return f"≤ {self.limit:g} {'holds' if self.holds else 'IS BROKEN'}"


def text(figures: Iterable[Figure]) -> str:
    """The figures as a table."""
    rows = [
        (
            f.name,
            _amount(f.measured, f.unit),
            f.compared_with,
            _amount(f.reference, f.unit),
            f"{f.ratio:.2f}",
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


def medians(ways: Mapping[str, Callable[[int], object]], runs: int) -> dict[str, float]:
    """The time in the middle of each, for what does something new each time: it is given the number of the run.

    They take turns, so that all have the same share of a machine's better and worse minutes. The run 0 is not counted.
    """
    rounds = [{name: timed(partial(way, run)) for name, way in ways.items()} for run in range(1 + runs)]
    return {name: statistics.median(one[name] for one in rounds[1:]) for name in ways}


def _amount(value: float, unit: str) -> str:
    return f"{value:.2f} {unit}"
