# SPDX-License-Identifier: GPL-3.0-or-later
"""Node over Role: a property of the Node replaces the Role's whole, and ansibleVars alone merge by top-level key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .index import Index
from .model import Node, NodeSection, Reference, Role, Store
from .values import Value, Variables


@dataclass(frozen=True, slots=True)
class Inherited:
    """What a node has after its Role was looked at."""

    section: NodeSection
    network_attachments: tuple[str, ...] = ()
    deploy: bool = True
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Gathered:
    """Ansible variables, and what stands against them or is worth knowing."""

    variables: Variables
    blocked: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())


def role_of(index: Index, node: Node) -> Role | str:
    """The node's Role, or the sentence that says why it has none."""
    if node.role_ref is not None:
        return index.node_sets[node.role_ref]
    found = index.roles.get((node.namespace, node.role), ())
    if len(found) == 1:
        return found[0]
    if found:
        places = " and ".join(str(role.meta.ref) for role in found)
        return f"{node.where}, field role: the role {node.role} is described by {places}; keep one of them."
    return (
        f"{node.where}, field role: OpenStackDataPlaneRole {node.namespace}/{node.role} does not exist; "
        "create it, or name one that does."
    )


def inherit(node: Node, role: Role | None) -> Inherited:
    """The node's properties, each the Node's own or else the Role's."""
    template = role.template if role is not None else NodeSection()
    attachments, errors = _network_attachments(node, role)
    return Inherited(
        section=over(node.section, template),
        network_attachments=attachments,
        deploy=deploys(node, role),
        errors=errors,
    )


def over(section: NodeSection, template: NodeSection) -> NodeSection:
    """One section over another. What needs more than that is elsewhere: the older nova section in `cells`."""
    return NodeSection(
        ansible_user=_first(section.ansible_user, template.ansible_user),
        ansible_port=section.ansible_port if section.ansible_port is not None else template.ansible_port,
        ansible_vars={**(template.ansible_vars or {}), **(section.ansible_vars or {})} or None,
        ssh_key_secret=_first(section.ssh_key_secret, template.ssh_key_secret),
        management_network=_first(section.management_network, template.management_network),
        networks=section.networks if section.networks is not None else template.networks,
        extra_mounts=section.extra_mounts if section.extra_mounts is not None else template.extra_mounts,
    )


def deploys(node: Node, role: Role | None) -> bool:
    """The Node's, else the Role's, else true."""
    if node.deploy is not None:
        return node.deploy
    return role is None or role.deploy is not False


def gather_variables(node: Node, role: Role | None, stores: Mapping[Reference, Store]) -> Gathered:
    """ansibleVars of Role and Node, each over its own ansibleVarsFrom.

    What comes from a Secret is left out: a Secret's content never becomes a host variable.
    """
    merged: dict[str, Value] = {}
    blocked: list[str] = []
    notes: list[str] = []
    for owner, section in ((role, role.template if role else None), (node, node.section)):
        if owner is None or section is None:
            continue
        for entry in section.ansible_vars_from or ():
            if entry.source.kind == "Secret":
                notes.append(f"ansibleVarsFrom {entry.source} is left out: Secrets never become host variables.")
            elif entry.source in stores:
                data = stores[entry.source].data
                blocked.extend(fault.sentence for fault in stores[entry.source].faults)
                merged.update({entry.prefix + key: data[key].decode(errors="replace") for key in data})
            elif not entry.optional:
                blocked.append(
                    f"{entry.source}, which {owner.meta.ref} names in ansibleVarsFrom, does not exist; "
                    "create it, or mark it optional."
                )
        merged.update(section.ansible_vars or {})
    return Gathered(merged, tuple(blocked), tuple(notes))


def _network_attachments(node: Node, role: Role | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    own = node.network_attachments
    theirs = role.network_attachments if role is not None else None
    if own is None or theirs is None or role is None or sorted(own) == sorted(theirs):
        return own or theirs or (), ()
    return own, (
        f"{node.where}, field networkAttachments: [{', '.join(own)}] differs from [{', '.join(theirs)}] of "
        f"{role.meta.ref}; set it on one of them, or the same on both.",
    )


def _first(one: str | None, other: str | None) -> str | None:
    return one if one is not None else other
