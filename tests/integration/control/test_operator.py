# SPDX-License-Identifier: GPL-3.0-or-later
"""The operator as a process with the rights of its manifests, on a real API server."""

from __future__ import annotations

import json
import signal
import ssl
import time
import urllib.request
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._control.conditions import Told
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.watching import PATIENCE
from edpm_lab.access import Access
from edpm_lab.api_server import ApiServer

from .conftest import CELL, NOVA, Body, Site, data_plane, node, settle, thing, until
from .operating import Operator, Pods, prepare

SNIPPET = {"spec": {"customServiceConfig": "[DEFAULT]\ndebug = True\n"}}


@pytest.fixture
def operated(site: Site) -> Site:
    prepare(site)
    return site


@pytest.fixture
def operator(operated: Site, tmp_path: Path) -> Iterator[Operator]:
    with Operator(operated, tmp_path) as one:
        until(lambda: one.passes() >= 1, "it has looked once")
        yield one


@pytest.fixture
def pods(operated: Site) -> Pods:
    return Pods(operated)


def ready(site: Site) -> dict[str, str]:
    found = {}
    for name, one in site.all("nec").items():
        conditions = {each["type"]: each for each in (one.get("status") or {}).get("conditions") or ()}
        found[name] = f"{conditions['Ready']['status']} {conditions['Ready']['reason']}" if conditions else ""
    return found


def told_on(site: Site, name: str) -> list[str]:
    """The reasons of all Events of a service object."""
    return [one["reason"] for one in site.all("events").values() if one["involvedObject"]["name"] == name]


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def one_job(pods: Pods) -> str:
    until(lambda: len(pods.unfinished()) == 1, "one Job runs")
    return pods.unfinished()[0]


def idle(operator: Operator) -> None:
    """Give it time to do what it should not do: to hear of a change, to wait for others, and to make a pass."""
    time.sleep(3)
    assert operator.page("/healthz") == "ok"


def test_from_an_annotated_node_to_ready_and_on_with_every_change(
    operator: Operator, operated: Site, pods: Pods
) -> None:
    site = operated
    site.create(*data_plane(2))

    job = one_job(pods)
    assert pods.nodes(job) == ["node-0", "node-1"], "what arrives together runs together"
    assert pods.told(job)["extra_vars"] == {"service": "libvirt@,nova_compute@"}
    assert ready(site) == {"node-0": "False NotDeployed", "node-1": "False NotDeployed"}
    pods.deploy(job)
    until(lambda: set(ready(site).values()) == {"True Ready"}, "both are ready")

    site.patch("nec", "node-1", SNIPPET)
    second = one_job(pods)
    assert (pods.nodes(second), pods.told(second)["extra_vars"]) == (["node-1"], {"service": "nova_compute@"})
    assert ready(site) == {"node-0": "True Ready", "node-1": "False Outdated"}
    pods.deploy(second)

    changed = thing("v1", "Secret", "nova-cell1-compute-config", stringData={"01-nova.conf": "[DEFAULT]\nx = 1\n"})
    site.send("replace", changed)
    third = one_job(pods)
    assert pods.nodes(third) == ["node-0", "node-1"]
    pods.deploy(third)
    site.create(node(2, cell="nova-cell2"))
    other = one_job(pods)
    pods.deploy(other)
    changed["metadata"]["name"] = "nova-cell2-compute-config"
    site.send("replace", changed)
    last = one_job(pods)
    assert (pods.nodes(other), pods.nodes(last)) == (["node-2"], ["node-2"]), "exactly the nodes of that cell"
    pods.deploy(last)
    idle(operator)
    assert set(pods.jobs()) == {job, second, third, other, last}
    assert operator.page("/healthz") == "ok"
    assert operator.figure('edpm_operator_runs_total{task="deploy"}') == 5
    until(lambda: set(ready(site).values()) == {"True Ready"}, "all are ready")
    reasons = {one["reason"] for one in site.all("events").values()}
    assert reasons == {"Started", "Deployed"}
    for kind in ("osdpnode", "osdprole", "novacell", "secret"):
        for body in site.all(kind).values():
            assert "kopf" not in str(body), "what is only read is not written to"


