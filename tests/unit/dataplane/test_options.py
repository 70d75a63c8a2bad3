# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables of a node that say how a service runs, and a kolla config of the user's own."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.images import undeployable
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import Image, ServicePlan

from .conftest import Change, Load, Objects, Planned, PlanOf, known

NODE = "OpenStackDataPlaneNode openstack/compute-0"


@pytest.fixture
def with_variables(load: Load, plan_of: PlanOf, change: Change) -> Any:
    def planned(**variables: Any) -> Planned:
        section = {"spec": {"node": {"ansibleVars": variables}}}
        return plan_of(change(load("base"), "OpenStackDataPlaneNode/compute-0", section))

    return planned


def test_a_service_gets_the_variables_of_its_name_and_those_that_all_share(with_variables: Any) -> None:
    planned = with_variables(
        edpm_nova_compute_iscsid=True, edpm_libvirt_mode="host", edpm_keep_generations=5, edpm_other=1, rack="a"
    )
    assert planned.service("compute-0").options == {"edpm_nova_compute_iscsid": True, "edpm_keep_generations": 5}
    assert planned.service("compute-0", "libvirt").options == {"edpm_libvirt_mode": "host", "edpm_keep_generations": 5}
    assert planned.service("compute-1").options == {}


def test_the_roles_variables_count_below_the_nodes(load: Load, plan_of: PlanOf, change: Change) -> None:
    template = {"spec": {"nodeTemplate": {"ansibleVars": "edpm_libvirt_mode: host\nedpm_keep_generations: 2\n"}}}
    own = {"spec": {"node": {"ansibleVars": {"edpm_libvirt_mode": "container"}}}}
    objects = change(load("base"), "OpenStackDataPlaneRole/compute", template)
    planned = plan_of(change(objects, "OpenStackDataPlaneNode/compute-0", own))
    assert planned.service("compute-0", "libvirt").options["edpm_libvirt_mode"] == "container"
    assert planned.service("compute-1", "libvirt").options["edpm_libvirt_mode"] == "host"
    assert planned.service("compute-0").options["edpm_keep_generations"] == 2


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"edpm_nova_compute_migration": "{{ way }}"}, "edpm_nova_compute_migration: holds a template, and templates"),
        ({"edpm_image_pull": "often"}, "edpm_image_pull: often is none of missing, always, never; correct it."),
        ({"edpm_validation": True}, "edpm_validation: true is none of off, warn, fail; correct it."),
        ({"edpm_keep_generations": "3"}, "edpm_keep_generations: 3 is no number of generations; write 1 or more"),
        ({"edpm_keep_generations": 0}, "edpm_keep_generations: 0 is no number of generations; write 1 or more"),
    ],
)
def test_an_option_that_says_nothing_clear_is_an_error(with_variables: Any, variables: Any, sentence: str) -> None:
    said = with_variables(**variables).service("compute-0").errors
    assert len(said) == 1
    assert said[0].startswith(f"{NODE}, ansibleVars {sentence}")


def test_a_template_in_a_variable_that_nobody_here_reads_is_left_out_with_a_note(with_variables: Any) -> None:
    planned = with_variables(edpm_nova_compute_image="{{ registry }}/nova", edpm_nova_compute_list=["{% x %}"])
    service = planned.service("compute-0")
    assert (service.options, service.errors) == ({}, ())
    assert [note.split(":")[0] for note in service.notes if "template" in note] == [
        f"{NODE}, ansibleVars edpm_nova_compute_image",
        f"{NODE}, ansibleVars edpm_nova_compute_list",
    ]


def test_a_bare_off_that_yaml_takes_for_false_is_off(with_variables: Any) -> None:
    assert with_variables(edpm_validation=False).service("compute-0").options == {"edpm_validation": "off"}


def test_the_plan_says_which_options_apply(with_variables: Any) -> None:
    planned = with_variables(edpm_libvirt_mode="host", edpm_validation="warn")
    assert "libvirt runs with edpm_libvirt_mode: host, edpm_validation: warn." in (
        planned.service("compute-0", "libvirt").notes
    )


