# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Mapping

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.inheritance import inherit
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.model import (
    Metadata,
    Network,
    Node,
    NodeSection,
    Reference,
    Role,
)
from hypothesis import given
from hypothesis import strategies as st

from .conftest import Json, Load, Planned, PlanOf

ROLE_REF = Reference("OpenStackDataPlaneRole", "openstack", "role")
NODE_REF = Reference("OpenStackDataPlaneNode", "openstack", "node")

values = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=2))
sections = st.builds(
    NodeSection,
    ansible_user=st.none() | st.text(min_size=1),
    ansible_port=st.none() | st.integers(1, 65535),
    ansible_vars=st.none() | st.dictionaries(st.sampled_from("abc"), values, min_size=1),
    ssh_key_secret=st.none() | st.text(min_size=1),
    management_network=st.none() | st.text(min_size=1),
    networks=st.none() | st.lists(st.builds(Network, st.sampled_from("xy")), min_size=1, max_size=2).map(tuple),
)


@pytest.fixture
def planned(load: Load, plan_of: PlanOf) -> Planned:
    return plan_of(load("inheritance"))


@pytest.mark.parametrize(
    ("node", "user", "port", "key"),
    [("all-from-role", "cloud-admin", 22, "role-key"), ("all-its-own", "root", 2022, "node-key")],
)
def test_a_nodes_property_counts_else_its_roles(planned: Planned, node: str, user: str, port: int, key: str) -> None:
    connection = planned.node(node).connection
    assert connection.ssh_key is not None
    assert (connection.ansible_user, connection.ansible_port, connection.ssh_key.secret.name) == (user, port, key)


def test_ansible_vars_merge_by_top_level_key_and_no_deeper(planned: Planned) -> None:
    variables = planned.node("all-its-own").connection.variables
    assert variables["ntp"] == {"servers": ["ntp-1.example.com"]}
    assert (variables["mtu"], variables["template"]) == (1500, "{{ inventory_hostname }}-bond")


def test_ansible_vars_as_a_yaml_text_and_as_a_mapping_keep_their_types(planned: Planned) -> None:
    assert planned.node("all-its-own").connection.variables["since"] == "2024-01-31"
    variables = planned.node("all-from-role").connection.variables
    assert variables["text_number"] == "24"
    assert variables["mtu"] == 9000
    assert isinstance(variables["ntp"], Mapping)
    assert variables["ntp"]["iburst"] is True


def test_network_attachments_on_both_must_be_equal_whatever_their_order(planned: Planned) -> None:
    assert "networkAttachments" not in planned.said("all-its-own")
    assert planned.node("other-attachments").errors == (
        "OpenStackDataPlaneNode openstack/other-attachments, field networkAttachments: [internalapi] differs from "
        "[ctlplane, storage] of OpenStackDataPlaneRole openstack/storage; set it on one of them, or the same on both.",
    )


@pytest.mark.parametrize(("node", "deploy"), [("all-from-role", False), ("all-its-own", True)])
def test_deploy_is_the_nodes_else_the_roles(planned: Planned, node: str, deploy: bool) -> None:
    assert planned.node(node).deploy is deploy


def test_deploy_is_true_where_nobody_says(load: Load, plan_of: PlanOf) -> None:
    assert plan_of(load("base")).node("compute-0").deploy is True


def test_a_node_naming_a_role_that_does_not_exist_is_an_error_of_that_node_only(planned: Planned) -> None:
    assert planned.node("no-such-role").errors == (
        "OpenStackDataPlaneNode openstack/no-such-role, field role: OpenStackDataPlaneRole openstack/storrage does not "
        "exist; create it, or name one that does.",
    )
    assert planned.node("all-its-own").errors == ()


def test_a_role_described_twice_by_data_planes_is_an_error_that_names_both(plan_of: PlanOf) -> None:
    embedded: Json = {"roles": {"compute": {}}, "nodes": {}}
    planes = [_dataplane("one", embedded), _dataplane("two", {**embedded, "nodes": {"n": {"role": "compute"}}})]
    assert "described by OpenStackDataPlane openstack/one and OpenStackDataPlane openstack/two" in plan_of(planes).said(
        "n"
    )


@given(own=sections, theirs=sections)
def test_every_property_of_the_node_replaces_the_roles_whole(own: NodeSection, theirs: NodeSection) -> None:
    node = Node("node", Metadata(NODE_REF), "role", section=own)
    merged = inherit(node, Role("role", Metadata(ROLE_REF), template=theirs)).section
    for name in ("ansible_user", "ansible_port", "ssh_key_secret", "management_network", "networks"):
        mine = getattr(own, name)
        assert getattr(merged, name) == (mine if mine is not None else getattr(theirs, name))
    assert (merged.ansible_vars or {}) == {**(theirs.ansible_vars or {}), **(own.ansible_vars or {})}


def _dataplane(name: str, spec: Json) -> Json:
    meta = {"name": name, "namespace": "openstack"}
    return {
        "apiVersion": "dataplane.openstack.org/v1beta1",
        "kind": "OpenStackDataPlane",
        "metadata": meta,
        "spec": spec,
    }
