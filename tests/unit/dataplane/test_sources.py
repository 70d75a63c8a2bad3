# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes a file, under which name, from whom; the order of layers is judged by the room of conf.d."""

from __future__ import annotations

import base64

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.plan import resolve
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import Layer
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.stores import snapshot_of
from hypothesis import example, given
from hypothesis import strategies as st

from .conftest import Change, Json, Load, Planned, PlanOf, read

CONF_D = "/etc/nova/nova.conf.d"


def with_snippet(text: str) -> Json:
    spec = {"dataplaneNodeName": "compute-0", "cellName": "nova-cell1", "customServiceConfig": text}
    meta = {"name": "compute-0", "namespace": "openstack"}
    return {"apiVersion": "nova.openstack.org/v1beta1", "kind": "NovaExternalCompute", "metadata": meta, "spec": spec}


def cell_secret(update: dict[str, str]) -> Json:
    return {"stringData": update}


def test_conf_keys_become_files_and_the_blank_one_is_the_base_config(load: Load, plan_of: PlanOf) -> None:
    files = plan_of(load("base")).files("compute-0")
    assert files[f"{CONF_D}/01-nova.conf"] == b"[DEFAULT]\ntransport_url = rabbit://nova:planted-password@cell1/\n"
    assert files["/etc/nova/nova.conf"] == b""
    assert sorted(files) == [
        "/etc/nova/nova.conf",
        f"{CONF_D}/01-nova.conf",
        f"{CONF_D}/02-nova-host-specific.conf",
    ]


def test_a_key_without_a_place_is_left_out_and_the_plan_says_so(load: Load, plan_of: PlanOf) -> None:
    left = plan_of(load("base")).service("compute-0").left_out
    assert [one.sentence for one in left] == [
        f"Secret openstack/nova-cell1-compute-config, key {key}: is left out, since nova_compute has no place for such "
        "a file."
        for key in ("nova-compute-config.json", "rabbitmq_user_name")
    ]


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ("provider-gpu.yaml", "/etc/nova/provider_config/provider-gpu.yaml"),
        ("ceph.client.openstack.keyring", "/etc/ceph/ceph.client.openstack.keyring"),
        ("ceph.conf", "/etc/ceph/ceph.conf"),
        ("tls-ca-bundle.pem", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem"),
        ("99-last.conf", f"{CONF_D}/99-last.conf"),
    ],
)
def test_keys_that_a_definition_names_go_where_it_says(
    load: Load, plan_of: PlanOf, change: Change, key: str, place: str
) -> None:
    objects = change(load("base"), "Secret/nova-cell2-compute-config", cell_secret({key: "content"}))
    assert plan_of(objects).files("compute-1")[place] == b"content"


def test_a_hidden_conf_key_is_left_out_since_oslo_config_does_not_read_it(
    load: Load, plan_of: PlanOf, change: Change
) -> None:
    objects = change(load("base"), "Secret/nova-cell2-compute-config", cell_secret({".hidden.conf": "[a]\n"}))
    planned = plan_of(objects)
    assert f"{CONF_D}/.hidden.conf" not in planned.files("compute-1")
    assert "reads no hidden files" in planned.service("compute-1").left_out[0].sentence


def test_every_source_says_where_it_comes_from_and_whether_it_is_secret(load: Load, plan_of: PlanOf) -> None:
    sources = {one.layer: one for one in plan_of([*load("base"), with_snippet("[a]\n")]).service("compute-0").sources}
    told = {layer: (str(one.origin), one.secret) for layer, one in sources.items()}
    assert told[Layer.GENERATED][1] is True
    assert told[Layer.HOST] == ("OpenStackDataPlaneNode openstack/compute-0, spec", False)
    assert told[Layer.OVERRIDE] == ("NovaExternalCompute openstack/compute-0, spec.customServiceConfig", False)


def test_a_config_map_is_not_secret_and_its_binary_data_is_carried_as_bytes(load: Load, plan_of: PlanOf) -> None:
    planned = plan_of(load("base", "services"))
    sources = {one.file_name: one for one in planned.service("from-role", "cinder_volume").sources}
    assert sources["25-ceph.conf"].layer is Layer.DEPLOYER
    assert sources["25-ceph.conf"].secret is False
    left = [one.origin.field for one in planned.service("from-role", "cinder_volume").left_out]
    assert left == ["key README", "key splash.png"]


