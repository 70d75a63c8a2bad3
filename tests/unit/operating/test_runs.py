# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of the operator: which Jobs it makes, finds again, and makes anew."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._control.look import World
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.manifests import CONTAINER
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


def started(cluster: FakeCluster, there: World, task: str = "deploy", settings: OperatorSettings = SETTINGS) -> Outcome:
    """What a pass does with one batch, by an operator that has just come."""
    runs = OperatorRuns(cluster, settings)  # type: ignore[arg-type]  # it has what is asked of a client
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
    other = replace(SETTINGS, run={"image": "ee:2"})
    for settings in (SETTINGS, other):
        assert not started(cluster, there, "restart", settings).started
    assert len(cluster.all("Job")) == 1


def stuck(cluster: FakeCluster, task: str, there: World) -> OperatorRuns:
    """An operator that has looked at a run whose pod does not get its image."""
    order = started(cluster, there, task).order
    cluster.bodies["Job", "openstack", order.run_name]["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"
    waiting = {"name": CONTAINER, "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
    meta = {"name": "a-pod", "namespace": "openstack", "labels": {"edpm.openstack.org/run": order.run_name}}
    pod = {"metadata": meta, "status": {"phase": "Pending", "containerStatuses": [waiting]}}
    cluster.bodies["Pod", "openstack", "a-pod"] = pod
    return OperatorRuns(cluster, SETTINGS)  # type: ignore[arg-type]  # it has what is asked of a client


@pytest.mark.parametrize("task", ["restart", "rollback"])
def test_a_request_whose_pod_cannot_start_has_failed(there: World, task: str) -> None:
    runs = stuck(FakeCluster(), task, there)
    [run] = runs.going()
    assert "cannot get its image ee:1" in run.hopeless
    [failed] = runs.failed
    [asking] = there.service_objects()
    assert (failed.task, failed.asker) == (task, asking.uid)
    assert failed.why == f"could not begin: {run.hopeless}"


@pytest.mark.parametrize(("pulls", "hopeless"), [(False, True), (True, False)])
def test_settings_that_came_late_do_not_end_a_run_whose_pod_went_on(there: World, pulls: bool, hopeless: bool) -> None:
    cluster = FakeCluster()
    runs = stuck(cluster, "deploy", there)
    [container] = cluster.bodies["Pod", "openstack", "a-pod"]["status"]["containerStatuses"]
    container["state"] = {"waiting": {"reason": "ContainerCreating"}}
    failed = {
        "type": "Warning",
        "reason": "FailedMount",
        "message": "not found",
        "lastTimestamp": "2026-01-01T00:00:01Z",
    }
    after = {"type": "Normal", "reason": "Pulling", "message": "ee:1", "lastTimestamp": "2026-01-01T00:00:02Z"}
    for number, event in enumerate([failed, after] if pulls else [failed]):
        cluster.bodies["Event", "openstack", str(number)] = {"metadata": {"name": str(number)}, **event}
    [run] = runs.going()
    assert bool(run.hopeless) is hopeless


def test_a_pod_without_a_place_is_waited_for_and_told(there: World) -> None:
    cluster = FakeCluster()
    runs = stuck(cluster, "deploy", there)
    homeless = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available: 3 Insufficient memory."}
    cluster.bodies["Pod", "openstack", "a-pod"]["status"] = {"phase": "Pending", "conditions": [homeless]}
    [run] = runs.going()
    assert not run.hopeless
    assert run.waits == (
        "Pod openstack/a-pod finds no place (0/3 nodes are available: 3 Insufficient memory); make room for it, or ask "
        "for less with resources under run in the operator's settings."
    )
    cluster.bodies["Pod", "openstack", "a-pod"]["status"] = {"phase": "Running"}
    assert [one.waits for one in runs.going()] == [""]


def test_a_run_that_cannot_start_concerns_its_own_services(there: World) -> None:
    runs = stuck(FakeCluster(), "deploy", there)
    [run] = runs.going()
    assert (run.nodes, run.concerns("libvirt"), run.concerns("nova_compute")) == (("node-0",), True, False)
    assert runs.failed == ()


@pytest.mark.parametrize("text", [None, "{", "[]", '{"extra_vars": null}'])
def test_a_run_whose_settings_were_spoiled_is_taken_away(there: World, text: str | None) -> None:
    cluster = FakeCluster()
    started(cluster, there)
    [settings] = cluster.all("ConfigMap")
    settings["data"] = {**settings["data"], "run.json": text} if text else {}
    runs = OperatorRuns(cluster, SETTINGS)  # type: ignore[arg-type]  # it has what is asked of a client
    assert runs.going() == []
    assert cluster.all("Job") == []


def test_what_is_under_way_is_not_started_twice(there: World) -> None:
    cluster = FakeCluster()
    assert started(cluster, there).started
    assert not started(cluster, there).started
    assert len(cluster.all("Job")) == 1
