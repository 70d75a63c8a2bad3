# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import configparser

import pytest

from .conftest import Change, Json, Load, PlanOf, known

NODE = "OpenStackDataPlaneNode/compute-0"
FILE = "/etc/nova/nova.conf.d/02-nova-host-specific.conf"


def variables(**values: str) -> Json:
    return {"spec": {"node": {"ansibleVars": values}}}


@pytest.mark.parametrize(
    ("update", "host"),
    [
        ({}, "compute-0.example.com"),
        ({"spec": {"hostName": None}}, "compute-0"),
        (variables(edpm_nova_host="other.example.com"), "other.example.com"),
    ],
)
def test_host_is_the_nodes_host_name_else_its_name_unless_a_variable_says_otherwise(
    load: Load, plan_of: PlanOf, change: Change, update: Json, host: str
) -> None:
    assert known(plan_of(change(load("base"), NODE, update)).service("compute-0").identity).host == host


@pytest.mark.parametrize(
    ("update", "my_ip"),
    [
        ({}, "192.0.2.10"),
        ({"spec": {"ansibleHost": "compute-0.example.com"}}, None),
        ({"spec": {"ansibleHost": "2001:db8::10"}}, "2001:db8::10"),
        ({"spec": {"node": {"networks": [{"name": "InternalApi", "fixedIP": "198.51.100.10"}]}}}, "198.51.100.10"),
        ({"spec": {"node": {"networks": [{"name": "storage", "fixedIP": "198.51.100.10"}]}}}, "192.0.2.10"),
        (variables(internalapi_ip="198.51.100.11"), "198.51.100.11"),
        (variables(edpm_nova_my_ip="198.51.100.12", internalapi_ip="198.51.100.11"), "198.51.100.12"),
    ],
)
def test_my_ip_is_the_variable_else_the_internal_api_address_else_an_address_in_ansible_host(
    load: Load, plan_of: PlanOf, change: Change, update: Json, my_ip: str | None
) -> None:
    assert known(plan_of(change(load("base"), NODE, update)).service("compute-0").identity).my_ip == my_ip


def test_my_ip_is_the_address_that_a_nodesets_status_tells(load: Load, plan_of: PlanOf) -> None:
    planned = plan_of(load("base", "embedded"))
    assert known(planned.service("set-1").identity).my_ip == "198.51.100.61"
    assert known(planned.service("set-0").identity).my_ip == "192.0.2.60"


@pytest.mark.parametrize(
    ("update", "sentence"),
    [
        (
            variables(edpm_nova_host="{{ inventory_hostname }}"),
            "ansibleVars edpm_nova_host: '{{ inventory_hostname }}'",
        ),
        (variables(edpm_nova_host="a\nstate_path = /"), "ansibleVars edpm_nova_host"),
        (variables(edpm_nova_my_ip="compute"), "ansibleVars edpm_nova_my_ip: 'compute' is not an address"),
        ({"spec": {"hostName": "two words"}}, 'field hostName: "two words" is no host name; correct it.'),
    ],
)
def test_what_cannot_be_an_identity_is_an_error_of_the_node(
    load: Load, plan_of: PlanOf, change: Change, update: Json, sentence: str
) -> None:
    planned = plan_of(change(load("base"), NODE, update))
    assert f"OpenStackDataPlaneNode openstack/compute-0, {sentence}" in planned.said("compute-0")
    assert planned.node("compute-1").ready


def test_the_host_specific_file_tells_host_address_and_paths(load: Load, plan_of: PlanOf) -> None:
    text = plan_of(load("base")).files("compute-0")[FILE].decode()
    parsed = configparser.ConfigParser(default_section="none")
    parsed.read_string(text)
    assert dict(parsed["DEFAULT"]) == {
        "host": "compute-0.example.com",
        "my_ip": "192.0.2.10",
        "state_path": "/var/lib/nova",
    }
    assert parsed["oslo_concurrency"]["lock_path"].startswith("/var/lib/nova/")
    assert parsed["vnc"]["server_proxyclient_address"] == "192.0.2.10"


def test_without_an_address_the_host_specific_file_says_nothing_of_it(
    load: Load, plan_of: PlanOf, change: Change
) -> None:
    objects = change(load("base"), NODE, {"spec": {"ansibleHost": "compute-0.example.com"}})
    assert plan_of(objects).files("compute-0")[FILE] == (
        b"[DEFAULT]\nhost = compute-0.example.com\nstate_path = /var/lib/nova\n\n"
        b"[oslo_concurrency]\nlock_path = /var/lib/nova/locks\n"
    )
