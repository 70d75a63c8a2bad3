# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run did, as return values and as one sentence."""

from __future__ import annotations

from typing import Any

from .results import NodeResult, State, counted, cut
from .running import Outcome, summary

#: Nodes that a sentence names before it counts the rest.
MOST_NAMED = 20
#: Characters for the reasons of all nodes that are named.
_ALL_REASONS = 2400
_LONGEST_REASON = 500


def as_result(outcome: Outcome, *, check: bool) -> dict[str, Any]:
    """The module's return values; `failed` is there when a node or a shard failed."""
    order = outcome.order
    bad = failures(outcome)
    result: dict[str, Any] = {
        "changed": changed(outcome, check=check),
        "run": order.run_name,
        "namespace": order.namespace,
        "engine": outcome.engine,
        "started": outcome.started and not check,
        "nodes": {node.node: _node(node) for node in outcome.nodes},
        "summary": counted(outcome.nodes),
        "shards": [
            {"index": shard.index, "code": shard.code, "seconds": shard.seconds, "reason": shard.reason}
            for shard in outcome.shards
        ],
        "failed_nodes": [node.node for node in bad],
        "msg": sentence(outcome, bad, check=check),
    }
    if check:
        result["objects"] = list(outcome.objects)
    if bad or outcome.standing.failed:
        result["failed"] = True
    return result


def changed(outcome: Outcome, *, check: bool) -> bool:
    """A run that was awaited changed what its nodes say; one that was only started may change something."""
    if check or not outcome.waited:
        return outcome.started
    return any(node.changed for node in outcome.nodes)


def failures(outcome: Outcome) -> list[NodeResult]:
    """The nodes that something is left to do for; one that a well-ended playbook left out is none of them."""
    ended_badly = {shard.index for shard in outcome.shards if shard.code != 0}
    return [
        node
        for node in outcome.nodes
        if not node.state.good and (node.state is not State.NOT_RUN or node.shard in ended_badly)
    ]


def sentence(outcome: Outcome, bad: list[NodeResult], *, check: bool) -> str:
    """What happened, and what to do about it."""
    where = f"{outcome.engine} {outcome.order.namespace}/{outcome.order.run_name}"
    if check:
        return f"{where} would be started." if outcome.started else f"{where} runs already; it would be waited for."
    if not outcome.waited:
        return f"{where} {'is started' if outcome.started else 'runs already'}."
    if not bad and not outcome.standing.failed:
        return f"{where}: {summary(outcome)}."
    if not bad:
        reasons = [shard.reason for shard in outcome.shards if shard.reason]
        why = cut(reasons[0] if reasons else outcome.standing.message, 300) or "a pod failed"
        return f"{where} failed: {why}; correct that, then run again."
    longest = min(_LONGEST_REASON, _ALL_REASONS // min(len(bad), MOST_NAMED))
    named = "; ".join(_told(node, longest) for node in bad[:MOST_NAMED])
    more = f"; and {len(bad) - MOST_NAMED} more" if len(bad) > MOST_NAMED else ""
    total = len(outcome.nodes)
    return (
        f"{where}: {len(bad)} of {total} {'node' if total == 1 else 'nodes'} failed, {named}{more}; "
        "correct that, then run again for them (failed_nodes lists them)."
    )


def _told(node: NodeResult, longest: int) -> str:
    why = ": ".join(filter(None, (node.task, node.message)))
    state = node.state.value.replace("_", " ")
    return f"{node.node} ({state}{f', {cut(why, longest)}' if why else ''})"


def _node(node: NodeResult) -> dict[str, Any]:
    return {
        "state": node.state.value,
        "changed": node.changed,
        "task": node.task,
        "msg": node.message,
        "shard": node.shard,
    }
