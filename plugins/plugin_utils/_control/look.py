# SPDX-License-Identifier: GPL-3.0-or-later
"""One read of the cluster, for the plan and for what stands there: the same pages serve both."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from .._dataplane.built_in import BUILT_IN
from .._dataplane.definitions import ServiceDefinition
from .._dataplane.model import Reference, Snapshot
from .._dataplane.plan import resolve
from .._dataplane.planned import Plan
from .._kube.client import Client, Object, Resource, Retry, Transport
from .._kube.live import read_snapshot
from .._kube.snapshot import IMAGES
from .standing import Standing, standing

T = TypeVar("T")


@dataclass(frozen=True)
class World:
    """What the cluster holds, what follows from it, and the kinds that could be listed at all."""

    snapshot: Snapshot
    plan: Plan
    standings: Mapping[Reference, Standing]
    kinds: frozenset[str] = frozenset()
    _known: dict[str, Mapping[str, ServiceDefinition]] = field(default_factory=dict, repr=False, compare=False)
    _unseen: dict[str, Mapping[str, str]] = field(default_factory=dict, repr=False, compare=False)

    def definitions(self, namespace: str) -> Mapping[str, ServiceDefinition]:
        """The services that are known in a namespace, by name."""
        if namespace not in self._known:
            partners = (one for one in self.snapshot.definitions if one.partner and one.partner.namespace == namespace)
            self._known[namespace] = {**BUILT_IN, **{one.name: one for one in partners}}
        return self._known[namespace]

    def unseen(self, namespace: str) -> Mapping[str, str]:
        """The services whose objects cannot be seen in a namespace, and why: they may be there all the same."""
        if namespace not in self._unseen:
            found = ((one, self.snapshot.why_unseen(one, namespace)) for one in self.definitions(namespace).values())
            self._unseen[namespace] = {one.name: sentence for one, sentence in found if sentence is not None}
        return self._unseen[namespace]

    @cached_property
    def described(self) -> frozenset[tuple[str, str]]:
        """Namespace and name of every node that somebody describes."""
        return frozenset((node.namespace, node.name) for node in self.snapshot.resources.nodes)

    def lost_inventory(self, one: Standing) -> Reference | None:
        """The ConfigMap with the inventory of a node that a service object leaves, where it is not there."""
        name = one.spec.get("inventoryConfigMapName")
        ref = Reference("ConfigMap", one.ref.namespace, str(name))
        return ref if name and ref not in self.snapshot.stores else None

    def service_objects(self) -> list[Standing]:
        """The service objects, in the order of their names."""
        refs = [one.meta.ref for one in self.snapshot.resources.service_resources]
        return [self.standings[ref] for ref in refs if ref in self.standings]


class WatchfulClient(Client):
    """Keeps what stands there of every object that it lists."""

    def __init__(self, transport: Transport, *, dry_run: bool = False, retry: Retry | None = None) -> None:
        super().__init__(transport, dry_run=dry_run, retry=retry)
        self.seen: dict[Reference, Standing] = {}
        self.kinds: set[str] = set()

    def map_all(
        self,
        made: Callable[[Object], T],
        resource: Resource,
        namespace: str | None = None,
        labels: str | None = None,
        *,
        fields: str | None = None,
    ) -> list[T]:
        def both(body: Object) -> T:
            found = standing(body)
            if found is not None:
                self.seen[found.ref] = found
            return made(body)

        found = super().map_all(both, resource, namespace, labels, fields=fields)
        self.kinds.add(resource.kind)  # not where it may not be listed
        return found


def look(client: WatchfulClient, namespaces: Sequence[str]) -> World:
    """Read the cluster once, in pages."""
    client.seen.clear()
    images = {name: image for name, image in os.environ.items() if name.startswith(IMAGES) and image}
    snapshot = read_snapshot(client, namespaces, images)
    return World(snapshot, resolve(snapshot), dict(client.seen), frozenset(client.kinds))
