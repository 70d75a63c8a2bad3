# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs on a node: annotations, the cell, spec.services and hand-made service CRs ask for services."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from .asking import answer, said
from .cells import CellChoice
from .definitions import PHASE_0, SERVICE_ANNOTATION, Derived, ServiceDefinition
from .index import Index
from .model import DataPlaneService, Node, Reference, Role, ServiceResource
from .planned import LeftToOperator
from .secrets import COMPUTE_CONFIG

_INSTANCE = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Wanted:
    """One service that a node runs, its instances ("" is the plain one), and the data plane's services for it.

    `listed` is False where nobody lists those services and the one with the data plane's own name stands in.
    """

    definition: ServiceDefinition
    instances: tuple[str, ...]
    dataplane_services: tuple[DataPlaneService, ...] = ()
    listed: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """All that a node runs, and what is wrong with the way it is asked for."""

    wanted: tuple[Wanted, ...] = ()
    errors: tuple[str, ...] = field(default=())


class Answers:
    """What nodes ask for, kept for all nodes of a role that have no annotation and no service CR of their own."""

    def __init__(self, index: Index):
        self._index = index
        self._known: dict[tuple[Reference, str, str | None, bool], Asked] = {}

    def of(self, node: Node, role: Role | None, choice: CellChoice, by_hand: tuple[ServiceResource, ...]) -> Asked:
        """The services of a node."""
        if role is None or node.meta.annotations or by_hand:
            return asked_services(self._index, node, role, choice, by_hand)
        key = (role.meta.ref, role.name, choice.cell, choice.opted_out)
        if key not in self._known:
            self._known[key] = asked_services(self._index, node, role, choice, by_hand)
        return self._known[key]


def asked_services(
    index: Index, node: Node, role: Role | None, choice: CellChoice, by_hand: tuple[ServiceResource, ...]
) -> Asked:
    """The services of a node, in the order of their definitions. `by_hand` are service CRs that ask by themselves."""
    errors: list[str] = list(_undefined(index, node, role))
    wanted: list[Wanted] = []
    listed = _listed(index, role)
    for definition in index.definitions_in(node.namespace).values():
        ours = listed.get(definition.name)
        explicit, found = answer(node, role, definition.asking_annotations)
        if found.error is not None:
            errors.append(found.error)
        plain = _asks(definition, explicit, choice, ours is not None, by_hand)
        if explicit is False or (choice.opted_out and definition.asked_by_cell and not explicit):
            continue
        instances = _instances(node, role, definition, plain=plain, by_hand=by_hand, errors=errors)
        if instances:
            services = ours or _standing_in(index, node.namespace, definition)
            wanted.append(Wanted(definition, instances, services, bool(ours)))
    return Asked(tuple(wanted), tuple(errors))


def is_hand_made(resource: ServiceResource) -> bool:
    """Whether a person made the service CR: those that follow from a Node are owned by it."""
    return not any(kind.startswith("OpenStackDataPlane") for kind, _name in resource.meta.owners)


def is_of(resource: ServiceResource, definition: ServiceDefinition) -> bool:
    """Whether a service CR is of the kind that a definition names, in whatever version."""
    group = definition.api_version.rpartition("/")[0]
    return resource.meta.ref.kind == definition.kind and resource.api_version.rpartition("/")[0] == group


def told_by_others(
    index: Index, node: Node, role: Role | None, choice: CellChoice, resources: Iterable[ServiceResource]
) -> CellChoice:
    """The cell where neither annotation nor older section names one: a service CR's, else the listed Secret's.

    Data planes of today list `<NovaCell>-compute-config` in the service of a cell and say nothing else.
    """
    if choice.cell is not None or choice.opted_out:
        return choice
    for one in resources:
        if one.cell is not None and not one.meta.deleting:
            return replace(choice, cell=one.cell, said_by=f"{one.meta.ref}, field spec.cellName")
    definitions = index.definitions_in(node.namespace)
    for name, services in _listed(index, role).items():
        for service in services if Derived.COMPUTE in definitions[name].derived else ():
            for source in service.sources:
                cell = source.source.name.removesuffix(COMPUTE_CONFIG)
                if cell != source.source.name and (node.namespace, cell) in index.cells:
                    return replace(choice, cell=cell, said_by=f"{service.meta.ref}, field {source.field}")
    return choice


