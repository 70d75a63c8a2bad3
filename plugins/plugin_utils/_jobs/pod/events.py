# SPDX-License-Identifier: GPL-3.0-or-later
"""From ansible-runner's events to one result for each node."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..results import NodeResult, State

_FAULTS = {"runner_on_failed": State.FAILED, "runner_on_unreachable": State.UNREACHABLE}
_ITEM = "runner_item_on_failed"
_MOST_ERRORS = 5


class Listener:
    """Takes events as they come, and keeps of them what a result needs and no more."""

    def __init__(self) -> None:
        self._stats: Mapping[str, Mapping[str, int]] = {}
        self._faults: dict[str, tuple[str, str]] = {}
        self._items: dict[str, str] = {}
        self._errors: list[str] = []

    def hear(self, event: Mapping[str, Any]) -> bool:
        """One event; the answer tells ansible-runner to keep no file of it."""
        kind, data = event.get("event"), event.get("event_data") or {}
        if kind == "playbook_on_stats":
            self._stats = data
        elif kind == _ITEM:
            self._items.setdefault(f"{data.get('host')} {data.get('task_uuid')}", said(data.get("res")))
        elif kind in _FAULTS and not data.get("ignore_errors"):
            item = self._items.get(f"{data.get('host')} {data.get('task_uuid')}")
            self._faults[str(data.get("host"))] = (str(data.get("task") or ""), item or said(data.get("res")))
        elif kind in ("verbose", "error") and (line := str(event.get("stdout") or "").strip()):
            self._remember(line)
        return False

    def results(self, nodes: Sequence[str], shard: int, code: int) -> tuple[NodeResult, ...]:
        """One for each node of the shard, and for every other host that was played on."""
        others = [host for host in self._stats.get("processed") or {} if host not in set(nodes)]
        return tuple(self._result(host, shard, code) for host in (*nodes, *others))

    def reason(self, code: int) -> str:
        """Why ansible-playbook ended with a code and played nothing, in its own words if it had any."""
        if self._stats or not code:
            return ""
        return " ".join(self._errors) or f"ansible-playbook ended with code {code} and said nothing of it"

    def _remember(self, line: str) -> None:
        if len(self._errors) < _MOST_ERRORS and (self._errors or "ERROR" in line):
            self._errors.append(line)

    def _result(self, host: str, shard: int, code: int) -> NodeResult:
        state = self._state(host)
        changed = self._count("changed", host)
        if state in (State.FAILED, State.UNREACHABLE):
            task, message = self._faults.get(host, ("", ""))
            return NodeResult(host, state, changed, task, message, shard)
        if state is State.NOT_RUN:
            message = self.reason(code) or "the playbook ended before it came to the node, or does not play on it"
            return NodeResult(host, state, message=message, shard=shard)
        return NodeResult(host, state, changed, shard=shard)

    def _state(self, host: str) -> State:
        if self._count("failures", host):
            return State.FAILED
        if self._count("dark", host):
            return State.UNREACHABLE
        if host not in (self._stats.get("processed") or {}):
            return State.NOT_RUN
        return State.CHANGED if self._count("changed", host) else State.OK

    def _count(self, what: str, host: str) -> int:
        return int((self._stats.get(what) or {}).get(host, 0))


def said(result: object) -> str:
    """What a module said of its fault."""
    if not isinstance(result, Mapping):
        return str(result or "")
    for name in ("msg", "stderr", "module_stderr", "stdout"):
        if value := result.get(name):
            return value if isinstance(value, str) else json.dumps(value, default=str)
    return ""
