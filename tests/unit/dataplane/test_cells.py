# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from .conftest import Change, Json, Load, Objects, Planned, PlanOf


@pytest.fixture
def planned(load: Load, plan_of: PlanOf) -> Planned:
    return plan_of(load("cells"))


@pytest.fixture
def older(load: Load, plan_of: PlanOf) -> Planned:
    return plan_of(load("base", "older_nova"))


@pytest.mark.parametrize(("node", "cell"), [("from-role", "nova-edge-cell1"), ("own-cell", "nova-cell1")])
def test_a_node_annotation_overrides_its_roles_cell(planned: Planned, node: str, cell: str) -> None:
    assert planned.node(node).cell == cell
    assert planned.service(node).cell == cell


def test_an_empty_value_on_a_node_opts_it_out(planned: Planned) -> None:
    left = {one.name: one.sentence for one in planned.plan.left_alone}
    assert left == {"opted-out": "its cell is empty, and no annotation asks for another service"}


def test_an_empty_value_on_a_node_keeps_what_else_it_asks_for(load: Load, plan_of: PlanOf, change: Change) -> None:
    objects = change(
        load("cells"),
        "OpenStackDataPlaneNode/opted-out",
        {"metadata": {"annotations": {"neutron.openstack.org/ovn-metadata-agent": "true"}}},
    )
    assert plan_of(objects).services("opted-out") == ["ovn_metadata_agent"]


def test_cell0_is_refused(planned: Planned) -> None:
    assert (
        "OpenStackDataPlaneNode openstack/in-cell0, annotation nova.openstack.org/cell: nova-cell0 is cell0, which "
        "holds no computes; name the NovaCell of another cell, for example nova-cell1."
    ) in planned.node("in-cell0").errors


def test_cell0_is_refused_under_whatever_name_its_novacell_has(load: Load, plan_of: PlanOf, change: Change) -> None:
    objects = change(load("base"), "NovaCell/nova-cell2", {"spec": {"cellName": "cell0"}})
    assert "is cell0" in plan_of(objects).said("compute-1")
    assert "is cell0" not in plan_of(objects).said("compute-0")


def test_a_novacell_that_does_not_exist_is_named_with_the_way_out(planned: Planned) -> None:
    assert (
        "OpenStackDataPlaneNode openstack/in-no-cell, annotation nova.openstack.org/cell: NovaCell "
        "openstack/cell1 does "
        "not exist; name a NovaCell that does, for example nova-cell1, or add the cell to a Nova."
    ) in planned.node("in-no-cell").blocked


def test_a_novacell_that_its_nova_has_not_made_yet_is_waited_for(load: Load, plan_of: PlanOf) -> None:
    objects = [one for one in load("base") if one["metadata"]["name"] != "nova-cell2"]
    assert "does not exist; Nova openstack/nova makes it from its cellTemplates." in plan_of(objects).said("compute-1")


def test_the_nova_of_a_cell_is_found_by_its_owner_and_never_by_splitting_the_name(planned: Planned) -> None:
    # nova-edge has its metadata service at the top, nova has it in cell1: the Secrets' names tell which was found.
    assert "Secret openstack/nova-edge-metadata-compute-config" in planned.said("from-role")
    assert "Secret openstack/nova-cell1-metadata-compute-config" in planned.said("own-cell")


def test_the_nova_of_a_cell_is_found_by_cell_templates_where_there_is_no_owner(planned: Planned) -> None:
    assert "Nova openstack/nova-edge makes it" in planned.said("in-cell-to-come")


def test_a_cell_that_two_novas_could_have_made_is_told_apart_by_its_short_name(
    load: Load, plan_of: PlanOf, change: Change
) -> None:
    objects = change(load("cells"), "NovaCell/nova-edge-cell1", {"metadata": {"ownerReferences": []}})
    ambiguous = plan_of(objects).said("from-role")
    assert "may belong to Nova openstack/nova (edge-cell1) and Nova openstack/nova-edge (cell1)" in ambiguous
    objects = change(objects, "NovaCell/nova-edge-cell1", {"spec": {"cellName": "cell1"}})
    assert "Secret openstack/nova-edge-metadata-compute-config" in plan_of(objects).said("from-role")


@pytest.mark.parametrize(
    ("node", "cell"),
    [
        ("from-role", "nova-cell2"),
        ("defaulted", "nova-cell2"),
        ("own-section", "edge-cell7"),
        ("own-snippet", "nova-cell2"),
        ("nothing-but-defaults", "nova-cell1"),
        ("annotated", "nova-cell1"),
    ],
)
def test_an_older_nova_section_is_honoured_where_no_annotation_is(older: Planned, node: str, cell: str) -> None:
    assert older.node(node).cell == cell
    assert "nova_compute" in older.services(node)


