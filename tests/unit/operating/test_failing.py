# SPDX-License-Identifier: GPL-3.0-or-later
"""A restart or rollback that fails is told on the object that asked for it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._control.look import World
from ansible_collections.edpm.services.plugins.plugin_utils._control.names import (
    RESTART,
    RESTARTED,
    ROLLBACK,
    ROLLED_BACK_BY,
)
from ansible_collections.edpm.services.plugins.plugin_utils._control.status import services_in
from ansible_collections.edpm.services.plugins.plugin_utils._control.wanted import Chosen
from ansible_collections.edpm.services.plugins.plugin_utils._operator.deciding import batches, needs
from ansible_collections.edpm.services.plugins.plugin_utils._operator.failing import Failures
from ansible_collections.edpm.services.plugins.plugin_utils._operator.runs import Failed, OperatorRuns
from ansible_collections.edpm.services.plugins.plugin_utils._operator.settings import OperatorSettings

from tests.unit.control.worlds import compute, node, role, world

from .clusters import FakeCluster

SETTINGS = OperatorSettings(namespaces=("openstack",), run={"image": "ee:1"})
TASKS = [("restart", RESTART, RESTARTED), ("rollback", ROLLBACK, ROLLED_BACK_BY)]


def asking(**annotations: str) -> World:
    other = compute("node-1", annotations={RESTART: "monday", ROLLBACK: "monday"})
    return world(role(), node(), node("node-1"), compute(annotations=annotations), other)


def ended(cluster: FakeCluster, asked: str, how: str) -> tuple[Failed, ...]:
    """Let the run that node-0 asks for be over, and look."""
    there = asking(**{asked: "monday"})
    runs = OperatorRuns(cluster, SETTINGS)  # type: ignore[arg-type]  # it has what is asked of a client
    found = batches(needs(there, services_in(there), [], Chosen(nodes=frozenset({"node-0"}))))
    [batch] = [one for one in found if one.task != "deploy"]
    cluster.finish(runs.start(batch, there).order, how, "Job has failed indexes" if how == "Failed" else "")
    runs.going()
    return runs.failed


@pytest.mark.parametrize(("task", "asked", "dealt"), TASKS)
def test_a_failure_is_told_once_on_the_object_that_asked(
    task: str, asked: str, dealt: str, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = FakeCluster()
    failed = ended(cluster, asked, "Failed")
    later = asking(**{asked: "monday", dealt: "monday"})
    first = Failures()
    for failures in (first, first, Failures()):
        failures.tell(cluster, later, failed)  # type: ignore[arg-type]  # it has what is asked of a client
    [event] = cluster.all("Event")
    assert (event["type"], event["reason"]) == ("Warning", f"{task.capitalize()}Failed")
    assert event["involvedObject"]["name"] == "node-0"
    words = {"restart": "restart it", "rollback": "roll it back"}[task]
    assert f", which was to {words}, failed (Job has failed indexes); look at the log of its pods." in event["message"]
    assert event["message"].endswith(f" Then give {asked} another value.")
    assert caplog.text.count("failed indexes") == 1


@pytest.mark.parametrize(("_task", "asked", "_dealt"), TASKS)
def test_what_went_well_is_no_failure(_task: str, asked: str, _dealt: str) -> None:
    assert ended(FakeCluster(), asked, "Complete") == ()


def test_two_failures_are_two_events_and_one_of_an_object_that_is_gone_is_none() -> None:
    cluster = FakeCluster()
    [one] = ended(cluster, RESTART, "Failed")
    failures = Failures()
    again = (one, replace(one, uid="another"), replace(one, uid="a third", asker="of nobody"))
    failures.tell(cluster, asking(), again)  # type: ignore[arg-type]  # it has what is asked
    assert len(cluster.all("Event")) == 2