def left_to_operators(index: Index, roles: Iterable[Role]) -> Iterator[LeftToOperator]:
    """What the roles list that no definition describes. Phase 0 is not worth a word."""
    for role in roles:
        for listed in role.services:
            name = index.service_of(role.meta.ref.namespace, listed)
            if name not in index.definitions_in(role.meta.ref.namespace) and name not in PHASE_0:
                reason = "has no definition here and is left to its operator."
                yield LeftToOperator(listed, role.meta.ref, f"{role.meta.ref}, field spec.services: {listed} {reason}")


def _asks(
    definition: ServiceDefinition,
    explicit: bool | None,
    choice: CellChoice,
    listed: bool,
    by_hand: tuple[ServiceResource, ...],
) -> bool:
    if explicit is not None:
        return explicit
    if listed or (definition.asked_by_cell and choice.cell is not None):
        return True
    return any(is_of(one, definition) and not one.instance for one in by_hand)


def _listed(index: Index, role: Role | None) -> dict[str, tuple[DataPlaneService, ...]]:
    """The data plane's services that a role lists, by the service of ours that they are."""
    found: dict[str, tuple[DataPlaneService, ...]] = {}
    if role is None:
        return found
    for name in dict.fromkeys(role.services):
        namespace = role.meta.ref.namespace
        service = index.services.get((namespace, name))
        ours = index.service_of(namespace, name)
        if ours in index.definitions_in(namespace):
            found[ours] = (*found.get(ours, ()), *((service,) if service is not None else ()))
    return found


def _standing_in(index: Index, namespace: str, definition: ServiceDefinition) -> tuple[DataPlaneService, ...]:
    """The service with the data plane's own name, for roles that list none of this kind."""
    found = (index.services.get((namespace, name)) for name in (*definition.dataplane_names, definition.name))
    return tuple(
        service
        for service in found
        if service is not None and index.service_of(namespace, service.meta.ref.name) == definition.name
    )[:1]


def _instances(
    node: Node,
    role: Role | None,
    definition: ServiceDefinition,
    *,
    plain: bool,
    by_hand: tuple[ServiceResource, ...],
    errors: list[str],
) -> tuple[str, ...]:
    """The plain instance where the service is asked for, those of the annotation, and those of hand-made CRs."""
    names = [""] if plain else []
    listed = said(node, role, (definition.instances_annotation,))
    more = [name.strip() for name in (listed.value or "").split(",") if name.strip()] if plain else []
    for name in more:
        if not definition.takes_instances:
            errors.append(f"{listed.where}: {definition.name} runs only once on a node; remove the annotation.")
        elif _INSTANCE.fullmatch(name) is None:
            errors.append(f'{listed.where}: "{name}" is no instance; use lower case letters, digits and dashes.')
        else:
            names.append(name)
    if definition.takes_instances:
        names.extend(one.instance for one in by_hand if one.instance and is_of(one, definition))
    return tuple(sorted(set(names)))


def _undefined(index: Index, node: Node, role: Role | None) -> Iterator[str]:
    """Annotations that ask for a service which nobody defined: a typing error, or a definition that is missing."""
    theirs = role.meta.annotations if role is not None else {}
    known = index.definitions_in(node.namespace)
    for annotation in sorted({*theirs, *node.meta.annotations}):
        name = annotation.removeprefix(SERVICE_ANNOTATION)
        if name != annotation and name not in known:
            found = said(node, role, (annotation,))
            if found.value != "false":
                yield (f"{found.where}: no definition describes {name}; known are {', '.join(known)}.")
