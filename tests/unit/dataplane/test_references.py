# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.parse import parse_resources
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.references import references
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.stores import snapshot_of

from .conftest import Change, Load, Objects, PlanOf, read


def names(objects: Objects) -> list[str]:
    return sorted(f"{ref.kind}/{ref.name}" for ref in references(parse_resources(objects, namespace="openstack")))


BASE = ["Secret/nova-cell1-compute-config", "Secret/nova-cell2-compute-config", "Secret/ssh-key"]


@pytest.mark.parametrize(
    ("fixtures", "more"),
    [
        (["base"], []),
        (
            ["base", "services"],
            ["ConfigMap/ceph", "Secret/nova-metadata-compute-config", "Secret/nova-metadata-neutron-config"],
        ),
        (["base", "alone"], ["ConfigMap/dataplanenode-lonely"]),
        (["base", "embedded"], ["ConfigMap/shared-vars"]),
        (["base", "metadata"], ["Secret/nova-metadata-compute-config", "Secret/nova-metadata-neutron-config"]),
    ],
)
def test_what_is_read_is_what_the_resources_name_and_nothing_else(
    load: Load, fixtures: list[str], more: list[str]
) -> None:
    assert names(load(*fixtures)) == sorted([*BASE, *more])


def test_the_cells_metadata_secret_is_read_where_its_mode_is_enabled(load: Load, change: Change) -> None:
    spec = {
        "metadataServiceTemplate": {"enabled": False},
        "cellTemplates": {"cell1": {"metadataServiceTemplate": {"enabled": True}}},
    }
    found = names(change(load("base", "metadata"), "Nova/nova", {"spec": spec}))
    assert "Secret/nova-cell1-metadata-compute-config" in found
    assert "Secret/nova-metadata-compute-config" not in found


def test_nothing_is_read_for_a_node_that_is_left_alone(load: Load, change: Change) -> None:
    objects = change(
        load("base"), "OpenStackDataPlaneRole/compute", {"metadata": {"annotations": {"nova.openstack.org/cell": ""}}}
    )
    assert names(objects) == ["Secret/nova-cell2-compute-config", "Secret/ssh-key"]
    out = {"metadata": {"annotations": {"nova.openstack.org/cell": ""}}}
    assert names(change(objects, "OpenStackDataPlaneNode/compute-1", out)) == []


def test_listed_sources_the_earlier_lists_and_the_ca_bundle_are_read() -> None:
    objects = read("today")
    node_set = next(one for one in objects if one["kind"] == "OpenStackDataPlaneNodeSet")
    node_set["spec"]["services"] = ["nova-custom"]
    assert [name for name in names(objects) if not name.startswith("Secret/cert-")] == [
        "ConfigMap/edpm-compute-1-vars",
        "ConfigMap/network-config-vars",
        "ConfigMap/nova-extra-config",
        "Secret/ceph-conf-files",
        "Secret/combined-ca-bundle",
        "Secret/dataplane-ansible-ssh-private-key-secret",
        "Secret/nova-cell1-compute-config",
        "Secret/nova-migration-ssh-key",
    ]
    earlier = parse_resources(objects).services[0]
    assert [(str(one.source), one.field) for one in earlier.sources] == [
        ("Secret default/nova-cell1-compute-config", "spec.secrets"),
        ("ConfigMap default/nova-extra-config", "spec.configMaps"),
    ]


def test_a_snapshot_holds_what_is_named_and_no_other_secret(load: Load) -> None:
    held = {ref.name for ref in snapshot_of(load("base")).stores}
    assert held == {"nova-cell1-compute-config", "nova-cell2-compute-config", "ssh-key"}


def test_a_secret_of_the_same_name_in_another_namespace_is_another(load: Load, plan_of: PlanOf, change: Change) -> None:
    elsewhere = {"metadata": {"namespace": "elsewhere"}}
    planned = plan_of(change(load("base"), "Secret/nova-cell1-compute-config", elsewhere))
    assert "Secret openstack/nova-cell1-compute-config does not exist" in planned.said("compute-0")
