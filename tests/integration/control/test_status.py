# SPDX-License-Identifier: GPL-3.0-or-later
"""Conditions, digests and summaries on a real API server: kubectl shows them and waits for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.bundle import bundle
from ansible_collections.edpm.services.plugins.plugin_utils._control.conditions import Run, Told
from ansible_collections.edpm.services.plugins.plugin_utils._control.look import WatchfulClient, World, look
from ansible_collections.edpm.services.plugins.plugin_utils._control.status import (
    Reported,
    report_status,
    status_over,
)
from ansible_collections.edpm.services.plugins.plugin_utils._control.wanted import Chosen
from ansible_collections.edpm.services.plugins.plugin_utils._kube.connection import Connection, Settings
from ansible_collections.edpm.services.plugins.plugin_utils._kube.errors import NotAllowedError

from .conftest import CELL, DATAPLANE, Body, Site, data_plane, results, thing

READY = "edpm.openstack.org/services-ready"
MESSAGE = "edpm.openstack.org/services-message"


class Reporter:
    """Tells a site's service objects what runs did, each a minute after the one before."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._minute = 0

    def report(self, *told: Told, check: bool = False, nodes: Sequence[str] = ()) -> Reported:
        self._minute += 1
        run = Run("deploy", f"2026-11-01T08:{self._minute:02}:00Z", f"2026-11-01T08:{self._minute:02}:30Z")
        chosen = Chosen(nodes=frozenset(nodes))
        return report_status(self.site.settings, [self.site.namespace], told, run, chosen=chosen, check=check)

    def digests(self, name: str = "node-0") -> dict[str, str]:
        """What the plan makes of the node's services."""
        with Connection(self.site.settings) as connection:
            plan = look(WatchfulClient(connection), [self.site.namespace]).plan
        return {service.name: bundle(service).digest for service in plan.by_name()[name].services}

    def deployed(self, name: str = "node-0", **more: Any) -> list[Told]:
        """The results of a deployment that went well."""
        return [
            Told(name, service, digest=digest, image=f"{service}:1", changed=True, restarted=True, **more)
            for service, digest in self.digests(name).items()
        ]

    def conditions(self, name: str = "node-0") -> dict[str, Body]:
        return {one["type"]: one for one in self.site.get("nec", name)["status"]["conditions"]}


@pytest.fixture
def reporter(site: Site, monkeypatch: pytest.MonkeyPatch) -> Reporter:
    for service in ("COMPUTE", "LIBVIRT"):
        monkeypatch.setenv(f"RELATED_IMAGE_NOVA_{service}_IMAGE_URL_DEFAULT", f"{service.lower()}:1")
    site.create(*data_plane(2))
    site.reconcile()
    return Reporter(site)


def test_an_object_that_was_never_deployed_says_so(reporter: Reporter) -> None:
    reporter.report()
    found = reporter.conditions()
    assert {name: (one["status"], one["reason"]) for name, one in found.items()} == {
        "Ready": ("False", "NotDeployed"),
        "ConfigReady": ("True", "Resolved"),
        "DeploymentReady": ("False", "NotDeployed"),
    }
    assert found["Ready"]["message"] == "libvirt and nova_compute are not deployed yet."
    kept = reporter.site.version()
    assert reporter.report().outcomes == ()
    assert reporter.site.version() == kept


def test_a_deployed_object_is_ready_and_kubectl_shows_and_waits_for_it(reporter: Reporter) -> None:
    site = reporter.site
    reporter.report()
    since = reporter.conditions()["ConfigReady"]["lastTransitionTime"]
    told = reporter.deployed()
    reporter.report(*told)
    status = site.get("nec", "node-0")["status"]
    assert status["deployedDigests"] == reporter.digests()
    assert status["deployedDigest"] == reporter.digests()["nova_compute"][:7]
    assert status["deployedImages"] == {"libvirt": "libvirt:1", "nova_compute": "nova_compute:1"}
    assert status["lastRun"] == {
        "name": "deploy",
        "startTime": "2026-11-01T08:02:00Z",
        "completionTime": "2026-11-01T08:02:30Z",
        "result": "Succeeded",
        "message": "libvirt restarted, nova_compute restarted.",
    }
    found = reporter.conditions()
    assert {one["status"] for one in found.values()} == {"True"}
    assert {one["observedGeneration"] for one in found.values()} == {
        site.get("nec", "node-0")["metadata"]["generation"]
    }
    assert found["Ready"]["lastTransitionTime"] == "2026-11-01T08:02:30Z"
    assert found["ConfigReady"]["lastTransitionTime"] == since, "its status did not change"
    site.kubectl("wait", "--for=condition=Ready", "--timeout=10s", "nec/node-0")
    row = site.kubectl("get", "nec", "node-0", "--no-headers").stdout.split()
    assert row[:5] == ["node-0", "node-0", "nova-cell1", "True", status["deployedDigest"]]
    summary = site.get("osdpnode", "node-0")["metadata"]["annotations"]
    assert summary[READY] == "True"
    assert "True" in site.kubectl("get", "osdpnode", "node-0", "--no-headers").stdout.split()
    unchanged = [Told(one.node, one.service, digest=one.digest, image=one.image) for one in told]
    kept = site.version()
    assert reporter.report(*unchanged).outcomes == ()
    assert site.version() == kept