def test_a_node_that_leaves_is_removed_by_a_job_and_its_object_goes_after_it(
    operator: Operator, operated: Site, pods: Pods
) -> None:
    operated.create(*data_plane(1))
    pods.deploy(one_job(pods))
    until(lambda: set(ready(operated).values()) == {"True Ready"}, "it is ready")

    operated.annotate("osdpnode", "node-0", f"{CELL}=")
    job = one_job(pods)
    assert job.startswith("edpm-remove-node-0-")
    told = pods.told(job)
    assert (told["playbook"], told["extra_vars"]["node"]) == ("edpm.services.remove", "node-0")
    mounted = str(operated.get("job", job)["spec"]["template"]["spec"]["volumes"])
    assert "dataplanenode-node-0" in mounted
    assert "ssh-key" in mounted
    assert operated.there("nec") == ["node-0"]
    pods.report(Told("node-0", name, absent=True, changed=True) for name in ("libvirt", "nova_compute"))
    pods.finish(job)
    until(lambda: operated.there("nec") == [], "the object goes")
    assert operator.process is not None
    assert operator.process.poll() is None


def test_an_inventory_that_was_deleted_is_written_anew_before_it_is_needed(operated: Site, tmp_path: Path) -> None:
    operated.create(*data_plane(2))
    with Operator(operated, tmp_path, {"resync": 2}) as operator:
        until(lambda: operator.passes() >= 2, "it has looked twice")
        before = operated.get("configmap", "dataplanenode-node-1")
        operated.kubectl("delete", "configmap", "dataplanenode-node-1")
        until(lambda: "dataplanenode-node-1" in operated.there("configmap"), "it is there again")
        assert operated.get("configmap", "dataplanenode-node-1")["data"] == before["data"]
        # A pass counts what it has written when it ends.
        written = 'edpm_operator_writes_total{result="written"}'
        until(lambda: operator.figure(written) == 3, "it is counted")
        passes = operator.passes()
        until(lambda: operator.passes() >= passes + 2, "it has looked again")
        assert operator.figure(written) == 3


def test_a_killed_operator_is_followed_by_another_and_nothing_is_done_twice(
    operator: Operator, operated: Site, pods: Pods, tmp_path: Path
) -> None:
    operated.create(*data_plane(2))
    job = one_job(pods)
    with Operator(operated, tmp_path, name="two") as second:
        until(lambda: second.page("/healthz") == "ok", "the second is up")
        time.sleep(1)
        assert not second.leads, "one at a time"
        operator.end(signal.SIGKILL)
        operated.patch("nec", "node-0", SNIPPET)
        until(lambda: second.leads, "the second takes over")
        until(lambda: second.passes() >= 1, "it has looked")
        idle(second)
        assert list(pods.jobs()) == [job], "the nodes are being worked on"
        pods.deploy(job)
        until(lambda: set(ready(operated).values()) == {"True Ready"}, "both are ready")
        idle(second)
        assert list(pods.jobs()) == [job]
        assert second.end() == 0
    with Operator(operated, tmp_path, name="three") as third:
        until(lambda: third.leads, "a lease that was let go is there at once")
        until(lambda: third.passes() >= 1, "it has looked")
        idle(third)
        assert list(pods.jobs()) == [job]
        assert third.figure('edpm_operator_writes_total{result="updated"}') == 0


def test_a_job_without_its_settings_is_taken_away_and_made_anew(operator: Operator, operated: Site, pods: Pods) -> None:
    """As when the one that started it is killed between the Job and what its pods read."""
    operated.create(*data_plane(1))
    job = one_job(pods)
    first = operated.get("job", job)["metadata"]
    operator.end(signal.SIGKILL)
    start = first["labels"]["edpm.openstack.org/start"]
    operated.kubectl("delete", "configmap", f"{job}-{start}", "--ignore-not-found")
    with Operator(operated, operator.folder, name="two"):
        until(lambda: first["uid"] not in str(operated.all("jobs")) and pods.unfinished() != [], "a Job in its place")
        assert pods.nodes(one_job(pods)) == ["node-0"]


