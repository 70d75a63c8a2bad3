# SPDX-License-Identifier: GPL-3.0-or-later
"""Who comes when: the canaries first, then batch after batch, until too many have failed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._report.near import NotThereError

#: With more nodes than this, one of them goes first by itself.
FEW = 4
#: The size of a batch where nobody says one: this many nodes, or this part of a large number.
SMALLEST, PART = 5, "25%"
BUDGET = "20%"
_NUMBER = re.compile(r"(\d{1,6})\s*(%?)")


class BadNumberError(NotThereError):
    """A variable is neither a number nor a percentage."""


@dataclass(frozen=True)
class Pace:
    """How many nodes are touched at once, and how many may fail before no other is touched."""

    canary: int
    batch: int
    budget: int

    def sizes(self, nodes: int) -> list[int]:
        """The sizes of all batches; the canaries are the first of them."""
        first = min(self.canary, nodes)
        left = nodes - first
        full, rest = divmod(left, self.batch)
        return [*([first] if first else []), *[self.batch] * full, *([rest] if rest else [])]

    def stops(self, touched: int, failed: int, lost: int = 0) -> str:
        """Why no further batch begins after so many nodes, empty when it does; `lost` failed before their turn."""
        if failed and touched <= self.canary:
            return f"{_nodes(failed)} of the canaries failed"
        if failed + lost > self.budget:
            return f"{_nodes(failed + lost)} failed and the failure budget is {self.budget}"
        return ""


def pace(variables: Mapping[str, Any], nodes: int) -> Pace:
    """The pace of a run over so many nodes, from the variables `edpm_deploy_…`."""
    default = str(max(SMALLEST, _counted("", PART, nodes)))
    return Pace(
        canary=_of(variables, "canary", "1" if nodes > FEW else "0", nodes),
        batch=max(1, _of(variables, "batch", default, nodes)),
        budget=_of(variables, "failure_budget", BUDGET, nodes),
    )


def _of(variables: Mapping[str, Any], name: str, default: str, nodes: int) -> int:
    full = f"edpm_deploy_{name}"
    value = variables.get(full)
    return _counted(full, default if value in (None, "") else str(value), nodes)


def _counted(name: str, value: str, nodes: int) -> int:
    """A number, or a part of the nodes, rounded up."""
    found = _NUMBER.fullmatch(value.strip())
    if found is None:
        raise BadNumberError(f'{name} is "{value}"; write a number of nodes such as 5, or a part such as 20%.')
    number = int(found[1])
    return -(-number * nodes // 100) if found[2] else number


def _nodes(count: int) -> str:
    return f"{count} node{'' if count == 1 else 's'}"