def test_an_edited_snippet_ends_readiness_until_it_is_deployed(reporter: Reporter) -> None:
    site = reporter.site
    reporter.report(*reporter.deployed())
    site.patch("nec", "node-0", {"spec": {"customServiceConfig": "[DEFAULT]\ndebug = True\n"}})
    late = site.kubectl("wait", "--for=condition=Ready", "--timeout=1s", "nec/node-0", check=False)
    assert late.returncode != 0, "the condition tells of an older generation"
    reporter.report()
    found = reporter.conditions()["DeploymentReady"]
    assert (found["status"], found["reason"]) == ("False", "Outdated")
    assert found["message"].startswith("To be deployed: nova_compute from ")
    reporter.report(*reporter.deployed())
    site.kubectl("wait", "--for=condition=Ready", "--timeout=10s", "nec/node-0")


def test_a_rotated_secret_ends_readiness_of_exactly_its_cell(reporter: Reporter) -> None:
    site = reporter.site
    reporter.report(*reporter.deployed("node-0"), *reporter.deployed("node-1"))
    changed = thing("v1", "Secret", "nova-cell2-compute-config", stringData={"01-nova.conf": "[DEFAULT]\nx = 1\n"})
    site.send("replace", changed)
    assert reporter.report().outcomes == ()
    changed["metadata"]["name"] = "nova-cell1-compute-config"
    site.send("replace", changed)
    written = results_of(reporter.report())
    assert written == {
        "NovaExternalCompute/node-0": "updated",
        "NovaExternalCompute/node-1": "updated",
        "OpenStackDataPlaneNode/node-0": "marked",
        "OpenStackDataPlaneNode/node-1": "marked",
    }


def test_a_failure_is_told_with_its_reason_and_stays_until_the_next_run(reporter: Reporter) -> None:
    failed = Told("node-0", "nova_compute", failed=True, msg="nova_compute did not get healthy: no route to host")
    reporter.report(failed)
    found = reporter.conditions()
    assert found["Ready"]["reason"] == "Failed"
    assert found["DeploymentReady"]["message"] == f"nova_compute: {failed.msg}"
    assert reporter.site.get("nec", "node-0")["status"]["lastRun"]["result"] == "Failed"
    assert failed.msg in reporter.site.get("osdpnode", "node-0")["metadata"]["annotations"][MESSAGE]
    reporter.report()
    assert reporter.conditions()["DeploymentReady"]["reason"] == "Failed"
    reporter.report(*reporter.deployed())
    assert reporter.conditions()["Ready"]["status"] == "True"


def test_what_is_missing_is_told_by_name(reporter: Reporter) -> None:
    reporter.report(*reporter.deployed())
    reporter.site.kubectl("delete", "secret", "nova-cell1-compute-config")
    reporter.report()
    found = reporter.conditions()
    assert (found["ConfigReady"]["status"], found["ConfigReady"]["reason"]) == ("False", "Waiting")
    assert "nova-cell1-compute-config does not exist" in found["Ready"]["message"]
    assert found["DeploymentReady"]["status"] == "True", "what runs runs on"


def test_a_held_service_says_who_holds_it(reporter: Reporter) -> None:
    reporter.site.patch("nec", "node-0", {"spec": {"deploy": False}})
    reporter.report()
    found = reporter.conditions()["DeploymentReady"]
    assert found["reason"] == "Held"
    assert "spec.deploy: is false" in found["message"]


