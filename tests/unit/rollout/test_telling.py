# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run tells the cluster of each service."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.bundle import bundle
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.settings import settings_digest
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.model import (
    Metadata,
    Reference,
    Resources,
    ServiceResource,
    Snapshot,
)
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import ServicePlan
from ansible_collections.edpm.services.plugins.plugin_utils._kube import snapshot
from ansible_collections.edpm.services.plugins.plugin_utils._kube.snapshot import Source
from ansible_collections.edpm.services.plugins.plugin_utils._report.overview import Question
from ansible_collections.edpm.services.plugins.plugin_utils._rollout.course import Course, begin, set_work
from ansible_collections.edpm.services.plugins.plugin_utils._rollout.looking import Look
from ansible_collections.edpm.services.plugins.plugin_utils._rollout.telling import told

from .nodes import AGENT, answer, compute, node, other, service, taken

ASKED = Question("n0")


@pytest.fixture(autouse=True)
def cluster() -> Iterator[None]:
    with taken(node("n0", service(), service("libvirt"))):
        snapshot._run.source = Source(namespaces=("openstack",))
        yield


def found(**services: Any) -> dict[str, Any]:
    return Look.at("n0").judged({"services": services, "missing_images": []})


def begun(mode: str, answered: dict[str, Any], question: Question = ASKED) -> Course:
    run = begin(mode, question, ["n0"])
    set_work(run, {"n0": answered}, {})
    return run


def results(run: Course, **registered: Any) -> dict[str, dict[str, Any]]:
    said = told(run, ["n0"], {"n0": registered}, check=False)
    return {one.pop("service"): one for one in said.get("results", [])}


def done(run: Course, **services: Any) -> dict[str, Any]:
    return {"run": run.name, "services": services, "not_begun": []}


def digests(one: ServicePlan) -> dict[str, str]:
    made = bundle(one)
    return {"digest": made.digest, "settings": settings_digest(one, made)}


def test_what_was_touched_and_what_was_not_are_both_told_with_their_digests() -> None:
    looked = found(libvirt=answer(service("libvirt")))
    run = begun("deploy", looked)
    agent = {"changed": True, "restarted": True, "digest": bundle(service()).digest, "msg": "is live"}

    assert results(run, edpm_rollout_found=looked, edpm_rollout_done=done(run, **{AGENT: agent})) == {
        AGENT: {
            "node": "n0",
            **digests(service()),
            "image": f"registry/{AGENT}:1",
            "changed": True,
            "restarted": True,
        },
        "libvirt": {"node": "n0", **digests(service("libvirt")), "image": "registry/libvirt:1"},
    }


def test_settings_are_told_only_where_they_are_as_wanted() -> None:
    looked = found(**{AGENT: answer(service(), settings="other", previous="1")})
    touched = {AGENT: {"changed": True, "digest": bundle(service()).digest}}

    run = begun("deploy", looked)
    assert results(run, edpm_rollout_found=looked)[AGENT]["settings"] == "", "the run did not get to it"
    deployed = results(run, edpm_rollout_found=looked, edpm_rollout_done=done(run, **touched))
    assert deployed[AGENT]["settings"] == digests(service())["settings"]
    run = begun("rollback", looked)
    back = results(run, edpm_rollout_found=looked, edpm_rollout_done=done(run, **touched))
    assert back[AGENT]["settings"] == "", "those of an older generation may be others"


def test_the_image_is_what_runs_now() -> None:
    old = f"registry/{AGENT}:0"
    looked = found(**{AGENT: answer(other(service()), image=old)})
    run = begun("deploy", looked)
    new = {"changed": True, "digest": "1", "image": {"before": old, "after": f"registry/{AGENT}:1"}}
    same = {"changed": True, "digest": "1", "image": None}

    def image(**registered: Any) -> Any:
        return results(run, edpm_rollout_found=looked, **registered)[AGENT]["image"]

    assert image(edpm_rollout_done=done(run, **{AGENT: new})) == f"registry/{AGENT}:1"
    assert image(edpm_rollout_done=done(run, **{AGENT: same})) == old
    assert image() == old, "the run did not get to it"


def test_a_failed_service_says_why_and_one_that_was_not_begun_says_nothing() -> None:
    looked = found()
    run = begun("deploy", looked)
    ended = done(run, libvirt={"failed": True, "msg": "libvirt does not run."}) | {"not_begun": [AGENT]}

    assert results(run, edpm_rollout_found=looked, edpm_rollout_done=ended) == {
        "libvirt": {"node": "n0", "failed": True, "msg": "libvirt does not run."}
    }


