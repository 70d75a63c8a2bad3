# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an installation of definitions did, for a program and for a person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import yaml

from .client import Object
from .definitions import Outcome, Result, essence

RESULTS: tuple[Result, ...] = ("created", "updated", "unchanged", "kept")


def as_result(outcomes: Sequence[Outcome], *, check: bool, diff: bool) -> dict[str, Any]:
    """The return values of the module."""
    result: dict[str, Any] = {
        "changed": any(outcome.changed for outcome in outcomes),
        "definitions": [_entry(outcome) for outcome in outcomes],
        "msg": sentence(outcomes, check=check),
    }
    if warnings := [outcome.warning for outcome in outcomes if outcome.warning]:
        result["warnings"] = warnings
    if diff:
        result["diff"] = [_diff(outcome) for outcome in outcomes if outcome.changed]
    return result


def sentence(outcomes: Sequence[Outcome], *, check: bool) -> str:
    """How many of each result, in one sentence."""
    note = " (check mode, nothing is written)" if check else ""
    return f"{len(outcomes)} definitions{note}: {_counts(outcomes, check=check) or 'none given'}."


def table(outcomes: Sequence[Outcome], *, check: bool) -> str:
    """One line per kind, then one per object that was left to its owner."""
    kinds: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        kinds.setdefault(outcome.manifest.kind, []).append(outcome)
    width = max(map(len, kinds), default=0)
    lines = [f"{kind:<{width}}  {_counts(members, check=check)}" for kind, members in kinds.items()]
    lines += [f"{o.manifest}: {o.result}, {o.reason}" for o in outcomes if o.result == "kept"]
    return "\n".join([*lines, sentence(outcomes, check=check)])


def _counts(outcomes: Sequence[Outcome], *, check: bool) -> str:
    counts = Counter(outcome.result for outcome in outcomes)
    would = {"created": "would be created", "updated": "would be updated"} if check else {}
    return ", ".join(f"{counts[result]} {would.get(result, result)}" for result in RESULTS if counts[result])


def _entry(outcome: Outcome) -> dict[str, Any]:
    return {
        "kind": outcome.manifest.kind,
        "name": outcome.manifest.name,
        "namespace": outcome.manifest.namespace,
        "result": outcome.result,
        "reason": outcome.reason,
    }


def _diff(outcome: Outcome) -> dict[str, str]:
    return {
        "before_header": f"{outcome.manifest} (cluster)",
        "after_header": f"{outcome.manifest} ({outcome.manifest.source})",
        "before": _text(outcome.before),
        "after": _text(outcome.after),
    }


def _text(item: Object | None) -> str:
    """YAML of an object, the values of a Secret hidden."""
    if item is None:
        return ""
    shown = essence(item)
    if shown["kind"] == "Secret":
        for field in ("data", "stringData"):
            shown |= {field: dict.fromkeys(shown[field], "(hidden)")} if shown.get(field) else {}
    return str(yaml.safe_dump(shown, sort_keys=True, allow_unicode=True, width=120))
