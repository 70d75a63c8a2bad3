# SPDX-License-Identifier: GPL-3.0-or-later
"""The ConfigMaps by which nodes are reached when their Node is gone, and which of them are to be written.

To look whether each is there would be a request for every node and pass. So that of a node that stays is believed to
be as its service objects say, unless somebody has found that it is not there; that of a node that something leaves is
looked at in every pass, since it is needed now.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from .._dataplane.model import Reference
from .._dataplane.plan import connections
from .inventory_text import INVENTORY_KEY, digest_of, inventory_text, text_of
from .leaving import Going
from .look import World
from .names import FINALIZER, INVENTORY, KEPT
from .standing import Owner, Standing
from .wanted import Wanted

LABELS = {"app.kubernetes.io/managed-by": "edpm.services", "app.kubernetes.io/part-of": "edpm.services"}


@dataclass(frozen=True, slots=True)
class WriteInventory:
    """The node's inventory ConfigMap. It belongs to the node's service objects and goes with the last of them.

    It is `due` for the sake of some of them. `unseen` are kinds whose objects may own it as well, by group and kind.
    """

    ref: Reference
    text: str
    objects: tuple[Wanted | Standing, ...]
    known: Mapping[Reference, str]
    due: frozenset[Reference] = frozenset()
    unseen: frozenset[tuple[str, str]] = frozenset()

    api_version: ClassVar[str] = "v1"
    is_compute: ClassVar[bool] = False

    def body(self, uids: Mapping[Reference, str], kept: Iterable[Mapping[str, Any]] = ()) -> dict[str, Any]:
        """`uids` are those of objects that were made meanwhile, `kept` the owners that it has besides."""
        there = {**self.known, **uids}
        owners = [
            Owner(one.api_version, one.ref.kind, one.ref.name, there[one.ref])
            for one in self.objects
            if one.ref in there
        ]
        metadata = {"labels": LABELS, "ownerReferences": [*(owner.body() for owner in owners), *kept]}
        return object_body("v1", self.ref, metadata=metadata, data={INVENTORY_KEY: self.text})


class Inventories:
    """Those of a world. `lost` are some that are known not to be there, whatever the objects that name them say."""

    def __init__(self, world: World, going: Iterable[Going], lost: Collection[Reference] = ()) -> None:
        self.world, self._lost = world, lost
        self._left: defaultdict[tuple[str, str], list[Standing]] = defaultdict(list)
        leaving = {one.stands.ref: one for one in going}
        staying = (one for one in _parting(world) if one.ref not in leaving)
        for one in (*(each.stands for each in leaving.values() if not each.free), *staying):
            self._left[one.ref.namespace, one.node].append(one)
        missing = {key for key, ones in self._left.items() if any(map(world.lost_inventory, ones))}
        self._reached = connections(world.snapshot, missing) if missing else {}

    @property
    def left(self) -> Collection[tuple[str, str]]:
        """The nodes that something leaves, or is about to."""
        return self._left.keys()

    def text(self, key: tuple[str, str], wanted: Sequence[Wanted]) -> str | None:
        """How a node is reached; None where nobody asks, or nobody describes it any more."""
        if wanted:
            return inventory_text(wanted[0].node)
        return text_of(key[1], self._reached[key]) if key in self._reached else None

    def missing(self, key: tuple[str, str], text: str | None, wanted: Sequence[Wanted]) -> Iterator[WriteInventory]:
        """The steps for one node. They belong to all of its objects, also to those that leave it."""
        if text is None:
            return
        digest = digest_of(text)
        named: defaultdict[str, list[Wanted | Standing]] = defaultdict(list)
        for one in (*wanted, *self._left.get(key, ())):
            named[str(one.spec.get("inventoryConfigMapName") or "")].append(one)
        for name, objects in sorted(named.items()):
            due = frozenset(one.ref for one in objects if name and self._is_due(one, digest))
            if due:
                standings = self.world.standings
                known = {one.ref: standings[one.ref].uid for one in objects if one.ref in standings}
                ref = Reference("ConfigMap", key[0], name)
                yield WriteInventory(ref, text, tuple(objects), known, due, self._unseen(key[0]))

    def is_lost(self, one: Wanted) -> bool:
        """Whether somebody has found that an object's inventory is not there."""
        return bool(self._lost) and inventory_of(one) in self._lost

    def _is_due(self, one: Wanted | Standing, digest: str) -> bool:
        if isinstance(one, Standing):
            return self.world.lost_inventory(one) is not None
        stands = self.world.standings.get(one.ref)
        return stands is None or inventory_said(stands) not in (digest, KEPT) or self.is_lost(one)

    def _unseen(self, namespace: str) -> frozenset[tuple[str, str]]:
        known = self.world.definitions(namespace)
        theirs = (known[name] for name in self.world.unseen(namespace))
        return frozenset((one.api_version.rpartition("/")[0], one.kind) for one in theirs)


def _parting(world: World) -> Iterator[Standing]:
    """Objects whose Node is being deleted: when it is gone, they go too, and nobody can describe the node any more."""
    nodes = {(one.namespace, one.name) for one in world.snapshot.resources.nodes if one.meta.deleting}
    for one in world.service_objects() if nodes else ():
        if (one.ref.namespace, one.node) in nodes and FINALIZER in one.finalizers and not one.deleting:
            yield one


def inventory_of(one: Wanted | Standing) -> Reference:
    """The ConfigMap that an object names."""
    return Reference("ConfigMap", one.ref.namespace, str(one.spec.get("inventoryConfigMapName") or ""))


def inventory_said(stands: Standing) -> str | None:
    """What an object says of its inventory: a digest, or that another's is there."""
    return stands.annotations.get(INVENTORY)


def object_body(
    api_version: str, ref: Reference, *, metadata: Mapping[str, Any] | None = None, **rest: Any
) -> dict[str, Any]:
    """An object as it is sent."""
    named = {"name": ref.name, "namespace": ref.namespace, **(metadata or {})}
    return {"apiVersion": api_version, "kind": ref.kind, "metadata": named, **rest}
