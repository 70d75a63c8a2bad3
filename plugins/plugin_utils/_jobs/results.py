# SPDX-License-Identifier: GPL-3.0-or-later
"""What became of each node, and how a pod tells it: in a ConfigMap, which lasts longer than a log or a pod does.

A ConfigMap holds a megabyte. A line for a node is some sixty bytes, so thousands fit; where many fail, their messages
are cut until all fit.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

#: Bytes for all nodes of a shard.
BUDGET = 800_000
LONGEST_MESSAGE = 500
NODES, SUMMARY = "nodes", "summary"


class State(StrEnum):
    """What became of a node, the best first."""

    OK = "ok"
    CHANGED = "changed"
    NOT_RUN = "not_run"
    UNKNOWN = "unknown"
    UNREACHABLE = "unreachable"
    FAILED = "failed"

    @property
    def good(self) -> bool:
        """Whether nothing is left to do for the node."""
        return self in (State.OK, State.CHANGED)


@dataclass(frozen=True)
class NodeResult:
    """One node after a run: how many tasks changed something, and the task and message of the fault if there is one."""

    node: str
    state: State
    changed: int = 0
    task: str = ""
    message: str = ""
    shard: int = 0


@dataclass(frozen=True)
class ShardResult:
    """All nodes of one pod, and what ansible-playbook returned; `reason` tells why it could not play at all."""

    index: int
    code: int
    seconds: float
    nodes: tuple[NodeResult, ...]
    reason: str = ""


def encode(shard: ShardResult) -> dict[str, str]:
    """The data of a shard's ConfigMap."""
    summary = {"index": shard.index, "code": shard.code, "seconds": round(shard.seconds, 1), "reason": shard.reason}
    limit = LONGEST_MESSAGE
    while len((text := _lines(shard.nodes, limit)).encode()) > BUDGET and limit:
        limit //= 2
    return {SUMMARY: json.dumps(summary, ensure_ascii=False), NODES: text}


def decode(data: Mapping[str, str]) -> ShardResult:
    """The same out of a ConfigMap."""
    summary = json.loads(data[SUMMARY])
    nodes = tuple(_node(json.loads(line), summary["index"]) for line in data[NODES].splitlines())
    return ShardResult(summary["index"], summary["code"], summary["seconds"], nodes, summary["reason"])


def counted(nodes: Iterable[NodeResult]) -> dict[str, int]:
    """How many nodes are in each state; every state is there."""
    counts = Counter(node.state for node in nodes)
    return {state.value: counts[state] for state in State}


def _lines(nodes: Iterable[NodeResult], limit: int) -> str:
    return "".join(f"{json.dumps(_line(node, limit), ensure_ascii=False, separators=(',', ':'))}\n" for node in nodes)


def _line(node: NodeResult, limit: int) -> dict[str, Any]:
    """Without what has its default, and without the shard, which the summary tells once."""
    told = {name: value for name, value in asdict(node).items() if value and name != "shard"}
    for name in ("message", "task"):
        if name in told:
            told[name] = cut(told[name], limit)
    return told


def cut(text: str, limit: int) -> str:
    """The text in one line of at most so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: max(limit - 1, 0)]}…"


def _node(line: Mapping[str, Any], shard: int) -> NodeResult:
    return NodeResult(**{**line, "state": State(line["state"]), "shard": shard})
