# SPDX-License-Identifier: GPL-3.0-or-later
"""What a pass would do, from what a cluster holds. Whether a server takes it is shown by tests/integration/control."""

from __future__ import annotations

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._control.chains import (
    Apply,
    Create,
    SetMark,
    our_fields,
)
from ansible_collections.edpm.services.plugins.plugin_utils._control.inventories import WriteInventory
from ansible_collections.edpm.services.plugins.plugin_utils._control.leaving import leaving_objects
from ansible_collections.edpm.services.plugins.plugin_utils._control.marks import Compute, computes_of, role_marks
from ansible_collections.edpm.services.plugins.plugin_utils._control.wanted import Chosen, wanted_objects

from .worlds import CELL, DATAPLANE, MARK, NOVA, Body, compute, judged, node, role, steps, thing, world

IN_STEP = [role(mark="nova-cell1"), node(mark="nova-cell1"), compute()]
REMOVED = {"conditions": [{"type": "Removed", "status": "True"}]}
REQUESTED = {"edpm.openstack.org/removal": "requested"}


def test_a_new_node_gets_its_object_before_its_inventory_and_its_mark_last() -> None:
    assert steps(role(), node()) == [
        "Create NovaExternalCompute/node-0",
        "WriteInventory ConfigMap/dataplanenode-node-0",
        "Apply NovaExternalCompute/node-0",
        "SetMark OpenStackDataPlaneNode/node-0",
    ]


def test_where_nothing_differs_nothing_is_done() -> None:
    assert steps(*IN_STEP) == []


@pytest.mark.parametrize(
    "differing",
    [
        compute(deploy=False),
        compute(ours=["dataplaneNodeName", "cellName", "inventoryConfigMapName"]),
        compute(sshKeySecretName="gone-from-the-role"),
        compute(networkAttachments=["gone-from-the-role"]),
    ],
    ids=["another value", "a field that is not ours yet", "a field too many", "a list too many"],
)
def test_what_differs_is_applied(differing: Body) -> None:
    assert steps(role(mark="nova-cell1"), node(mark="nova-cell1"), differing) == ["Apply NovaExternalCompute/node-0"]


@pytest.mark.parametrize("what", ["finalizers", "ownerReferences"])
def test_a_lost_finalizer_or_owner_is_set_again(what: str) -> None:
    found = compute()
    found["metadata"][what] = []
    wanted = steps(role(mark="nova-cell1"), node(mark="nova-cell1"), found)
    assert wanted == ["Apply NovaExternalCompute/node-0"]


def test_a_node_that_was_made_anew_becomes_the_owner() -> None:
    again = node(mark="nova-cell1")
    again["metadata"]["uid"] = "another"
    assert steps(role(mark="nova-cell1"), again, compute()) == ["Apply NovaExternalCompute/node-0"]


def test_an_inventory_is_written_again_when_the_node_is_reached_otherwise() -> None:
    found = compute(annotations={"edpm.openstack.org/inventory": "0123"})
    assert steps(role(mark="nova-cell1"), node(mark="nova-cell1"), found) == [
        "WriteInventory ConfigMap/dataplanenode-node-0",
        "Apply NovaExternalCompute/node-0",
    ]


def test_a_deploy_that_a_person_holds_is_not_applied_and_one_of_ours_is() -> None:
    ours = ("dataplaneNodeName", "cellName", "inventoryConfigMapName")
    theirs = compute(deploy=False, ours=ours, theirs={"kubectl-edit": ["deploy"]})
    assert steps(role(mark="nova-cell1"), node(mark="nova-cell1"), theirs) == []
    set_back = compute(deploy=True, ours=ours, theirs={"kubectl-edit": ["deploy"]})
    assert steps(role(mark="nova-cell1"), node(mark="nova-cell1"), set_back) == ["Apply NovaExternalCompute/node-0"]


