# SPDX-License-Identifier: GPL-3.0-or-later
"""How Ansible reaches a node: from Node and Role, or from the data plane operator's inventory where they are gone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .fields import Fields
from .inheritance import gather_variables
from .model import SSH_KEY, Reference, Store
from .placement import Placement
from .planned import Connection, SSHKey
from .references import inventory_config_map, is_alone
from .values import Value, Variables

INVENTORY_KEY = "inventory"


@dataclass(frozen=True, slots=True)
class Reached:
    """The connection, and what stands against it or is worth knowing."""

    connection: Connection
    blocked: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def reach(placement: Placement, stores: Mapping[Reference, Store]) -> Reached:
    """The connection of a node."""
    node, section = placement.node, placement.inherited.section
    key, notes = _ssh_key(placement, stores)
    if is_alone(placement):
        return _from_inventory(placement, stores, key, notes)
    gathered = gather_variables(node, placement.role, stores)
    connection = Connection(node.ansible_host, section.ansible_user, section.ansible_port, gathered.variables, key)
    return Reached(connection, gathered.blocked, (), (*gathered.notes, *notes))


def _ssh_key(placement: Placement, stores: Mapping[Reference, Store]) -> tuple[SSHKey | None, tuple[str, ...]]:
    """The key's Secret. That it is missing stops nobody here: a person may bring an agent or a key file."""
    name = placement.inherited.section.ssh_key_secret
    if name is None:
        return None, ()
    ref = Reference("Secret", placement.node.namespace, name)
    if ref not in stores:
        return SSHKey(ref, SSH_KEY, False), (f"{ref}, the node's SSH key, does not exist; bring a key of your own.",)
    if SSH_KEY not in stores[ref].data:
        return SSHKey(ref, SSH_KEY, False), (f"{ref} has no key {SSH_KEY}; add it, or bring a key of your own.",)
    return SSHKey(ref, SSH_KEY, True), ()


def _from_inventory(
    placement: Placement, stores: Mapping[Reference, Store], key: SSHKey | None, notes: tuple[str, ...]
) -> Reached:
    node = placement.node
    ref = Reference("ConfigMap", node.namespace, inventory_config_map(node, placement))
    text = stores[ref].data.get(INVENTORY_KEY) if ref in stores else None
    if text is None:
        missing = f"{node.where}: neither its Node nor {ref} with the key {INVENTORY_KEY} exists; create one of them."
        return Reached(Connection(ssh_key=key), blocked=(missing,), notes=notes)
    variables = _host_variables(ref, text, node.name)
    if isinstance(variables, str):
        return Reached(Connection(ssh_key=key), errors=(variables,), notes=notes)
    return Reached(_connection(variables, key), notes=notes)


def _connection(variables: Variables, key: SSHKey | None) -> Connection:
    host, user, port = (variables.get(f"ansible_{name}") for name in ("host", "user", "port"))
    rest = {
        name: value for name, value in variables.items() if name not in ("ansible_host", "ansible_user", "ansible_port")
    }
    return Connection(
        host if isinstance(host, str) else None,
        user if isinstance(user, str) else None,
        port if isinstance(port, int) else None,
        rest,
        key,
    )


def _host_variables(ref: Reference, text: bytes, host: str) -> Variables | str:
    """A host's variables out of an inventory in YAML, those of its groups below its own; or what is wrong."""
    fields = Fields({INVENTORY_KEY: text.decode(errors="replace")}, ref, "data")
    groups = fields.variables(INVENTORY_KEY)
    if fields.faults:
        return fields.faults[0].sentence
    found = list(_in_groups(groups or {}, host))
    if not found:
        return f"{ref}, field data.{INVENTORY_KEY}: does not name the host {host}; correct it or remove it."
    merged: dict[str, Value] = {}
    for variables in found:
        merged.update(variables)
    return merged


def _in_groups(groups: Variables, host: str) -> Iterator[Variables]:
    for group in groups.values():
        if not isinstance(group, Mapping):
            continue
        hosts, children = group.get("hosts"), group.get("children")
        inner = list(_in_groups(children, host)) if isinstance(children, Mapping) else []
        own = [hosts[host]] if isinstance(hosts, Mapping) and host in hosts else []
        shared = group.get("vars")
        if (inner or own) and isinstance(shared, Mapping):
            yield shared
        yield from inner
        yield from (one if isinstance(one, Mapping) else {} for one in own)
