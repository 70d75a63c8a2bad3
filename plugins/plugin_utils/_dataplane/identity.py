# SPDX-License-Identifier: GPL-3.0-or-later
"""How nova-compute calls itself on a node: `host` and `my_ip`, and the file that says so."""

from __future__ import annotations

import re
from ipaddress import ip_address

from .instances import host_of, state_path
from .model import Network, Node, NodeSection
from .planned import Connection, Identity
from .values import Value, Variables

HOST_VARIABLE = "edpm_nova_host"
ADDRESS_VARIABLE = "edpm_nova_my_ip"
INTERNAL_API = "internalapi"
_HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?")


def identity(
    node: Node, section: NodeSection, connection: Connection, plain_path: str, instance: str
) -> tuple[Identity, tuple[str, ...]]:
    """The identity, and what is wrong with what the variables say."""
    errors: list[str] = []
    host = _host(node, connection.variables, errors)
    my_ip = _my_ip(node, section, connection, errors)
    return Identity(host_of(host, instance), my_ip, state_path(plain_path, instance), host), tuple(errors)


def host_specific(who: Identity) -> bytes:
    """The text of the host-specific file of nova-compute."""
    lines = ["[DEFAULT]", f"host = {who.host}"]
    if who.my_ip is not None:
        lines.append(f"my_ip = {who.my_ip}")
    lines += [f"state_path = {who.state_path}", "", "[oslo_concurrency]", f"lock_path = {who.state_path}/locks"]
    if who.my_ip is not None:
        lines += ["", "[vnc]", f"server_listen = {who.my_ip}", f"server_proxyclient_address = {who.my_ip}"]
    return ("\n".join(lines) + "\n").encode()


def _host(node: Node, variables: Variables, errors: list[str]) -> str:
    plain = node.host_name or node.name
    chosen = variables.get(HOST_VARIABLE)
    if chosen is not None and (not isinstance(chosen, str) or not _HOST.fullmatch(chosen)):
        errors.append(_bad(node, HOST_VARIABLE, chosen, "a host's name"))
        return plain
    if chosen is None and not _HOST.fullmatch(plain):
        errors.append(f'{node.where}, field hostName: "{plain}" is no host name; correct it.')
    return chosen if isinstance(chosen, str) else plain


def _my_ip(node: Node, section: NodeSection, connection: Connection, errors: list[str]) -> str | None:
    chosen = connection.variables.get(ADDRESS_VARIABLE)
    if chosen is not None:
        if isinstance(chosen, str) and _is_address(chosen):
            return chosen
        errors.append(_bad(node, ADDRESS_VARIABLE, chosen, "an address"))
        return None
    told = (*_told(section.networks or (), node, connection.variables), connection.ansible_host)
    return next((address for address in told if isinstance(address, str) and _is_address(address)), None)


def _told(networks: tuple[Network, ...], node: Node, variables: Variables) -> tuple[Value, ...]:
    """The node's address on the internal API network, from all places where the data plane tells it."""
    fixed = [network.fixed_ip for network in networks if _is_internal_api(network.name)]
    status = [address for name, address in sorted(node.addresses.items()) if _is_internal_api(name)]
    return (*fixed, *status, variables.get(f"{INTERNAL_API}_ip"), variables.get("internal_api_ip"))


def _is_internal_api(network: str) -> bool:
    return network.lower().replace("_", "").replace("-", "") == INTERNAL_API


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _bad(node: Node, variable: str, value: Value, wanted: str) -> str:
    # A cluster gives back the keys of a mapping in another order than a file, so a mapping is not quoted.
    shown = repr(value) if isinstance(value, str | int | float) else "what is there"
    return f"{node.where}, ansibleVars {variable}: {shown} is not {wanted}; write it out, templates are not read here."
