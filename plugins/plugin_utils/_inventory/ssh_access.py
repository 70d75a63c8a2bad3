# SPDX-License-Identifier: GPL-3.0-or-later
"""How the keys in the nodes' Secrets reach ssh, and which nodes have to wait because theirs is of no use."""

from __future__ import annotations

import os
import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from .._dataplane.model import Reference, Store
from .._dataplane.planned import NodePlan, Plan
from .hosts import role_group
from .ssh_agent import SOCKET_VARIABLE, Agent, own_agent, users_agent_has_keys
from .ssh_keys import BadKeyError, public_key, usable

#: A node that loses its power says nothing more, and a run that only listens would wait for hours.
_ALIVE = "-o ServerAliveInterval=30 -o ServerAliveCountMax=4"
KEY_FILE_VARIABLES = ("ansible_ssh_private_key_file", "ansible_private_key_file")
SSH = ("ssh", "smart", "ansible.builtin.ssh")

Variables = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Access:
    """The plan with nodes blocked whose key is of no use, and the variables that lead ssh to the keys.

    Where all nodes of a role have one key, the variables are the group's: a person's group_vars win over them.
    """

    plan: Plan
    of_hosts: Mapping[str, Variables] = field(default_factory=dict)
    of_groups: Mapping[str, Variables] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def own_keys_are_brought(choice: str, key_file: str | None) -> bool:
    """Whether the Secrets' keys are left alone. `choice` is auto, secrets or own."""
    if choice != "auto":
        return choice == "own"
    try:
        return bool(key_file) or users_agent_has_keys()
    except FileNotFoundError:
        return False


def open_nodes(plan: Plan, stores: Mapping[Reference, Store], *, connecting: bool) -> Access:
    """Judge every key that a node needs; when something will connect, load the good ones into the run's agent."""
    needing = {node.name: key for node in plan.by_name().values() if (key := _key(node)) is not None}
    keys = {ref: usable(stores[ref].data[name]) for ref, name in set(needing.values())}
    try:
        found = {ref: _judged(key) for ref, key in sorted(keys.items())}
        files = _load(own_agent(), keys, found) if connecting and keys else {}
    except FileNotFoundError as error:
        missing = f"{error.filename} is not on this machine, so no key of the nodes' Secrets is used"
        return Access(plan, warnings=(f"{missing}; install the OpenSSH client.",))
    faults = {
        name: f"{ref}, key {key}: {found[ref]}"
        for name, (ref, key) in needing.items()
        if isinstance(found[ref], BadKeyError)
    }
    of_hosts = {name: files[ref] for name, (ref, _key) in needing.items() if ref in files}
    return _shared(Access(_blocked(plan, faults), of_hosts))


def _key(node: NodePlan) -> tuple[Reference, str] | None:
    """The Secret and the key in it, unless the node is reached by other means."""
    key, variables = node.connection.ssh_key, node.connection.variables
    other = variables.get("ansible_connection", "ssh") not in SSH
    if key is None or not key.exists or other or any(name in variables for name in KEY_FILE_VARIABLES):
        return None
    return key.secret, key.key


def _judged(key: bytes) -> str | BadKeyError:
    """The public half, or what is wrong."""
    try:
        return public_key(key)
    except BadKeyError as fault:
        return fault


def _load(
    agent: Agent, keys: Mapping[Reference, bytes], found: dict[Reference, str | BadKeyError]
) -> dict[Reference, Variables]:
    """Load the good keys. One that the agent refuses joins the bad ones."""
    loaded: dict[Reference, Variables] = {}
    for ref, public in list(found.items()):
        if isinstance(public, str):
            try:
                loaded[ref] = _variables(agent, agent.add(keys[ref], public))
            except BadKeyError as fault:
                found[ref] = fault
    if not users_agent_has_keys():
        # For ssh that is started without the variables, as on the way over a jump host.
        os.environ[SOCKET_VARIABLE] = str(agent.socket)
    return loaded


def _variables(agent: Agent, public: Path) -> Variables:
    words = f"-o IdentitiesOnly=yes -o IdentityAgent={shlex.quote(str(agent.socket))} {_ALIVE}"
    return {"ansible_ssh_private_key_file": str(public), "ansible_ssh_extra_args": words}


def _blocked(plan: Plan, faults: Mapping[str, str]) -> Plan:
    if not faults:
        return plan
    return replace(
        plan,
        nodes=tuple(
            replace(node, blocked=(*node.blocked, faults[node.name])) if node.name in faults else node
            for node in plan.nodes
        ),
    )


def _shared(access: Access) -> Access:
    """Move what all hosts of a role have in common to the role's group."""
    members: defaultdict[str, list[str]] = defaultdict(list)
    for node in access.plan.by_name().values():
        if node.role is not None:
            members[role_group(node.role)].append(node.name)
    of_groups = {
        group: access.of_hosts[names[0]] for group, names in members.items() if _all_alike(access.of_hosts, names)
    }
    grouped = {name for group in of_groups for name in members[group]}
    rest = {name: variables for name, variables in access.of_hosts.items() if name not in grouped}
    return replace(access, of_hosts=rest, of_groups=of_groups)


def _all_alike(of_hosts: Mapping[str, Variables], names: Iterable[str]) -> bool:
    found = [of_hosts.get(name) for name in names]
    return found[0] is not None and all(one == found[0] for one in found)
