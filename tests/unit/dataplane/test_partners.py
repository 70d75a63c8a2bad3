# SPDX-License-Identifier: GPL-3.0-or-later
"""A partner's definition out of a ConfigMap: the how-to page's own example, and every way to get it wrong."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.built_in import BUILT_IN
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.definitions import ServiceDefinition
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.parse import parse_resources
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.partner_schema import SCHEMA
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.partners import definition_of, definition_sources
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.shapes import Either, Listed, Shape
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.stores import snapshot_of
from hypothesis import given
from hypothesis import strategies as st

from .conftest import Change, Json, Load, Objects, PlanOf, known

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "partner-service.md"
BLOCKS = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
NAME = "telemetry-probe"
WHERE = f"ConfigMap openstack/{NAME}, key edpm-service.yaml"
LICENCE = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "telemetry-probe-licence", "namespace": "openstack"},
    "stringData": {"licence.key": "planted-licence"},
}


def example() -> Objects:
    """The ConfigMap and the OpenStackDataPlaneService of the page, and the Secret that they need."""
    return [*yaml.safe_load_all(BLOCKS[0]), copy.deepcopy(LICENCE)]


def fields() -> Json:
    """The fields of the page's definition."""
    found: Json = yaml.safe_load(example()[0]["data"]["edpm-service.yaml"])
    return found


def custom_resource() -> Json:
    found: Json = yaml.safe_load(BLOCKS[2])
    return {**found, "metadata": {**found["metadata"], "name": "compute-0"}, "spec": {
        **found["spec"], "dataplaneNodeName": "compute-0",
    }}  # fmt: skip


def world(load: Load, change: Change, *more: Json) -> Objects:
    """Two computes whose role lists the service."""
    objects = change(load("base"), "OpenStackDataPlaneRole/compute", {"spec": {"services": [NAME]}})
    return [*objects, *example(), *more]


def saying(objects: Objects, **update: Any) -> Objects:
    """The objects, with other fields in the definition; None takes one away."""
    for body in objects:
        if body["metadata"]["name"] == NAME and body["kind"] == "ConfigMap":
            says = yaml.safe_load(body["data"]["edpm-service.yaml"])
            says = {key: value for key, value in {**says, **update}.items() if value is not None}
            body["data"]["edpm-service.yaml"] = yaml.safe_dump(says)
    return objects


def faults(**update: Any) -> tuple[str, ...]:
    says = {key: value for key, value in {**fields(), **update}.items() if value is not None}
    return known(definition_of(says, WHERE, NAME).partner).faults


def test_the_pages_example_has_no_fault_and_makes_the_files_that_it_says(
    load: Load, plan_of: PlanOf, change: Change
) -> None:
    planned = plan_of(world(load, change, custom_resource()))
    assert planned.services("compute-0") == ["libvirt", "nova_compute", NAME]
    probe = planned.service("compute-0", NAME)
    assert (probe.errors, probe.blocked, probe.left_out) == ((), (), ())
    assert planned.files("compute-0", NAME) == {
        "/etc/probe/conf.d/10-probe.conf": b"[DEFAULT]\ncollector = collector.example.com:4317\n",
        "/etc/probe/conf.d/99-override.conf": b"[DEFAULT]\ndebug = True\n",
        "/etc/probe/licence.key": b"planted-licence",
    }
    assert known(probe.image).name == "registry.example.com/probe:1.5"
    assert str(known(probe.service_object).ref) == "TelemetryProbe openstack/compute-0"
    assert known(probe.definition)["command"] == "probe --config-dir /etc/probe/conf.d"


def test_an_annotation_of_the_partners_own_asks_for_the_service(load: Load, plan_of: PlanOf, change: Change) -> None:
    noted = yaml.safe_load(BLOCKS[1])
    objects = change(load("base"), "OpenStackDataPlaneNode/compute-0", noted)
    planned = plan_of([*objects, *example()])
    assert NAME in planned.services("compute-0")
    assert NAME not in planned.services("compute-1")


def test_the_image_is_the_service_objects_else_the_environments_else_the_definitions(
    load: Load, plan_of: PlanOf, change: Change
) -> None:
    variable = "RELATED_IMAGE_EDPM_TELEMETRY_PROBE_IMAGE_URL_DEFAULT"
    for more, images, name, source in (
        ([custom_resource()], {variable: "env:1"}, "registry.example.com/probe:1.5", "field spec.containerImage"),
        ([], {variable: "env:1"}, "env:1", f"environment variable {variable}"),
        ([], {}, "registry.example.com/probe:1.4", f"{WHERE}, field image"),
    ):
        image = known(plan_of(world(load, change, *more), images).service("compute-0", NAME).image)
        assert image.name == name
        assert image.source.endswith(source)