class TestRemoval:
    def test_an_object_goes_after_all_its_services_have(self, reporter: Reporter) -> None:
        site = reporter.site
        reporter.report(*reporter.deployed())
        site.annotate("osdpnode", "node-0", f"{CELL}=")
        site.reconcile()
        reporter.report(Told("node-0", "nova_compute", absent=True, changed=True))
        found = reporter.conditions()
        assert (found["Removed"]["status"], found["Removed"]["reason"]) == ("False", "Removing")
        assert "libvirt: not yet" in found["Removed"]["message"]
        assert results(site.reconcile()) == {}
        reporter.report(Told("node-0", "libvirt", absent=True, changed=True))
        found = reporter.conditions()
        assert found["Removed"]["status"] == "True"
        assert found["Ready"]["status"] == "False"
        assert results(site.reconcile())["NovaExternalCompute/node-0"] == "removed"
        reporter.report()
        annotations = site.get("osdpnode", "node-0")["metadata"]["annotations"]
        assert READY not in annotations
        assert MESSAGE not in annotations

    def test_a_failed_removal_keeps_the_object_and_says_why(self, reporter: Reporter) -> None:
        site = reporter.site
        reporter.report(*reporter.deployed())
        site.annotate("osdpnode", "node-0", f"{CELL}=")
        site.reconcile()
        reporter.report(Told("node-0", "nova_compute", absent=True, failed=True, msg="3 servers run on it"))
        assert reporter.conditions()["Removed"]["message"] == "nova_compute: 3 servers run on it"
        assert results(site.reconcile()) == {}
        assert site.there("nec") == ["node-0", "node-1"]

    def test_services_that_come_back_are_not_removed_any_more(self, reporter: Reporter) -> None:
        site = reporter.site
        site.annotate("osdpnode", "node-0", f"{CELL}=")
        site.reconcile()
        reporter.report(*(Told("node-0", name, absent=True) for name in ("libvirt", "nova_compute")))
        site.annotate("osdpnode", "node-0", f"{CELL}=nova-cell1")
        site.reconcile()
        reporter.report(*reporter.deployed())
        found = reporter.conditions()
        assert "Removed" not in found
        assert found["Ready"]["status"] == "True"


def test_a_node_set_sums_up_its_nodes(reporter: Reporter) -> None:
    site = reporter.site
    spec = {"nodes": {"one": {"hostName": "one"}, "two": {"hostName": "two"}}, "nodeTemplate": {}}
    site.create(thing(DATAPLANE, "OpenStackDataPlaneNodeSet", "set", {CELL: "nova-cell1"}, spec=spec))
    site.reconcile()
    reporter.report(*reporter.deployed("one"))
    said = site.get("osdpns", "set")["metadata"]["annotations"]
    assert said[READY] == "False"
    assert said[MESSAGE].startswith("1 of 2 service objects are ready. NovaExternalCompute two: ")


def test_the_status_of_others_is_left_alone(reporter: Reporter) -> None:
    site = reporter.site
    theirs = {"type": "Inspected", "status": "True", "reason": "Yes", "message": "", "lastTransitionTime": STAMP}
    site.patch("nec", "node-0", {"status": {"conditions": [theirs], "hash": {"a": "b"}}}, "--subresource=status")
    reporter.report(*reporter.deployed())
    status = site.get("nec", "node-0")["status"]
    assert theirs in status["conditions"]
    assert status["hash"] == {"a": "b"}
    assert reporter.report().outcomes == ()


