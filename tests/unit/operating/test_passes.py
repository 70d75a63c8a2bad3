# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of a pass: what is started together, what is told, and how often."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from unittest.mock import Mock

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._control.inventories import LABELS
from ansible_collections.edpm.services.plugins.plugin_utils._control.look import World
from ansible_collections.edpm.services.plugins.plugin_utils._control.names import INVENTORY, RESTART
from ansible_collections.edpm.services.plugins.plugin_utils._control.status import services_in
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.order import Order
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.running import Outcome
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.standing import Standing as JobStanding
from ansible_collections.edpm.services.plugins.plugin_utils._kube.client import Object, Resource
from ansible_collections.edpm.services.plugins.plugin_utils._kube.errors import (
    KubernetesError,
    NotAllowedError,
    RefusedError,
)
from ansible_collections.edpm.services.plugins.plugin_utils._operator.deciding import Batch, Need
from ansible_collections.edpm.services.plugins.plugin_utils._operator.metrics import Metrics
from ansible_collections.edpm.services.plugins.plugin_utils._operator.passes import Done, Passes, _Hands
from ansible_collections.edpm.services.plugins.plugin_utils._operator.runs import Going, Work
from ansible_collections.edpm.services.plugins.plugin_utils._operator.settings import OperatorSettings

from tests.unit.control.worlds import IMAGES, compute, node, role, world

from .clusters import FakeCluster

SETTINGS = OperatorSettings(namespaces=("openstack",), run={"image": "ee:1"}, removals_at_once=2)


@dataclass
class FakeRuns:
    """Starts nothing, and remembers what it was to start."""

    started: bool = True
    batches: list[Batch] = field(default_factory=list)
    removed: list[Going] = field(default_factory=list)

    def remove(self, run: Going) -> None:
        self.removed.append(run)

    def start(self, batch: Batch, _there: World) -> Outcome:
        self.batches.append(batch)
        order = Order("openstack", "ee:1", playbook="x", name=batch.task)
        return Outcome(order, "Job", self.started, False, JobStanding(1))


@dataclass
class Bench:
    """One pass without its reading."""

    runs: FakeRuns = field(default_factory=FakeRuns)
    cluster: FakeCluster = field(default_factory=FakeCluster)
    there: World = field(default_factory=lambda: world(role(), node(), compute(annotations={RESTART: "monday"})))
    metrics: Metrics = field(default_factory=Metrics)
    now: float = 1000.0

    def __post_init__(self) -> None:
        self.passes = Passes(SETTINGS, self.metrics, clock=lambda: self.now)

    def need(self, task: str, name: str = "node-0", key: str = "") -> Need:
        objects = tuple(self.there.service_objects())
        return Need(task, "openstack", name, ("libvirt",), key or task, objects, value="monday")

    def start(self, *wanted: Need) -> list[tuple[str, Sequence[str]]]:
        hands = _Hands(self.cluster, self.runs, self.there, services_in(self.there))  # type: ignore[arg-type]  # fakes
        self.passes._start(hands, wanted, [])
        return [(batch.task, batch.nodes) for batch in self.runs.batches]


def test_a_node_has_one_run_at_a_time() -> None:
    bench = Bench()
    wanted = [bench.need(task) for task in ("remove", "restart", "rollback", "deploy")]
    assert bench.start(*wanted, bench.need("deploy", "node-1")) == [("remove", ("node-0",)), ("deploy", ("node-1",))]


def test_a_second_request_for_a_node_takes_no_room_from_others() -> None:
    bench = Bench()
    wanted = [bench.need("restart", key="a"), bench.need("restart", key="b"), bench.need("restart", "node-1")]
    assert bench.start(*wanted) == [("restart", ("node-0",)), ("restart", ("node-1",))]


@pytest.mark.parametrize("fresh", [True, False])
def test_only_what_was_started_is_told_and_counted(fresh: bool) -> None:
    bench = Bench(FakeRuns(started=fresh))
    bench.start(bench.need("restart"))
    assert [event["reason"] for event in bench.cluster.all("Event")] == ["Started"] * fresh
    assert ('edpm_operator_runs_total{task="restart"} 1' in bench.metrics.text()) is fresh
    [marked] = bench.cluster.all("NovaExternalCompute")
    dealt = {"edpm.openstack.org/restarted": "monday", "edpm.openstack.org/restarts": "1"}
    assert marked["metadata"]["annotations"] == dealt


