# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Secrets and ConfigMaps must be read for these resources, and no others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from .built_in import BUILT_IN
from .certificates import certificate_uses
from .definitions import ServiceDefinition
from .index import index
from .model import Node, NodeSection, Reference, Resources
from .mounts import Mounts
from .placement import Needs, Placement, placements
from .registries import registry_secret
from .services import is_of


def references(
    resources: Resources,
    definitions: Mapping[str, ServiceDefinition] = BUILT_IN,
    partners: Iterable[ServiceDefinition] = (),
) -> frozenset[Reference]:
    """Names only. Some may not exist: of two names for one Secret both are here.

    Of a node that services leave, it must be known whether its inventory is there: without it nobody gets to the node.
    """
    names = index(resources, definitions, partners)
    needs, mounts = Needs(names), Mounts({})
    found: set[Reference] = set()
    for placement in placements(names, resources):
        if placement.asked.wanted:
            found.update(_of(needs, mounts, placement))
        if placement.resources and (inventories := set(_left(placement))):
            found.update(inventories, _variables(placement))
    return frozenset(found)


def inventory_config_map(node: Node, placement: Placement) -> str:
    """The ConfigMap with the data plane operator's inventory of a node: the service CR's, else the operator's name."""
    named = next((one.inventory_config_map for one in placement.resources if one.inventory_config_map), None)
    if named is not None:
        return named
    kind = node.meta.ref.kind
    return f"dataplanerole-{node.role}" if kind == "OpenStackDataPlaneNodeSet" else f"dataplanenode-{node.name}"


def is_alone(placement: Placement) -> bool:
    """Whether only service CRs know the node, so that its connection is in the inventory ConfigMap."""
    return placement.node.meta.ref in {one.meta.ref for one in placement.resources}


def _left(placement: Placement) -> Iterator[Reference]:
    """The inventories that service CRs name which are on their way out, or will be when their Node is gone."""
    alone, parting, running = is_alone(placement), placement.node.meta.deleting, placement.asked.wanted
    for one in placement.resources:
        if one.inventory_config_map is None:
            continue
        asked = not alone and any(one.instance in each.instances and is_of(one, each.definition) for each in running)
        if one.meta.deleting or parting or not (asked or placement.errors):
            yield Reference("ConfigMap", one.meta.ref.namespace, one.inventory_config_map)


def _variables(placement: Placement) -> Iterator[Reference]:
    template = placement.role.template if placement.role is not None else NodeSection()
    for section in (template, placement.node.section):
        for entry in section.ansible_vars_from or ():
            # A Secret there would have to become a host variable, which no Secret does: it is not even read.
            if entry.source.kind == "ConfigMap":
                yield entry.source


def _of(needs: Needs, mounts: Mounts, placement: Placement) -> Iterator[Reference]:
    node = placement.node
    if placement.inherited.section.ssh_key_secret is not None:
        yield Reference("Secret", node.namespace, placement.inherited.section.ssh_key_secret)
    if is_alone(placement):
        yield Reference("ConfigMap", node.namespace, inventory_config_map(node, placement))
    yield from _variables(placement)
    registry, _where = registry_secret(node, placement.role)
    if registry is not None:
        yield registry
    yield from mounts.references(placement)
    for wanted in placement.asked.wanted:
        for use in (*needs.of(placement, wanted).uses, *certificate_uses(placement, wanted)):
            yield from use.refs