class TestBesideOthers:
    """Somebody writes between the read and the write of another."""

    def test_a_digest_that_a_run_has_just_told_is_not_put_back(self, reporter: Reporter) -> None:
        old = read(reporter.site)
        reporter.report(*reporter.deployed(), nodes=["node-0"])
        kept = reporter.site.get("nec", "node-0")["status"]
        done = tell(reporter.site, old)
        assert "NovaExternalCompute/node-0" not in results_of(done), "nothing failed, and nothing was written"
        assert reporter.site.get("nec", "node-0")["status"] == kept
        assert results_of(done)["NovaExternalCompute/node-1"] == "updated", "nobody was faster there"
        assert reporter.site.get("osdpnode", "node-0")["metadata"]["annotations"][READY] == "True"

    def test_a_summary_counts_what_others_have_told_meanwhile(self, reporter: Reporter) -> None:
        site = reporter.site
        spec = {"nodes": {"one": {"hostName": "one"}, "two": {"hostName": "two"}}, "nodeTemplate": {}}
        site.create(thing(DATAPLANE, "OpenStackDataPlaneNodeSet", "set", {CELL: "nova-cell1"}, spec=spec))
        site.reconcile()
        reporter.report()
        one, two = reporter.deployed("one"), reporter.deployed("two")
        old = read(site)
        assert results_of(tell(site, old, *one))["OpenStackDataPlaneNodeSet/set"] == "marked"
        assert results_of(tell(site, old, *two))["OpenStackDataPlaneNodeSet/set"] == "marked"
        said = site.get("osdpns", "set")["metadata"]["annotations"]
        assert (said[READY], said[MESSAGE]) == ("True", "2 of 2 service objects are ready.")

    def test_a_node_that_was_read_after_its_objects_is_not_told_older_things(self, reporter: Reporter) -> None:
        """Kinds are listed side by side: a Node may be newer than what it sums up."""
        site = reporter.site
        reporter.report()
        old = read(site)
        reporter.report(*reporter.deployed(), nodes=["node-0"])
        new = {ref: one for ref, one in read(site).standings.items() if ref.kind == "OpenStackDataPlaneNode"}
        mixed = replace(old, standings={**old.standings, **new})
        assert results_of(tell(site, mixed)) == {}
        assert site.get("osdpnode", "node-0")["metadata"]["annotations"][READY] == "True"

    def test_a_generation_that_was_observed_meanwhile_stays_observed(self, reporter: Reporter) -> None:
        site = reporter.site
        told = reporter.deployed()
        old = read(site)
        site.patch("nec", "node-0", {"spec": {"customServiceConfig": "[DEFAULT]\ndebug = True\n"}})
        reporter.report()
        seen = site.get("nec", "node-0")["status"]["observedGeneration"]
        assert results_of(tell(site, old, *told))["NovaExternalCompute/node-0"] == "updated"
        status = site.get("nec", "node-0")["status"]
        assert status["observedGeneration"] == seen
        assert status["deployedDigests"] == {one.service: one.digest for one in told}
        assert status["lastRun"]["name"] == "other"
        assert reporter.conditions()["Ready"]["status"] == "False"
        reporter.report()
        assert reporter.conditions()["DeploymentReady"]["message"].startswith("To be deployed: nova_compute from ")

    def test_a_result_is_told_all_the_same_and_takes_nothing_away(self, reporter: Reporter) -> None:
        libvirt, compute = reporter.deployed()
        old = read(reporter.site)
        reporter.report(libvirt)
        done = tell(reporter.site, old, compute)
        assert results_of(done)["NovaExternalCompute/node-0"] == "updated"
        assert reporter.site.get("nec", "node-0")["status"]["deployedDigests"] == reporter.digests()
        assert reporter.conditions()["Ready"]["status"] == "True"

    def test_an_object_that_was_made_anew_is_told_of_and_left_alone(self, reporter: Reporter) -> None:
        site = reporter.site
        _, compute = reporter.deployed()
        old = read(site)
        site.kubectl("patch", "nec", "node-0", "--type=json", '-p=[{"op": "remove", "path": "/metadata/finalizers"}]')
        site.kubectl("delete", "nec", "node-0")
        site.reconcile()
        assert results_of(tell(site, old, compute))["NovaExternalCompute/node-0"] == "failed"
        assert "status" not in site.get("nec", "node-0")


def read(site: Site) -> World:
    with Connection(site.settings) as connection:
        return look(WatchfulClient(connection), [site.namespace])


def tell(site: Site, world: World, *told: Told) -> Reported:
    """Write the status that follows from an earlier read."""
    with Connection(site.settings) as connection:
        return status_over(WatchfulClient(connection), world, told, Run("other", STAMP, STAMP), chosen=Chosen())


def test_check_mode_writes_nothing(reporter: Reporter) -> None:
    kept = reporter.site.version()
    assert results_of(reporter.report(check=True))["NovaExternalCompute/node-0"] == "updated"
    assert reporter.site.version() == kept


def test_a_result_that_no_object_stands_for_is_told(reporter: Reporter) -> None:
    done = reporter.report(Told("node-9", "nova_compute", digest="abc"))
    assert done.unknown == ("nova_compute on node-9 has no service object; run edpm.services.reconcile to get one.",)


def test_a_missing_right_is_told_with_verb_and_resource(reporter: Reporter) -> None:
    site = reporter.site
    user = f"reader-{site.namespace}"
    site.kubectl("create", "rolebinding", "reads", "--clusterrole=edpm-services-reader", f"--user={user}")
    settings = Settings(kubeconfig=str(site.kube.client_certificate(user)))
    run = Run("deploy", STAMP, STAMP)
    with pytest.raises(NotAllowedError) as caught:
        report_status(settings, [site.namespace], [], run, chosen=Chosen(), check=False)
    assert f"{user} may not patch novaexternalcomputes.nova.openstack.org/status" in str(caught.value)


def results_of(done: Reported) -> dict[str, str]:
    return {f"{one.ref.kind}/{one.ref.name}": one.result for one in done.outcomes}


STAMP = "2026-11-01T07:00:00Z"
