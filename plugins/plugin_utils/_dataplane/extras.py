# SPDX-License-Identifier: GPL-3.0-or-later
"""What a deployer adds to a service on a node beside its configuration: options, a registry, mounts, a kolla config."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .definitions import ServiceDefinition
from .kolla_configs import NO_KOLLA_CONFIG, kolla_config
from .model import Reference, Store
from .mounts import NO_MOUNTS, Mounts
from .options import NO_OPTIONS, options_of, ours
from .placement import Placement
from .planned import ExtraMount, LeftOut, Registry
from .registries import NO_REGISTRY, Access, Registries, pulling
from .secrets import Use
from .values import Value, Variables


@dataclass(frozen=True, slots=True)
class Extras:
    """All of it for one service, and what stands against it or is worth knowing."""

    options: Mapping[str, Value] = field(default_factory=dict)
    registry: Registry | None = None
    mounts: tuple[ExtraMount, ...] = ()
    kolla: bytes | None = field(default=None, repr=False)
    kolla_key: str = ""
    notes: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()

    def still_left_out(self, left_out: tuple[LeftOut, ...]) -> tuple[LeftOut, ...]:
        """Without the key that is the kolla config."""
        if not self.kolla_key:
            return left_out
        return tuple(one for one in left_out if one.origin.field != f"key {self.kolla_key}")


_NONE = Extras()


@dataclass(frozen=True, slots=True)
class OfNode:
    """What all services of a node share: of its variables those that may be options, and its registry."""

    placement: Placement
    variables: Variables
    access: Access


class Additions:
    """What nodes share is worked out once."""

    def __init__(self, stores: Mapping[Reference, Store]):
        self._stores = stores
        self._mounts = Mounts(stores)
        self._registries = Registries(stores)

    def of_node(self, placement: Placement, variables: Variables) -> OfNode:
        """The node's part."""
        return OfNode(placement, ours(variables), self._registries.of(placement.node, placement.role))

    def of(self, node: OfNode, definition: ServiceDefinition, uses: Iterable[Use]) -> Extras:
        """The additions to one of its services."""
        access = node.access
        chosen = options_of(node.placement.node, node.variables, definition)
        mounted = self._mounts.of(node.placement, definition)
        kolla = kolla_config(definition, chosen.options, uses, self._stores)
        if chosen is NO_OPTIONS and access is NO_REGISTRY and mounted is NO_MOUNTS and kolla is NO_KOLLA_CONFIG:
            return _NONE
        parts = (chosen, access, mounted, kolla)
        return Extras(
            options=chosen.options,
            registry=pulling(access.registry, chosen.options),
            mounts=mounted.mounts,
            kolla=kolla.text,
            kolla_key=kolla.key,
            notes=tuple(note for part in parts for note in part.notes),
            errors=tuple(error for part in parts for error in part.errors),
            blocked=(*access.blocked, *mounted.blocked, *kolla.blocked),
        )