class TestPaused:
    @pytest.mark.parametrize(("kind", "name"), [("osdpnode", "node-0"), ("osdprole", "edpm"), ("namespace", "")])
    def test_nothing_is_done_until_it_is_let_go_on(
        self, operator: Operator, operated: Site, pods: Pods, kind: str, name: str
    ) -> None:
        paused = "edpm.openstack.org/paused"
        where = name or operated.namespace
        first = node(0)
        if kind == "osdpnode":
            first["metadata"]["annotations"][paused] = "true"
        operated.create(*data_plane(0))
        if kind != "osdpnode":
            operated.annotate(kind, where, f"{paused}=true")
        operated.create(first)
        idle(operator)
        assert operated.there("nec") == []
        assert pods.jobs() == {}
        operated.annotate(kind, where, f"{paused}-")
        operated.annotate("osdpnode", "node-0", "wake=up")
        assert pods.nodes(one_job(pods)) == ["node-0"]


class TestRequests:
    def test_a_restart_and_a_rollback_are_asked_for_once(self, operator: Operator, operated: Site, pods: Pods) -> None:
        operated.create(*data_plane(1))
        pods.deploy(one_job(pods))
        before = operated.get("nec", "node-0")["status"]["deployedDigests"]
        operated.annotate("nec", "node-0", "edpm.openstack.org/restart=monday")
        job = one_job(pods)
        told = pods.told(job)
        assert (told["playbook"], told["extra_vars"]["node"]) == ("edpm.services.restart", "node-0")
        pods.fail(job)
        until(lambda: "RestartFailed" in told_on(operated, "node-0"), "who asked for it hears that it failed")
        for value in ("tuesday", "monday"):
            operated.annotate("nec", "node-0", f"edpm.openstack.org/restart={value}")
            again = one_job(pods)
            assert pods.told(again)["playbook"] == "edpm.services.restart"
            pods.finish(again)
        operated.patch("nec", "node-0", SNIPPET)
        pods.deploy(one_job(pods))

        operated.annotate("nec", "node-0", "edpm.openstack.org/rollback=1")
        job = one_job(pods)
        assert pods.told(job)["playbook"] == "edpm.services.rollback"
        pods.report([Told("node-0", name, digest=digest, changed=True) for name, digest in before.items()])
        pods.finish(job)
        until(lambda: ready(operated) == {"node-0": "False Held"}, "it stays as it is")
        idle(operator)
        assert pods.unfinished() == []
        assert operator.figure('edpm_operator_runs_total{task="restart"}') == 3
        assert operator.figure('edpm_operator_runs_total{task="rollback"}') == 1
        assert told_on(operated, "node-0").count("RestartFailed") == 1
        operated.annotate("nec", "node-0", "edpm.openstack.org/rollback-")
        assert pods.told(one_job(pods))["playbook"] == "edpm.services.deploy"