def test_only_deploy_can_be_held() -> None:
    theirs = compute(sshKeySecretName="by-hand", theirs={"kubectl-edit": ["sshKeySecretName"]})
    cluster = world(role(nodeTemplate={"ansibleSSHPrivateKeySecret": "key"}), node(), theirs)
    ((wanted,), _untouched) = wanted_objects(cluster, Chosen())
    assert our_fields(wanted, cluster.standings[wanted.ref])["sshKeySecretName"] == "key"


def test_a_snippet_that_was_applied_under_our_name_is_not_lost() -> None:
    found = compute(customServiceConfig="[DEFAULT]\n", deploy=False)
    cluster = world(role(mark="nova-cell1"), node(mark="nova-cell1"), found)
    ((wanted,), _untouched) = wanted_objects(cluster, Chosen())
    applied = our_fields(wanted, cluster.standings[wanted.ref])
    assert (applied["customServiceConfig"], applied["deploy"]) == ("[DEFAULT]\n", True)
    assert steps(role(mark="nova-cell1"), node(mark="nova-cell1"), compute(customServiceConfig="x")) == []


def test_images_are_part_of_the_creation_alone() -> None:
    images = {
        "RELATED_IMAGE_NOVA_COMPUTE_IMAGE_URL_DEFAULT": "compute:1",
        "RELATED_IMAGE_NOVA_ANSIBLE_EE_IMAGE_URL_DEFAULT": "ee:1",
        "RELATED_IMAGE_NOVA_LIBVIRT_IMAGE_URL_DEFAULT": "",
    }
    (chain,), _untouched = judged(world(role(), node(), images=images))
    made, applied = chain.steps[0], chain.steps[2]
    assert isinstance(made, Create)
    assert isinstance(applied, Apply)
    assert made.body()["spec"] == {
        "dataplaneNodeName": "node-0",
        "cellName": "nova-cell1",
        "novaComputeContainerImage": "compute:1",
        "ansibleEEContainerImage": "ee:1",
    }
    assert not [name for name in applied.body(None, "", None)["spec"] if "Image" in name]
    assert "customServiceConfig" not in applied.body(None, "", None)["spec"]


def test_an_object_that_may_not_be_deployed_is_never_seen_without_saying_so() -> None:
    (chain,), _untouched = judged(world(role(deployStrategy={"deploy": False}), node()))
    made = chain.steps[0]
    assert isinstance(made, Create)
    assert made.body()["spec"]["deploy"] is False


def test_an_older_section_that_holds_the_deployment_holds_the_object() -> None:
    section = {"nova": {"cellName": "cell1", "deploy": False}}
    (wanted,), _untouched = wanted_objects(world(role(None, nodeTemplate=section), node()), Chosen())
    assert wanted.spec["deploy"] is False


def test_an_agent_keeps_the_cell_that_it_was_given_when_the_node_is_no_compute_any_more() -> None:
    found = compute()
    found |= {"apiVersion": "neutron.openstack.org/v1beta1", "kind": "OVNMetadataAgent"}
    asks = node(cell="")
    asks["metadata"]["annotations"]["neutron.openstack.org/ovn-metadata-agent"] = "true"
    assert steps(role(), asks, found) == []


def test_an_inventory_belongs_to_all_objects_of_the_node() -> None:
    asks = node()
    asks["metadata"]["annotations"]["neutron.openstack.org/sriov-agent"] = "true"
    (chain,), _untouched = judged(world(role(), asks, compute()))
    (written,) = [step for step in chain.steps if isinstance(step, WriteInventory)]
    (agent,) = [one.ref for one in written.objects if one.ref.kind == "NeutronSriovAgent"]
    owners = written.body({agent: "new"})["metadata"]["ownerReferences"]
    assert [owner["uid"] for owner in owners] == ["NovaExternalCompute-node-0", "new"]


