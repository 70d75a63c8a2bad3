# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes of a plan as Ansible's hosts: names, variables, groups. The names here are those that users type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

from ansible.inventory.group import to_safe_group_name
from ansible.template import trust_as_template

from .._dataplane.planned import NodePlan, Plan
from .._dataplane.values import Value

READY, BLOCKED = "ready", "blocked"


@dataclass(frozen=True, slots=True)
class Host:
    """One host. Of its variables only the deployer's ansibleVars may hold Jinja: they alone are marked as trusted."""

    name: str
    groups: tuple[str, ...]
    variables: Mapping[str, Any] = field(default_factory=dict)


def hosts(plan: Plan) -> Iterator[Host]:
    """All nodes that run something; of two with one name, which block each other, the first."""
    for node in plan.by_name().values():
        yield Host(node.name, tuple(dict.fromkeys(_groups(node))), _variables(node))


def role_group(role: str) -> str:
    """The group of a role's nodes."""
    return group_name("role", role)


@cache
def group_name(prefix: str, name: str) -> str:
    """A group's name as Ansible makes it safe, whatever its configuration says of unsafe ones."""
    return str(to_safe_group_name(f"{prefix}_{name}", force=True, silent=True))


def trusted(value: Value) -> Any:
    """The same value with every text in it marked as a template that Ansible may render."""
    if isinstance(value, str):
        return _template(value)
    if isinstance(value, Mapping):
        return {key: trusted(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [trusted(inner) for inner in value]
    return value


# Thousands of nodes inherit the same texts.
@lru_cache(maxsize=4096)
def _template(text: str) -> Any:
    return trust_as_template(text)


def _groups(node: NodePlan) -> Iterator[str]:
    if node.role is not None:
        yield role_group(node.role)
    if node.cell is not None:
        yield group_name("cell", node.cell)
    for service in node.services:
        yield group_name("service", service.service)
    if node.dataplane is not None:
        yield group_name("dataplane", node.dataplane)
    yield READY if node.ready else BLOCKED


def _variables(node: NodePlan) -> dict[str, Any]:
    """As in the data plane operator's own inventory, ansibleVars win over the fields that say the same."""
    connection = node.connection
    fields = {
        "ansible_host": connection.ansible_host,
        "ansible_user": connection.ansible_user,
        "ansible_port": connection.ansible_port,
    }
    return {
        **{name: value for name, value in fields.items() if value is not None},
        **{name: trusted(value) for name, value in connection.variables.items()},
        "edpm_node": node.name,
        "edpm_role": node.role,
        "edpm_cell": node.cell,
        "edpm_services": [service.name for service in node.services],
        "edpm_blocked": list(node.sentences),
    }
