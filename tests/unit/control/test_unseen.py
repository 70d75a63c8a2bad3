# SPDX-License-Identifier: GPL-3.0-or-later
"""A partner's kind that the account may not list: its objects may be there, and all else goes on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._control import report
from ansible_collections.edpm.services.plugins.plugin_utils._control.applying import Applier
from ansible_collections.edpm.services.plugins.plugin_utils._control.chains import Chain
from ansible_collections.edpm.services.plugins.plugin_utils._control.conditions import Told
from ansible_collections.edpm.services.plugins.plugin_utils._control.inventories import WriteInventory
from ansible_collections.edpm.services.plugins.plugin_utils._control.leaving import leaving_objects
from ansible_collections.edpm.services.plugins.plugin_utils._control.look import WatchfulClient, World
from ansible_collections.edpm.services.plugins.plugin_utils._control.marks import Compute, role_marks
from ansible_collections.edpm.services.plugins.plugin_utils._control.names import SERVICES_MESSAGE, SERVICES_READY
from ansible_collections.edpm.services.plugins.plugin_utils._control.reconcile import pass_over
from ansible_collections.edpm.services.plugins.plugin_utils._control.status import (
    Reported,
    _assigned,
    _summaries,
    services_in,
)
from ansible_collections.edpm.services.plugins.plugin_utils._control.wanted import Chosen, wanted_objects
from ansible_collections.edpm.services.plugins.plugin_utils._kube.client import Client, Resource
from ansible_collections.edpm.services.plugins.plugin_utils._kube.connection import Response
from ansible_collections.edpm.services.plugins.plugin_utils._kube.errors import NotAllowedError
from ansible_collections.edpm.services.plugins.plugin_utils._operator.deciding import needs

from .worlds import IMAGES, UNSEEN, Body, compute, judged, node, partner, role, thing, world

READY = {"conditions": [{"type": "Ready", "status": "True"}]}
PROBING = role(services=["probe"])
IN_STEP = [role(services=["probe"], mark="nova-cell1"), node(mark="nova-cell1"), compute()]
OPENED = "Until then its services wait, and objects of this kind are left as they are."


def steps_of(there: World) -> list[str]:
    found, untouched = judged(there)
    assert untouched == []
    return [f"{type(step).__name__} {step.ref.kind}" for chain in found for step in chain.steps]


def summed(there: World) -> dict[str, dict[str, str]]:
    return {one.stands.ref.name: one.meant for one in _summaries(there, {}, Chosen())}


def with_summary(body: Body, ready: str, message: str) -> Body:
    metadata = body["metadata"]
    said = {**metadata["annotations"], SERVICES_READY: ready, SERVICES_MESSAGE: message}
    return {**body, "metadata": {**metadata, "annotations": said}}


def test_an_object_that_cannot_be_seen_is_neither_made_nor_written_and_the_others_are() -> None:
    assert "Create Probe" in steps_of(world(PROBING, node(), *partner()))
    hidden = steps_of(world(PROBING, node(), *partner(), unseen=[UNSEEN]))
    assert not [step for step in hidden if step.endswith("Probe")]
    assert "Create NovaExternalCompute" in hidden
    assert steps_of(world(*IN_STEP, *partner(), unseen=[UNSEEN])) == []


def test_the_kind_is_told_of_once_for_however_many_nodes() -> None:
    there = world(PROBING, *(node(f"node-{number}") for number in range(50)), *partner(), unseen=[UNSEEN])
    assert there.plan.warnings == (f"{UNSEEN.sentence} {OPENED}",)
    in_step = world(*IN_STEP, *partner(), unseen=[UNSEEN])
    done = pass_over(WatchfulClient(Silent()), in_step, Chosen())
    result = report.as_result(done, check=False, diff=False)
    assert result["warnings"] == [f"{UNSEEN.sentence} {OPENED}"]
    assert (result["changed"], result["unchanged"], "failed" in result) == (False, 1, False)
    told = report.as_status_result(Reported((), (), 1, done.warnings), check=False, diff=False)
    assert told["warnings"] == result["warnings"]


def test_a_service_that_nobody_defines_in_a_namespace_is_not_missed_there() -> None:
    assert world(role(), node(), unseen=[UNSEEN]).plan.warnings == ()


def test_nothing_is_decided_about_what_cannot_be_seen() -> None:
    there = world(role(cell=None, services=["probe"]), node(), *partner(), unseen=[UNSEEN], images=IMAGES)
    wanted, _untouched = wanted_objects(there, Chosen())
    going, unjudged = leaving_objects(there, {one.ref for one in wanted}, Chosen())
    assert (wanted, going, unjudged) == ([], [], [])
    assert list(needs(there, services_in(there), going, Chosen())) == []


@pytest.mark.parametrize("needs_cell", [True, False])
def test_a_mark_that_may_tell_of_a_hidden_compute_stays(needs_cell: bool) -> None:
    marked = [role(cell=None, mark="nova-cell1"), node(mark="nova-cell1")]
    there = world(*marked, *partner(needs_cell=needs_cell), unseen=[UNSEEN])
    released = [] if needs_cell else ["SetMark OpenStackDataPlaneNode"]
    assert steps_of(there) == released
    assert [one.stands.ref.name for one in role_marks(there, [])] == ([] if needs_cell else ["edpm"])


def test_a_mark_that_is_not_there_yet_is_set_beside_hidden_computes() -> None:
    there = world(role(), node(), compute(), *partner(needs_cell=True), unseen=[UNSEEN])
    assert steps_of(there) == ["SetMark OpenStackDataPlaneNode"]
    assert [one.cell for one in role_marks(there, [Compute("openstack", "node-0", "nova-cell1")])] == ["nova-cell1"]
    other = world(
        role(mark="nova-cell2"), node(mark="nova-cell2"), compute(), *partner(needs_cell=True), unseen=[UNSEEN]
    )
    assert steps_of(other) == []


class TestSummaries:
    def test_what_is_asked_for_and_cannot_be_seen_is_not_ready(self) -> None:
        there = world(PROBING, node(), compute(status=READY), *partner(), unseen=[UNSEEN])
        message = f"1 of 2 service objects are ready. {UNSEEN.sentence}"
        assert summed(there) == {"node-0": {SERVICES_READY: "False", SERVICES_MESSAGE: message}}
        said = with_summary(node(), "False", message)
        assert summed(world(PROBING, said, compute(status=READY), *partner(), unseen=[UNSEEN])) == {}

    def test_what_was_counted_before_is_not_gone_because_it_cannot_be_seen(self) -> None:
        said = with_summary(node(), "False", "1 of 2 service objects are ready. Probe node-0: leaving.")
        there = world(role(), said, compute(status=READY), *partner(), unseen=[UNSEEN])
        assert summed(there)["node-0"][SERVICES_MESSAGE].startswith("1 of 2 service objects are ready. jane may not")
        alone = with_summary(node(), "True", "1 of 1 service objects are ready.")
        there = world(role(cell=None), alone, *partner(), unseen=[UNSEEN])
        assert summed(there)["node-0"][SERVICES_READY] == "False"

    def test_a_node_that_has_nothing_to_do_with_it_says_what_it_would_say_anyway(self) -> None:
        nodes = [node(), node("node-1", role="plain")]
        objects = [compute(status=READY), compute("node-1", status=READY)]
        there = world(PROBING, role(name="plain"), *nodes, *objects, *partner(), unseen=[UNSEEN])
        assert summed(there)["node-1"] == {
            SERVICES_READY: "True",
            SERVICES_MESSAGE: "1 of 1 service objects are ready.",
        }

    def test_once_it_can_be_seen_the_node_says_what_is_there(self) -> None:
        said = with_summary(node(), "False", f"1 of 2 service objects are ready. {UNSEEN.sentence}")
        there = world(role(), said, compute(status=READY), *partner())
        assert summed(there)["node-0"] == {
            SERVICES_READY: "True",
            SERVICES_MESSAGE: "1 of 1 service objects are ready.",
        }


@pytest.mark.parametrize("namespace", ["", "openstack"])
def test_a_result_of_a_hidden_object_says_why_nobody_is_told(namespace: str) -> None:
    there = world(PROBING, node(), *partner(), unseen=[UNSEEN])
    _found, unknown = _assigned(there, [Told("node-0", "probe", namespace)])
    assert unknown == [f"What became of probe on node-0 cannot be told: {UNSEEN.sentence}"]


class Silent:
    """A transport on which nothing may be asked."""

    server = "memory"

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        *,
        body: bytes | None = None,
        content_type: str = "application/json",
    ) -> Response:
        raise AssertionError(f"{method} {path} {query} {content_type} {body!r}")


class Remembering:
    """A transport that knows one ConfigMap, and what was written."""

    server = "memory"

    def __init__(self, live: Body | None) -> None:
        self.live, self.written = live, list[Any]()

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        *,
        body: bytes | None = None,
        content_type: str = "application/json",
    ) -> Response:
        del query, content_type
        if path == "/api/v1":
            kinds = {"resources": [{"kind": "ConfigMap", "name": "configmaps", "namespaced": True}]}
            return Response(200, {}, json.dumps(kinds).encode())
        if method == "GET":
            return Response(200 if self.live else 404, {}, json.dumps(self.live or {}).encode())
        self.written.append(json.loads(body or b"{}"))
        return Response(200, {}, body or b"{}")


@pytest.mark.parametrize("there_already", [True, False])
def test_an_inventory_goes_on_belonging_to_objects_that_cannot_be_seen(there_already: bool) -> None:
    theirs = {"apiVersion": "probe.example.com/v1beta1", "kind": "Probe", "name": "node-0", "uid": "hidden"}
    gone = {"apiVersion": "neutron.openstack.org/v1beta1", "kind": "OVNMetadataAgent", "name": "node-0", "uid": "gone"}
    live = thing("v1", "ConfigMap", "dataplanenode-node-0", metadata={"ownerReferences": [theirs, gone]})
    outdated = compute(annotations={"edpm.openstack.org/inventory": "0123"})
    chains, _untouched = judged(world(PROBING, node(), outdated, *partner(), unseen=[UNSEEN]))
    [step] = [step for chain in chains for step in chain.steps if isinstance(step, WriteInventory)]
    server = Remembering(live if there_already else None)
    Applier(Client(server)).run([Chain("openstack", "node-0", (step,))])
    owners = [one["uid"] for one in server.written[0]["metadata"]["ownerReferences"]]
    assert owners == ["NovaExternalCompute-node-0", *(["hidden"] if there_already else [])]


class Forbidding(Silent):
    """A transport on which everything is forbidden."""

    def request(self, *_args: object, **_rest: object) -> Response:
        said = {"kind": "Status", "message": 'probes is forbidden: User "jane" cannot list resource "probes"'}
        return Response(403, {}, json.dumps(said).encode())


def test_a_kind_that_may_not_be_listed_does_not_count_as_one_that_was() -> None:
    """What belongs to an object of such a kind must not leave because its owner was not seen."""
    client = WatchfulClient(Forbidding())
    with pytest.raises(NotAllowedError):
        client.map_all(dict, Resource("probe.example.com/v1", "Probe", "probes", namespaced=True), "openstack")
    assert client.kinds == set()
