# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of the operator: which Jobs it makes, finds again, and makes anew."""

from __future__ import annotations

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._control.look import World
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.running import Outcome
from ansible_collections.edpm.services.plugins.plugin_utils._operator.deciding import Batch, Need
from ansible_collections.edpm.services.plugins.plugin_utils._operator.runs import OperatorRuns
from ansible_collections.edpm.services.plugins.plugin_utils._operator.settings import OperatorSettings

from tests.unit.control.worlds import compute, node, role, world

from .clusters import FakeCluster

SETTINGS = OperatorSettings(namespaces=("openstack",), run={"image": "ee:1"})


@pytest.fixture
def there() -> World:
    return world(role(), node(), compute())


def batch(task: str, there: World) -> Batch:
    need = Need(task, "openstack", "node-0", ("libvirt",), "key", tuple(there.service_objects()))
    return Batch(task, "openstack", ("libvirt",), [need])


def started(cluster: FakeCluster, there: World, task: str = "deploy") -> Outcome:
    """What a pass does with one batch, by an operator that has just come."""
    runs = OperatorRuns(cluster, SETTINGS)  # type: ignore[arg-type]  # it has what is asked of a client
    runs.going()
    return runs.start(batch(task, there), there)


def test_a_name_that_an_ended_job_still_has_makes_room_for_the_new_run(there: World) -> None:
    cluster = FakeCluster()
    first = started(cluster, there)
    cluster.finish(first.order)
    second = started(cluster, there)
    cluster.finish(second.order)
    assert first.order.run_name != second.order.run_name
    cluster.bodies.pop(("Job", "openstack", first.order.run_name))  # its time is over
    third = started(cluster, there)
    assert third.started
    assert third.order.run_name == second.order.run_name
    [job] = cluster.all("Job")
    assert "status" not in job, "it is a new one"


def test_a_request_is_met_once_whatever_became_of_its_job(there: World) -> None:
    cluster = FakeCluster()
    first = started(cluster, there, "restart")
    assert first.started
    cluster.finish(first.order, "Failed")
    assert not started(cluster, there, "restart").started
    assert len(cluster.all("Job")) == 1


def test_what_is_under_way_is_not_started_twice(there: World) -> None:
    cluster = FakeCluster()
    assert started(cluster, there).started
    assert not started(cluster, there).started
    assert len(cluster.all("Job")) == 1
