# SPDX-License-Identifier: GPL-3.0-or-later
"""Roles and Nodes out of the four kinds that describe them: alone, embedded in a DataPlane, or as a NodeSet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

from .fields import Fields
from .model import Metadata, Network, Node, NodeSection, NovaSection, Reference, Role, VariablesFrom

_LAST_PORT = 65535


def role(fields: Fields) -> Iterable[Role]:
    """An OpenStackDataPlaneRole."""
    return (_role(fields.ref.name, fields.inner("spec"), fields.metadata),)


def node(fields: Fields) -> Iterable[Node]:
    """An OpenStackDataPlaneNode."""
    return (_node(fields.ref.name, fields.inner("spec"), fields.metadata),)


def dataplane(fields: Fields) -> Iterator[Role | Node]:
    """The roles and nodes that an OpenStackDataPlane embeds. They have no annotations and share its status."""
    spec = fields.inner("spec")
    members = [(kind, name, member) for kind in ("roles", "nodes") for name, member in spec.members(kind)]
    whole = fields.metadata()
    for kind, name, member in members:
        meta = partial(_meta_of_member, whole, member)
        if kind == "roles":
            yield replace(_role(name, member, meta), dataplane=fields.ref.name)
        else:
            yield replace(_node(name, member, meta), path=f"spec.nodes.{name}")


def node_set(fields: Fields) -> Iterator[Role | Node]:
    """An OpenStackDataPlaneNodeSet: one Role with its Nodes. Its annotations are the Role's."""
    spec = fields.inner("spec")
    template = _section(spec.inner("nodeTemplate"), in_node_set=True)
    services = spec.texts("services") or ()
    attachments = spec.texts("networkAttachments")
    tls_enabled = spec.boolean("tlsEnabled") is not False
    addresses = dict(fields.inner("status").members("allIPs"))
    members = list(spec.members("nodes"))
    whole = fields.metadata()
    yield Role(
        name=fields.ref.name,
        template=template,
        services=services,
        network_attachments=attachments,
        tls_enabled=tls_enabled,
        meta=whole,
    )
    for name, member in members:
        section = _section(member, in_node_set=True)
        host_name = member.text("hostName")
        told = addresses.get(host_name or name) or addresses.get(name)
        yield Node(
            name=name,
            role=fields.ref.name,
            role_ref=fields.ref,
            section=section,
            host_name=host_name,
            ansible_host=member.inner("ansible").text("ansibleHost"),
            path=f"spec.nodes.{name}",
            gate="SetupReady",
            addresses={} if told is None else _addresses(told),
            meta=_meta_of_member(whole, member),
        )


def _role(name: str, spec: Fields, meta: Callable[[], Metadata]) -> Role:
    template = _section(spec.inner("nodeTemplate"))
    return Role(
        name=name,
        template=template,
        dataplane=spec.text("dataPlane"),
        services=spec.texts("services") or (),
        network_attachments=spec.texts("networkAttachments"),
        deploy=spec.inner("deployStrategy").boolean("deploy"),
        meta=meta(),
    )


def _node(name: str, spec: Fields, meta: Callable[[], Metadata]) -> Node:
    return Node(
        name=name,
        role=spec.needed_text("role"),
        section=_section(spec.inner("node")),
        host_name=spec.text("hostName"),
        ansible_host=spec.text("ansibleHost"),
        network_attachments=spec.texts("networkAttachments"),
        deploy=spec.inner("deployStrategy").boolean("deploy"),
        meta=meta(),
    )


def _meta_of_member(whole: Metadata, member: Fields) -> Metadata:
    """The metadata of what is embedded: the whole's, with the faults of the member alone."""
    return replace(whole, annotations={}, faults=tuple(member.faults))


def _section(fields: Fields, *, in_node_set: bool = False) -> NodeSection:
    """A node section; in a NodeSet what is Ansible's lies one level deeper."""
    ansible = fields.inner("ansible") if in_node_set else fields
    port = ansible.integer("ansiblePort")
    if port is not None and not 0 < port <= _LAST_PORT:
        ansible.fault("ansiblePort", f"is {port}, which is no port; a port is between 1 and {_LAST_PORT}.")
    networks = tuple(Network(one.needed_text("name"), one.text("fixedIP")) for one in fields.items("networks"))
    return NodeSection(
        ansible_user=ansible.text("ansibleUser"),
        ansible_port=port,
        ansible_vars=ansible.variables("ansibleVars"),
        ansible_vars_from=tuple(_variables_from(ansible)) or None,
        ssh_key_secret=fields.text("ansibleSSHPrivateKeySecret"),
        management_network=fields.text("managementNetwork"),
        networks=networks or None,
        extra_mounts=fields.value("extraMounts"),
        nova=_nova_section(fields),
    )


def _variables_from(ansible: Fields) -> Iterator[VariablesFrom]:
    for entry in ansible.items("ansibleVarsFrom"):
        for key, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            if entry.has(key):
                ref = entry.inner(key)
                source = Reference(kind, entry.ref.namespace, ref.needed_text("name"))
                yield VariablesFrom(source, entry.text("prefix") or "", bool(ref.boolean("optional")))


def _nova_section(fields: Fields) -> NovaSection | None:
    for key in ("nova", "novaTemplate"):
        if fields.has(key):
            nova = fields.inner(key)
            return NovaSection(
                field=fields.path(key),
                cell_name=nova.text("cellName"),
                nova_instance=nova.text("novaInstance"),
                custom_service_config=nova.text("customServiceConfig"),
                deploy=nova.boolean("deploy"),
            )
    return None


def _addresses(networks: Fields) -> dict[str, str]:
    return {name: address for name in networks if (address := networks.text(name)) is not None}
