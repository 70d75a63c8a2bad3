# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of one node: what it runs, from which files, and what stands against it."""

from __future__ import annotations

from dataclasses import dataclass

from .certificates import certificate_uses
from .certified_names import with_certified_names
from .connections import Reached, reach
from .definitions import ServiceDefinition
from .extras import Additions, OfNode
from .gating import blocked
from .holds import hold_of
from .identity import host_specific, identity
from .images import image_of, no_image
from .index import Index
from .instances import resource_name
from .model import CELL_ANNOTATION, Reference, ServiceProfile, ServiceResource, Snapshot
from .placement import Needs, Placement
from .planned import ConfigSource, Identity, Layer, LeftAlone, NodePlan, Origin, ServiceObject, ServicePlan
from .profiles import profile_of
from .references import inventory_config_map, is_alone
from .services import Wanted
from .sources import Library, needed, own_files, snippets, unheard
from .wording import one_line, told


@dataclass(frozen=True, slots=True)
class Room:
    """What the plans of all nodes share."""

    index: Index
    needs: Needs
    library: Library
    additions: Additions
    snapshot: Snapshot


def plan_node(room: Room, placement: Placement) -> NodePlan | LeftAlone:
    """The node's plan, or why it is left alone."""
    node = placement.node
    if node.meta.deleting:
        return LeftAlone(node.name, node.namespace, node.meta.ref, "the node is being deleted")
    if not (placement.asked.wanted or placement.asked.errors or placement.unreadable):
        return LeftAlone(node.name, node.namespace, node.meta.ref, _why_left_alone(placement))
    reached = reach(placement, room.library.stores)
    shared = room.additions.of_node(placement, reached.connection.variables)
    services = tuple(
        _service(room, shared, reached, wanted, instance)
        for wanted in placement.asked.wanted
        for instance in wanted.instances
    )
    role = placement.role
    return NodePlan(
        name=node.name,
        namespace=node.namespace,
        host_name=node.host_name or node.name,
        origin=node.meta.ref,
        role=role.name if role is not None else node.role or None,
        role_origin=role.meta.ref if role is not None else None,
        dataplane=role.dataplane if role is not None else None,
        cell=placement.choice.cell,
        deploy=placement.inherited.deploy,
        connection=reached.connection,
        network_attachments=placement.inherited.network_attachments,
        inventory_config_map=inventory_config_map(node, placement),
        extra_mounts=placement.inherited.section.extra_mounts,
        services=with_certified_names(services, reached.connection.ansible_host),
        notes=told(reached.notes),
        errors=told((*placement.errors, *reached.errors)),
        blocked=told((*blocked(room.index, placement), *reached.blocked)),
    )


def _why_left_alone(placement: Placement) -> str:
    if placement.choice.opted_out:
        return "its cell is empty, and no annotation asks for another service"
    if is_alone(placement):
        going = all(one.meta.deleting for one in placement.resources)
        return "its service objects are being deleted" if going else "no definition describes its service objects"
    return "no annotation asks for a service"


def _service(room: Room, shared: OfNode, reached: Reached, wanted: Wanted, instance: str) -> ServicePlan:
    placement, definition, partner = shared.placement, wanted.definition, wanted.definition.partner
    node, role, choice = placement.node, placement.role, placement.choice
    resource = placement.resource_of(wanted, instance)
    profile = profile_of(room.index, node, role, definition, instance)
    hold, hold_errors = hold_of(node, role, definition, instance, resource=resource, older=choice.older)
    uses = room.needs.of(placement, wanted)
    files = room.library.files(uses.uses, definition) + own_files(definition, resource)
    if certificates := certificate_uses(placement, wanted):
        files += room.library.files(certificates, definition)
    extras = room.additions.of(shared, definition, uses.uses)
    who, who_errors = _identity(placement, reached, definition, instance)
    unseen = room.snapshot.why_unseen(definition, node.namespace)
    image = image_of(definition, resource, room.snapshot.images)
    sources = (
        *files.sources,
        *snippets(definition, resource, profile if isinstance(profile, ServiceProfile) else None, choice.older),
    )
    return ServicePlan(
        service=definition.name,
        instance=instance,
        cell=choice.cell if definition.needs_cell or definition.asked_by_cell or definition.derived else None,
        image=image,
        hold=one_line(hold) if hold is not None else None,
        service_object=_service_object(placement, wanted, instance, resource),
        identity=who,
        conf_d=definition.conf_d,
        sources=(*sources, *_host_specific(placement, definition, who)),
        left_out=(*extras.still_left_out(files.left_out), *unheard(definition, resource)),
        definition=partner.says if partner is not None else None,
        registry=extras.registry,
        extra_mounts=extras.mounts,
        user_kolla=extras.kolla,
        options=extras.options,
        notes=told((*uses.notes, *extras.notes, *(() if image is not None else (no_image(definition),)))),
        errors=told(
            (
                *(partner.faults if partner is not None else ()),
                *extras.errors,
                *uses.errors,
                *files.errors,
                *who_errors,
                *hold_errors,
                *((profile,) if isinstance(profile, str) else ()),
            )
        ),
        blocked=told(
            (
                *((unseen,) if unseen is not None else ()),
                *_waits(placement, definition, resource),
                *uses.blocked,
                *files.blocked,
                *needed(room.library.stores, uses.uses, definition),
                *extras.blocked,
            )
        ),
    )


def _identity(
    placement: Placement, reached: Reached, definition: ServiceDefinition, instance: str
) -> tuple[Identity | None, tuple[str, ...]]:
    if definition.host_specific_file is None or definition.state_path is None:
        return None, ()
    section = placement.inherited.section
    return identity(placement.node, section, reached.connection, definition.state_path, instance)


def _host_specific(
    placement: Placement, definition: ServiceDefinition, who: Identity | None
) -> tuple[ConfigSource, ...]:
    if definition.host_specific_file is None or definition.conf_d is None or who is None:
        return ()
    origin = Origin(placement.node.meta.ref, placement.node.path)
    name = definition.host_specific_file
    return (ConfigSource(origin, definition.conf_d, name, Layer.HOST, False, host_specific(who)),)


def _service_object(
    placement: Placement, wanted: Wanted, instance: str, resource: ServiceResource | None
) -> ServiceObject | None:
    """The service CR, or the one that reconcile would create. libvirt alone gets none: it shares nova-compute's."""
    definition, node = wanted.definition, placement.node
    if resource is not None:
        return ServiceObject(resource.api_version, resource.meta.ref, True, resource.deploy)
    sharing = [one.definition for one in placement.asked.wanted if one.definition.kind == definition.kind]
    if not definition.kind or not any(one.takes_snippet for one in sharing):
        return None
    ref = Reference(definition.kind, node.namespace, resource_name(node.name, instance))
    return ServiceObject(definition.api_version, ref, False, placement.inherited.deploy)


def _waits(placement: Placement, definition: ServiceDefinition, resource: ServiceResource | None) -> tuple[str, ...]:
    found: list[str] = []
    if definition.needs_cell and placement.choice.cell is None:
        found.append(
            f"{placement.node.where}: {definition.name} needs a cell; "
            f"set the annotation {CELL_ANNOTATION} on the node or its role."
        )
    if resource is not None and resource.meta.deleting:
        found.append(f"{resource.meta.ref} is being deleted; the service is deployed anew once it is gone.")
    return tuple(found)