class TestLeaving:
    @pytest.mark.parametrize(
        "rest",
        [[role(), node(cell="", mark="nova-cell1")], [role("")], [role(), node("another")]],
        ids=["opted out", "its Node and all others gone", "its Node gone"],
    )
    def test_an_object_that_nobody_asks_for_is_told_to_leave_and_no_more(self, rest: list[Body]) -> None:
        assert "RequestRemoval NovaExternalCompute/node-0" in steps(*rest, compute())
        again = steps(*rest, compute(annotations=REQUESTED))
        assert [step for step in again if step.endswith("/node-0")] == []

    @pytest.mark.parametrize(
        "free", [{"status": REMOVED}, {"annotations": {**REQUESTED, "edpm.openstack.org/abandon": "true"}}]
    )
    @pytest.mark.parametrize("deleting", [True, False])
    def test_one_whose_services_are_off_or_abandoned_is_let_go_and_its_node_freed(
        self, free: Body, deleting: bool
    ) -> None:
        assert steps(role(), node(cell="", mark="nova-cell1"), compute(deleting=deleting, **free)) == [
            "LetGo NovaExternalCompute/node-0",
            "SetMark OpenStackDataPlaneNode/node-0",
        ]

    @pytest.mark.parametrize("deleting", [True, False])
    def test_one_that_is_not_ours_to_let_go_is_left_to_others(self, deleting: bool) -> None:
        found = compute(deleting=deleting, status=REMOVED)
        found["metadata"]["finalizers"] = ["example.com/other"]
        assert steps(role(), node(cell="", mark="nova-cell1"), found) == []

    def test_one_that_is_asked_for_again_in_time_is_told_to_stay(self) -> None:
        found = compute(annotations=REQUESTED)
        assert steps(role(mark="nova-cell1"), node(mark="nova-cell1"), found) == [
            "RequestRemoval NovaExternalCompute/node-0"
        ]

    def test_a_role_that_is_missing_takes_nothing_away(self) -> None:
        chains, untouched = judged(world(node(mark="nova-cell1"), compute()))
        assert chains == []
        assert [one.refused for one in untouched] == [True]
        assert "OpenStackDataPlaneRole openstack/edpm does not exist" in untouched[0].sentence

    def test_a_kind_that_is_not_served_says_nothing_about_its_objects(self) -> None:
        chains, untouched = judged(world(compute(), kinds=["NovaExternalCompute"]))
        assert chains == []
        assert "OpenStackDataPlaneNode node-0, a kind that the cluster does not serve now" in untouched[0].sentence

    def test_one_made_by_hand_never_leaves_by_itself(self) -> None:
        assert steps(role(), node(cell=""), compute(owned=False)) == []
        assert steps(compute(owned=False)) == []

    def test_what_all_instances_share_stays_with_the_last_of_them(self) -> None:
        plain = compute()
        second = compute("node-0", instance="second")
        second["metadata"] |= {"name": "node-0-second", "uid": "second"}
        cluster = world(role(mark="nova-cell1"), node(mark="nova-cell1"), plain, second)
        (chain,), _untouched = judged(cluster)
        assert [type(step).__name__ for step in chain.steps] == ["RequestRemoval"]
        wanted, _rest = wanted_objects(cluster, Chosen())
        (going,), _more = leaving_objects(cluster, {one.ref for one in wanted}, Chosen())
        assert going.services == ("nova_compute@second",)


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("nova_compute", ["node-0", "node-0-second"]),
        ("nova_compute@", ["node-0"]),
        ("nova_compute@second", ["node-0-second"]),
    ],
)
def test_an_object_is_chosen_by_the_instance_that_it_stands_for(asked: str, meant: list[str]) -> None:
    body = node()
    body["metadata"]["annotations"]["edpm.openstack.org/instances-nova_compute"] = "second"
    wanted, _untouched = wanted_objects(world(role(), body), Chosen(services=frozenset({asked})))
    assert sorted(one.ref.name for one in wanted) == meant


