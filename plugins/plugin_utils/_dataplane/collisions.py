# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that claim one and the same thing: a name, a `host` in one Nova, an address. An error on each of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace

from .planned import NodePlan
from .wording import one_line

SSH_PORT = 22


@dataclass(frozen=True, slots=True)
class Claim:
    """What must belong to one node only. `keys` are what a node claims, `says` is the sentence for it."""

    keys: Callable[[NodePlan], Iterable[Hashable]]
    says: Callable[[NodePlan, str], str]


def tell_collisions(nodes: list[NodePlan]) -> list[NodePlan]:
    """The nodes, with an error on every one that claims what another claims too."""
    errors: defaultdict[int, list[str]] = defaultdict(list)
    for claim in CLAIMS:
        claimants: defaultdict[Hashable, list[int]] = defaultdict(list)
        for number, node in enumerate(nodes):
            for key in dict.fromkeys(claim.keys(node)):
                claimants[key].append(number)
        for numbers in claimants.values():
            for number in numbers if len(numbers) > 1 else ():
                other = next(nodes[one] for one in numbers if one != number)
                errors[number].append(one_line(claim.says(nodes[number], _where(other))))
    return [replace(node, errors=(*node.errors, *errors[n])) if n in errors else node for n, node in enumerate(nodes)]


def _where(node: NodePlan) -> str:
    return f"{node.origin} ({node.name})" if node.origin.name != node.name else str(node.origin)


def _name(node: NodePlan) -> Iterator[Hashable]:
    yield node.name


def _host(node: NodePlan) -> Iterator[Hashable]:
    for service in node.services:
        if service.identity is not None:
            yield (node.namespace, service.service, service.identity.host)


def _address(node: NodePlan) -> Iterator[Hashable]:
    connection = node.connection
    if node.services and connection.ansible_host is not None and "ansible_connection" not in connection.variables:
        yield (connection.ansible_host, connection.ansible_port or SSH_PORT)


CLAIMS = (
    Claim(
        _name,
        lambda node, other: (
            f"{_where(node)} and {other} have one name, {node.name}, and would be one host; "
            "rename one of them, or read one namespace at a time."
        ),
    ),
    Claim(
        _host,
        lambda node, other: (
            f"{_where(node)}: {other} has the same host name, and Nova would take both for one "
            "compute; give them different values of hostName."
        ),
    ),
    Claim(
        _address,
        lambda node, other: (
            f"{_where(node)}: {other} has the same address {node.connection.ansible_host} and port; "
            "correct ansibleHost on one of them."
        ),
    ),
)