def test_without_an_image_the_note_names_the_field_of_the_definition(
    load: Load, plan_of: PlanOf, change: Change
) -> None:
    planned = plan_of(saying(world(load, change), image=None))
    assert (
        f"No image is named for {NAME}: set image in {WHERE}, or the environment variable "
        "RELATED_IMAGE_EDPM_TELEMETRY_PROBE_IMAGE_URL_DEFAULT."
    ) in planned.service("compute-0", NAME).notes


def test_a_definition_counts_in_its_own_namespace_only(load: Load, plan_of: PlanOf, change: Change) -> None:
    elsewhere = example()
    for body in elsewhere:
        body["metadata"]["namespace"] = "elsewhere"
    objects = change(load("base"), "OpenStackDataPlaneRole/compute", {"spec": {"services": [NAME]}})
    planned = plan_of([*objects, *elsewhere])
    assert NAME not in planned.services("compute-0")
    assert [one.service for one in planned.plan.left_to_operator] == [NAME]


def test_a_service_without_a_definition_stays_left_to_its_operator(load: Load, plan_of: PlanOf, change: Change) -> None:
    objects = world(load, change)
    for body in objects:
        body.get("data", {}).pop("edpm-service.yaml", None)
    planned = plan_of(objects)
    assert planned.services("compute-0") == ["libvirt", "nova_compute"]
    assert [one.sentence for one in planned.plan.left_to_operator] == [
        f"OpenStackDataPlaneRole openstack/compute, field spec.services: {NAME} has no definition here and is left to "
        "its operator."
    ]


def test_a_definition_that_is_wrong_blocks_its_service_and_nothing_else(
    load: Load, plan_of: PlanOf, change: Change
) -> None:
    planned = plan_of(saying(world(load, change), comand="probe", command=None))
    assert planned.service("compute-0", NAME).errors == (
        f"{WHERE}, field comand: is not known; did you mean command?",
        f"{WHERE}, field command: is missing; say what is started, or name a config.json of kolla in kolla_config.",
    )
    assert planned.service("compute-0").errors == ()
    assert not planned.node("compute-0").errors
    assert planned.plan.errors == ()


def test_text_that_is_no_yaml_blocks_the_service_that_lists_it(load: Load, plan_of: PlanOf, change: Change) -> None:
    objects = world(load, change)
    objects[-3]["data"]["edpm-service.yaml"] = "version: 1\nname: [\n"
    said = plan_of(objects).service("compute-0", NAME).errors
    assert len(said) == 1
    assert re.fullmatch(rf"{re.escape(WHERE)}: is not YAML in line \d+ \(.+\); correct it\.", said[0])


