# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from .conftest import Change, Load, PlanOf, known

ROLE, NODE = "OpenStackDataPlaneRole/compute", "OpenStackDataPlaneNode/compute-0"
PLAIN, SPECIAL = "edpm.openstack.org/deploy-nova_compute", "nova.openstack.org/deploy"


@pytest.mark.parametrize(
    ("role", "node", "held_by"),
    [
        ({}, {}, None),
        ({PLAIN: "false"}, {}, "OpenStackDataPlaneRole openstack/compute, annotation " + PLAIN),
        ({SPECIAL: "false"}, {}, "OpenStackDataPlaneRole openstack/compute, annotation " + SPECIAL),
        ({}, {PLAIN: "false"}, "OpenStackDataPlaneNode openstack/compute-0, annotation " + PLAIN),
        ({PLAIN: "false"}, {PLAIN: "true"}, None),
        ({PLAIN: "false"}, {SPECIAL: "true"}, None),
        ({}, {PLAIN: "true", SPECIAL: "false"}, "OpenStackDataPlaneNode openstack/compute-0, annotation " + SPECIAL),
    ],
)
def test_a_hold_is_the_nodes_else_the_roles_and_of_two_spellings_false_counts(
    load: Load, plan_of: PlanOf, change: Change, *, role: dict[str, str], node: dict[str, str], held_by: str | None
) -> None:
    objects = change(load("base"), ROLE, {"metadata": {"annotations": role}})
    change(objects, NODE, {"metadata": {"annotations": node}})
    hold = plan_of(objects).service("compute-0").hold
    assert hold == (held_by and f'{held_by}: is "false"; set it to "true" or remove it to deploy.')


def test_a_held_service_is_resolved_and_not_blocked_and_the_others_go_on(
    load: Load, plan_of: PlanOf, change: Change
) -> None:
    planned = plan_of(change(load("base"), ROLE, {"metadata": {"annotations": {SPECIAL: "false"}}}))
    assert planned.node("compute-0").ready
    assert len(planned.service("compute-0").sources) == 3
    assert planned.service("compute-0", "libvirt").hold is None


def test_deploy_false_on_the_service_object_holds_what_it_describes(load: Load, plan_of: PlanOf) -> None:
    compute = {
        "apiVersion": "nova.openstack.org/v1beta1",
        "kind": "NovaExternalCompute",
        "metadata": {"name": "compute-0", "namespace": "openstack"},
        "spec": {"dataplaneNodeName": "compute-0", "cellName": "nova-cell1", "deploy": False},
    }
    planned = plan_of([*load("base"), compute])
    assert planned.service("compute-0").hold == (
        "NovaExternalCompute openstack/compute-0, field spec.deploy: is false; set it to true to deploy."
    )
    assert planned.service("compute-0", "libvirt").hold is not None


def test_a_hold_that_says_nothing_clear_is_an_error(load: Load, plan_of: PlanOf, change: Change) -> None:
    planned = plan_of(change(load("base"), NODE, {"metadata": {"annotations": {PLAIN: "no"}}}))
    assert f'openstack/compute-0, annotation {PLAIN}: is "no"; write "true" or "false".' in planned.said("compute-0")


def test_a_nodesets_annotation_holds_its_nodes(load: Load, plan_of: PlanOf) -> None:
    assert "OpenStackDataPlaneNodeSet openstack/set" in known(plan_of(load("base", "embedded")).service("set-0").hold)
