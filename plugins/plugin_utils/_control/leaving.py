# SPDX-License-Identifier: GPL-3.0-or-later
"""Service objects whose node is gone or does not ask for them any more: what is known of their way out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from .._dataplane.connections import INVENTORY_KEY
from .._dataplane.definitions import ServiceDefinition
from .._dataplane.model import Reference
from .look import World
from .names import ABANDON, FINALIZER
from .standing import Standing
from .wanted import Chosen, Untouched, services_of

REMOVED = "Removed"


@dataclass(frozen=True, slots=True)
class Going:
    """One that is to go. `services` must be off the node before it may; `is_compute` where it names the node's cell."""

    stands: Standing
    services: tuple[str, ...]
    sentence: str
    is_compute: bool

    @property
    def abandoned(self) -> bool:
        """Whether a person lets it go whatever is left on the node."""
        return self.stands.annotations.get(ABANDON) == "true"

    @property
    def removed(self) -> bool:
        """Whether its services are off the node."""
        return self.stands.condition(REMOVED).get("status") == "True"

    @property
    def free(self) -> bool:
        """Whether it may go now."""
        return self.removed or self.abandoned


def leaving_objects(world: World, wanted: Collection[Reference], chosen: Chosen) -> tuple[list[Going], list[Untouched]]:
    """All that are to go, and those that only seem to: where a node cannot be judged, nothing of it goes."""
    going: list[Going] = []
    untouched: list[Untouched] = []
    said = {one.service_object: one.sentence for one in world.plan.leaving}
    known = world.described
    faulty = {(node.namespace, node.name): node.errors for node in world.plan.nodes if node.errors}
    staying = {_place(one) for one in world.service_objects() if one.ref in wanted}
    for one in world.service_objects():
        why = _why(one, said, known) if one.ref not in wanted else None
        if why is None:
            continue
        definitions = world.definitions(one.ref.namespace)
        services = _services(definitions, one, alone=_place(one) not in staying)
        if not chosen.has(one.ref.namespace, one.node, services):
            continue
        errors = faulty.get((one.ref.namespace, one.node))
        if errors and not one.deleting:
            untouched.append(Untouched(one.ref, one.node, " ".join(errors), True))
        elif not one.deleting and (missing := _unseen_owner(one, world)):
            untouched.append(Untouched(one.ref, one.node, missing, True))
        else:
            compute = any(definition.needs_cell for definition in services_of(definitions, one))
            going.append(Going(one, services, why, compute))
    return going, untouched


def unreached_sentence(world: World, one: Standing) -> str | None:
    """Why nobody gets to the node that an object is to leave; None where its Node, or its inventory, tells how."""
    ref = world.lost_inventory(one)
    if ref is None or (one.ref.namespace, one.node) in world.described:
        return None
    return (
        f"{one.ref} waits until its services are off {one.node}, and neither the Node nor {ref}, which tells how to "
        f"reach it, exists; create the ConfigMap with an inventory of that host under the key {INVENTORY_KEY}, or, "
        f'where the machine is lost, set the annotation {ABANDON}: "true" on the object.'
    )


def _why(one: Standing, said: Mapping[Reference, str], known: Collection[tuple[str, str]]) -> str | None:
    """The sentence that says why it is to go; None where it is not, or is not ours to let go."""
    if FINALIZER not in one.finalizers:
        return None
    if one.deleting:
        return f"{one.ref} is being deleted."
    if one.by_hand:
        return None
    if (one.ref.namespace, one.node) not in known:
        return f"{one.ref}: its node {one.node} does not exist any more."
    return said.get(one.ref)


def _unseen_owner(one: Standing, world: World) -> str | None:
    """A kind that could not be listed says nothing about its objects, least of all that they are gone."""
    unseen = [owner for owner in one.owners if owner.kind not in world.kinds]
    if not unseen:
        return None
    return (
        f"{one.ref} belongs to {unseen[0].kind} {unseen[0].name}, a kind that the cluster does not serve now; "
        "install its CRD, or delete this object by hand."
    )


def _place(one: Standing) -> tuple[str, str, str]:
    return (one.ref.kind, one.ref.namespace, one.node)


def _services(definitions: Mapping[str, ServiceDefinition], one: Standing, *, alone: bool) -> tuple[str, ...]:
    """What has to leave the node with it, last first. What runs once for all instances stays while one of them does."""
    return tuple(
        f"{definition.name}@{one.instance}" if one.instance else definition.name
        for definition in reversed(services_of(definitions, one))
        if definition.takes_instances or alone
    )