class TestByHand:
    def test_one_that_the_node_asks_for_is_taken_over(self) -> None:
        assert steps(role(), node(), compute(owned=False)) == [
            "WriteInventory ConfigMap/dataplanenode-node-0",
            "Apply NovaExternalCompute/node-0",
            "SetMark OpenStackDataPlaneNode/node-0",
        ]

    def test_one_that_nobody_asks_for_is_its_makers(self) -> None:
        chains, untouched = judged(world(role(None), node(), compute(owned=False)))
        assert [step for chain in chains for step in chain.steps if "Compute" in step.ref.kind] == []
        assert [(one.refused, "made by hand" in one.sentence) for one in untouched] == [(False, True)]


class TestMarks:
    def marks(self, *bodies: Body) -> dict[str, str]:
        cluster = world(*bodies)
        found = role_marks(cluster, computes_of(cluster, [], {}))
        return {mark.stands.ref.name: mark.cell for mark in found}

    def test_a_role_whose_word_counts_is_marked(self) -> None:
        assert self.marks(role(), node(), compute()) == {"edpm": "nova-cell1"}

    @pytest.mark.parametrize(
        "own", [{"cell": "nova-cell1"}, {"cell": ""}, {"node": {"nova": {"cellName": "cell3"}}}], ids=str
    )
    def test_a_role_whose_node_speaks_for_itself_is_not(self, own: Body) -> None:
        assert self.marks(role(), node(**own), compute()) == {}

    def test_a_role_keeps_its_mark_while_an_object_is_on_its_way_out(self) -> None:
        assert self.marks(role("", mark="nova-cell1"), node(), compute(annotations=REQUESTED)) == {}
        assert self.marks(role("", mark="nova-cell1"), node()) == {"edpm": ""}

    def test_what_a_run_made_and_let_go_counts(self) -> None:
        cluster = world(role(), node(), compute(), node("node-1"))
        (gone,) = [one.ref for one in cluster.service_objects()]
        assert role_marks(cluster, computes_of(cluster, [gone], {})) == []
        made = {gone: Compute("openstack", "node-1", "nova-cell1")}
        (mark,) = role_marks(cluster, computes_of(cluster, [gone], made))
        assert mark.cell == "nova-cell1"

    def test_a_node_set_is_marked_like_a_role(self) -> None:
        members = {"nodes": {"node-0": {"hostName": "node-0"}}}
        node_set = thing(DATAPLANE, "OpenStackDataPlaneNodeSet", "set", {CELL: "nova-cell1"}, spec=members)
        assert self.marks(node_set, compute()) == {"set": "nova-cell1"}

    def test_a_mark_that_nothing_stands_behind_is_released(self) -> None:
        assert steps(role(None), node(mark="nova-cell1")) == ["SetMark OpenStackDataPlaneNode/node-0"]

    def test_a_mark_names_the_object_by_its_uid_so_that_it_is_never_made_anew(self) -> None:
        (chain,), _untouched = judged(world(role(None), node(mark="nova-cell1")))
        (step,) = chain.steps
        assert isinstance(step, SetMark)
        body = step.body()
        assert body["metadata"]["uid"] == "OpenStackDataPlaneNode-node-0"
        assert body["metadata"]["annotations"] == {MARK: ""}


def test_nodes_and_services_may_be_chosen() -> None:
    cluster = world(role(), node(), node("node-1"))
    chosen, _untouched = judged(cluster, Chosen(nodes=frozenset({"node-1"})))
    assert [chain.node for chain in chosen] == ["node-1"]
    for service, number in (("nova_compute", 2), ("libvirt", 2), ("cinder_volume", 0)):
        wanted, _rest = wanted_objects(cluster, Chosen(services=frozenset({service})))
        assert len(wanted) == number, service


def test_kinds_of_partners_are_dealt_with_by_their_definitions_alone() -> None:
    """No kind of a service is named in the code: the objects carry all that is needed."""
    found = compute()
    found |= {"apiVersion": NOVA.replace("nova", "partner"), "kind": "PartnerThing"}
    assert steps(role(None), found) == ["RequestRemoval PartnerThing/node-0"]
