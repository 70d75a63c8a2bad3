# SPDX-License-Identifier: GPL-3.0-or-later
"""From a plan to hosts: the names that users type."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.template import is_trusted_as_template
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.model import Reference
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import (
    Connection,
    NodePlan,
    Plan,
    ServicePlan,
)
from ansible_collections.edpm.services.plugins.plugin_utils._inventory.hosts import group_name, hosts, trusted


def node(name: str = "edpm-compute-0", **rest: Any) -> NodePlan:
    origin = Reference("OpenStackDataPlaneNode", rest.pop("namespace", "openstack"), name)
    return NodePlan(name=name, namespace=origin.namespace, host_name=name, origin=origin, **rest)


FULL = node(
    role="edpm-compute",
    dataplane="openstack-edpm",
    cell="nova-cell1",
    services=(ServicePlan("libvirt"), ServicePlan("nova_compute"), ServicePlan("nova_compute", "second")),
    connection=Connection("192.0.2.1", "cloud-admin", 22, {"a": "{{ b }}", "c": [1, {"d": "{{ e }}"}]}),
)


def test_a_host_has_its_connection_and_what_the_plan_says_of_it() -> None:
    (host,) = hosts(Plan((FULL,)))
    assert host.name == "edpm-compute-0"
    assert host.variables == {
        "ansible_host": "192.0.2.1",
        "ansible_user": "cloud-admin",
        "ansible_port": 22,
        "a": "{{ b }}",
        "c": [1, {"d": "{{ e }}"}],
        "edpm_node": "edpm-compute-0",
        "edpm_role": "edpm-compute",
        "edpm_cell": "nova-cell1",
        "edpm_services": ["libvirt", "nova_compute", "nova_compute@second"],
        "edpm_blocked": [],
    }
    assert host.groups == (
        "role_edpm_compute",
        "cell_nova_cell1",
        "service_libvirt",
        "service_nova_compute",
        "dataplane_openstack_edpm",
        "ready",
    )


def test_what_is_not_set_is_no_variable_and_no_group() -> None:
    (host,) = hosts(Plan((node(),)))
    assert not any(name.startswith("ansible_") for name in host.variables)
    assert host.variables["edpm_cell"] is None
    assert host.groups == ("ready",)


def test_a_blocked_host_says_why() -> None:
    service = ServicePlan("nova_compute", blocked=("Secret a/b does not exist; create it.",))
    (host,) = hosts(Plan((node(services=(service,), errors=("A rule is broken; mend it.",)),)))
    assert host.variables["edpm_blocked"] == [
        "A rule is broken; mend it.",
        "Secret a/b does not exist; create it.",
    ]
    assert host.groups[-1] == "blocked"


def test_ansiblevars_win_over_the_fields_and_never_over_what_the_plan_says() -> None:
    variables = {"ansible_user": "other", "edpm_cell": "forged", "edpm_nova_host": "h"}
    (host,) = hosts(Plan((node(cell="nova-cell1", connection=Connection("a", "b", 1, variables)),)))
    assert host.variables["ansible_user"] == "other"
    assert host.variables["edpm_cell"] == "nova-cell1"
    assert host.variables["edpm_nova_host"] == "h"


def test_only_ansiblevars_are_templates() -> None:
    evil = "{{ lookup('pipe', 'id') }}"
    connection = Connection(evil, evil, None, {"mine": evil, "deep": [{"er": evil}]})
    (host,) = hosts(Plan((node(evil, role=evil, cell=evil, errors=(evil,), connection=connection),)))
    assert is_trusted_as_template(host.variables["mine"])
    assert is_trusted_as_template(host.variables["deep"][0]["er"])
    for name in ("ansible_host", "ansible_user", "edpm_node", "edpm_role", "edpm_cell"):
        assert not is_trusted_as_template(host.variables[name]), name
    assert not is_trusted_as_template(host.variables["edpm_blocked"][0])


@pytest.mark.parametrize("value", [None, True, 22, 1.5, "24", "", [], {}, {"a": [None, {"b": (1, "x")}]}])
def test_values_keep_their_types(value: Any) -> None:
    assert trusted(value) == (value if value != {"a": [None, {"b": (1, "x")}]} else {"a": [None, {"b": [1, "x"]}]})
    assert type(trusted(value)) in (type(value), type(trusted("x")), list)


def test_of_two_nodes_with_one_name_there_is_one_host() -> None:
    assert [host.name for host in hosts(Plan((node(), node(namespace="other"))))] == ["edpm-compute-0"]


@pytest.mark.parametrize(("name", "group"), [("a-b", "role_a_b"), ("a.b", "role_a_b"), ("7", "role_7")])
def test_a_groups_name_is_made_safe_as_ansible_does(name: str, group: str) -> None:
    assert group_name("role", name) == group
