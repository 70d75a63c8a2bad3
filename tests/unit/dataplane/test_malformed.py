# SPDX-License-Identifier: GPL-3.0-or-later
"""A wrong type is an error that names the field, of that object and of the nodes that use it; the others go on."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.parse import parse_resources

from .conftest import Change, Json, Load, PlanOf

NODE, ROLE = "OpenStackDataPlaneNode/compute-0", "OpenStackDataPlaneRole/compute"


@pytest.mark.parametrize(
    ("name", "update", "sentence"),
    [
        (
            NODE,
            {"spec": {"node": {"ansiblePort": "22"}}},
            "OpenStackDataPlaneNode openstack/compute-0, field spec.node.ansiblePort: must be a whole "
            "number, not text; "
            "correct it.",
        ),
        (
            NODE,
            {"spec": {"node": {"ansiblePort": True}}},
            "OpenStackDataPlaneNode openstack/compute-0, field spec.node.ansiblePort: must be a whole number, "
            "not true or false; correct it.",
        ),
        (
            NODE,
            {"spec": {"node": {"ansiblePort": 70000}}},
            "OpenStackDataPlaneNode openstack/compute-0, field spec.node.ansiblePort: is 70000, which is no port; "
            "a port is between 1 and 65535.",
        ),
        (
            NODE,
            {"spec": {"ansibleHost": 19216812210}},
            "OpenStackDataPlaneNode openstack/compute-0, field spec.ansibleHost: must be text, not a "
            "number; correct it.",
        ),
        (
            NODE,
            {"metadata": {"annotations": {"neutron.openstack.org/sriov-agent": True}}},
            "OpenStackDataPlaneNode openstack/compute-0, field "
            "metadata.annotations.neutron.openstack.org/sriov-agent: must be text in quotes, not true or "
            "false; correct it.",
        ),
        (
            NODE,
            {"spec": {"node": {"ansibleVars": "a: {{ b }}"}}},
            "OpenStackDataPlaneNode openstack/compute-0, field spec.node.ansibleVars: is not YAML",
        ),
        (
            NODE,
            {"spec": {"node": {"ansibleVars": ["a"]}}},
            "OpenStackDataPlaneNode openstack/compute-0, field spec.node.ansibleVars: must be a mapping of "
            "variables, or "
            "the same as one text in YAML; correct it.",
        ),
        (
            NODE,
            {"spec": {"node": {"networks": [{"subnetName": "a"}]}}},
            "OpenStackDataPlaneNode openstack/compute-0, field spec.node.networks[0].name: is missing; set it.",
        ),
        (
            NODE,
            {"spec": {"role": None}},
            "OpenStackDataPlaneNode openstack/compute-0, field spec.role: is missing; set it.",
        ),
        (
            NODE,
            {"spec": {"node": "text"}},
            "OpenStackDataPlaneNode openstack/compute-0, field spec.node: must be a mapping, not text; correct it.",
        ),
        (
            NODE,
            {"spec": {"networkAttachments": "ctlplane"}},
            "OpenStackDataPlaneNode openstack/compute-0, field spec.networkAttachments: must be a list, not text; "
            "correct it.",
        ),
        (
            ROLE,
            {"spec": {"deployStrategy": {"deploy": "false"}}},
            "OpenStackDataPlaneRole openstack/compute, field spec.deployStrategy.deploy: must be true or false without "
            "quotes, not text; correct it.",
        ),
        (
            ROLE,
            {"spec": {"services": [1]}},
            "OpenStackDataPlaneRole openstack/compute, field spec.services: must be a list of texts, not a number; "
            "correct it.",
        ),
        (
            "NovaCell/nova-cell1",
            {"spec": {"cellName": 1}},
            "NovaCell openstack/nova-cell1, field spec.cellName: must be text, not a number; correct it.",
        ),
    ],
)
def test_a_wrong_type_is_an_error_that_names_the_field(
    load: Load, plan_of: PlanOf, change: Change, *, name: str, update: Json, sentence: str
) -> None:
    planned = plan_of(change(load("base"), name, update))
    assert any(one.startswith(sentence) for one in planned.node("compute-0").errors)
    assert any(one.startswith(sentence) for one in planned.plan.errors)
    assert planned.node("compute-1").ready is (name != ROLE)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (
            {"dataplaneNodeName": "compute-0", "customServiceConfig": {"DEFAULT": 1}},
            "NovaExternalCompute openstack/compute-0, field spec.customServiceConfig: must be text, not a mapping; "
            "correct it.",
        ),
        (
            {"dataplaneNodeName": "compute-0", "customServiceConfig": "\ud800"},
            "NovaExternalCompute openstack/compute-0, field spec.customServiceConfig: holds characters that "
            "UTF-8 cannot "
            "carry; write it anew.",
        ),
        (
            {},
            "NovaExternalCompute openstack/compute-0, field spec.dataplaneNodeName: is missing; set it.",
        ),
    ],
)
def test_a_malformed_service_object_is_an_error_of_its_node(
    load: Load, plan_of: PlanOf, spec: Json, sentence: str
) -> None:
    api, kind = "nova.openstack.org/v1beta1", "NovaExternalCompute"
    broken = {"apiVersion": api, "kind": kind, "metadata": {"name": "compute-0"}, "spec": spec}
    planned = plan_of([*load("base"), broken])
    assert planned.node("compute-0").errors == (sentence,)
    assert planned.node("compute-1").ready


def test_a_malformed_profile_is_an_error_of_those_who_choose_it(load: Load, plan_of: PlanOf, change: Change) -> None:
    objects = change(load("base", "profiles"), "ServiceProfile/big", {"spec": {"customServiceConfig": ["a"]}})
    planned = plan_of(objects)
    assert planned.service("from-role").errors == (
        "ServiceProfile openstack/big, field spec.customServiceConfig: must be text, not a list; correct it.",
    )
    assert planned.service("its-own").errors == ()


def test_a_malformed_node_of_a_nodeset_is_an_error_of_that_node_only(
    load: Load, plan_of: PlanOf, change: Change
) -> None:
    update: Json = {"spec": {"nodes": {"set-0": {"ansible": {"ansiblePort": []}}}}}
    planned = plan_of(change(load("base", "embedded"), "OpenStackDataPlaneNodeSet/set", update))
    assert planned.node("set-0").errors == (
        "OpenStackDataPlaneNodeSet openstack/set, field spec.nodes.set-0.ansible.ansiblePort: must be a whole number, "
        "not a list; correct it.",
    )
    assert planned.node("set-1").ready


def test_a_malformed_nova_is_an_error_of_the_agents_that_need_it(load: Load, plan_of: PlanOf, change: Change) -> None:
    objects = change(load("base", "metadata"), "Nova/nova", {"spec": {"metadataServiceTemplate": {"enabled": "yes"}}})
    planned = plan_of(objects)
    assert "field spec.metadataServiceTemplate.enabled: must be true or false" in planned.said("agent-in-cell1")
    assert planned.node("compute-0").ready


def test_a_malformed_data_plane_service_is_an_error_of_those_who_list_it(
    load: Load, plan_of: PlanOf, change: Change
) -> None:
    objects = change(load("base", "services"), "OpenStackDataPlaneService/disks", {"spec": {"dataSources": "ceph"}})
    planned = plan_of(objects)
    assert "field spec.dataSources: must be a list, not text" in planned.said("from-role")
    assert planned.node("compute").ready


def test_an_object_without_a_name_or_kind_is_named_by_its_number(plan_of: PlanOf) -> None:
    objects: list[Any] = [{"kind": "Nova", "metadata": {}}, {"metadata": {"name": "a"}}, "text"]
    errors = plan_of(objects).plan.errors
    assert [one.partition(",")[0] for one in errors] == [f"Object openstack/number {number}" for number in range(3)]


def test_an_unknown_field_and_an_unknown_kind_are_fine(load: Load, plan_of: PlanOf, change: Change) -> None:
    objects = change(load("base"), NODE, {"spec": {"somethingNew": {"a": [1]}}})
    objects.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "openstack"}})
    planned = plan_of(objects)
    assert planned.node("compute-0").ready
    assert planned.plan.errors == ()


def test_a_kind_of_the_same_name_in_another_group_is_not_read() -> None:
    other = {"apiVersion": "example.com/v1", "kind": "Nova", "metadata": {"name": "a"}, "spec": {}}
    assert parse_resources([other]).novas == ()


def test_what_kubectl_keeps_for_itself_is_not_kept(load: Load, change: Change) -> None:
    note = {"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}}}
    nodes = parse_resources(change(load("base"), "OpenStackDataPlaneNode/compute-1", note)).nodes
    assert dict(nodes[1].meta.annotations) == {"nova.openstack.org/cell": "nova-cell2"}


def test_what_is_quoted_in_a_sentence_breaks_neither_a_line_nor_a_terminal(
    load: Load, plan_of: PlanOf, change: Change
) -> None:
    odd = {"metadata": {"annotations": {"cinder.openstack.org/volume": "a\nb\x1b[31m"}}}
    said = plan_of(change(load("base"), NODE, odd)).said("compute-0")
    assert r'is "a\nb\x1b[31m"; write "true" or "false".' in said


def test_a_null_annotation_reads_as_an_empty_one(load: Load, plan_of: PlanOf, change: Change) -> None:
    null = {"metadata": {"annotations": {"nova.openstack.org/cell": None}}}
    objects = change(load("base"), "OpenStackDataPlaneNode/compute-1", null)
    assert [one.name for one in plan_of(objects).plan.left_alone] == ["compute-1"]


def test_variables_with_an_anchor_that_contains_itself_are_an_error(
    load: Load, plan_of: PlanOf, change: Change
) -> None:
    update = {"spec": {"node": {"ansibleVars": "a: &a [*a]"}}}
    assert "holds a YAML anchor that contains itself" in plan_of(change(load("base"), NODE, update)).said("compute-0")


def dns(config: Json) -> tuple[Json, list[str]]:
    """How the DNS settings of a compute are read, and what is said of them."""
    metadata = {"name": "compute-0", "namespace": "openstack"}
    spec = {"dataplaneNodeName": "compute-0", "dnsConfig": config}
    body = {
        "apiVersion": "nova.openstack.org/v1beta1",
        "kind": "NovaExternalCompute",
        "metadata": metadata,
        "spec": spec,
    }
    [found] = parse_resources([body]).service_resources
    return dict(found.dns_config), [fault.sentence for fault in found.meta.faults]


def test_dns_settings_are_read_without_what_is_empty() -> None:
    options = [{"name": "ndots", "value": "2"}, {"name": "rotate"}]
    assert dns({"nameservers": ["192.0.2.53"], "searches": [], "options": options}) == (
        {"nameservers": ("192.0.2.53",), "options": options},
        [],
    )
    assert dns({}) == ({}, [])


@pytest.mark.parametrize(
    ("config", "fault"),
    [
        ({"nameservers": "192.0.2.53"}, "spec.dnsConfig.nameservers: must be a list, not text"),
        ({"options": [{"name": "ndots", "value": 2}]}, "spec.dnsConfig.options[0].value: must be text, not a number"),
        ({"options": [{"value": "2"}]}, "spec.dnsConfig.options[0].name: is missing"),
    ],
)
def test_dns_settings_of_a_wrong_type_are_told(config: Json, fault: str) -> None:
    [sentence] = dns(config)[1]
    assert sentence.startswith(f"NovaExternalCompute openstack/compute-0, field {fault}")