@pytest.mark.parametrize("blank", ["", "   ", "\n\n\t\r\n"])
def test_a_blank_snippet_makes_no_source(load: Load, plan_of: PlanOf, blank: str) -> None:
    assert f"{CONF_D}/02-nova-override.conf" not in plan_of([*load("base"), with_snippet(blank)]).files("compute-0")


@given(text=st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip))
@example(text="[DEFAULT]\r\nmy = {{ not_templated }} %(x)s $y\n# ünï\tno newline at the end")
@example(text="﻿[a]\n\x00")
def test_a_snippets_bytes_arrive_verbatim(text: str) -> None:
    planned = Planned(resolve(snapshot_of([*read("dataplane/base.yaml"), with_snippet(text)])))
    assert planned.files("compute-0")[f"{CONF_D}/02-nova-override.conf"] == text.encode()


@given(content=st.binary())
def test_a_secrets_bytes_arrive_verbatim(content: bytes) -> None:
    objects = read("dataplane/base.yaml")
    secret = next(one for one in objects if one["metadata"]["name"] == "nova-cell1-compute-config")
    secret["data"]["tls-ca-bundle.pem"] = base64.b64encode(content).decode()
    planned = Planned(resolve(snapshot_of(objects)))
    assert planned.files("compute-0")["/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem"] == content


def test_invalid_utf_8_in_a_conf_key_is_an_error_and_elsewhere_it_is_carried(
    load: Load, plan_of: PlanOf, change: Change
) -> None:
    bad = {"data": {"03-bad.conf": "/w==", "provider-x.yaml": "/w=="}}
    planned = plan_of(change(load("base"), "Secret/nova-cell1-compute-config", bad))
    assert planned.service("compute-0").errors == (
        "Secret openstack/nova-cell1-compute-config, key 03-bad.conf: is not UTF-8, which oslo.config needs; "
        "write the text anew.",
    )
    assert planned.files("compute-0")["/etc/nova/provider_config/provider-x.yaml"] == b"\xff"
    assert planned.node("compute-1").ready


@pytest.mark.parametrize("key", ["../escape.conf", "..", "a/b.conf", "new\nline.conf"])
def test_a_key_that_is_no_file_name_is_an_error(load: Load, plan_of: PlanOf, change: Change, key: str) -> None:
    objects = change(load("base"), "Secret/nova-cell2-compute-config", cell_secret({key: "[a]\n"}))
    planned = plan_of(objects)
    assert "is no name for a file" in planned.said("compute-1")
    assert not [name for name in planned.files("compute-1") if "escape" in name or "b.conf" in name]


def test_content_that_is_not_base64_is_an_error_without_showing_it(load: Load, plan_of: PlanOf, change: Change) -> None:
    objects = change(load("base"), "Secret/nova-cell1-compute-config", {"data": {"01-nova.conf": "plan!tedX"}})
    said = plan_of(objects).said("compute-0")
    assert "Secret openstack/nova-cell1-compute-config, field data.01-nova.conf: is not base64" in said
    assert "tedX" not in said


def test_string_data_wins_over_data(load: Load, plan_of: PlanOf, change: Change) -> None:
    objects = change(load("base"), "Secret/nova-cell1-compute-config", cell_secret({"01-nova.conf": "text"}))
    assert plan_of(objects).files("compute-0")[f"{CONF_D}/01-nova.conf"] == b"text"


def test_further_files_of_a_service_object_go_to_the_services_folder(load: Load, plan_of: PlanOf) -> None:
    planned = plan_of(load("base", "alone"))
    files = planned.files("lonely")
    assert files["/etc/nova/policy.yaml"] == b"rule: '@'\n"
    assert files["/etc/nova/provider_config/provider-gpu.yaml"] == b"meta: {}\n"
    assert planned.files("lonely", "libvirt") == {}


def test_a_further_file_with_a_bad_name_is_an_error(load: Load, plan_of: PlanOf, change: Change) -> None:
    objects = change(
        load("base", "alone"), "NovaExternalCompute/lonely", {"spec": {"defaultConfigOverwrite": {"../x": "y"}}}
    )
    assert "spec.defaultConfigOverwrite[../x]: is no name for a file" in plan_of(objects).said("lonely")


def test_no_secret_shows_when_anything_is_printed(load: Load) -> None:
    objects = load("base", "embedded", "metadata")
    taken = snapshot_of(objects, namespace="openstack")
    assert any(b"planted" in content for store in taken.stores.values() for content in store.data.values())
    assert "planted" not in repr(taken) + repr(resolve(taken)) + str(taken.stores)
