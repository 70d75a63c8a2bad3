# SPDX-License-Identifier: GPL-3.0-or-later
"""The specification's own example CRs, unchanged, and CRs as they are written today."""

from __future__ import annotations

import pytest

from .conftest import PlanOf, known, read

SPECIFICATION = "specification"


def test_the_specifications_first_node_takes_its_roles_cell(plan_of: PlanOf) -> None:
    planned = plan_of(read(SPECIFICATION))
    assert planned.node("edpm-compute-0").cell == "nova-cell1"
    assert planned.services("edpm-compute-0") == ["libvirt", "nova_compute"]


def test_the_specifications_second_node_overrides_its_roles_cell(plan_of: PlanOf) -> None:
    assert plan_of(read(SPECIFICATION)).node("edpm-compute-1").cell == "nova-cell2"


def test_the_specifications_nodes_are_reached_as_node_and_role_say(plan_of: PlanOf) -> None:
    connection = plan_of(read(SPECIFICATION)).node("edpm-compute-1").connection
    assert (connection.ansible_host, connection.ansible_port) == ("192.168.122.101", 22)
    assert connection.ssh_key is not None
    assert connection.ssh_key.secret.name == "dataplane-ansible-ssh-private-key-secret"
    assert connection.ssh_key.key == "ssh-privatekey"


def test_the_specifications_blank_snippet_makes_no_file(plan_of: PlanOf) -> None:
    assert not [name for name in plan_of(read(SPECIFICATION)).files("edpm-compute-0") if "override" in name]


def test_the_specifications_service_object_is_found_and_the_others_would_be_created(plan_of: PlanOf) -> None:
    planned = plan_of(read(SPECIFICATION))
    found = {node: known(planned.service(node).service_object) for node in ("edpm-compute-0", "edpm-compute-1")}
    assert {node: one.exists for node, one in found.items()} == {"edpm-compute-0": True, "edpm-compute-1": False}
    assert str(found["edpm-compute-1"].ref) == "NovaExternalCompute openstack/edpm-compute-1"


def test_the_specifications_missing_objects_are_named(plan_of: PlanOf) -> None:
    planned = plan_of(read(SPECIFICATION))
    assert planned.said("edpm-compute-0") == (
        "Secret openstack/nova-cell1-compute-config does not exist; NovaCell nova-cell1 makes it once it is Ready."
    )
    assert "NovaCell openstack/nova-cell2 does not exist" in planned.said("edpm-compute-1")
    assert planned.plan.errors == planned.plan.warnings == ()


def test_a_nodeset_of_today_is_one_role_with_its_nodes(plan_of: PlanOf) -> None:
    planned = plan_of(read("today"))
    first, second = planned.node("edpm-compute-0"), planned.node("edpm-compute-1")
    assert first.role == second.role == "openstack-edpm-compute"
    assert first.cell == second.cell == "nova-cell1"
    assert planned.services("edpm-compute-0") == ["libvirt", "nova_compute", "ovn_metadata_agent"]
    assert (first.connection.ansible_user, first.connection.ansible_port) == ("cloud-admin", 22)
    assert (second.connection.ansible_user, second.connection.ansible_port) == ("root", 2022)


def test_a_nodesets_variables_keep_their_types_and_its_nodes_add_their_own(plan_of: PlanOf) -> None:
    variables = plan_of(read("today")).node("edpm-compute-0").connection.variables
    assert variables["nested"] == {"a_float": 1.5, "a_text": "24", "a_null_list": []}
    assert variables["gather_facts"] is False
    assert variables["fqdn_internal_api"] == "edpm-compute-0.internalapi.example.com"
    assert isinstance(variables["edpm_network_config_template"], str)
    assert "{{ neutron_physical_bridge_name }}" in variables["edpm_network_config_template"]


@pytest.mark.parametrize(
    "missing", ["ConfigMap openstack/network-config-vars", "Secret openstack/nova-cell1-metadata-compute-config"]
)
def test_what_a_nodeset_of_today_lacks_is_named(plan_of: PlanOf, missing: str) -> None:
    assert f"{missing}" in plan_of(read("today")).said("edpm-compute-0")


def test_a_service_of_today_without_a_definition_is_left_to_its_operator(plan_of: PlanOf) -> None:
    left = plan_of(read("today")).plan.left_to_operator
    assert [one.service for one in left] == ["ovn"]
    assert "left to its operator" in left[0].sentence