class TestTroubles:
    @pytest.mark.usefixtures("operator")
    def test_a_cell_that_never_gets_ready_keeps_its_nodes_waiting_and_no_other(
        self, operated: Site, pods: Pods
    ) -> None:
        waiting = thing(NOVA, "NovaCell", "nova-cell3", spec={"cellName": "cell3"})
        key = thing("v1", "Secret", "nova-cell3-compute-config", stringData={"01-nova.conf": "[DEFAULT]\n"})
        operated.create(*data_plane(1), waiting, key)
        self._condition(operated, "False")
        operated.create(node(3, cell="nova-cell3"))
        assert pods.nodes(one_job(pods)) == ["node-0"]
        until(lambda: ready(operated).get("node-3") == "False Waiting", "it waits")
        message = operated.get("nec", "node-3")["status"]["conditions"][0]["message"]
        assert "nova-cell3 is not Ready" in message, message
        pods.deploy(one_job(pods))
        self._condition(operated, "True")
        assert pods.nodes(one_job(pods)) == ["node-3"]

    def _condition(self, site: Site, status: str) -> None:
        said = {"type": "Ready", "status": status, "reason": "x", "message": "", "lastTransitionTime": NOW}
        site.patch("novacell", "nova-cell3", {"status": {"conditions": [said]}}, "--subresource=status")

    def test_a_secret_that_is_deleted_under_way_is_waited_for(
        self, operator: Operator, operated: Site, pods: Pods
    ) -> None:
        operated.create(*data_plane(1))
        job = one_job(pods)
        secret = operated.get("secret", "nova-cell1-compute-config")
        operated.kubectl("delete", "secret", "nova-cell1-compute-config")
        until(lambda: ready(operated) == {"node-0": "False Waiting"}, "the status tells it")
        pods.report([Told("node-0", "libvirt", failed=True, msg="Secret is gone")])
        pods.finish(job)
        again = one_job(pods)
        assert pods.told(again)["extra_vars"] == {"service": "libvirt@"}, "the other one waits"
        pods.report([Told("node-0", "libvirt", digest=pods.digest("node-0", "libvirt"), changed=True)])
        pods.finish(again)
        idle(operator)
        assert pods.unfinished() == [], "nothing is tried that cannot succeed"
        operated.create(thing("v1", "Secret", "nova-cell1-compute-config", data=secret["data"]))
        assert pods.told(one_job(pods))["extra_vars"] == {"service": "nova_compute@"}

    def test_a_node_that_fails_is_tried_again_after_a_pause(self, operated: Site, pods: Pods, tmp_path: Path) -> None:
        operated.create(*data_plane(2))
        with Operator(operated, tmp_path, {"first_pause": 6}):
            job = one_job(pods)
            began = time.monotonic()
            pods.report([Told("node-0", "libvirt", failed=True, msg="no route to host")])
            pods.finish(job)
            until(lambda: set(ready(operated).values()) == {"False Failed"}, "what nobody told of has failed, too")
            assert "no route to host" in self._message(operated, "node-0")
            assert f"{job} is done, yet nothing new was told" in self._message(operated, "node-1")
            assert pods.nodes(one_job(pods)) == ["node-0", "node-1"]
        assert time.monotonic() - began > 5

    def _message(self, site: Site, name: str) -> str:
        message: str = site.get("nec", name)["status"]["conditions"][0]["message"]
        return message

    def test_a_job_that_dies_without_a_word_is_told_once_and_tried_again_after_a_pause(
        self, operated: Site, pods: Pods, tmp_path: Path
    ) -> None:
        operated.create(*data_plane(1))
        slow = {"first_pause": 15}
        with Operator(operated, tmp_path, slow) as first:
            job = one_job(pods)
            pods.fail(job)
            until(lambda: ready(operated) == {"node-0": "False Failed"}, "it is told")
            said = f"Job {operated.namespace}/{job} failed (as the test says); look at the log of its pods"
            assert said in self._message(operated, "node-0")
            assert first.said(said)
            until(lambda: "Failed" in told_on(operated, "node-0"), "an Event tells it as well")
            before = operated.get("nec", "node-0")
        with Operator(operated, tmp_path, slow, name="two") as second:
            until(lambda: second.passes() >= 1, "another has looked")
            idle(second)
            assert operated.get("nec", "node-0") == before, "nothing is told twice"
            again = one_job(pods)
            failed, tried = before["status"]["lastRun"], pods.jobs()[again]["metadata"]
            pause = moment(tried["creationTimestamp"]) - moment(failed["completionTime"])
            assert pause.total_seconds() >= slow["first_pause"], "nor tried at once by one who has not tried it yet"
            pods.deploy(again)
            until(lambda: ready(operated) == {"node-0": "True Ready"}, "it is ready")
        with Operator(operated, tmp_path, name="three") as third:
            until(lambda: third.passes() >= 1, "a third has looked")
            idle(third)
            assert ready(operated) == {"node-0": "True Ready"}, "the first Job is still there, and of no concern"
            assert set(pods.jobs()) == {job, again}
        assert told_on(operated, "node-0").count("Failed") == 1

    def test_a_missing_right_is_told_with_verb_and_resource_and_the_rest_goes_on(
        self, operated: Site, tmp_path: Path
    ) -> None:
        operated.kubectl("delete", "rolebinding", "starts")
        operated.create(*data_plane(1))
        with Operator(operated, tmp_path) as operator:
            until(lambda: operator.log.exists() and operator.said("may not"), "it says what is missing")
            until(lambda: operated.there("nec") == ["node-0"], "service objects are made all the same")
            text = operator.log.read_text()
        user = f"operator-{operated.namespace}"
        assert f"{user} may not" in text
        assert "jobs" in text
        assert "Traceback" not in text

    def test_a_kind_that_may_not_be_watched_is_told_and_the_others_are_watched(
        self, operated: Site, tmp_path: Path
    ) -> None:
        role = operated.get("role", "edpm-services-operator")
        rules = [{**one, "verbs": ["list"]} if "secrets" in one["resources"] else one for one in role["rules"]]
        operated.patch("role", "edpm-services-operator", {"rules": rules})
        operated.create(*data_plane(0))
        with Operator(operated, tmp_path) as operator:
            until(
                lambda: operator.log.exists() and operator.said("may not watch configmaps"), "it says what is missing"
            )
            assert operator.said(f"may not watch secrets in namespace {operated.namespace}; changes of Secret are seen")
            operated.create(node(0))
            heard = 'edpm_operator_changes_total{kind="OpenStackDataPlaneNode"}'
            until(lambda: operator.figure(heard) >= 1, "it hears of the others")
            assert not operator.said("The watch has ended")

    def test_a_kind_that_is_not_managed_is_not_touched(self, operated: Site, tmp_path: Path) -> None:
        operated.create(*data_plane(1))
        operated.annotate("osdpnode", "node-0", "neutron.openstack.org/sriov-agent=true")
        with Operator(operated, tmp_path, settings={"kinds": ["NeutronSriovAgent"]}):
            until(lambda: operated.there("neutronsriovagent") == ["node-0"], "its kind is made")
            time.sleep(1)
            assert operated.there("nec") == []

    def test_settings_that_are_wrong_end_it_with_a_sentence(self, operated: Site, tmp_path: Path) -> None:
        with Operator(operated, tmp_path, settings={"resnyc": 1}) as operator:
            assert operator.process is not None
            assert operator.process.wait(30) == 1
            assert operator.said("names resnyc; it may name")


