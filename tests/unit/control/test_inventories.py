# SPDX-License-Identifier: GPL-3.0-or-later
"""An inventory that somebody has deleted: written anew while anybody knows how the node is reached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
import yaml
from ansible_collections.edpm.services.plugins.plugin_utils._control.chains import Apply, chains
from ansible_collections.edpm.services.plugins.plugin_utils._control.conditions import Run, status_of
from ansible_collections.edpm.services.plugins.plugin_utils._control.inventories import WriteInventory
from ansible_collections.edpm.services.plugins.plugin_utils._control.inventory_text import digest_of, inventory_text
from ansible_collections.edpm.services.plugins.plugin_utils._control.leaving import Going, leaving_objects
from ansible_collections.edpm.services.plugins.plugin_utils._control.look import World
from ansible_collections.edpm.services.plugins.plugin_utils._control.names import ABANDON, INVENTORY, KEPT
from ansible_collections.edpm.services.plugins.plugin_utils._control.reconcile import pass_over
from ansible_collections.edpm.services.plugins.plugin_utils._control.status import services_in
from ansible_collections.edpm.services.plugins.plugin_utils._control.wanted import Chosen, wanted_objects
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.model import Reference
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.references import references
from ansible_collections.edpm.services.plugins.plugin_utils._kube.client import Object, Resource
from ansible_collections.edpm.services.plugins.plugin_utils._operator.deciding import needs

from .worlds import CELL, DATAPLANE, Body, compute, judged, node, role, thing, world

NAME = "dataplanenode-node-0"
INVENTORY_OF_NODE = Reference("ConfigMap", "openstack", NAME)
RUN = Run("reconcile", "2026-11-01T08:00:00Z", "2026-11-01T08:00:00Z")
VARIABLES = {"ansibleUser": "cloud", "ansibleVars": {"edpm_nova_host": "other"}}


def written(there: World, lost: Iterable[Reference] = ()) -> list[WriteInventory]:
    wanted, _untouched = wanted_objects(there, Chosen())
    going, _unjudged = leaving_objects(there, {one.ref for one in wanted}, Chosen())
    found = chains(there, wanted, going, Chosen(), frozenset(lost))
    return [step for chain in found for step in chain.steps if isinstance(step, WriteInventory)]


def going(there: World) -> list[Going]:
    wanted, _untouched = wanted_objects(there, Chosen())
    return leaving_objects(there, {one.ref for one in wanted}, Chosen())[0]


def second(**more: Any) -> Body:
    found = compute("node-0", instance="second", **more)
    found["metadata"] |= {"name": "node-0-second", "uid": "second"}
    return found


def deleted(body: Body) -> Body:
    return {**body, "metadata": {**body["metadata"], "deletionTimestamp": "2026-11-01T08:00:00Z"}}


SET = thing(
    DATAPLANE,
    "OpenStackDataPlaneNodeSet",
    "set",
    {CELL: ""},
    spec={"nodes": {"node-0": {"hostName": "node-0", "ansible": {"ansibleHost": "node-0.example.com"}}}},
)
LEAVING = {
    "it opted out": [role(nodeTemplate=VARIABLES), node(cell=""), compute()],
    "its Role asks no more": [role(cell=None, nodeTemplate=VARIABLES), node(), compute()],
    "its Node is being deleted": [role(nodeTemplate=VARIABLES), deleted(node()), compute()],
    "it opted out and its Node is being deleted": [role(nodeTemplate=VARIABLES), deleted(node(cell="")), compute()],
    "its object was deleted": [role(nodeTemplate=VARIABLES), node(), compute(deleting=True)],
    "its object was deleted after the opt-out": [role(nodeTemplate=VARIABLES), node(cell=""), compute(deleting=True)],
}


@pytest.mark.parametrize("how", LEAVING)
def test_it_is_written_anew_for_one_who_leaves_while_its_node_is_described(how: str) -> None:
    [step] = written(world(*LEAVING[how], lost=[NAME]))
    assert step.ref == INVENTORY_OF_NODE
    assert yaml.safe_load(step.text) == {
        "all": {
            "hosts": {
                "node-0": {"ansible_host": "node-0.example.com", "ansible_user": "cloud", "edpm_nova_host": "other"}
            }
        }
    }
    assert [one["uid"] for one in step.body({})["metadata"]["ownerReferences"]] == ["NovaExternalCompute-node-0"]
    assert written(world(*LEAVING[how])) == [], "one that is there is left as it is"


def test_a_node_of_a_node_set_is_described_as_well() -> None:
    owned = compute(status={})
    owned["metadata"]["ownerReferences"][0] |= {"kind": "OpenStackDataPlaneNodeSet", "name": "set"}
    [step] = written(world(SET, owned, lost=[NAME]))
    assert "node-0.example.com" in step.text


def test_it_is_the_same_text_that_the_node_had_while_it_stayed() -> None:
    stays = world(role(nodeTemplate=VARIABLES), node())
    [step] = written(world(*LEAVING["it opted out"], lost=[NAME]))
    assert step.text == inventory_text(stays.plan.nodes[0])


def test_variables_out_of_config_maps_are_read_for_one_who_leaves() -> None:
    from_map = {"ansibleVarsFrom": [{"configMapRef": {"name": "shared"}}]}
    shared = thing("v1", "ConfigMap", "shared", data={"site": "north"})
    sets = {**SET, "spec": {**SET["spec"], "nodeTemplate": {"ansible": from_map}}}
    owned = compute()
    owned["metadata"]["ownerReferences"][0] |= {"kind": "OpenStackDataPlaneNodeSet", "name": "set"}
    [step] = written(world(sets, owned, shared, lost=[NAME]))
    assert yaml.safe_load(step.text)["all"]["hosts"]["node-0"]["site"] == "north"


def test_it_belongs_to_all_objects_of_the_node_also_to_those_that_leave() -> None:
    """Else it would go with the last that stays, before the others are off the node."""
    moved = compute(annotations={INVENTORY: "0123"})
    [step] = written(world(role(), node(), moved, second()))
    assert [one["name"] for one in step.body({})["metadata"]["ownerReferences"]] == ["node-0", "node-0-second"]
    [step] = written(world(role(), node(), compute(), second(), lost=[NAME]))
    assert step.due == {Reference("NovaExternalCompute", "openstack", "node-0-second")}


REMOVED = {"conditions": [{"type": "Removed", "status": "True"}]}


@pytest.mark.parametrize("said", [{"annotations": {ABANDON: "true"}}, {"status": REMOVED}], ids=["abandoned", "off"])
def test_one_that_is_let_go_needs_no_inventory(said: dict[str, Any]) -> None:
    assert written(world(role(), node(cell=""), compute(**said), lost=[NAME])) == []
    assert written(world(role(), deleted(node(cell="")), compute(**said), lost=[NAME])) == []


class TestWhereNobodyKnows:
    """Neither Node nor ConfigMap is there."""

    def lonely(self, **more: Any) -> World:
        return world(role(), node("node-1"), compute(deleting=True, **more), compute("node-1"), lost=[NAME])

    def test_the_object_says_what_is_missing_and_what_helps(self) -> None:
        there = self.lonely()
        assert written(there) == []
        stands = there.standings[Reference("NovaExternalCompute", "openstack", "node-0")]
        status = status_of(stands, services_in(there)[stands.ref], {}, RUN)
        assert status is not None
        ready = next(one for one in status["conditions"] if one["type"] == "Ready")
        assert (ready["status"], ready["reason"]) == ("False", "Waiting")
        assert ready["message"] == (
            "NovaExternalCompute openstack/node-0 waits until its services are off node-0, and neither the Node nor "
            "ConfigMap openstack/dataplanenode-node-0, which tells how to reach it, exists; create the ConfigMap with "
            "an inventory of that host under the key inventory, or, where the machine is lost, set the annotation "
            'edpm.openstack.org/abandon: "true" on the object.'
        )

    def test_no_run_is_started_for_it_and_others_are(self) -> None:
        there = self.lonely()
        assert [one.node for one in needs(there, services_in(there), going(there), Chosen())] == []
        there = world(role(), compute(deleting=True), compute("node-1", deleting=True), lost=[NAME])
        found = list(needs(there, services_in(there), going(there), Chosen()))
        assert [(one.task, one.node, one.inventory) for one in found] == [("remove", "node-1", "dataplanenode-node-1")]

    def test_an_inventory_that_a_person_writes_is_enough(self) -> None:
        there = world(role(), compute(deleting=True))
        assert [one.waits for one in services_in(there)[compute_ref()]] == [(), ()]
        assert [one.task for one in needs(there, services_in(there), going(there), Chosen())] == ["remove"]


def compute_ref(name: str = "node-0") -> Reference:
    return Reference("NovaExternalCompute", "openstack", name)


class TestOfNodesThatStay:
    IN_STEP = (role(mark="nova-cell1"), node(mark="nova-cell1"))

    @pytest.fixture
    def digest(self) -> str:
        return digest_of(inventory_text(world(*self.IN_STEP).plan.nodes[0]))

    def test_it_is_believed_to_be_there_until_somebody_finds_that_it_is_not(self, digest: str) -> None:
        there = world(*self.IN_STEP, compute(annotations={INVENTORY: digest}), lost=[NAME])
        assert written(there) == []
        [step] = written(there, [INVENTORY_OF_NODE])
        assert step.due == {compute_ref()}

    def test_in_place_of_anothers_that_is_gone_ours_is_kept_in_step(self, digest: str) -> None:
        there = world(*self.IN_STEP, compute(annotations={INVENTORY: KEPT}))
        wanted, _untouched = wanted_objects(there, Chosen())
        [chain] = chains(there, wanted, [], Chosen(), {INVENTORY_OF_NODE})
        write, apply = chain.steps
        assert isinstance(write, WriteInventory)
        assert isinstance(apply, Apply)
        assert apply.inventory == digest

    @pytest.mark.parametrize("nodes", [frozenset({"node-0"}), frozenset[str]()])
    def test_those_of_nodes_that_are_named_are_looked_at(self, nodes: frozenset[str], digest: str) -> None:
        cluster = Cluster()
        objects = [compute(annotations={INVENTORY: digest}), compute("node-1", annotations={INVENTORY: KEPT})]
        there = world(*self.IN_STEP, node("node-1", mark="nova-cell1"), *objects)
        done = pass_over(cluster, there, Chosen(nodes=nodes))  # type: ignore[arg-type]  # stands in for a client
        assert [one.result for one in done.outcomes] == (["written"] if nodes else [])
        assert cluster.asked == ({"get ConfigMap": 1, "apply ConfigMap": 1} if nodes else {})


class Cluster:
    """One without any ConfigMap."""

    dry_run = False

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def resource(self, api_version: str, kind: str) -> Resource:
        return Resource(api_version, kind, f"{kind.lower()}s", namespaced=True)

    def get(self, resource: Resource, _name: str, _namespace: str) -> None:
        self.asked[f"get {resource.kind}"] += 1

    def apply(self, resource: Resource, body: Object, **_how: Any) -> Object:
        self.asked[f"apply {resource.kind}"] += 1
        return body


@pytest.mark.parametrize(
    ("bodies", "read"),
    [
        ([role(), node(), compute()], False),
        ([role(), node(cell=""), compute()], True),
        ([role(), node(), compute(deleting=True)], True),
        ([compute(deleting=True)], True),
        ([compute()], True),
        ([node(), compute()], False),
        ([node(), compute(deleting=True)], True),
        ([role(), deleted(node()), compute()], True),
        ([deleted(node()), compute()], True),
    ],
    ids=[
        "stays",
        "out",
        "deleted",
        "alone and deleted",
        "alone",
        "no Role",
        "no Role and deleted",
        "its Node deleted",
        "no Role and its Node deleted",
    ],
)
def test_only_inventories_of_nodes_that_something_leaves_are_read(bodies: list[Body], read: bool) -> None:
    found = references(world(*bodies).snapshot.resources)
    assert (INVENTORY_OF_NODE in found) is read


def test_objects_of_a_kind_without_inventory_are_passed_over() -> None:
    bare = compute(deleting=True)
    bare["spec"].pop("inventoryConfigMapName")
    there = world(role(), node(cell=""), bare)
    assert written(there) == []
    assert [one.waits for one in services_in(there)[compute_ref()]] == [(), ()]
    assert judged(there)[1] == []
