# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from .conftest import Change, Load, Planned, PlanOf, known


@pytest.fixture
def planned(load: Load, plan_of: PlanOf) -> Planned:
    return plan_of(load("base", "embedded"))


def test_a_data_plane_embeds_roles_and_nodes(planned: Planned) -> None:
    node = planned.node("embedded-0")
    assert (node.role, node.dataplane, node.cell) == ("embedded", "edpm", "nova-cell1")
    assert (node.connection.ansible_host, node.connection.ansible_user) == ("192.0.2.50", "cloud-admin")
    assert planned.services("embedded-0") == ["libvirt", "nova_compute"]
    assert str(node.origin) == "OpenStackDataPlane openstack/edpm"


def test_an_embedded_node_may_have_a_role_that_is_an_object_of_its_own(planned: Planned) -> None:
    assert (planned.node("embedded-1").role, planned.node("embedded-1").cell) == ("compute", "nova-cell1")


def test_an_object_of_its_own_wins_whole_over_an_embedded_one_of_the_same_name(planned: Planned) -> None:
    node = planned.node("compute-0")
    assert (node.connection.ansible_host, node.role) == ("192.0.2.10", "compute")
    assert str(node.origin) == "OpenStackDataPlaneNode openstack/compute-0"


def test_an_embedded_node_waits_for_its_data_plane(load: Load, plan_of: PlanOf, change: Change) -> None:
    not_ready = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    planned = plan_of(change(load("base", "embedded"), "OpenStackDataPlane/edpm", not_ready))
    assert planned.said("embedded-0") == (
        "OpenStackDataPlane openstack/edpm spec.nodes.embedded-0 is not Ready; the node goes on once phase 0 is done."
    )
    assert planned.node("compute-0").ready


def test_a_nodeset_is_read_as_one_role_with_its_nodes(planned: Planned) -> None:
    first, second = planned.node("set-0"), planned.node("set-1")
    assert (first.role, first.cell, first.host_name) == ("set", "nova-cell1", "set-0.example.com")
    assert second.host_name == "set-1"
    assert (second.connection.ansible_host, second.connection.ansible_port) == ("set-1.example.com", 2022)
    assert first.connection.ansible_user == second.connection.ansible_user == "cloud-admin"
    assert first.network_attachments == ("ctlplane",)
    assert first.connection.ssh_key is not None
    assert first.connection.ssh_key.exists is True


def test_ansible_vars_of_a_nodeset_win_over_ansible_vars_from_and_a_nodes_over_the_templates(planned: Planned) -> None:
    assert dict(planned.node("set-0").connection.variables) == {
        "edpm_ntp": "ntp.example.com",
        "edpm_who": "never",
        "who": "node",
        "kept": 1,
    }
    assert planned.node("set-1").connection.variables["who"] == "template"


def test_a_secret_never_becomes_a_host_variable(planned: Planned) -> None:
    node = planned.node("set-0")
    assert node.notes == (
        "ansibleVarsFrom Secret openstack/subscription is left out: Secrets never become host variables.",
    )
    assert "planted-password" not in str(node.connection.variables)


def test_a_config_map_of_ansible_vars_from_that_does_not_exist_blocks_the_node(load: Load, plan_of: PlanOf) -> None:
    objects = [one for one in load("base", "embedded") if one["metadata"]["name"] != "shared-vars"]
    assert plan_of(objects).said("set-0") == (
        "ConfigMap openstack/shared-vars, which OpenStackDataPlaneNodeSet openstack/set names in ansibleVarsFrom, does "
        "not exist; create it, or mark it optional."
    )


def test_a_malformed_config_map_of_ansible_vars_from_is_told(load: Load, plan_of: PlanOf, change: Change) -> None:
    objects = change(load("base", "embedded"), "ConfigMap/shared-vars", {"data": {"ntp": 1}})
    assert plan_of(objects).said("set-0") == (
        "ConfigMap openstack/shared-vars, field data.ntp: must be text, not a number; correct it."
    )


def test_addresses_in_a_nodesets_status_are_found_by_the_host_name_too(
    load: Load, plan_of: PlanOf, change: Change
) -> None:
    told = {"status": {"allIPs": {"set-0.example.com": {"internalapi": "198.51.100.60"}}}}
    planned = plan_of(change(load("base", "embedded"), "OpenStackDataPlaneNodeSet/set", told))
    assert known(planned.service("set-0").identity).my_ip == "198.51.100.60"


def test_a_service_object_alone_is_enough_to_deploy_from(load: Load, plan_of: PlanOf) -> None:
    planned = plan_of(load("base", "alone"))
    node = planned.node("lonely")
    assert node.ready
    assert (node.cell, node.role, node.network_attachments) == ("nova-cell1", None, ("ctlplane",))
    assert planned.services("lonely") == ["libvirt", "nova_compute"]
    assert known(planned.service("lonely").image).name == "registry.example.com/nova:by-hand"
    connection = node.connection
    assert (connection.ansible_host, connection.ansible_user, connection.ansible_port) == (
        "192.0.2.70",
        "cloud-admin",
        2022,
    )
    assert connection.variables["shared"] == "host"
    assert connection.ssh_key is not None
    assert connection.ssh_key.exists is True
    assert known(planned.service("lonely").identity).my_ip == "198.51.100.70"


def test_a_service_object_alone_without_an_inventory_is_blocked_with_a_sentence(load: Load, plan_of: PlanOf) -> None:
    objects = [one for one in load("base", "alone") if one["metadata"]["name"] != "dataplanenode-lonely"]
    assert plan_of(objects).said("lonely") == (
        "NovaExternalCompute openstack/lonely: neither its Node nor ConfigMap "
        "openstack/dataplanenode-lonely with the key "
        "inventory exists; create one of them."
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("all: {hosts: {other: {}}}", "does not name the host lonely"),
        ("a: [", "is not YAML"),
        ("- a", "must be a mapping"),
    ],
)
def test_an_inventory_that_cannot_be_used_is_an_error(
    load: Load, plan_of: PlanOf, change: Change, text: str, sentence: str
) -> None:
    objects = change(load("base", "alone"), "ConfigMap/dataplanenode-lonely", {"data": {"inventory": text}})
    assert sentence in plan_of(objects).said("lonely")