NOW = "2026-01-01T00:00:00Z"


def forget(server: ApiServer) -> None:
    """Let etcd forget all but the newest of everything, as it does by itself after minutes."""
    files = server.folder / "etcd-pki"
    trust = ssl.create_default_context(cafile=str(files / "ca.crt"))
    trust.load_cert_chain(files / "client.crt", files / "client.key")

    def ask(path: str, **body: object) -> Body:
        request = urllib.request.Request(f"https://localhost:{server.etcd_port}{path}", json.dumps(body).encode())
        with urllib.request.urlopen(request, context=trust, timeout=30) as answer:
            found: Body = json.loads(answer.read())
            return found

    newest = ask("/v3/kv/range", key="Lw==")["header"]["revision"]
    ask("/v3/kv/compaction", revision=newest, physical=True)


def is_forgotten(site: Site, version: str) -> bool:
    """Whether a watch from there on is refused as one of a time that nobody remembers."""
    path = f"/apis/dataplane.openstack.org/v1beta1/namespaces/{site.namespace}/openstackdataplanenodes"
    query = f"watch=true&resourceVersion={version}&timeoutSeconds=2"
    return '"code":410' in site.kubectl("get", "--raw", f"{path}?{query}", check=False).stdout


@pytest.fixture
def late_kind(site: Site) -> Iterator[Body]:
    """A partner's kind, which the cluster does not know yet."""
    group = f"late-{site.namespace}.example.com"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"kind": "LateAgent", "plural": "lateagents", "singular": "lateagent"}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    metadata = {"name": f"lateagents.{group}"}
    yield {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": spec,
    }
    site.kubectl("delete", "crd", metadata["name"], "--ignore-not-found", "--wait=false")


