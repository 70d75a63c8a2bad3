# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Sequence

import pytest

from .conftest import Change, Json, Load, PlanOf

AGENT = "ovn_metadata_agent"
SNIPPET = "/etc/neutron.conf.d/05-nova-metadata.conf"


def modes(top: bool | None, cell: bool | None) -> Json:
    """What a Nova says of its metadata services; None says nothing."""
    spec = {"cellTemplates": {"cell1": {} if cell is None else {"metadataServiceTemplate": {"enabled": cell}}}}
    return {"spec": spec if top is None else {**spec, "metadataServiceTemplate": {"enabled": top}}}


def test_the_compute_secret_is_named_by_the_novacell_alone(load: Load, plan_of: PlanOf) -> None:
    origins = [str(one.origin) for one in plan_of(load("base")).service("compute-1").sources]
    assert "Secret openstack/nova-cell2-compute-config, key 01-nova.conf" in origins


@pytest.mark.parametrize(
    ("top", "cell", "text"),
    [(None, None, b"top"), (True, None, b"top"), (True, False, b"top"), (False, True, b"cell")],
)
def test_the_metadata_secret_is_that_of_the_mode_that_is_enabled(
    load: Load, plan_of: PlanOf, change: Change, *, top: bool | None, cell: bool | None, text: bytes
) -> None:
    planned = plan_of(change(load("base", "metadata"), "Nova/nova", modes(top, cell)))
    assert planned.files("agent-in-cell1", AGENT) == {SNIPPET: text}
    assert planned.node("agent-in-cell1").ready


@pytest.mark.parametrize("top", [None, True])
def test_both_metadata_modes_are_an_error_that_names_both(
    load: Load, plan_of: PlanOf, change: Change, top: bool | None
) -> None:
    planned = plan_of(change(load("base", "metadata"), "Nova/nova", modes(top, True)))
    assert planned.service("agent-in-cell1", AGENT).errors == (
        "Nova openstack/nova: both spec.metadataServiceTemplate.enabled and "
        "spec.cellTemplates[nova-cell1].metadataServiceTemplate.enabled are true; disable one of the two.",
    )
    assert planned.node("agent-without-cell").ready


def test_no_metadata_mode_blocks_the_agent_with_a_sentence(load: Load, plan_of: PlanOf, change: Change) -> None:
    planned = plan_of(change(load("base", "metadata"), "Nova/nova", modes(False, None)))
    assert planned.service("agent-in-cell1", AGENT).blocked == (
        "Nova openstack/nova: no metadata service is enabled for the whole Nova or for NovaCell nova-cell1; "
        "enable one of them.",
    )
    assert planned.node("compute-0").ready


def test_an_agent_without_a_cell_uses_the_only_nova(load: Load, plan_of: PlanOf) -> None:
    assert plan_of(load("base", "metadata")).files("agent-without-cell", AGENT) == {SNIPPET: b"top"}


def test_an_agent_without_a_cell_cannot_choose_between_novas(load: Load, plan_of: PlanOf) -> None:
    other = {"apiVersion": "nova.openstack.org/v1beta1", "kind": "Nova", "metadata": {"name": "edge"}, "spec": {}}
    planned = plan_of([*load("base", "metadata"), other])
    assert "namespace openstack has the Novas edge and nova; list the Secret" in planned.said("agent-without-cell")
    assert planned.node("agent-in-cell1").ready


def test_todays_name_of_the_metadata_secret_is_found_too(load: Load, plan_of: PlanOf) -> None:
    objects = load("base", "metadata")
    for one in objects:
        if one["metadata"]["name"] == "nova-metadata-compute-config":
            one["metadata"]["name"] = "nova-metadata-neutron-config"
    assert plan_of(objects).files("agent-in-cell1", AGENT) == {SNIPPET: b"top"}


def test_of_the_two_metadata_names_the_one_that_is_listed_counts(load: Load, plan_of: PlanOf) -> None:
    objects = [*load("base", "metadata"), _secret("nova-metadata-neutron-config", {"05-nova-metadata.conf": "listed"})]
    objects.append(_service("neutron-metadata", ["nova-metadata-neutron-config"]))
    assert plan_of(objects).files("agent-in-cell1", AGENT) == {SNIPPET: b"listed"}


def test_secrets_and_config_maps_of_the_data_plane_service_are_added(
    load: Load, plan_of: PlanOf, change: Change
) -> None:
    objects = change(load("base"), "OpenStackDataPlaneRole/compute", {"spec": {"services": ["nova"]}})
    objects += [_service("nova", ["nova-cell1-compute-config", "nova-migration-ssh-key"], ["nova-extra-config"])]
    objects += [_secret("nova-migration-ssh-key", {"ssh-privatekey": "k", "ssh-publickey": "p"})]
    objects += [{**_secret("nova-extra-config", {}), "kind": "ConfigMap", "data": {"25-nova-extra.conf": "[a]\n"}}]
    files = plan_of(objects).files("compute-0")
    assert files["/var/lib/nova/.ssh/ssh-privatekey"] == b"k"
    assert files["/etc/nova/nova.conf.d/25-nova-extra.conf"] == b"[a]\n"


