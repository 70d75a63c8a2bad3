# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting: what is said while a run goes on, when it is given up, and what is said at its end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.answer import as_result
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.results import NodeResult, ShardResult, State
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.running import Outcome
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.standing import Pod, Standing
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.watching import HopelessError, NotDoneError, Watch
from ansible_collections.edpm.services.plugins.plugin_utils._kube.client import Client
from ansible_collections.edpm.services.plugins.plugin_utils._kube.errors import NotAllowedError

from .orders import names, order

RUNS = Standing(2, active=2)
DONE = Standing(2, frozenset((0, 1)), finished=True)


class Script:
    """An engine whose standing changes from look to look; the last one stays."""

    kind, start = "Job", "5eed00"

    def __init__(self, *steps: tuple[Standing, list[Pod]]) -> None:
        self._steps = list(steps)

    def look(self) -> Standing:
        self._now = self._steps.pop(0) if len(self._steps) > 1 else self._steps[0]
        return self._now[0]

    def pods(self) -> list[Pod]:
        return self._now[1]


class Events:
    """As much of a client as waiting asks."""

    def __init__(self, events: list[dict[str, str]] | None) -> None:
        self._events = events

    def get_all(self, *_args: Any, fields: str) -> list[dict[str, str]]:
        assert fields.startswith("involvedObject.name=")
        if self._events is None:
            raise NotAllowedError("no")
        return self._events


def watch(*steps: tuple[Standing, list[Pod]], events: list[dict[str, str]] | None = None) -> tuple[Watch, list[str]]:
    said: list[str] = []
    times = iter(range(10_000))
    made = Watch(
        cast(Client, Events(events)),
        order(nodes=names(2), shard_size=1),
        cast(Any, Script(*steps)),
        said.append,
        clock=lambda: float(next(times)),
        sleep=lambda _seconds: None,
    )
    return made, said


def pod(index: int, phase: str, **fields: Any) -> Pod:
    return Pod(f"run-{index}-x", index, phase, **fields)


def test_a_line_is_said_when_something_changes_and_no_other_time() -> None:
    running = [pod(0, "Running"), pod(1, "Running")]
    made, said = watch(
        (RUNS, []), (RUNS, running), (RUNS, running), (replace(RUNS, done=frozenset((1,))), []), (DONE, [])
    )

    assert made.to_the_end(100) == DONE
    assert said == [
        "00:01  0 of 2 shards done, 0 running",
        "00:02  0 of 2 shards done, 2 running",
        "00:04  1 of 2 shards done, 0 running",
        "00:05  2 of 2 shards done, 0 running",
    ]


def test_a_pod_that_is_killed_is_told_once_and_waited_past() -> None:
    killed = [pod(0, "Failed", code=137), pod(0, "Running")]
    made, said = watch((RUNS, killed), (RUNS, killed), (DONE, []))

    made.to_the_end(100)

    assert [line for line in said if "ended" in line] == ["       pod run-0-x of shard 0 ended (code 137)"]


def test_an_image_that_cannot_be_had_ends_the_waiting() -> None:
    made, _said = watch((RUNS, [pod(0, "Pending", waiting="ErrImagePull", message="not found")]))

    with pytest.raises(HopelessError, match=r"cannot get its image example\.com/ee:1"):
        made.to_the_end(100)


MISSING = [{"type": "Warning", "reason": "FailedMount", "message": 'secret "gone" not found'}]


def test_a_pod_whose_secret_vanished_ends_the_waiting_after_a_while() -> None:
    made, _said = watch((RUNS, [pod(0, "Pending", waiting="ContainerCreating")]), events=MISSING)

    with pytest.raises(
        HopelessError, match=r'Pod openstack/run-0-x cannot start \(FailedMount, secret "gone" not found'
    ):
        made.to_the_end(100)


def test_a_pod_whose_settings_came_late_and_that_pulls_its_image_is_waited_for() -> None:
    late = {"type": "Warning", "reason": "FailedMount", "message": "not found", "lastTimestamp": "2026-01-01T00:00:01Z"}
    pulling = {"type": "Normal", "reason": "Pulling", "message": "x", "lastTimestamp": "2026-01-01T00:00:02Z"}
    creating = [pod(0, "Pending", waiting="ContainerCreating")]
    made, said = watch(*[(RUNS, creating)] * 15, (DONE, []), events=[late, pulling])

    assert made.to_the_end(100) == DONE
    assert not [line for line in said if "waits" in line]


