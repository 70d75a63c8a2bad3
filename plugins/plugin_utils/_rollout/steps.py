# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of a run that tasks take: each from what Ansible knows to a result and lines for the display."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .._report.lines import Line, Tone, as_text
from .._report.near import listed
from .._report.written import write
from . import status
from .course import BATCH, DONE, FOUND, SUMMARY, Course, Mode, course
from .outcome import AGAIN, Fate, NodeOutcome, of_run, outcome
from .summary import RETRY_FILES, ending
from .telling import told
from .working import Call, Work

SPEC: dict[str, dict[str, Any]] = {
    "step": {"type": "str", "required": True, "choices": ["prefetch", "batch", "node", "summary", "status", "verdict"]},
    "output": {"type": "str", "default": "text", "choices": ["text", "json"]},
    "output_file": {"type": "path", "default": ""},
    "retry_file": {"type": "path", "default": ""},
    "strict": {"type": "bool", "default": False},
    "force": {"type": "bool", "default": False},
    "purge_data": {"type": "bool", "default": False},
    "lock_timeout": {"type": "int"},
}

Given = Mapping[str, Any]
Tell = Callable[[Line], None]


def take(given: Given, variables: Mapping[str, Any], call: Call, tell: Tell) -> dict[str, Any]:
    """Take one step of the run that was begun."""
    found = course()
    step: Callable[[Course, Given, Mapping[str, Any], Call, Tell], dict[str, Any]] = _STEPS[given["step"]]
    return step(found, given, variables, call, tell)


def _prefetch(run: Course, given: Given, variables: Mapping[str, Any], call: Call, tell: Tell) -> dict[str, Any]:
    host = str(variables["inventory_hostname"])
    missing = (variables.get(FOUND) or {}).get("missing_images") or ()
    return Work(run, host, call, tell, _passed(run, given)).prefetch(dict.fromkeys(missing, True))


def _node(run: Course, given: Given, variables: Mapping[str, Any], call: Call, tell: Tell) -> dict[str, Any]:
    host, batch = str(variables["inventory_hostname"]), variables.get(BATCH) or {}
    said = f"[{batch.get('number', 1)}/{batch.get('of', 1)}]"
    return Work(run, host, call, tell, _passed(run, given), said).converge()


def _batch(run: Course, given: Given, variables: Mapping[str, Any], call: Call, tell: Tell) -> dict[str, Any]:
    """Whether the batch may begin; of those before it only the last is looked at, which knows of the others."""
    del given, call
    hosts, order = list(variables["ansible_play_batch"]), run.order
    start = order.index(hosts[0])
    ends = [sum(run.sizes[: number + 1]) for number in range(len(run.sizes))]
    number = next(index for index, end in enumerate(ends) if start < end)
    before = order[ends[number - 1] - run.sizes[number - 1] : ends[number - 1]] if number else []
    failures = _failures(run, before, variables)
    why = run.pace.stops(start, failures, run.lost)
    result = {"run": run.name, "number": number + 1, "of": len(ends), "failures": failures, "changed": False}
    if why:
        tell(Line(f"No further batch begins: {why}. {len(order) - start} nodes are not touched.", Tone.BAD))
        return {**result, "stop": True, "why": why, "msg": f"No further batch begins: {why}."}
    canary = " (canary)" if start < run.pace.canary else ""
    said = f"batch {number + 1} of {len(ends)}{canary}: {listed(hosts, most=8)}"
    tell(Line(said, Tone.HEADING))
    return {**result, "stop": False, "why": "", "msg": said}


def _failures(run: Course, before: list[str], variables: Mapping[str, Any]) -> int:
    if not before:
        return 0
    known = variables["hostvars"]
    earlier = of_run(run, known[before[0]].get(BATCH)).get("failures", 0)
    done = (of_run(run, known[host].get(DONE)) for host in before)
    return int(earlier) + sum(1 for one in done if one.get("failed") or one.get("unreachable"))


def _summary(run: Course, given: Given, variables: Mapping[str, Any], call: Call, tell: Tell) -> dict[str, Any]:
    del call
    known, hosts, check = variables["hostvars"], _hosts(run, variables), bool(variables.get("ansible_check_mode"))
    whys = (of_run(run, known[host].get(BATCH)).get("why") for host in run.order)
    stopped = str(next((why for why in whys if why), ""))
    nodes = [outcome(run, host, known[host], check=check, stopped=stopped) for host in hosts]
    retry = given["retry_file"] or RETRY_FILES[run.mode]
    end = ending(run, nodes, check=check, stopped=stopped, retry_file=retry)
    written = end.write(given["output"], given["output_file"])
    shown = "text" if given["output_file"] else given["output"]
    for line in (*end.shown(shown), *([Line(run.untold, Tone.REMARK)] if run.untold else [])):
        tell(line)
    failing = set(end.failing(strict=given["strict"]))
    return {
        "changed": written,
        "msg": end.said,
        "report": end.data(),
        "retry_file": retry if end.again and not check else None,
        "told": told(run, hosts, known, check=check),
        "failing": {
            one.name: {"msg": _why(one), "unreachable": one.fate is Fate.UNREACHABLE}
            for one in nodes
            if one.name in failing
        },
    }


def _why(one: NodeOutcome) -> str:
    """Why a node makes the run a failed one."""
    if one.fate in AGAIN or not one.blocked:
        return one.reason or one.fate.value
    return " ".join(one.blocked)


def _status(run: Course, given: Given, variables: Mapping[str, Any], call: Call, tell: Tell) -> dict[str, Any]:
    del call
    known, check = variables["hostvars"], bool(variables.get("ansible_check_mode"))
    nodes = [status.status_of(run, host, known[host]) for host in _hosts(run, variables)]
    lines = status.shown(nodes, given["output"])
    written = bool(given["output_file"]) and write(given["output_file"], as_text(lines), check=check)
    for line in status.shown(nodes, "text") if given["output_file"] else lines:
        tell(line)
    return {
        "changed": written,
        "msg": status.said(nodes),
        "nodes": [one.data() for one in nodes],
        "failing": {one.name: {"msg": one.trouble, "unreachable": one.unreachable} for one in nodes if one.trouble},
    }


def _verdict(run: Course, given: Given, variables: Mapping[str, Any], call: Call, tell: Tell) -> dict[str, Any]:
    del run, given, call, tell
    told = ((variables.get(SUMMARY) or {}).get("failing") or {}).get(variables["inventory_hostname"])
    if not told:
        return {"changed": False, "msg": "Nothing failed here."}
    word = "unreachable" if told["unreachable"] else "failed"
    return {"changed": False, word: True, "msg": told["msg"]}


def _hosts(run: Course, variables: Mapping[str, Any]) -> list[str]:
    """The nodes of the run that the limit leaves, in the plan's order."""
    left = set(variables["ansible_play_hosts_all"])
    return [node for node in run.nodes if node in left]


def _passed(run: Course, given: Given) -> dict[str, Any]:
    passed = {} if given["lock_timeout"] is None else {"lock_timeout": given["lock_timeout"]}
    if run.mode is Mode.REMOVE:
        passed |= {name: True for name in ("force", "purge_data") if given[name]}
    return passed


_STEPS = {
    "prefetch": _prefetch,
    "batch": _batch,
    "node": _node,
    "summary": _summary,
    "status": _status,
    "verdict": _verdict,
}
