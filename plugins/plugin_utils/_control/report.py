# SPDX-License-Identifier: GPL-3.0-or-later
"""What a pass did, for a program and for a person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import yaml

from .applying import Outcome
from .leaving import Going
from .reconcile import Pass
from .status import Reported

#: So many lines and differences are shown; a program gets all of them but the differences.
MOST = 40
_WOULD = {
    "created": "would be created",
    "updated": "would be updated",
    "written": "would be written",
    "marked": "would be marked",
    "leaving": "would be told to leave",
    "returned": "would be told to stay",
    "removed": "would be removed",
}
_TOLD = ("failed", "refused", "leaving", "returned", "removed", "kept")


def as_result(done: Pass, *, check: bool, diff: bool) -> dict[str, Any]:
    """The return values of the module."""
    result: dict[str, Any] = {
        "changed": any(one.changed for one in done.outcomes),
        "objects": [_entry(one) for one in done.outcomes],
        "unchanged": done.unchanged,
        "leaving": [_going(one) for one in done.going],
        "msg": sentence(done, check=check),
    }
    broken = [one for one in done.outcomes if one.result == "failed"]
    if broken:
        result |= {"failed": True, "msg": f"{result['msg']} {_first(broken)}"}
    if warnings := [*done.warnings, *(f"{o.ref}: {o.sentence}" for o in done.outcomes if o.result == "refused")]:
        result["warnings"] = warnings[:MOST]
    if diff:
        result["diff"] = differences(done.outcomes)
    return result


def not_written(why: str) -> dict[str, Any]:
    """The return values where nobody insists that it is written."""
    return {"changed": False, "msg": why, "warnings": [f"The cluster was not told. {why}"]}


def lenient(result: dict[str, Any], unknown: Iterable[str] = ()) -> dict[str, Any]:
    """The same where nobody insists on it: what failed is a warning, and that no object stands for a result is none."""
    left = [text for text in result.get("warnings", ()) if text not in set(unknown)]
    failed = [f"The cluster was not told of everything. {result['msg']}"] if result.get("failed") else []
    kept = {name: value for name, value in result.items() if name not in ("failed", "warnings")}
    return {**kept, **({"warnings": [*left, *failed]} if left or failed else {})}


def sentence(done: Pass, *, check: bool) -> str:
    """How many of each result, in one sentence."""
    note = " (check mode, nothing is written)" if check else ""
    counts = Counter(one.result for one in done.outcomes)
    parts = [f"{number} {_WOULD.get(name, name) if check else name}" for name, number in counts.items()]
    told = ", ".join([*parts, f"{done.unchanged} unchanged"])
    return f"Service objects{note}: {told}."


def as_status_result(done: Reported, *, check: bool, diff: bool) -> dict[str, Any]:
    """The return values of the module that reports."""
    result: dict[str, Any] = {
        "changed": any(one.changed for one in done.outcomes),
        "objects": [_entry(one) for one in done.outcomes],
        "unchanged": done.unchanged,
        "msg": status_sentence(done, check=check),
    }
    broken = [one for one in done.outcomes if one.result == "failed"]
    if broken:
        result |= {"failed": True, "msg": f"{result['msg']} {_first(broken)}"}
    if warnings := [*done.warnings, *done.unknown]:
        result["warnings"] = warnings[:MOST]
    if diff:
        result["diff"] = differences(done.outcomes)
    return result


def status_sentence(done: Reported, *, check: bool) -> str:
    """How many objects have a new status, in one sentence."""
    written = sum(1 for one in done.outcomes if one.result == "updated")
    failed = sum(1 for one in done.outcomes if one.result == "failed")
    note = "would be " if check else ""
    rest = f", {failed} failed" if failed else ""
    return f"Status of service objects: {written} {note}updated, {done.unchanged} unchanged{rest}."


def table(done: Pass, *, check: bool) -> str:
    """One line for each object that a person may want to look at, then the sentence."""
    lines = [
        f"{one.ref}: {_WOULD.get(one.result, one.result) if check else one.result}, {one.sentence}"
        for name in _TOLD
        for one in done.outcomes
        if one.result == name and one.ref.kind != "ConfigMap"
    ]
    told = {one.ref for one in done.outcomes}
    lines += [
        f"{one.stands.ref}: waits until {' and '.join(one.services) or 'its services'} are off {one.stands.node}"
        for one in done.going
        if not one.free and one.stands.ref not in told
    ]
    more = [f"and {len(lines) - MOST} more"] if len(lines) > MOST else []
    return "\n".join([*lines[:MOST], *more, sentence(done, check=check)])


def differences(outcomes: Iterable[Outcome]) -> list[dict[str, str]]:
    """Before and after of what was written, the first ones of many."""
    changed = [one for one in outcomes if one.changed]
    shown = [
        {
            "before_header": f"{one.ref} (cluster)",
            "after_header": f"{one.ref} ({one.result})",
            "before": _text(one.before),
            "after": _text(one.after),
        }
        for one in changed[:MOST]
    ]
    if len(changed) > MOST:
        shown.append({"prepared": f"… and {len(changed) - MOST} more objects"})
    return shown


def _first(broken: Sequence[Outcome]) -> str:
    more = f" ({len(broken) - 1} more failed)" if len(broken) > 1 else ""
    return f"{broken[0].sentence}{more}"


def _entry(one: Outcome) -> dict[str, Any]:
    return {
        "kind": one.ref.kind,
        "name": one.ref.name,
        "namespace": one.ref.namespace,
        "node": one.node,
        "result": one.result,
        "reason": one.sentence,
    }


def _going(one: Going) -> dict[str, Any]:
    """What a removal needs to know: the Node may be gone, and then this is all that is known of it."""
    stands = one.stands
    return {
        "kind": stands.ref.kind,
        "name": stands.ref.name,
        "namespace": stands.ref.namespace,
        "node": stands.node,
        "services": list(one.services),
        "cell": stands.spec.get("cellName"),
        "inventory_config_map": stands.spec.get("inventoryConfigMapName"),
        "ssh_key_secret": stands.spec.get("sshKeySecretName"),
        "removed": one.removed,
        "abandoned": one.abandoned,
        "reason": one.sentence,
    }


def _text(item: object) -> str:
    return "" if item is None else str(yaml.safe_dump(item, sort_keys=True, allow_unicode=True, width=120))
