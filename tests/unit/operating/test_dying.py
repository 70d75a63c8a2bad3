# SPDX-License-Identifier: GPL-3.0-or-later
"""A deployment or removal whose Job ends without a word is told on the service objects that it was for, once."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._control.conditions import Run, Told, status_of
from ansible_collections.edpm.services.plugins.plugin_utils._control.look import World
from ansible_collections.edpm.services.plugins.plugin_utils._control.results import run_of
from ansible_collections.edpm.services.plugins.plugin_utils._control.status import services_in
from ansible_collections.edpm.services.plugins.plugin_utils._control.wanted import Chosen
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.manifests import CONTAINER
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.order import Order
from ansible_collections.edpm.services.plugins.plugin_utils._operator.deciding import Batch, Need
from ansible_collections.edpm.services.plugins.plugin_utils._operator.dying import Deaths, Obituary, Silence
from ansible_collections.edpm.services.plugins.plugin_utils._operator.runs import OperatorRuns
from ansible_collections.edpm.services.plugins.plugin_utils._operator.settings import OperatorSettings

from tests.unit.control.worlds import IMAGES, Body, compute, node, role, world

from .clusters import FakeCluster

SETTINGS = OperatorSettings(namespaces=("openstack",), run={"image": "ee:1", "shard_size": 1})
NAMES = ("node-0", "node-1")
WHOLE = ("libvirt", "nova_compute")
BEFORE, BEGUN, ENDED, LATER = (f"2026-11-01T08:0{minute}:00Z" for minute in range(4))


def plane(**more: Body) -> World:
    """Two nodes; a status for the object of one where it is given, as `node_0` or `node_1`."""
    status = {name: more.get(name.replace("-", "_")) for name in NAMES}
    objects = [compute(name, status=status[name]) for name in NAMES]
    return world(role(), *(node(name) for name in NAMES), *objects, images=IMAGES)


def told(there: World, at: str, name: str = "node-0", **what: Any) -> Body:
    """The status of an object after a run that told of it at some time: as the plan wants it, or failed."""
    [one] = [each for each in there.service_objects() if each.node == name]
    services = services_in(there)[one.ref]
    bad = bool(what.get("failed"))
    said = {
        each.name: Told(name, each.name, **what)
        if bad
        else Told(name, each.name, digest=each.digest, changed=True, **what)
        for each in services
    }
    found = status_of(one, services, said, Run("deploy", at, at))
    assert found is not None
    return found


class Bench:
    """A cluster with one Job, and an operator that looks at it pass by pass."""

    def __init__(self, task: str = "deploy", services: tuple[str, ...] = WHOLE, names: tuple[str, ...] = NAMES) -> None:
        self.cluster, self.deaths = FakeCluster(), Deaths()
        there = plane()
        objects = {one.node: one for one in there.service_objects()}
        needs = [Need(task, "openstack", name, services, "key", (objects[name],)) for name in names]
        runs = OperatorRuns(self.cluster, SETTINGS)  # type: ignore[arg-type]  # it has what is asked of a client
        self.order: Order = runs.start(Batch(task, "openstack", services, needs), there).order
        self.job["metadata"]["creationTimestamp"] = BEGUN
        self.job["metadata"]["uid"] = "a-job"

    @property
    def job(self) -> Body:
        return self.cluster.bodies["Job", "openstack", self.order.run_name]

    def end(self, how: str = "Failed", message: str = "Job has failed indexes.", **more: Any) -> Bench:
        self.cluster.finish(self.order, how, message, more.pop("reason", ""))
        self.job["status"]["conditions"][0]["lastTransitionTime"] = ENDED
        self.job["status"] |= more
        return self

    def pod(self, index: int, **ended: Any) -> Bench:
        labels = {name: self.job["metadata"]["labels"][f"edpm.openstack.org/{name}"] for name in ("run", "start")}
        meta = {
            "name": f"pod-{index}",
            "namespace": "openstack",
            "labels": {f"edpm.openstack.org/{name}": value for name, value in labels.items()},
            "annotations": {"batch.kubernetes.io/job-completion-index": str(index)},
        }
        container = {"name": CONTAINER, "state": {"terminated": ended}}
        pod = {"metadata": meta, "status": {"phase": "Failed", "containerStatuses": [container]}}
        self.cluster.bodies["Pod", "openstack", f"pod-{index}"] = pod
        return self

    def look(self, there: World, *, leaving: bool = False, chosen: Chosen | None = None) -> Obituary:
        runs = OperatorRuns(self.cluster, SETTINGS)  # type: ignore[arg-type]  # it has what is asked of a client
        runs.going()
        self.cluster.asked.clear()
        gone = frozenset(one.ref for one in there.service_objects()) if leaving else frozenset()
        silence = Silence(there, services_in(there), chosen or Chosen(), gone)
        return self.deaths.told(self.cluster, runs.ended, silence)  # type: ignore[arg-type]  # it has what is asked

    def said(self, there: World, **more: Any) -> set[tuple[str, str]]:
        found = self.look(there, **more).results
        assert all(one.failed for one in found)
        return {(one.node, one.service) for one in found}


ALL = {(name, service) for name in NAMES for service in WHOLE}


def test_a_job_that_dies_without_a_word_is_a_failure_of_all_that_it_was_to_do() -> None:
    found = Bench().end(failedIndexes="0-1").look(plane())
    assert {(one.node, one.service, one.absent) for one in found.results} == {(*one, False) for one in ALL}
    assert found.results[0].msg.endswith(
        " failed (Job has failed indexes); look at the log of its pods, and correct that."
    )
    assert found.at == 1793520120.0, "it is told as of the Job's end, by the server's clock"


def test_only_the_shards_and_services_that_it_did_not_get_done_count() -> None:
    assert Bench().end(completedIndexes="0", failedIndexes="1").said(plane()) == {("node-1", name) for name in WHOLE}
    assert Bench(services=("libvirt",)).end().said(plane()) == {(name, "libvirt") for name in NAMES}
    assert Bench(names=("node-1",)).end().said(plane()) == {("node-1", name) for name in WHOLE}


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        (
            {"exitCode": 137, "reason": "OOMKilled"},
            "OOMKilled); give its pods more memory with resources under run in ",
        ),
        (
            {"exitCode": 3, "reason": "Error", "message": "the playbook is not there"},
            "code 3: the playbook is not there); ",
        ),
    ],
)
def test_what_its_pod_said_is_told_of_the_nodes_of_that_shard(ended: Body, said: str) -> None:
    found = Bench().end(failedIndexes="0-1").pod(1, **ended).look(plane())
    by_node = {one.node: one.msg for one in found.results}
    assert f" failed (pod pod-1 ended with {said}" in by_node["node-1"]
    assert " failed (Job has failed indexes); " in by_node["node-0"]


def test_a_job_whose_time_was_over_says_so_whatever_became_of_an_earlier_pod() -> None:
    late = "Job was active longer than specified deadline"
    bench = Bench().end("Failed", late, reason="DeadlineExceeded").pod(0, exitCode=143, reason="Error")
    for one in bench.look(plane()).results:
        assert f"({late}); see whether its pods find a place and its nodes answer, or give it more time" in one.msg


class TestOnce:
    def test_what_was_told_is_not_told_again_also_by_another_operator(self) -> None:
        bench = Bench().end()
        found = bench.look(plane())
        run = run_of({"run": "reconcile", "started": "", "ended": ENDED})
        there = plane(**{name.replace("-", "_"): _status(name, found, run) for name in NAMES})
        assert bench.said(there) == set()
        bench.deaths = Deaths()
        assert bench.said(there) == set()

    @pytest.mark.parametrize("again", [False, True])
    @pytest.mark.parametrize("what", [{}, {"failed": True, "msg": "no route to host"}])
    def test_a_node_of_which_the_run_or_a_later_one_has_told_is_left_alone(self, what: Body, again: bool) -> None:
        bench = Bench().end()
        if again:
            bench.look(plane())
        for at in (ENDED, LATER):
            assert bench.said(plane(node_0=told(plane(), at, **what))) == {("node-1", name) for name in WHOLE}

    def test_what_failed_before_and_dies_now_is_told_anew(self) -> None:
        failed = told(plane(), BEFORE, failed=True, msg="no route to host")
        assert Bench().end().said(plane(node_0=failed)) == ALL

    def test_what_is_as_it_is_wanted_has_not_failed(self) -> None:
        assert Bench().end().said(plane(node_0=told(plane(), BEFORE))) == {("node-1", name) for name in WHOLE}

    def test_what_was_well_when_the_job_died_is_not_blamed_on_it_when_something_else_is_wanted(self) -> None:
        bench = Bench().end()
        well = told(plane(), BEFORE)
        bench.look(plane(node_0=well))
        digests = {**well["deployedDigests"], "libvirt": "another"}
        assert bench.said(plane(node_0={**well, "deployedDigests": digests})) == {("node-1", name) for name in WHOLE}

    def test_an_object_that_was_made_after_the_job_is_not_meant(self) -> None:
        late = compute()
        late["metadata"]["creationTimestamp"] = LATER
        assert Bench().end().said(world(role(), node(), late, images=IMAGES)) == set()

    def test_what_is_paused_is_told_when_it_is_let_go_on(self) -> None:
        bench, spared = Bench().end(), frozenset({("openstack", name) for name in NAMES})
        assert bench.said(plane(), chosen=Chosen(spared=spared)) == set()
        assert bench.said(plane()) == ALL


def _status(name: str, found: Obituary, run: Run) -> Body:
    [one] = [each for each in plane().service_objects() if each.node == name]
    results = {each.service: each for each in found.results if each.node == name}
    status = status_of(one, services_in(plane())[one.ref], results, run)
    assert status is not None
    assert status["lastRun"]["result"] == "Failed"
    assert {each["reason"] for each in status["conditions"]} == {"Failed", "Resolved"}
    return status


def test_a_removal_fails_for_objects_that_are_leaving_and_no_others() -> None:
    bench = Bench("remove", names=("node-0",)).end()
    assert bench.said(plane()) == set()
    found = bench.look(plane(), leaving=True).results
    assert {(one.node, one.service, one.absent) for one in found} == {("node-0", name, True) for name in WHOLE}
    assert Bench().end().said(plane(), leaving=True) == set(), "a deployment of what leaves is of no concern"


def test_a_removal_fails_for_what_is_not_asked_for_any_more_by_an_object_that_stays() -> None:
    asking, leaving = role(), node(cell="")
    asking["metadata"]["annotations"]["edpm.openstack.org/service-libvirt"] = "true"
    status = told(plane(), BEFORE)
    there = world(asking, leaving, compute(status=status), images=IMAGES)
    bench = Bench("remove", services=("nova_compute",), names=("node-0",)).end()
    found = bench.look(there).results
    assert [(one.node, one.service, one.absent) for one in found] == [("node-0", "nova_compute", True)]


@pytest.mark.parametrize("task", ["restart", "rollback"])
def test_requests_have_events_of_their_own(task: str) -> None:
    assert Bench(task, names=("node-0",)).end().said(plane()) == set()


class TestDoneWithoutAWord:
    """As where the account of the pods may not write the status."""

    def test_it_is_told_when_the_job_ends(self) -> None:
        bench = Bench()
        assert bench.said(plane()) == set()
        bench.end("Complete", "")
        found = bench.look(plane()).results
        assert {(one.node, one.service) for one in found} == ALL
        assert "is done, yet nothing new was told of what is still to do; see whether the account" in found[0].msg

    def test_it_is_not_told_later_where_something_else_may_be_wanted(self) -> None:
        bench = Bench().end("Complete", "")
        assert bench.said(plane()) == set(), "another operator may have seen it end"
        assert bench.said(plane()) == set()

    def test_who_was_told_of_is_left_alone(self) -> None:
        bench = Bench()
        bench.look(plane())
        bench.end("Complete", "")
        both = {name.replace("-", "_"): told(plane(), ENDED, name) for name in NAMES}
        assert bench.said(plane(**both)) == set()


class TestCost:
    def test_a_job_that_has_nothing_to_tell_is_not_asked_about(self) -> None:
        bench = Bench().end()
        both = {name.replace("-", "_"): told(plane(), ENDED, name) for name in NAMES}
        assert bench.said(plane(**both)) == set()
        assert bench.cluster.asked == []

    def test_the_last_words_of_a_job_are_asked_for_once(self) -> None:
        bench = Bench().end()
        assert bench.said(plane()) == ALL
        assert bench.cluster.asked == ["ConfigMap", "Pod"]
        assert bench.said(plane()) == ALL, "nobody has written it down"
        assert bench.cluster.asked == []

    def test_a_job_whose_settings_are_gone_tells_nothing(self) -> None:
        bench = Bench().end()
        for key in [key for key in bench.cluster.bodies if key[0] == "ConfigMap"]:
            bench.cluster.bodies.pop(key)
        assert bench.said(plane()) == set()
