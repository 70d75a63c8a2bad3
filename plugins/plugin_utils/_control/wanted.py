# SPDX-License-Identifier: GPL-3.0-or-later
"""The service objects that the plan asks for, and those of the cluster that are left to others or wait for a remedy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...module_utils._node.names import spellings
from .._dataplane.cells import choose_cell
from .._dataplane.definitions import ServiceDefinition
from .._dataplane.model import Node, Reference, Role
from .._dataplane.plan import resolve
from .._dataplane.planned import NodePlan, ServicePlan
from .look import World
from .names import OWNING_PREFIX
from .standing import Owner, Standing

EE_FIELD = "ansibleEEContainerImage"


@dataclass(frozen=True, slots=True)
class Wanted:
    """One service object as it should be. `spec` are our fields, `images` those that it gets at creation only."""

    node: NodePlan
    api_version: str
    ref: Reference
    owner: Owner
    spec: Mapping[str, Any]
    images: Mapping[str, str]
    services: tuple[str, ...]
    is_compute: bool

    @property
    def cell(self) -> str | None:
        """The NovaCell that it names."""
        return self.spec.get("cellName")


@dataclass(frozen=True, slots=True)
class Untouched:
    """A service object that is not written, and why; `refused` tells that something must be put right first."""

    ref: Reference
    node: str
    sentence: str
    refused: bool


@dataclass(frozen=True, slots=True)
class Chosen:
    """Nodes and services that somebody asked for; empty means all. Nodes that are spared are never meant.

    A node is asked for by its name, in whatever namespace, and spared by its namespace and name.
    """

    nodes: frozenset[str] = frozenset()
    services: frozenset[str] = frozenset()
    spared: frozenset[tuple[str, str]] = frozenset()

    def has_node(self, namespace: str, node: str) -> bool:
        """Whether anything of a node is meant."""
        return (not self.nodes or node in self.nodes) and (namespace, node) not in self.spared

    def has(self, namespace: str, node: str, services: Sequence[str]) -> bool:
        """Whether a service object that stands for these services is meant."""
        names = {name for service in services for name in spellings(service)}
        return self.has_node(namespace, node) and (not self.services or not self.services.isdisjoint(names))


def wanted_objects(world: World, chosen: Chosen) -> tuple[list[Wanted], list[Untouched]]:
    """All of them. A node that breaks a rule keeps its objects as they are until the rule is kept.

    What cannot be seen is left as it is, too: what is there is not known. The plan's warnings tell of it, once.
    """
    wanted: list[Wanted] = []
    untouched: list[Untouched] = []
    making = _Making(world)
    for node in world.plan.nodes:
        if not node.origin.kind.startswith(OWNING_PREFIX):
            continue  # only service objects know it
        unseen = world.unseen(node.namespace)
        for ref, services in _objects(node).items():
            if not chosen.has(node.namespace, node.name, [service.name for service in services]):
                continue
            if unseen and any(service.service in unseen for service in services):
                continue
            found = making.of(node, ref, services)
            if isinstance(found, Wanted):
                wanted.append(found)
            elif found is not None:
                untouched.append(found)
    return wanted, untouched


def services_of(definitions: Mapping[str, ServiceDefinition], one: Standing) -> list[ServiceDefinition]:
    """The definitions that a service object stands for."""
    group = one.api_version.rpartition("/")[0]
    return [
        definition
        for definition in definitions.values()
        if definition.kind == one.ref.kind
        and definition.api_version.rpartition("/")[0] == group
        and (definition.takes_instances or not one.instance)
    ]


def _objects(node: NodePlan) -> dict[Reference, list[ServicePlan]]:
    """The node's service objects; several services may share one."""
    found: defaultdict[Reference, list[ServicePlan]] = defaultdict(list)
    for service in node.services:
        if service.service_object is not None:
            found[service.service_object.ref].append(service)
    return found


