# SPDX-License-Identifier: GPL-3.0-or-later
"""The operator as a Deployment, its Jobs as pods, real nodes, and no other command than kubectl.

The tests build on each other, in their order.
"""

from __future__ import annotations

import time

from .site import ASKS, NAMESPACE, NODES, PLURAL, SERVICE, Body, Site, secret

FIRST, SECOND = NODES


def snippet(word: str) -> str:
    return f"[DEFAULT]\nword = {word}\n"


def changed(site: Site, node: str, word: str) -> str:
    """Ask for another snippet; the digest that was live before."""
    before = site.digest(node)
    site.configure(node, snippet(word))
    return before


def test_an_annotated_node_is_deployed_with_no_other_command(site: Site) -> None:
    assert site.jobs() == []
    for node in NODES:
        site.annotate("osdpnode", node, f"{ASKS}=true")

    for node in NODES:
        digest = site.await_ready(node)
        assert site.live(node) == digest
        assert site.starts(node) == 1
    path = f"/var/lib/openstack/{SERVICE}/current/conf.d/10-acme.conf"
    assert "password = first" in site.nodes.execute(FIRST, "cat", path).stdout
    summary = site.get("osdpnode", FIRST)["metadata"]["annotations"]["edpm.openstack.org/services-ready"]
    assert summary == "True"
    reasons = {one["reason"] for one in site.all("events") if one["involvedObject"]["kind"] == "AcmeAgent"}
    assert {"Started", "Deployed"} <= reasons
    assert 'edpm_operator_runs_total{task="deploy"}' in site.metrics()


def test_an_edited_snippet_restarts_that_nodes_service_once_and_no_other(site: Site) -> None:
    before, starts = changed(site, FIRST, "edited"), {node: site.starts(node) for node in NODES}

    digest = site.await_ready(FIRST, other_than=before)
    assert site.live(FIRST) == digest
    assert {node: site.starts(node) for node in NODES} == {FIRST: starts[FIRST] + 1, SECOND: starts[SECOND]}
    override = site.nodes.execute(FIRST, "cat", f"/var/lib/openstack/{SERVICE}/current/conf.d/99-override.conf").stdout
    assert override == snippet("edited")


def test_a_rotated_secret_reaches_exactly_the_nodes_of_its_cell(site: Site) -> None:
    before, starts = site.digest(SECOND), {node: site.starts(node) for node in NODES}
    site.apply(secret("two", "rotated"))

    site.await_ready(SECOND, other_than=before)
    assert {node: site.starts(node) for node in NODES} == {FIRST: starts[FIRST], SECOND: starts[SECOND] + 1}


def test_a_renewed_certificate_reaches_exactly_the_nodes_of_its_cell_without_a_restart(site: Site) -> None:
    digest, starts = site.digest(SECOND), {node: site.starts(node) for node in NODES}
    site.apply(secret("two", "rotated", "certificate of second"))

    site.until(lambda: site.certificate(SECOND) == "certificate of second", "the service has the new certificate")
    assert site.await_ready(SECOND) == digest
    assert site.certificate(FIRST) == "certificate of first"
    assert {node: site.starts(node) for node in NODES} == starts


def test_a_pod_that_is_evicted_in_the_middle_is_finished_by_the_next(site: Site) -> None:
    jobs, before, starts = set(site.jobs()), site.digest(FIRST), site.starts(FIRST)
    in_the_way = "in-the-way.service"
    holding = ("flock", "/run/edpm_services.lock", "sleep", "infinity")
    site.nodes.execute(FIRST, "systemd-run", f"--unit={in_the_way}", *holding)
    site.configure(FIRST, snippet("evicted"))
    run = site.new_job(jobs)
    evicted = site.running_pod(run)
    site.evict(evicted)

    assert site.running_pod(run, other_than=evicted), "the Job goes on with another pod"
    assert site.digest(FIRST) == before, "the first had not been through"
    site.nodes.execute(FIRST, "systemctl", "stop", in_the_way)
    digest = site.await_ready(FIRST, other_than=before)
    site.until(lambda: _told_of(site, run).get("succeeded") == 1, "its Job ends well")
    assert _told_of(site, run).get("failedIndexes", "") == "", "an eviction does not count"
    assert site.live(FIRST) == digest
    assert site.starts(FIRST) == starts + 1, "what the first pod had begun was not done twice"


def _told_of(site: Site, job: str) -> Body:
    return site.get("job", job).get("status") or {}


def test_an_operator_that_is_killed_in_the_middle_does_nothing_twice(site: Site) -> None:
    jobs = set(site.jobs())
    before, starts = changed(site, FIRST, "killed"), site.starts(FIRST)
    site.new_job(jobs)
    killed = site.operator_pod()
    site.kubectl("delete", "pod", killed, "--grace-period=0", "--force")

    site.await_ready(FIRST, other_than=before)
    site.until(lambda: site.operator_pod() != killed and "edpm_operator_leader 1" in _figures(site), "the next leads")
    site.until(lambda: 'passes_total{result="ok"}' in _figures(site), "it has looked")
    time.sleep(3)
    assert len(set(site.jobs()) - jobs) == 1
    assert site.starts(FIRST) == starts + 1


def _figures(site: Site) -> str:
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{site.operator_pod()}:8080/proxy/metrics"
    return site.kubectl("get", "--raw", path, check=False)


def test_a_restart_is_asked_for_by_an_annotation(site: Site) -> None:
    starts = site.starts(SECOND)
    site.annotate(PLURAL, SECOND, "edpm.openstack.org/restart=now")

    site.until(lambda: site.starts(SECOND) == starts + 1, "it was restarted")
    done = "edpm.openstack.org/restarted"
    site.until(lambda: site.get(PLURAL, SECOND)["metadata"]["annotations"].get(done) == "now", "it was noted down")


def test_a_node_that_opts_out_loses_its_services_and_then_its_object(site: Site) -> None:
    site.annotate("osdpnode", FIRST, f"{ASKS}=false")

    site.until(lambda: not site.get(PLURAL, FIRST), "the object goes")
    assert site.live(FIRST) == ""
    unit = site.nodes.execute(FIRST, "systemctl", "is-active", f"edpm_{SERVICE}.service", check=False).stdout.strip()
    assert unit != "active"
    assert site.get(PLURAL, SECOND), "the other one stays"


def test_a_node_that_is_deleted_loses_its_services_and_then_its_object(site: Site) -> None:
    site.kubectl("delete", "osdpnode", SECOND)

    site.until(lambda: not site.get(PLURAL, SECOND), "the object goes")
    assert site.live(SECOND) == ""
