# SPDX-License-Identifier: GPL-3.0-or-later
"""How often a node was tried in vain, and when it may be tried again. Something new is tried at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from .deciding import Need


@dataclass(frozen=True)
class Attempt:
    """The last one: for what, how many there were for the same, and when it was last seen."""

    key: str
    count: int
    at: float


class Attempts:
    """Of all nodes. Times are those of the clock on the wall, since objects have them too."""

    def __init__(self, first: float, longest: float) -> None:
        self._first, self._longest = first, longest
        self._known: dict[tuple[str, str, str], Attempt] = {}

    def began(self, need: Need, now: float) -> None:
        """A run was started."""
        before = self._known.get(need.place)
        count = before.count + 1 if before is not None and before.key == need.key else 1
        self._known[need.place] = Attempt(need.key, count, now)

    def busy(self, task: str, namespace: str, nodes: Iterable[str], now: float) -> None:
        """A run is still going: the pause begins when it ends."""
        for node in nodes:
            before = self._known.get((task, namespace, node))
            if before is not None:
                self._known[task, namespace, node] = Attempt(before.key, before.count, now)

    def settled(self, wanted: Iterable[Need]) -> None:
        """Forget those of whom nothing is wanted any more."""
        places = {need.place for need in wanted}
        self._known = {place: one for place, one in self._known.items() if place in places}

    def due(self, need: Need) -> float:
        """When it may be tried, 0 for at once. What an earlier operator has tried is told by the objects."""
        before = self._known.get(need.place)
        if before is not None:
            return before.at + self._pause(before.count) if before.key == need.key else 0.0
        failed = [at for one in need.objects if (at := _failed_at(one.status, one.generation)) is not None]
        return max(failed) + self._first if failed else 0.0

    def failures(self) -> int:
        """How many nodes were tried more than once for the same."""
        return sum(1 for one in self._known.values() if one.count > 1)

    def _pause(self, count: int) -> float:
        return float(min(self._first * 2 ** min(count - 1, 20), self._longest))


def _failed_at(status: object, generation: int) -> float | None:
    """When the last run failed, where nothing of the object has changed since."""
    if not isinstance(status, dict):
        return None
    last = status.get("lastRun") or {}
    if last.get("result") != "Failed" or status.get("observedGeneration") != generation:
        return None
    return seconds(last.get("completionTime"))


def seconds(text: object) -> float | None:
    """A time of Kubernetes on the clock on the wall; None for what is none."""
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return None
