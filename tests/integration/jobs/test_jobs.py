# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs as Jobs on a real API server: what it accepts, who may do what, and who starts what is there already."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.answer import as_result
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.order import Mount
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.results import State
from ansible_collections.edpm.services.plugins.plugin_utils._kube.errors import (
    ConflictError,
    NotAllowedError,
    NotFoundError,
    RefusedError,
)

from .conftest import Desk, answered, start_of

NODES = ("edpm-compute-0", "edpm-compute-1", "edpm-compute-2")


def test_check_mode_lets_the_server_judge_the_job_and_stores_nothing(desk: Desk) -> None:
    order = desk.order(nodes=NODES, shard_size=2)

    outcome = desk.carry_out(order, check=True)

    result = as_result(outcome, check=True)
    assert [one["kind"] for one in result["objects"]] == ["Job", "ConfigMap"]
    assert result["changed"] is True
    assert desk.all("jobs") == []

    searching = desk.order(nodes=NODES, dns_config={"nameservers": ["192.0.2.53"], "searches": ["example.com"]})
    [job, _settings] = as_result(desk.carry_out(searching, check=True), check=True)["objects"]
    assert job["spec"]["template"]["spec"]["dnsConfig"] == searching.dns_config

    refused = desk.order(nodes=NODES, resources={"limits": {"memory": "much"}})
    with pytest.raises(RefusedError, match="quantities must match"):
        desk.carry_out(refused, check=True)


def test_a_run_is_started_once_and_whoever_asks_for_the_same_waits_for_it(
    desk: Desk, beside: ThreadPoolExecutor
) -> None:
    order = desk.order(nodes=NODES, shard_size=2)
    first = beside.submit(desk.carry_out, order)
    job = desk.await_job(order)
    second = beside.submit(desk.carry_out, order)
    start = start_of(job)
    desk.store(order, start, 0, State.CHANGED)
    desk.store(order, start, 1, State.OK)
    desk.finish(order, done="0-1")

    outcomes = [answered(first), answered(second)]

    assert sorted(outcome.started for outcome in outcomes) == [False, True]
    assert len(desk.all("jobs")) == 1
    for outcome in outcomes:
        assert [(node.node, node.state.value, node.shard) for node in outcome.nodes] == [
            ("edpm-compute-0", "changed", 0),
            ("edpm-compute-1", "changed", 0),
            ("edpm-compute-2", "ok", 1),
        ]
    owner = desk.get("configmap", f"{order.run_name}-{start}")["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["uid"]) == ("Job", job["metadata"]["uid"])

    again = desk.carry_out(order, rerun=False)
    assert (again.started, len(again.nodes)) == (False, 3)


def test_a_failed_shard_and_one_without_results_are_told_by_their_nodes(desk: Desk, beside: ThreadPoolExecutor) -> None:
    order = desk.order(nodes=NODES, shard_size=1)
    waiting = beside.submit(desk.carry_out, order)
    start = start_of(desk.await_job(order))
    desk.store(order, start, 0, State.OK)
    desk.store(order, start, 1, State.UNREACHABLE, code=4)
    desk.finish(order, done="0", failed="1,2")

    result = as_result(answered(waiting), check=False)

    assert result["failed_nodes"] == ["edpm-compute-1", "edpm-compute-2"]
    assert "edpm-compute-1 (unreachable); edpm-compute-2 (unknown, as the test says)" in result["msg"]
    assert result["summary"]["ok"] == 1


def test_what_a_killed_starter_left_undone_is_mended_by_the_next(desk: Desk) -> None:
    order = desk.order(nodes=NODES)
    desk.carry_out(order, wait=False)
    name = f"{order.run_name}-{start_of(desk.get('job', order.run_name))}"
    desk.kube.kubectl("delete", "configmap", name, "--namespace", desk.namespace)

    desk.carry_out(order, wait=False)

    assert "shards.json" in desk.get("configmap", name)["data"]


def test_results_of_another_start_do_not_count(desk: Desk, beside: ThreadPoolExecutor) -> None:
    order = desk.order(nodes=NODES)
    desk.store(order, "older0", 0, State.FAILED, code=2)
    waiting = beside.submit(desk.carry_out, order)
    desk.store(order, start_of(desk.await_job(order)), 0, State.OK)
    desk.finish(order, done="0")

    assert {node.state for node in answered(waiting).nodes} == {State.OK}


def test_who_may_not_start_runs_is_told_the_verb_the_resource_and_the_role(desk: Desk) -> None:
    jane = desk.kube.client_certificate("jane")

    with pytest.raises(NotAllowedError) as refused:
        desk.carry_out(desk.order(nodes=NODES), account=jane)

    assert "jane may not get jobs.batch on" in str(refused.value)
    assert f"RoleBinding to the ClusterRole edpm-services-jobs in namespace {desk.namespace}." in str(refused.value)


def test_the_role_for_jobs_is_enough_and_gives_no_look_at_secrets(desk: Desk, beside: ThreadPoolExecutor) -> None:
    joe = desk.kube.client_certificate("joe")
    words = ("--clusterrole=edpm-services-jobs", "--user=joe", "--namespace", desk.namespace)
    desk.kube.kubectl("create", "rolebinding", "joe", *words)
    order = desk.order(nodes=NODES, ssh_key_secret="not-for-joe-to-see")
    waiting = beside.submit(desk.carry_out, order, account=joe)
    desk.store(order, start_of(desk.await_job(order)), 0, State.OK)
    desk.finish(order, done="0")

    assert {node.state for node in answered(waiting).nodes} == {State.OK}
    asked = ("auth", "can-i", "get", "secrets", "--namespace", desk.namespace, "--kubeconfig", joe)
    assert desk.kube.kubectl(*asked, check=False).stdout.strip() == "no"


def test_the_pods_account_creates_config_maps_and_changes_none(desk: Desk) -> None:
    order = desk.order(nodes=NODES)
    desk.store(order, "5eed00", 0, State.OK)

    with pytest.raises(ConflictError):
        desk.store(order, "5eed00", 0, State.FAILED)
    may = {
        f"{verb} {what}": desk.kube.kubectl(
            *("auth", "can-i", verb, what, "--namespace", desk.namespace, "--kubeconfig", desk.runner()), check=False
        ).stdout.strip()
        for verb, what in (("patch", "configmaps"), ("delete", "configmaps"), ("list", "secrets"), ("create", "jobs"))
    }
    assert set(may.values()) == {"no"}, may


def test_an_account_that_does_not_exist_is_told_with_the_remedy(desk: Desk) -> None:
    with pytest.raises(NotFoundError, match=f"ServiceAccount {desk.namespace}/nobody of the pods does not exist"):
        desk.carry_out(desk.order(service_account="nobody"))

    assert desk.all("jobs") == []


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"ssh_key_secret": "gone"}, "/gone of ssh_key_secret does not exist"),
        ({"extra_vars_secrets": ("gone",)}, "/gone of extra_vars_secrets does not exist"),
        ({"known_hosts": "gone"}, "/gone of known_hosts does not exist"),
        ({"inventory_config_maps": ("gone",)}, "/gone of inventory_config_maps does not exist"),
        ({"mounts": (Mount("ConfigMap", "gone", "/x"),)}, "/gone of mounts does not exist"),
    ],
)
def test_a_secret_or_config_map_that_is_missing_is_told_before_anything_starts(
    desk: Desk, fields: dict[str, object], says: str
) -> None:
    with pytest.raises(NotFoundError, match=says):
        desk.carry_out(desk.order(nodes=NODES, **fields))

    assert desk.all("jobs") == []
