# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.built_in import BUILT_IN
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.definitions import (
    Place,
    ServiceDefinition,
    image_variable,
)

from .conftest import Change, Json, Load, Planned, PlanOf, known

PARTNER = ServiceDefinition(
    name="telemetry-probe",
    image_variable=image_variable("telemetry-probe"),
    asked_by=("partner.example.com/probe",),
    dataplane_names=("telemetry-probe",),
    api_version="partner.example.com/v1",
    kind="TelemetryProbe",
    config_directory="/etc/probe",
    conf_d="/etc/probe/conf.d",
    places=(Place("licence.key", "/etc/probe"),),
)
WITH_PARTNER = {**BUILT_IN, PARTNER.name: PARTNER}


@pytest.fixture
def planned(load: Load, plan_of: PlanOf) -> Planned:
    return plan_of(load("base", "services"))


@pytest.mark.parametrize(
    ("node", "services"),
    [
        ("from-role", ["neutron_sriov_agent", "cinder_volume"]),
        ("without-sriov", ["cinder_volume"]),
        ("by-name", ["ovn_metadata_agent"]),
        ("compute", ["libvirt", "nova_compute"]),
        ("compute-only", ["nova_compute"]),
        ("without-cell", ["nova_compute"]),
    ],
)
def test_what_runs_on_a_node_is_what_its_annotations_its_cell_and_its_roles_services_ask_for(
    planned: Planned, node: str, services: list[str]
) -> None:
    assert planned.services(node) == services


def test_without_any_of_them_the_node_is_left_alone(planned: Planned) -> None:
    left = {one.name: one.sentence for one in planned.plan.left_alone}
    assert left == {
        "left-alone": "no annotation asks for a service",
        "without-any": "no annotation asks for a service",
    }


def test_services_other_than_computes_need_no_cell_and_no_novacell(load: Load, plan_of: PlanOf) -> None:
    objects = [one for one in load("base", "services") if one["kind"] not in ("Nova", "NovaCell")]
    node = plan_of(objects).node("from-role")
    assert (node.cell, node.sentences) == (None, ())


def test_a_compute_without_a_cell_is_told_what_to_set(planned: Planned) -> None:
    assert planned.service("without-cell").blocked == (
        "OpenStackDataPlaneNode openstack/without-cell: nova_compute needs a cell; set the annotation "
        "nova.openstack.org/cell on the node or its role.",
    )


@pytest.mark.parametrize(
    ("node", "sentence"),
    [
        ("maybe", 'annotation cinder.openstack.org/volume: is "yes"; write "true" or "false".'),
        (
            "two-minds",
            "annotation cinder.openstack.org/volume: says otherwise than edpm.openstack.org/service-cinder_volume; "
            "keep one of the two.",
        ),
        ("mistyped", "annotation edpm.openstack.org/service-cinder-volumes: no definition describes cinder-volumes;"),
    ],
)
def test_an_annotation_that_says_nothing_clear_is_an_error(planned: Planned, node: str, sentence: str) -> None:
    assert f"OpenStackDataPlaneNode openstack/{node}, {sentence}" in planned.said(node)


def test_a_service_that_nobody_defined_may_be_turned_off(load: Load, plan_of: PlanOf, change: Change) -> None:
    off = {"metadata": {"annotations": {"edpm.openstack.org/service-cinder-volumes": "false"}}}
    objects = change(load("base", "services"), "OpenStackDataPlaneNode/mistyped", off)
    assert "mistyped" in [one.name for one in plan_of(objects).plan.left_alone]


def test_a_data_plane_service_is_known_by_its_type_and_else_by_its_name(planned: Planned) -> None:
    assert "/etc/ceph/ceph.conf" in planned.files("from-role", "cinder_volume")
    assert planned.services("from-role").count("cinder_volume") == 1


def test_a_service_without_a_definition_is_left_to_its_operator_and_phase_0_is_not_mentioned(planned: Planned) -> None:
    assert [one.sentence for one in planned.plan.left_to_operator] == [
        "OpenStackDataPlaneRole openstack/network, field spec.services: ovn has no definition here and is left to its "
        "operator."
    ]


def test_a_partners_definition_is_one_more_entry(load: Load, plan_of: PlanOf, change: Change) -> None:
    objects = change(
        load("base"),
        "OpenStackDataPlaneRole/compute",
        {"metadata": {"annotations": {"partner.example.com/probe": "true"}}},
    )
    objects.append(_object("partner.example.com/v1", "TelemetryProbe", "compute-0", {"customServiceConfig": "[a]\n"}))
    planned = plan_of(objects, {PARTNER.image_variable: "probe:1"}, definitions=WITH_PARTNER)
    assert planned.services("compute-0") == ["libvirt", "nova_compute", "telemetry-probe"]
    assert planned.files("compute-0", PARTNER.name) == {"/etc/probe/conf.d/99-override.conf": b"[a]\n"}
    probe = planned.service("compute-0", PARTNER.name)
    assert probe.image is not None
    assert probe.service_object is not None
    assert (probe.image.name, probe.service_object.exists, probe.cell) == ("probe:1", True, None)
    assert (
        str(known(planned.service("compute-1", PARTNER.name).service_object).ref)
        == "TelemetryProbe openstack/compute-1"
    )