@pytest.mark.parametrize(
    ("update", "sentence"),
    [
        ({"version": None}, "field version: is missing; add it."),
        ({"version": 2}, "field version: 2 is not a whole number of at least 1 and at most 1; correct it."),
        ({"user": None}, "field user: is missing; add it."),
        ({"name": "probe"}, f'field name: is "probe", but the service is called {NAME}; write {NAME}, or leave'),
        ({"imagefield": "x"}, "field imagefield: is not known; did you mean image?"),
        ({"zzz": "x"}, "field zzz: is not known; the fields there are version, name, title,"),
        ({"kolla_config": "probe-config.json"}, "field kolla_config: stands beside command, and says itself"),
        ({"conf_d": None}, "field validation: is oslo.config, but there is no conf_d to validate;"),
        ({"conf_d": "etc/probe"}, 'field conf_d: "etc/probe" is not a whole path such as /etc/probe'),
        ({"conf_d": "/etc/../root"}, 'field conf_d: "/etc/../root" is not a whole path'),
        ({"instances": "yes"}, 'field instances: "yes" is neither true nor false; write one of them without quotes.'),
        ({"stop_seconds": "20"}, 'field stop_seconds: "20" is not a whole number of at least 1 and at most 3600;'),
        ({"folders": [{"path": "/a", "mode": 0o755}]}, "field folders[0].mode: 493 is not permissions as text in"),
        ({"folders": [{"owner": "probe"}]}, "field folders[0].path: is missing; add it."),
        ({"folders": {"path": "/a"}}, "field folders: a mapping is not a list; write one entry to a line"),
        ({"data": ["/var"]}, 'field data[0]: "/var" is not a whole path at least two folders deep'),
        ({"ports": ["9100"]}, 'field ports[0]: "9100" is not a port such as tcp 9100 or udp 500-510; correct it.'),
        ({"sysctls": {"net.a": 1}}, 'field sysctls.net.a: 1 is not a value as text in quotes, such as "1";'),
        ({"environment": ["A=b"]}, "field environment: a list is not a mapping; write `name: value` to a line."),
        ({"health": {"timeout": 5}}, "field health: must have either command or connected, and one of them only;"),
        ({"health": {"comand": []}}, "field health.comand: is not known; did you mean command?"),
        ({"validation": "full"}, 'field validation: "full" is neither none nor oslo.config nor a mapping; correct it.'),
        ({"validation": {}}, "field validation.command: is missing; add it."),
        ({"service_cr": {"kind": "A"}}, "field service_cr.api_version: is missing; add it."),
        (
            {"service_cr": {"api_version": "nova.openstack.org/v1beta1", "kind": "NovaExternalCompute"}},
            "field service_cr.kind: NovaExternalCompute of nova.openstack.org has a meaning here already;",
        ),
        ({"service_cr": {"api_version": "v1", "kind": "Secret"}}, 'field service_cr.api_version: "v1" is not a group'),
        ({"asked_by": ["cinder.openstack.org/volume"]}, "field asked_by: cinder.openstack.org/volume has a meaning"),
        ({"asked_by": ["edpm.openstack.org/profile-x"]}, "field asked_by: edpm.openstack.org/profile-x has a meaning"),
        ({"asked_by": ["probe"]}, 'field asked_by[0]: "probe" is not an annotation such as a.com/probe; correct it.'),
        ({"image": "bad image"}, 'field image: "bad image" is not an image\'s name; correct it.'),
        (
            {"privileges": {"podman_options": ["--privileged"]}},
            'field privileges.podman_options[0]: "--privileged" is not an option of podman run such as --pid=host, and',
        ),
        ({"keys": [{"key": "a/b", "directory": "/a"}]}, 'field keys[0].key: "a/b" is not a key of a Secret or'),
        ({"mounts": [{"source": "/a:/b"}]}, 'field mounts[0].source: "/a:/b" is not a whole path'),
        ({"files": [{"path": "/a", "content": 1}]}, "field files[0].content: 1 is not a text; correct it."),
    ],
)
def test_every_fault_names_the_config_map_the_field_and_the_remedy(update: Json, sentence: str) -> None:
    found = faults(**update)
    assert len(found) == 1, found
    assert found[0].startswith(f"{WHERE}, {sentence}")


@pytest.mark.parametrize("document", ["", "- a\n", "text", b"\xff\xfe\x00", "a: &a\n  b: *a\n"])
def test_a_document_without_fields_is_one_fault(document: str | bytes) -> None:
    found = known(definition_of(document, WHERE, NAME).partner).faults
    assert len(found) == 1
    assert found[0].startswith(f"{WHERE}: ")


@given(
    st.dictionaries(
        st.sampled_from([*SCHEMA.fields, "x"]),
        st.recursive(
            st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8)),
            lambda inner: st.one_of(
                st.lists(inner, max_size=3),
                st.dictionaries(
                    st.one_of(st.text(max_size=6), st.sampled_from(["path", "command"])), inner, max_size=3
                ),
            ),
        ),
    )
)
def test_nothing_that_a_definition_says_is_worse_than_a_fault(says: Json) -> None:
    made = definition_of(says, WHERE, NAME)
    assert made.name == NAME
    assert all(fault.startswith(WHERE) for fault in known(made.partner).faults)


def test_a_definition_must_not_redefine_a_service_of_the_collection(
    load: Load, plan_of: PlanOf, change: Change
) -> None:
    objects = world(load, change)
    for body in objects:
        if body["kind"] == "OpenStackDataPlaneService":
            body["spec"]["edpmServiceType"] = "nova"
    planned = plan_of(objects)
    assert NAME not in planned.services("compute-0")
    assert (
        f"{WHERE}: nova_compute is defined by this collection, and no file may define it anew; remove the key, or give "
        "the OpenStackDataPlaneService another name and edpmServiceType."
    ) in planned.service("compute-0").errors
    for name in BUILT_IN:
        assert "and no file may define it anew" in known(definition_of(fields(), "file.yaml", name).partner).faults[0]


def test_two_definitions_of_one_name_in_a_namespace_are_told(load: Load, plan_of: PlanOf, change: Change) -> None:
    second = copy.deepcopy(example()[0])
    second["metadata"]["name"] = "another"
    objects = world(load, change, second)
    service = next(body for body in objects if body["kind"] == "OpenStackDataPlaneService")
    service["spec"]["dataSources"].append({"configMapRef": {"name": "another"}})
    assert plan_of(objects).service("compute-0", NAME).errors[0] == (
        f"{NAME} is defined by {WHERE} and ConfigMap openstack/another, key edpm-service.yaml; keep one of them."
    )