def test_when_to_pull_is_said_without_a_registry_secret_too(with_variables: Any) -> None:
    planned = with_variables(edpm_image_pull="never")
    assert known(planned.service("compute-0").registry).pull == "never"
    assert planned.service("compute-1").registry is None


def with_kolla(load: Load, change: Change, content: str, **variables: Any) -> Objects:
    secret = {"stringData": {"my-config.json": content}}
    objects = change(load("base"), "Secret/nova-cell1-compute-config", secret)
    section = {"spec": {"node": {"ansibleVars": variables}}}
    return change(objects, "OpenStackDataPlaneNode/compute-0", section)


OWN = json.dumps({"command": "nova-compute --mine", "config_files": []})


def test_a_kolla_config_of_the_users_own_is_taken_where_a_variable_asks_for_it(
    load: Load, plan_of: PlanOf, change: Change
) -> None:
    planned = plan_of(with_kolla(load, change, OWN, edpm_nova_compute_kolla_config="my-config.json"))
    service = planned.service("compute-0")
    assert service.user_kolla == OWN.encode()
    assert "key my-config.json" not in [one.origin.field for one in service.left_out]
    assert "key nova-compute-config.json" in [one.origin.field for one in service.left_out]
    note = "nova_compute is started by Secret openstack/nova-cell1-compute-config, key my-config.json."
    assert note in service.notes
    assert OWN not in repr(service)


def test_without_one_the_operators_config_stays_left_out(load: Load, plan_of: PlanOf, change: Change) -> None:
    service = plan_of(with_kolla(load, change, OWN)).service("compute-0")
    assert service.user_kolla is None
    assert {"key my-config.json", "key nova-compute-config.json"} <= {one.origin.field for one in service.left_out}


def test_the_operators_own_config_can_be_asked_for(load: Load, plan_of: PlanOf, change: Change) -> None:
    objects = with_kolla(load, change, OWN, edpm_nova_compute_kolla_config="nova-compute-config.json")
    objects = change(objects, "Secret/nova-cell1-compute-config", {"stringData": {"nova-compute-config.json": OWN}})
    assert plan_of(objects).service("compute-0").user_kolla == OWN.encode()


@pytest.mark.parametrize("content", ["no json", "[]", "{}", '{"command": " "}'])
def test_a_kolla_config_that_starts_nothing_is_an_error(
    load: Load, plan_of: PlanOf, change: Change, content: str
) -> None:
    planned = plan_of(with_kolla(load, change, content, edpm_nova_compute_kolla_config="my-config.json"))
    assert planned.service("compute-0").errors == (
        "Secret openstack/nova-cell1-compute-config, key my-config.json: is no kolla config, JSON with a "
        '"command"; correct it.',
    )


def test_a_kolla_config_that_nobody_has_keeps_the_service_waiting(load: Load, plan_of: PlanOf, change: Change) -> None:
    planned = plan_of(with_kolla(load, change, OWN, edpm_nova_compute_kolla_config="other.json"))
    assert planned.service("compute-0").blocked == (
        "nova_compute: edpm_nova_compute_kolla_config names the kolla config other.json, but no Secret or ConfigMap "
        "that the service uses has such a key; add it to one that its OpenStackDataPlaneService lists.",
    )


def test_a_service_without_an_image_cannot_be_deployed_and_says_why(load: Load, plan_of: PlanOf) -> None:
    service = plan_of(load("base")).service("compute-0")
    assert undeployable(service) == (
        "No image is named for nova_compute: set spec.novaComputeContainerImage of the NovaExternalCompute, or the "
        "environment variable RELATED_IMAGE_NOVA_COMPUTE_IMAGE_URL_DEFAULT."
    )
    assert undeployable(ServicePlan("x", image=Image("a", "b"))) is None
    assert undeployable(ServicePlan("x")) == "No image is named for x: name one, then deploy again."


def test_libvirt_from_the_nodes_packages_needs_no_image(with_variables: Any) -> None:
    planned = with_variables(edpm_libvirt_mode="host")
    assert undeployable(planned.service("compute-0", "libvirt")) is None
    assert undeployable(planned.service("compute-0")) is not None