def test_an_older_nova_section_is_warned_of_once_per_object(older: Planned) -> None:
    role = "OpenStackDataPlaneRole openstack/older, field spec.nodeTemplate.nova: is deprecated; set the annotation "
    assert (
        len([one for one in older.plan.warnings if one.startswith(role + "nova.openstack.org/cell: nova-cell2")]) == 1
    )
    node = "OpenStackDataPlaneNode openstack/own-section, field spec.node.novaTemplate: is deprecated"
    assert any(one.startswith(node) for one in older.plan.warnings)
    assert any("not read since the annotation" in one for one in older.plan.warnings)


@pytest.mark.parametrize(
    ("node", "text"),
    [
        ("from-role", b"[DEFAULT]\ndebug = True\n"),
        ("defaulted", b"[DEFAULT]\ndebug = True\n"),
        ("own-snippet", b"[DEFAULT]\ndebug = False\n"),
        ("own-section", None),
        ("annotated", None),
        ("has-service-object", b"[DEFAULT]\nmy_own = 1\n"),
    ],
)
def test_an_older_snippet_counts_only_while_the_service_object_has_none(
    older: Planned, node: str, text: bytes | None
) -> None:
    assert older.files(node).get("/etc/nova/nova.conf.d/02-nova-override.conf") == text


def test_an_older_snippet_is_nova_computes_alone(load: Load, plan_of: PlanOf, change: Change) -> None:
    agent = {"metadata": {"annotations": {"neutron.openstack.org/ovn-metadata-agent": "true"}}}
    planned = plan_of(change(load("base", "older_nova"), "OpenStackDataPlaneRole/older", agent))
    assert planned.files("from-role", "ovn_metadata_agent") == {}
    assert planned.files("from-role", "libvirt") == {}


def test_an_older_deploy_false_holds_the_compute(older: Planned) -> None:
    assert older.service("own-section").hold == (
        "OpenStackDataPlaneNode openstack/own-section, field spec.node.novaTemplate.deploy: is false; "
        "set it to true to deploy."
    )
    assert older.service("from-role").hold is None


def test_a_compute_never_moves_between_cells(load: Load, plan_of: PlanOf) -> None:
    objects = [*load("base"), _compute("compute-1", "nova-cell1")]
    planned = plan_of(objects)
    assert planned.node("compute-1").errors == (
        "NovaExternalCompute openstack/compute-1, field spec.cellName: is nova-cell1, but OpenStackDataPlaneNode "
        "openstack/compute-1, annotation nova.openstack.org/cell says nova-cell2; Nova does not move computes between "
        "cells: set it back to nova-cell1, or take the node out first with an empty annotation "
        "nova.openstack.org/cell.",
    )
    assert planned.node("compute-0").ready


def test_a_role_that_changes_its_cell_under_a_node_is_a_move(load: Load, plan_of: PlanOf, change: Change) -> None:
    objects = [*load("base"), _compute("compute-0", "nova-cell1")]
    change(
        objects,
        "OpenStackDataPlaneRole/compute",
        {"metadata": {"annotations": {"nova.openstack.org/cell": "nova-cell2"}}},
    )
    assert "OpenStackDataPlaneRole openstack/compute, annotation nova.openstack.org/cell says nova-cell2" in plan_of(
        objects
    ).said("compute-0")


def test_leaving_is_not_a_move(load: Load, plan_of: PlanOf, change: Change) -> None:
    objects = [*load("base"), _compute("compute-1", "nova-cell2")]
    change(objects, "OpenStackDataPlaneNode/compute-1", {"metadata": {"annotations": {"nova.openstack.org/cell": ""}}})
    plan = plan_of(objects).plan
    assert [one.name for one in plan.left_alone] == ["compute-1"]
    assert [(str(one.service_object), one.node) for one in plan.leaving] == [
        ("NovaExternalCompute openstack/compute-1", "compute-1")
    ]


def test_a_data_plane_of_today_tells_its_cell_by_the_compute_secret_that_it_lists(load: Load, plan_of: PlanOf) -> None:
    objects = [*load("base"), *_today(["nova-cell2-compute-config"])]
    planned = plan_of(objects)
    assert planned.node("today-0").cell == "nova-cell2"
    assert planned.services("today-0") == ["nova_compute"]


def _compute(node: str, cell: str) -> Json:
    meta = {"name": node, "namespace": "openstack"}
    spec = {"dataplaneNodeName": node, "cellName": cell}
    return {"apiVersion": "nova.openstack.org/v1beta1", "kind": "NovaExternalCompute", "metadata": meta, "spec": spec}


def _today(secrets: list[str]) -> Objects:
    api = {"apiVersion": "dataplane.openstack.org/v1beta1"}
    sources = [{"secretRef": {"name": name}} for name in secrets]
    nodes = {"today-0": {"ansible": {"ansibleHost": "192.0.2.90"}}}
    return [
        {**api, "kind": "OpenStackDataPlaneService", "metadata": {"name": "nova"}, "spec": {"dataSources": sources}},
        {
            **api,
            "kind": "OpenStackDataPlaneNodeSet",
            "metadata": {"name": "today"},
            "spec": {"services": ["nova"], "nodes": nodes},
        },
    ]