def test_a_job_that_may_create_no_pods_ends_the_waiting() -> None:
    events = [{"type": "Warning", "reason": "FailedCreate", "message": "pods are forbidden: violates PodSecurity"}]
    made, _said = watch((RUNS, []), events=events)

    with pytest.raises(HopelessError, match="violates PodSecurity"):
        made.to_the_end(100)


def test_a_pod_without_a_place_is_told_and_waited_for() -> None:
    late = [pod(0, "Pending", unscheduled="0/1 nodes are available")]
    made, said = watch(*[(RUNS, late)] * 15, (DONE, []), events=None)

    made.to_the_end(100)

    assert [line.strip() for line in said if "waits" in line] == ["pod run-0-x waits: 0/1 nodes are available"]


def test_who_does_not_want_to_wait_longer_is_told_how_to_wait_again() -> None:
    made, _said = watch((replace(RUNS, done=frozenset((0,))), []))

    with pytest.raises(
        NotDoneError, match=r"is not done after 3 s \(1 of 2 shards are\); it runs on: run the same again"
    ):
        made.to_the_end(3)


def outcome(*nodes: NodeResult, failed: tuple[int, ...] = (), code: int = 0, reason: str = "") -> Outcome:
    made = order(nodes=names(2), shard_size=1)
    stands = Standing(2, frozenset((0, 1)) - set(failed), frozenset(failed), finished=True)
    shards = tuple(ShardResult(index, code if index in failed else 0, 1.0, (), reason) for index in (0, 1))
    return Outcome(made, "Job", True, True, stands, nodes, shards)


def test_a_good_end_is_a_short_sentence() -> None:
    result = as_result(outcome(NodeResult("a", State.OK), NodeResult("b", State.CHANGED, 2)), check=False)

    assert "failed" not in result
    assert result["changed"] is True
    assert result["msg"].endswith(": 1 ok, 1 changed.")
    assert result["nodes"]["b"] == {"state": "changed", "changed": 2, "task": "", "msg": "", "shard": 0}


def test_a_bad_end_names_the_nodes_and_why() -> None:
    bad = NodeResult("b", State.FAILED, 0, "Pull the image", "no space left", 1)

    result = as_result(outcome(NodeResult("a", State.OK), bad, failed=(1,), code=2), check=False)

    assert (result["failed"], result["failed_nodes"]) == (True, ["b"])
    assert "1 of 2 nodes failed, b (failed, Pull the image: no space left); correct that" in result["msg"]


def test_of_many_failed_nodes_the_first_are_named_and_all_are_listed() -> None:
    nodes = [NodeResult(name, State.UNREACHABLE, shard=0) for name in names(30)]

    result = as_result(outcome(*nodes, failed=(0,), code=4), check=False)

    assert "edpm-compute-19 (unreachable); and 10 more; correct" in result["msg"]
    assert len(result["failed_nodes"]) == 30


def test_a_node_that_a_good_playbook_left_out_is_no_failure_and_one_of_a_bad_playbook_is() -> None:
    left_out = NodeResult("a", State.NOT_RUN, message="left out", shard=1)

    assert "failed" not in as_result(outcome(left_out), check=False)
    assert as_result(outcome(left_out, failed=(1,), code=2), check=False)["failed_nodes"] == ["a"]


def test_a_run_without_nodes_that_could_not_play_tells_ansibles_reason() -> None:
    result = as_result(outcome(failed=(0,), code=1, reason="the playbook could not be found"), check=False)

    assert result["failed"]
    assert "failed: the playbook could not be found; correct that, then run again." in result["msg"]


def test_check_mode_and_a_run_that_is_not_waited_for_say_so() -> None:
    begun = replace(outcome(), waited=False)

    assert as_result(begun, check=True)["msg"].endswith("would be started.")
    assert as_result(replace(begun, started=False), check=True)["msg"].endswith("runs already; it would be waited for.")
    assert as_result(begun, check=False)["msg"].endswith("is started.")
    assert as_result(begun, check=True)["objects"] == []