def test_a_secret_that_is_both_derived_and_listed_counts_once(load: Load, plan_of: PlanOf, change: Change) -> None:
    objects = change(load("base"), "OpenStackDataPlaneRole/compute", {"spec": {"services": ["nova", "nova-again"]}})
    objects += [_service("nova", ["nova-cell1-compute-config"])]
    objects += [_service("nova-again", ["nova-cell1-compute-config"], kind="nova")]
    names = [one.file_name for one in plan_of(objects).service("compute-0").sources]
    assert names.count("01-nova.conf") == 1


def test_the_compute_secret_of_another_cell_is_an_error_that_names_both_cells(
    load: Load, plan_of: PlanOf, change: Change
) -> None:
    objects = change(load("base"), "OpenStackDataPlaneRole/compute", {"spec": {"services": ["nova"]}})
    objects += [_service("nova", ["nova-cell1-compute-config"])]
    planned = plan_of(objects)
    assert planned.service("compute-1").errors == (
        "OpenStackDataPlaneService openstack/nova, field spec.dataSources[0].secretRef: Secret "
        "openstack/nova-cell1-compute-config belongs to NovaCell nova-cell1, but the node belongs to NovaCell "
        "nova-cell2; list a service of nova-cell2 instead, or remove the Secret.",
    )
    assert planned.node("compute-0").ready


def test_a_data_plane_service_that_no_role_lists_stands_in_without_another_cells_secret(
    load: Load, plan_of: PlanOf
) -> None:
    objects = [*load("base"), _service("nova", ["nova-cell1-compute-config", "extra"])]
    objects += [_secret("extra", {"30-extra.conf": "[a]\n"})]
    planned = plan_of(objects)
    assert planned.files("compute-1")["/etc/nova/nova.conf.d/30-extra.conf"] == b"[a]\n"
    assert planned.node("compute-1").ready
    assert "belongs to NovaCell nova-cell1, not nova-cell2" in planned.service("compute-1").notes[0]


def test_a_data_plane_service_with_the_name_but_another_type_does_not_stand_in(load: Load, plan_of: PlanOf) -> None:
    objects = [*load("base"), _service("nova", ["extra"], kind="something-else")]
    objects += [_secret("extra", {"30-extra.conf": "[a]\n"})]
    assert "/etc/nova/nova.conf.d/30-extra.conf" not in plan_of(objects).files("compute-0")


def test_a_listed_secret_that_only_looks_like_a_cells_is_added(load: Load, plan_of: PlanOf, change: Change) -> None:
    objects = change(load("base"), "OpenStackDataPlaneRole/compute", {"spec": {"services": ["nova"]}})
    objects += [_service("nova", ["site-compute-config"]), _secret("site-compute-config", {"40-site.conf": "[a]\n"})]
    planned = plan_of(objects)
    assert planned.files("compute-0")["/etc/nova/nova.conf.d/40-site.conf"] == b"[a]\n"
    assert planned.node("compute-0").ready


def test_a_metadata_secret_that_is_listed_is_enough_where_no_nova_is_known(load: Load, plan_of: PlanOf) -> None:
    objects = [one for one in load("base", "metadata") if one["kind"] != "Nova"]
    assert "There is no Nova in namespace openstack" in plan_of(objects).said("agent-without-cell")
    objects.append(_service("neutron-metadata", ["nova-metadata-compute-config"]))
    planned = plan_of(objects)
    assert planned.files("agent-without-cell", AGENT) == {SNIPPET: b"top"}
    assert planned.node("agent-without-cell").ready


@pytest.mark.parametrize(("optional", "ready"), [(True, True), (False, False)])
def test_a_listed_source_that_does_not_exist_blocks_unless_it_is_optional(
    load: Load, plan_of: PlanOf, change: Change, optional: bool, ready: bool
) -> None:
    objects = change(load("base"), "OpenStackDataPlaneRole/compute", {"spec": {"services": ["nova"]}})
    source = {"configMapRef": {"name": "nova-extra-config", "optional": optional}}
    objects += [{**_service("nova", []), "spec": {"dataSources": [source]}}]
    node = plan_of(objects).node("compute-0")
    assert node.ready is ready
    assert (
        node.sentences == ()
        if ready
        else node.sentences
        == (
            "ConfigMap openstack/nova-extra-config, which OpenStackDataPlaneService openstack/nova lists in "
            "spec.dataSources[0].configMapRef, does not exist; create it, or mark it optional.",
        )
    )


def _secret(name: str, data: dict[str, str]) -> Json:
    meta = {"name": name, "namespace": "openstack"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": data}


def _service(name: str, secrets: Sequence[str], config_maps: Sequence[str] = (), kind: str | None = None) -> Json:
    sources = [{"secretRef": {"name": one}} for one in secrets]
    sources += [{"configMapRef": {"name": one}} for one in config_maps]
    spec = {"dataSources": sources} if kind is None else {"edpmServiceType": kind, "dataSources": sources}
    meta = {"name": name, "namespace": "openstack"}
    return {
        "apiVersion": "dataplane.openstack.org/v1beta1",
        "kind": "OpenStackDataPlaneService",
        "metadata": meta,
        "spec": spec,
    }