class _Making:
    """Makes one service object after the other."""

    def __init__(self, world: World) -> None:
        resources = world.snapshot.resources
        self._world = world
        self._nodes = {(node.meta.ref, node.name): node for node in resources.nodes}
        self._roles = {(role.meta.ref, role.name): role for role in resources.roles}
        self._asked = _asked_without_hand_made(world)

    def of(self, node: NodePlan, ref: Reference, services: list[ServicePlan]) -> Wanted | Untouched | None:
        """The object, or why it is not written; None for one that is on its way out, which is told elsewhere."""
        stands = self._world.standings.get(ref)
        if stands is not None and stands.deleting:
            return None
        if stands is not None and stands.by_hand and ref not in self._asked:
            return Untouched(ref, node.name, "it was made by hand, and neither Node nor Role asks for it", False)
        if node.errors:
            return Untouched(ref, node.name, " ".join(node.errors), True)
        origin = self._world.standings.get(node.origin)
        if origin is None:
            return Untouched(ref, node.name, f"{node.origin} is not there any more; run again.", True)
        return self._wanted(node, ref, services, origin, stands)

    def _wanted(
        self, node: NodePlan, ref: Reference, services: list[ServicePlan], origin: Standing, stands: Standing | None
    ) -> Wanted:
        known = self._world.definitions(node.namespace)
        theirs = [known[service.service] for service in services]
        first = services[0].service_object
        api_version = first.api_version if first is not None else theirs[0].api_version
        cell = next((service.cell for service in services if service.cell), None)
        key = node.connection.ssh_key
        fields: dict[str, Any] = {
            "dataplaneNodeName": node.name,
            "instance": services[0].instance or None,
            # A cell that is named once stays, also where the node is no compute any more.
            "cellName": cell or (stands.spec.get("cellName") if stands is not None else None),
            "sshKeySecretName": key.secret.name if key is not None else None,
            "inventoryConfigMapName": inventory_name(node, stands),
            "networkAttachments": list(node.network_attachments) or None,
            "deploy": self._deploys(node, theirs),
        }
        return Wanted(
            node=node,
            api_version=api_version,
            ref=ref,
            owner=origin.owner(),
            spec={name: value for name, value in fields.items() if value is not None},
            images=self._images(api_version, theirs) if stands is None else {},
            services=tuple(service.name for service in services),
            is_compute=any(definition.needs_cell for definition in theirs),
        )

    def _deploys(self, node: NodePlan, definitions: list[ServiceDefinition]) -> bool:
        """The Node's, else the Role's; where the cell comes from an older section, that section's too."""
        described: Node | None = self._nodes.get((node.origin, node.name))
        role: Role | None = self._roles.get((node.role_origin or node.origin, node.role or ""))
        older = choose_cell(described, role).older if described is not None else None
        held = older is not None and not older.deploy and any(one.asked_by_cell for one in definitions)
        return node.deploy and not held

    def _images(self, api_version: str, definitions: list[ServiceDefinition]) -> dict[str, str]:
        environment = self._world.snapshot.images
        variables = {definition.image_field: definition.image_variable for definition in definitions}
        group = api_version.partition(".")[0].upper().replace("-", "_")
        variables[EE_FIELD] = f"RELATED_IMAGE_{group}_ANSIBLE_EE_IMAGE_URL_DEFAULT"
        return {field: environment[name] for field, name in sorted(variables.items()) if environment.get(name)}


def inventory_name(node: NodePlan, stands: Standing | None) -> str:
    """The ConfigMap with the node's inventory. One that is named stays; else each node has one of its own."""
    named = stands.spec.get("inventoryConfigMapName") if stands is not None else None
    return str(named) if named else f"dataplanenode-{node.name}"


def _asked_without_hand_made(world: World) -> frozenset[Reference]:
    """Objects that were made by hand and that a Node asks for as well: such a one is taken over.

    Whether it does shows in a plan of the same nodes in which nobody has made anything by hand.
    """
    resources = world.snapshot.resources
    ours = [one for one in world.service_objects() if one.by_hand]
    if not ours:
        return frozenset()
    names = {(one.ref.namespace, one.node) for one in ours}
    refs = {one.ref for one in ours}
    fewer = replace(
        resources,
        nodes=tuple(node for node in resources.nodes if (node.namespace, node.name) in names),
        service_resources=tuple(one for one in resources.service_resources if one.meta.ref not in refs),
    )
    plan = resolve(replace(world.snapshot, resources=fewer))
    asked = {
        (service.service_object.ref.kind, node.namespace, node.name, service.instance)
        for node in plan.nodes
        for service in node.services
        if service.service_object is not None
    }
    return frozenset(one.ref for one in ours if (one.ref.kind, one.ref.namespace, one.node, one.instance) in asked)