def test_a_node_that_cannot_be_reached_fails_all_its_services() -> None:
    run = begun("deploy", found())

    told_of = results(run, edpm_rollout_found={"unreachable": True, "msg": "no route to host"})
    assert told_of == {name: {"node": "n0", "failed": True, "msg": "no route to host"} for name in (AGENT, "libvirt")}


def test_what_lies_there_in_another_version_is_told_as_it_is() -> None:
    held = service(hold="Node openstack/n0 holds it.")
    with taken(node("n0", held)):
        snapshot._run.source = Source()
        looked = found(**{AGENT: answer(other(service()))})
        run = begun("deploy", looked)
        assert results(run, edpm_rollout_found=looked)[AGENT]["digest"] == bundle(other(service())).digest


@pytest.mark.parametrize(("source", "check"), [(None, False), (Source(("x.yml",)), False), (Source(), True)])
def test_without_a_cluster_or_in_check_mode_nothing_is_told(source: Source | None, check: bool) -> None:
    snapshot._run.source = source
    looked = found(libvirt=answer(service("libvirt")))
    run = begun("deploy", looked)
    assert told(run, ["n0"], {"n0": {"edpm_rollout_found": looked}}, check=check) == {}


class TestRemoval:
    @pytest.fixture(autouse=True)
    def leaving(self) -> Iterator[None]:
        """A Node that is gone; its service object alone is left."""
        meta = Metadata(Reference("NovaExternalCompute", "openstack", "n0"))
        left = ServiceResource(meta, "nova.openstack.org/v1beta1", "n0", cell="nova-cell1")
        with taken():
            snapshot._run.snapshot = Snapshot(Resources(service_resources=(left,)))
            snapshot._run.source = Source()
            yield

    def test_all_that_the_object_stands_for_is_off_also_what_was_never_there(self) -> None:
        run = begun("remove", {"services": {"nova_compute": answer(compute("n0"))}})
        gone = done(run, nova_compute={"changed": True, "removed": []})
        assert results(run, edpm_rollout_done=gone) == {
            "libvirt": {"node": "n0", "state": "absent", "changed": False},
            "nova_compute": {"node": "n0", "state": "absent", "changed": True},
        }

    def test_a_compute_that_openstack_still_knows_is_not_off(self) -> None:
        run = begun("remove", {"services": {"nova_compute": answer(compute("n0"))}})
        run.untold = "Nova and Placement are not told."
        told_of = results(run, edpm_rollout_done=done(run, nova_compute={"changed": True}))
        assert told_of["nova_compute"] == {
            **{"node": "n0", "state": "absent", "failed": True},
            "msg": "Nova and Placement are not told.",
        }
        run.untold = ""
        after = {"failed": True, "msg": "Placement answers 503"}
        told_of = results(run, edpm_rollout_done=done(run, nova_compute={"changed": True}), edpm_rollout_after=after)
        assert told_of["nova_compute"]["msg"] == "Placement answers 503"

    def test_servers_that_keep_it_there_are_the_reason(self) -> None:
        run = begun("remove", {"services": {"nova_compute": answer(compute("n0"))}})
        told_of = results(run, edpm_rollout_told={"failed": True, "msg": "3 servers run on it"})
        assert {one["msg"] for one in told_of.values()} == {"3 servers run on it"}

    def test_what_nobody_came_to_remove_is_not_told_as_off(self) -> None:
        """Tags have left the node's part of the run out, say."""
        run = begun("remove", {"services": {"nova_compute": answer(compute("n0"))}})
        assert set(results(run)) == {"libvirt"}, "which was never there"

    def test_a_step_that_broke_before_it_could_answer_is_a_failure(self) -> None:
        run = begun("remove", {"services": {"nova_compute": answer(compute("n0"))}})
        told_of = results(run, edpm_rollout_done={"failed": True, "msg": "A worker was found in a dead state"})
        assert told_of["nova_compute"]["failed"] is True

    def test_only_the_services_that_were_asked_for_are_told(self) -> None:
        run = begun("remove", {"services": {}}, Question("n0", "nova_compute,other"))
        assert set(results(run)) == {"nova_compute"}

    def test_an_instance_that_stays_is_not_told_as_off(self) -> None:
        meta = Metadata(Reference("NovaExternalCompute", "openstack", "n0-fast"))
        fast = ServiceResource(meta, "nova.openstack.org/v1beta1", "n0", cell="nova-cell1", instance="fast")
        known = snapshot.taken()
        assert known is not None
        both = (*known.resources.service_resources, fast)
        snapshot._run.snapshot = Snapshot(Resources(service_resources=both))
        assert set(results(begun("remove", {"services": {}}, Question("n0", "nova_compute")))) == {
            "nova_compute",
            "nova_compute@fast",
        }
        assert set(results(begun("remove", {"services": {}}, Question("n0", "nova_compute@")))) == {"nova_compute"}
