# SPDX-License-Identifier: GPL-3.0-or-later
"""From a snapshot to a plan. `resolve` is the one call; what it returns is in `planned`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from .built_in import BUILT_IN
from .collisions import tell_collisions
from .connections import reach
from .definitions import ServiceDefinition
from .extras import Additions
from .index import Index, index
from .model import Snapshot
from .nodes import Room, plan_node
from .placement import Needs, Placement, placements
from .planned import Connection, Leaving, LeftAlone, NodePlan, Plan, ServicePlan
from .services import is_of, left_to_operators
from .sources import Library
from .wording import told

__all__ = ["NodePlan", "Plan", "ServicePlan", "connections", "resolve", "unseen_kinds"]


def resolve(snapshot: Snapshot, definitions: Mapping[str, ServiceDefinition] = BUILT_IN) -> Plan:
    """What every node should run. Never raises over what a resource says: that is in the plan."""
    names = index(snapshot.resources, definitions, snapshot.definitions)
    stores = snapshot.stores
    room = Room(names, Needs(names), Library(stores), Additions(stores), snapshot)
    placed = sorted(placements(names, snapshot.resources), key=_order)
    planned = [plan_node(room, placement) for placement in placed]
    return Plan(
        nodes=tuple(tell_collisions([one for one in planned if isinstance(one, NodePlan)])),
        left_alone=tuple(one for one in planned if isinstance(one, LeftAlone)),
        left_to_operator=tuple(left_to_operators(names, snapshot.resources.roles)),
        leaving=tuple(leaving for placement in placed for leaving in _leaving(names, placement)),
        warnings=told((*unseen_kinds(snapshot), *(one for placement in placed for one in placement.choice.warnings))),
        errors=told(fault.sentence for fault in snapshot.resources.faults),
    )


def connections(snapshot: Snapshot, nodes: Collection[tuple[str, str]]) -> dict[tuple[str, str], Connection]:
    """How those of these nodes are reached that somebody describes, by namespace and name, whatever runs there."""
    described = tuple(node for node in snapshot.resources.nodes if (node.namespace, node.name) in nodes)
    resources = replace(snapshot.resources, nodes=described, service_resources=())
    names = index(resources, BUILT_IN, snapshot.definitions)
    return {
        (placement.node.namespace, placement.node.name): reach(placement, snapshot.stores).connection
        for placement in placements(names, resources)
    }


def unseen_kinds(snapshot: Snapshot) -> tuple[str, ...]:
    """A sentence for each kind that cannot be seen where somebody defines a service of it."""
    found = (snapshot.why_unseen(one, one.partner.namespace) for one in snapshot.definitions if one.partner is not None)
    return told(
        f"{sentence} Until then its services wait, and objects of this kind are left as they are."
        for sentence in found
        if sentence is not None
    )


def _order(placement: Placement) -> tuple[str, str, str, str]:
    ref = placement.node.meta.ref
    return (ref.namespace, placement.node.name, ref.kind, ref.name)


def _leaving(names: Index, placement: Placement) -> Iterator[Leaving]:
    """Service CRs whose service the node no longer runs."""
    running = {(wanted.definition.name, instance) for wanted in placement.asked.wanted for instance in wanted.instances}
    for one in placement.resources:
        ours = [
            definition.name
            for definition in names.definitions_in(one.meta.ref.namespace).values()
            if is_of(one, definition)
        ]
        if ours and not any((name, one.instance) in running for name in ours):
            sentence = f"{one.meta.ref}: its node {one.node} no longer asks for {ours[-1]}."
            yield Leaving(one.meta.ref, one.node, sentence)
