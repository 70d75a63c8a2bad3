# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything by name, made once, so that resolving a node costs the same however many there are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from .definitions import ServiceDefinition
from .model import DataPlaneService, Node, Nova, NovaCell, Reference, Resources, Role, ServiceProfile, ServiceResource

Named = tuple[str, str]
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Index:
    """Resources by namespace and name. Lists where more than one may answer to a name."""

    definitions: Mapping[str, ServiceDefinition]
    partners: Mapping[str, Mapping[str, ServiceDefinition]]
    roles: Mapping[Named, tuple[Role, ...]]
    node_sets: Mapping[Reference, Role]
    nodes: Mapping[Named, tuple[Node, ...]]
    services: Mapping[Named, DataPlaneService]
    novas: Mapping[Named, Nova]
    novas_in: Mapping[str, tuple[Nova, ...]]
    cells: Mapping[Named, NovaCell]
    templates: Mapping[Named, tuple[tuple[Nova, str], ...]]
    profiles: Mapping[Named, ServiceProfile]
    service_resources: Mapping[Named, tuple[ServiceResource, ...]]
    by_dataplane_name: Mapping[str, str]

    def definitions_in(self, namespace: str) -> Mapping[str, ServiceDefinition]:
        """The definitions that count in a namespace, in the order in which services are deployed."""
        return self.partners.get(namespace, self.definitions)

    def service_of(self, namespace: str, listed: str) -> str:
        """The service that a name in spec.services means: by its edpmServiceType, else by name."""
        found = self.services.get((namespace, listed))
        name = found.type if found is not None else listed
        return self.by_dataplane_name.get(name, name)


def index(
    resources: Resources, definitions: Mapping[str, ServiceDefinition], partners: Iterable[ServiceDefinition] = ()
) -> Index:
    """The index of all resources. `partners` are definitions that count in their namespaces, beside the others."""
    node_sets = {role.meta.ref: role for role in resources.roles if role.meta.ref.kind == "OpenStackDataPlaneNodeSet"}
    return Index(
        definitions=definitions,
        partners=_by_namespace(definitions, partners),
        roles=_grouped(
            ((role.meta.ref.namespace, role.name), role) for role in resources.roles if role.meta.ref not in node_sets
        ),
        node_sets=node_sets,
        nodes=_grouped(((node.namespace, node.name), node) for node in resources.nodes),
        services={_key(service.meta.ref): service for service in resources.services},
        novas={_key(nova.meta.ref): nova for nova in resources.novas},
        novas_in=_grouped((nova.meta.ref.namespace, nova) for nova in resources.novas),
        cells={_key(cell.meta.ref): cell for cell in resources.cells},
        templates=_grouped(
            ((nova.meta.ref.namespace, f"{nova.meta.ref.name}-{short}"), (nova, short))
            for nova in resources.novas
            for short in nova.cells
        ),
        profiles={_key(profile.meta.ref): profile for profile in resources.profiles},
        service_resources=_grouped(((one.meta.ref.namespace, one.node), one) for one in resources.service_resources),
        by_dataplane_name=dataplane_names(definitions),
    )


def dataplane_names(definitions: Mapping[str, ServiceDefinition]) -> dict[str, str]:
    """The services by the names that the data plane has for them."""
    return {name: definition.name for definition in definitions.values() for name in definition.dataplane_names}


def _by_namespace(
    definitions: Mapping[str, ServiceDefinition], partners: Iterable[ServiceDefinition]
) -> dict[str, dict[str, ServiceDefinition]]:
    """What partners define, after what is defined for all; none of it can take a name that is there."""
    found: dict[str, dict[str, ServiceDefinition]] = {}
    for one in partners:
        if one.partner is not None:
            found.setdefault(one.partner.namespace, dict(definitions)).setdefault(one.name, one)
    return found


def _key(ref: Reference) -> Named:
    return (ref.namespace, ref.name)


def _grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, tuple[V, ...]]:
    found: defaultdict[K, list[V]] = defaultdict(list)
    for key, value in pairs:
        found[key].append(value)
    return {key: tuple(values) for key, values in found.items()}