def test_a_partners_service_is_asked_for_by_the_name_of_its_data_plane_service(
    load: Load, plan_of: PlanOf, change: Change
) -> None:
    objects = change(load("base"), "OpenStackDataPlaneRole/compute", {"spec": {"services": ["telemetry-probe"]}})
    source = {"dataSources": [{"configMapRef": {"name": "probe-files"}}]}
    objects.append(_object("dataplane.openstack.org/v1beta1", "OpenStackDataPlaneService", "telemetry-probe", source))
    files = {"10-probe.conf": "[b]\n", "licence.key": "x"}
    meta = {"name": "probe-files", "namespace": "openstack"}
    objects.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": files})
    planned = plan_of(objects, definitions=WITH_PARTNER)
    assert planned.files("compute-0", PARTNER.name) == {
        "/etc/probe/conf.d/10-probe.conf": b"[b]\n",
        "/etc/probe/licence.key": b"x",
    }
    assert planned.service("compute-0", PARTNER.name).left_out == ()
    assert plan_of(objects).plan.left_to_operator[0].service == "telemetry-probe"


def test_the_service_object_is_named_like_its_node_and_libvirt_shares_the_computes(planned: Planned) -> None:
    compute, libvirt = planned.service("compute"), planned.service("compute", "libvirt")
    assert compute.service_object is not None
    assert str(compute.service_object.ref) == "NovaExternalCompute openstack/compute"
    assert libvirt.service_object == compute.service_object


def test_two_service_objects_for_one_service_of_a_node_are_an_error(load: Load, plan_of: PlanOf) -> None:
    twins = [_compute("compute-0", "compute-0"), _compute("compute-0", "other")]
    assert (
        "NovaExternalCompute openstack/compute-0 and NovaExternalCompute openstack/other both describe "
    ) in plan_of([*load("base"), *twins]).said("compute-0")


def test_a_hand_made_service_object_asks_for_its_service_where_nobody_else_does(load: Load, plan_of: PlanOf) -> None:
    objects = [*load("base", "services"), _compute("left-alone", "left-alone")]
    planned = plan_of(objects)
    assert planned.services("left-alone") == ["libvirt", "nova_compute"]
    assert planned.node("left-alone").cell == "nova-cell1"


def test_a_service_object_that_a_node_owns_leaves_with_the_annotation(load: Load, plan_of: PlanOf) -> None:
    owned = _compute("left-alone", "left-alone")
    owned["metadata"]["ownerReferences"] = [{"kind": "OpenStackDataPlaneNode", "name": "left-alone"}]
    plan = plan_of([*load("base", "services"), owned]).plan
    assert "left-alone" in [one.name for one in plan.left_alone]
    assert plan.leaving[0].sentence == (
        "NovaExternalCompute openstack/left-alone: its node left-alone no longer asks for nova_compute."
    )


def test_a_service_object_that_is_being_deleted_is_waited_for(load: Load, plan_of: PlanOf) -> None:
    going = _compute("compute-0", "compute-0")
    going["metadata"]["deletionTimestamp"] = "2026-11-01T08:00:00Z"
    assert "NovaExternalCompute openstack/compute-0 is being deleted" in plan_of([*load("base"), going]).said(
        "compute-0"
    )


def test_a_service_object_that_is_being_deleted_asks_for_nothing(load: Load, plan_of: PlanOf, change: Change) -> None:
    going = {"metadata": {"deletionTimestamp": "2026-11-01T08:00:00Z"}}
    objects = change(load("base", "alone"), "NovaExternalCompute/lonely", going)
    left = {one.name: one.sentence for one in plan_of(objects).plan.left_alone}
    assert left == {"lonely": "its service objects are being deleted"}


def test_a_service_object_of_a_kind_that_nobody_defined_leaves_its_node_alone(load: Load, plan_of: PlanOf) -> None:
    probe = _object("partner.example.com/v1", "TelemetryProbe", "nobody", {})
    plan = plan_of([*load("base"), probe]).plan
    assert {one.name: one.sentence for one in plan.left_alone} == {
        "nobody": "no definition describes its service objects"
    }
    assert plan.leaving == ()


def test_a_node_that_is_being_deleted_is_left_alone(load: Load, plan_of: PlanOf, change: Change) -> None:
    objects = change(load("base"), "OpenStackDataPlaneNode/compute-0", {"metadata": {"deletionTimestamp": "now"}})
    assert [one.name for one in plan_of(objects).plan.left_alone] == ["compute-0"]


def _compute(node: str, name: str) -> Json:
    spec = {"dataplaneNodeName": node, "cellName": "nova-cell1"}
    return _object("nova.openstack.org/v1beta1", "NovaExternalCompute", name, spec)


def _object(api_version: str, kind: str, name: str, spec: Json) -> Json:
    spec = {"dataplaneNodeName": name, **spec} if kind != "OpenStackDataPlaneService" else spec
    meta = {"name": name, "namespace": "openstack"}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec}