def test_a_partners_kind_that_comes_later_is_watched_as_well(operated: Site, tmp_path: Path, late_kind: Body) -> None:
    group = late_kind["spec"]["group"]
    definition = {
        "version": 1,
        "title": "A late agent",
        "image": "late:1",
        "command": "late",
        "service_cr": {"api_version": f"{group}/v1", "kind": "LateAgent"},
        "asked_by": [f"{group}/agent"],
    }
    services = "dataplane.openstack.org/v1beta1"
    spec = {"dataSources": [{"configMapRef": {"name": "late"}}]}
    with Operator(operated, tmp_path, {"resync": 2}) as operator:
        until(lambda: operator.passes() >= 1, "it has looked once")
        operated.create(thing("v1", "ConfigMap", "late", data={"edpm-service.yaml": json.dumps(definition)}))
        operated.create(thing(services, "OpenStackDataPlaneService", "late", spec=spec))
        operated.kubectl("create", "-f", "-", stdin=json.dumps(late_kind))
        operated.kubectl("wait", "--for=condition=Established", f"crd/{late_kind['metadata']['name']}")
        verbs = ("--verb=list,watch", f"--resource=lateagents.{group}")
        operated.kubectl("create", "role", "late", *verbs)
        operated.kubectl("create", "rolebinding", "late", "--role=late", f"--user=operator-{operated.namespace}")
        until(lambda: operator.said("The cluster serves other kinds than before"), "it has noticed")
        operated.create(thing(f"{group}/v1", "LateAgent", "one", spec={}))
        until(lambda: operator.figure('edpm_operator_changes_total{kind="LateAgent"}') >= 1, "it hears of them")


def test_an_api_server_that_dies_and_forgets_is_followed_again(
    fresh_api: Access, playbook: Callable[..., Any], tmp_path: Path
) -> None:
    """The watches break, the versions from which they would go on are expired, and what happened meanwhile counts."""
    assert isinstance(fresh_api, ApiServer)
    assert playbook("install_cluster", env={"KUBECONFIG": str(fresh_api.kubeconfig)}).returncode == 0
    fresh_api.kubectl("create", "namespace", "plane")
    site = settle(fresh_api, "plane")
    prepare(site)
    pods = Pods(site)
    site.create(*data_plane(1))
    with Operator(site, tmp_path, settings={"lease_duration": 60, "resync": 600}) as operator:
        pods.deploy(one_job(pods))
        until(lambda: set(ready(site).values()) == {"True Ready"}, "it is ready")
        version = site.get("osdpnode", "node-0")["metadata"]["resourceVersion"]
        fresh_api.kill()
        time.sleep(1)
        fresh_api.start()
        site.create(node(1))
        site.annotate("osdpnode", "node-1", "some=words")
        forget(fresh_api)
        fresh_api.kill()
        fresh_api.start()
        assert is_forgotten(site, version)
        job = one_job(pods)
        assert pods.nodes(job) == ["node-1"]
        pods.deploy(job)
        until(lambda: ready(site) == {"node-0": "True Ready", "node-1": "True Ready"}, "both are ready")
        site.patch("nec", "node-0", SNIPPET)
        assert pods.nodes(one_job(pods)) == ["node-0"], "it still hears of changes"
        assert operator.process is not None
        assert operator.process.poll() is None, "it is the same process all the time"
        assert operator.log.read_text().count("holds the lease") == 1


def test_an_image_that_cannot_be_pulled_is_told_on_the_object_and_its_job_goes(
    operator: Operator, operated: Site, pods: Pods
) -> None:
    operated.create(*data_plane(1))
    job = one_job(pods)
    labels = operated.get("job", job)["spec"]["template"]["metadata"]["labels"]
    pod = thing("v1", "Pod", f"{job}-0-abcde", spec={"containers": [{"name": "runner", "image": "ee:1"}]})
    pod["metadata"]["labels"] = labels
    operated.create(pod)
    waiting = {"reason": "ImagePullBackOff", "message": "no such image"}
    container = {
        **{"name": "runner", "image": "ee:1", "imageID": "", "ready": False, "restartCount": 0},
        "state": {"waiting": waiting},
    }
    status = {"status": {"phase": "Pending", "containerStatuses": [container]}}
    operated.patch("pod", f"{job}-0-abcde", status, "--subresource=status")
    time.sleep(PATIENCE)
    operated.annotate("osdpnode", "node-0", "wake=up")
    until(lambda: ready(operated) == {"node-0": "False Failed"}, "it is told")
    message = operated.get("nec", "node-0")["status"]["conditions"][0]["message"]
    assert "cannot get its image ee:1 (ImagePullBackOff, no such image)" in message
    until(lambda: job not in pods.jobs(), "the Job is taken away")
    until(lambda: pods.unfinished() != [], "it is tried again")
    assert operator.page("/healthz") == "ok"