def test_two_services_of_one_type_may_share_a_definition(load: Load, plan_of: PlanOf, change: Change) -> None:
    second = copy.deepcopy(example()[1])
    second["metadata"]["name"] = "probe-too"
    second["spec"]["edpmServiceType"] = NAME
    objects = change(
        world(load, change, second), "OpenStackDataPlaneRole/compute", {"spec": {"services": ["probe-too"]}}
    )
    probe = plan_of(objects).service("compute-0", NAME)
    assert (probe.errors, probe.blocked) == ((), ())


def test_a_required_key_that_nobody_has_keeps_the_service_waiting(load: Load, plan_of: PlanOf, change: Change) -> None:
    planned = plan_of(saying(world(load, change), required_keys=["licence.key", "site.key"]))
    assert planned.service("compute-0", NAME).blocked == (
        f"{NAME} needs the key site.key, which no Secret or ConfigMap that it uses has; add it to one that its "
        "OpenStackDataPlaneService lists.",
    )


def test_a_service_that_needs_a_cell_or_takes_no_instances_says_so(load: Load, plan_of: PlanOf, change: Change) -> None:
    objects = change(
        load("base", "services"),
        "OpenStackDataPlaneNode/by-name",
        {
            "metadata": {
                "annotations": {
                    "probe.example.com/telemetry": "true",
                    "edpm.openstack.org/instances-telemetry-probe": "b",
                }
            }
        },
    )
    planned = plan_of(saying([*objects, *example()], needs_cell=True))
    assert f"{NAME} needs a cell" in planned.said("by-name")
    assert f"{NAME} runs only once on a node" in planned.said("by-name")
    planned = plan_of(saying([*objects, *example()], instances=True))
    assert f"{NAME}@b" in planned.services("by-name")


def test_a_snippet_for_a_service_without_conf_d_is_left_out_and_told(
    load: Load, plan_of: PlanOf, change: Change
) -> None:
    planned = plan_of(saying(world(load, change, custom_resource()), conf_d=None, validation=None))
    probe = planned.service("compute-0", NAME)
    assert probe.errors == ()
    assert [one.sentence for one in probe.left_out] == [
        f"ConfigMap openstack/{NAME}, key 10-probe.conf: is left out, since {NAME} has no place for such a file.",
        "TelemetryProbe openstack/compute-0, spec.customServiceConfig: is left out, since the definition of "
        f"{NAME} has no conf_d.",
    ]


def test_only_config_maps_of_services_that_nobody_knows_are_looked_at_for_definitions(load: Load) -> None:
    objects = [*load("base", "services"), *example()]
    found = definition_sources(parse_resources(objects, namespace="openstack"))
    assert [str(ref) for ref in found] == [f"ConfigMap openstack/{NAME}"]


def test_a_snapshot_keeps_no_config_map_of_a_definition_that_no_node_uses(load: Load) -> None:
    taken = snapshot_of([*load("base"), *example()], namespace="openstack")
    assert [one.name for one in taken.definitions] == [NAME]
    assert NAME not in {ref.name for ref in taken.stores}


def test_a_live_key_says_so() -> None:
    made = definition_of(fields(), WHERE, NAME)
    assert known(made.place_of("tls.key")).live
    assert not known(made.place_of("licence.key")).live


def test_the_page_tells_of_every_field() -> None:
    text = PAGE.read_text()
    table = text[text.index("## The fields") : text.index("## When the file is wrong")]
    missing = [name for name in _names(SCHEMA) if f"`{name}`" not in table and f"`{name}: <" not in table]
    assert missing == []
    assert set(fields()) >= set(SCHEMA.fields) - {
        "name", "needs_cell", "instances", "profile_file", "override_file", "kolla_config", "tmpfiles",
    }  # fmt: skip


def _names(kind: object) -> list[str]:
    if isinstance(kind, Listed):
        return _names(kind.of)
    if isinstance(kind, Either):
        return _names(kind.shape)
    if isinstance(kind, Shape):
        return [name for field, inner in kind.fields.items() for name in (field, *_names(inner))]
    return []


def test_a_definition_read_from_a_file_has_its_own_name() -> None:
    made = definition_of(yaml.safe_dump({**fields(), "name": "probe"}), "probe.yaml")
    assert isinstance(made, ServiceDefinition)
    assert (made.name, known(made.partner).faults) == ("probe", ())
    nameless = definition_of(yaml.safe_dump(fields()), "probe.yaml")
    assert known(nameless.partner).faults == ("probe.yaml, field name: is missing; add it.",)