@pytest.mark.parametrize("error", [RefusedError("A webhook refuses it."), NotAllowedError("It may not patch it.")])
def test_what_an_object_does_not_let_be_written_down_is_not_run_again_and_others_go_on(
    error: KubernetesError, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench()
    other = bench.need("deploy", "node-1")
    with monkeypatch.context() as patch:
        patch.setattr(bench.cluster, "apply", Mock(side_effect=error))
        assert bench.start(bench.need("restart"), other) == [("restart", ("node-0",)), ("deploy", ("node-1",))]
        bench.now += 3600
        assert bench.start(bench.need("restart")) == [("restart", ("node-0",)), ("deploy", ("node-1",))]
    assert caplog.text.count(f"cannot be written down: {error}") == 1
    bench.now += 3600
    bench.start(bench.need("restart"))
    assert [batch.task for batch in bench.runs.batches].count("restart") == 1
    [marked] = bench.cluster.all("NovaExternalCompute")
    assert marked["metadata"]["annotations"]["edpm.openstack.org/restarted"] == "monday"


class TestWhatGetsNowhere:
    """Whose failure it is when a run cannot begin."""

    def told(self, run: Going, there: World) -> set[tuple[str, str, bool]]:
        bench, services = Bench(there=there), services_in(there)
        found = list(bench.passes._gave_up(run, bench.runs, there, services))  # type: ignore[arg-type]  # a fake
        assert bench.runs.removed == [run]
        return {(one.node, one.service, one.absent) for one in found}

    def run(self, task: str, *services: str) -> Going:
        return Going("a-job", "openstack", task, Work(("node-0",), services), "It cannot begin.")

    def test_a_deployment_is_one_of_its_own_services(self) -> None:
        there = world(role(), node(), compute(), images=IMAGES)
        assert self.told(self.run("deploy", "libvirt"), there) == {("node-0", "libvirt", False)}
        both = {("node-0", "libvirt", False), ("node-0", "nova_compute", False)}
        assert self.told(self.run("deploy"), there) == both
        assert self.told(self.run("remove", "libvirt"), there) == {("node-0", "libvirt", True)}

    def test_what_is_held_was_not_to_be_deployed(self) -> None:
        held = world(role(), node(), compute(deploy=False), images=IMAGES)
        assert self.told(self.run("deploy"), held) == set()

    @pytest.mark.parametrize("task", ["restart", "rollback"])
    def test_a_request_is_told_by_its_event_alone(self, task: str) -> None:
        assert self.told(self.run(task), world(role(), node(), compute(), images=IMAGES)) == set()


def test_objects_have_an_event_of_a_run_that_waits_and_only_one() -> None:
    bench = Bench(there=world(role(), node(), compute(), node("node-1"), compute("node-1"), images=IMAGES))
    waiting = Going("a-job", "openstack", "deploy", Work(("node-0",)), waits="Pod a finds no place.")
    for _pass in range(2):
        bench.passes._tell_of_waiting(bench.cluster, bench.there, [waiting])  # type: ignore[arg-type]  # a fake
    [event] = bench.cluster.all("Event")
    assert (event["reason"], event["message"]) == ("Waiting", "Pod a finds no place.")
    assert event["involvedObject"]["name"] == "node-0"


def test_what_stays_wrong_is_told_once_and_what_comes_back_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    passes = Passes(SETTINGS, Metrics())
    wrong: list[str] = []

    def one_pass(_client: object) -> Done:
        for sentence in wrong:
            passes._once_only(sentence)
        return Done(None, frozenset(), frozenset())

    monkeypatch.setattr(passes, "_all_of_it", one_pass)
    for sentences, times in ((["x", "x"], 1), (["x"], 1), ([], 1), (["x"], 2)):
        wrong[:] = sentences
        passes._once(None)  # type: ignore[arg-type]  # nothing is asked of it
        assert caplog.messages.count("x") == times


@pytest.fixture(autouse=True)
def heard(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="edpm.operator")


class Pages(FakeCluster):
    """Lists the names of ConfigMaps, unless it may not."""

    may = True

    def map_all(
        self, made: Callable[[Object], str], resource: Resource, namespace: str | None = None, labels: str | None = None
    ) -> list[str]:
        if not self.may:
            raise NotAllowedError("It may not list configmaps.")
        return [made(body) for body in self.get_all(resource, namespace, labels)]


class TestLostInventories:
    """Inventories that somebody has deleted while their nodes stay."""

    def bench(self, cluster: Pages) -> Bench:
        said = {INVENTORY: "0123456789abcdef"}
        objects = [compute(annotations=said), compute("node-1", annotations=said), compute("node-2")]
        return Bench(cluster=cluster, there=world(role(), *(node(f"node-{number}") for number in range(3)), *objects))

    def lost(self, bench: Bench) -> list[str]:
        return sorted(ref.name for ref in bench.passes._lost(bench.cluster, bench.there))  # type: ignore[arg-type]  # fake

    def test_they_are_looked_for_in_one_list_and_no_more_often_than_it_resyncs(self) -> None:
        cluster = Pages()
        bench = self.bench(cluster)
        metadata = {"name": "dataplanenode-node-1", "namespace": "openstack", "labels": dict(LABELS)}
        cluster.apply(Resource("v1", "ConfigMap", "configmaps", namespaced=True), {"metadata": metadata})
        assert self.lost(bench) == ["dataplanenode-node-0"], "that of node-2 is another's"
        assert cluster.asked == ["ConfigMap"]
        bench.now += SETTINGS.resync - 1
        assert self.lost(bench) == []
        assert cluster.asked == ["ConfigMap"]
        bench.now += 1
        assert self.lost(bench) == ["dataplanenode-node-0"]

    def test_an_operator_that_may_not_list_them_says_so_and_goes_on(self, caplog: pytest.LogCaptureFixture) -> None:
        cluster = Pages()
        cluster.may = False
        assert self.lost(self.bench(cluster)) == []
        assert (
            "It may not list configmaps. Whether an inventory was deleted is seen when its node leaves." in caplog.text
        )
