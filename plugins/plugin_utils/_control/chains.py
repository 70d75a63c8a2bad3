# SPDX-License-Identifier: GPL-3.0-or-later
"""From what is wanted and what stands there to the steps that are missing, none where nothing is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from .._dataplane.model import Reference
from .inventories import Inventories, WriteInventory, inventory_said, object_body
from .inventory_text import digest_of
from .leaving import Going
from .look import World
from .marks import Mark, is_compute, node_mark
from .names import DEPLOYED_CELL, FINALIZER, INVENTORY, KEPT, NODE, REMOVAL, REQUESTED
from .standing import Standing
from .wanted import Chosen, Wanted

#: What says which object it is, and never changes.
IDENTITY = ("dataplaneNodeName", "instance", "cellName")
#: All that we may set.
FOLLOWING = frozenset(
    {*IDENTITY, "sshKeySecretName", "inventoryConfigMapName", "networkAttachments", "deploy"},
)
#: Fields that a person may take over: what they set there stays.
YIELDING = ("deploy",)


@dataclass(frozen=True, slots=True)
class Create:
    """A new service object with its images, under the manager that never writes again."""

    wanted: Wanted

    @property
    def ref(self) -> Reference:
        """The object that it is about."""
        return self.wanted.ref

    @property
    def api_version(self) -> str:
        """The version of that object."""
        return self.wanted.api_version

    @property
    def is_compute(self) -> bool:
        """Whether a mark depends on it."""
        return self.wanted.is_compute

    def body(self) -> dict[str, Any]:
        """Who it is and its images. Whether it may be deployed is told from the start where it may not."""
        told = {name: self.wanted.spec[name] for name in IDENTITY if name in self.wanted.spec}
        held = {} if self.wanted.spec["deploy"] else {"deploy": False}
        return object_body(self.wanted.api_version, self.ref, spec={**told, **held, **self.wanted.images})


@dataclass(frozen=True, slots=True)
class Apply:
    """Our fields of a service object. `inventory` is what its annotation says unless a step before it found out."""

    wanted: Wanted
    stands: Standing | None
    inventory: str

    @property
    def ref(self) -> Reference:
        """The object that it is about."""
        return self.wanted.ref

    @property
    def api_version(self) -> str:
        """The version of that object."""
        return self.wanted.api_version

    @property
    def is_compute(self) -> bool:
        """Whether a mark depends on it."""
        return self.wanted.is_compute

    def body(self, stands: Standing | None, inventory: str, uid: str | None) -> dict[str, Any]:
        """All that we apply, with what a person has taken over left out."""
        metadata: dict[str, Any] = {
            "annotations": {INVENTORY: inventory},
            "finalizers": [FINALIZER],
            "ownerReferences": [self.wanted.owner.body()],
        }
        if uid:
            metadata["uid"] = uid
        return object_body(self.wanted.api_version, self.ref, metadata=metadata, spec=our_fields(self.wanted, stands))


@dataclass(frozen=True, slots=True)
class RequestRemoval:
    """The annotation that a service object's services are to leave the node; or that they are not, after all."""

    stands: Standing
    requested: bool
    sentence: str
    is_compute: ClassVar[bool] = False

    @property
    def ref(self) -> Reference:
        """The object that it is about."""
        return self.stands.ref

    @property
    def api_version(self) -> str:
        """The version of that object."""
        return self.stands.api_version

    def body(self) -> dict[str, Any]:
        """What is not applied any more is taken back."""
        said = {"annotations": {REMOVAL: REQUESTED}} if self.requested else {}
        return object_body(self.stands.api_version, self.ref, metadata={"uid": self.stands.uid, **said})


@dataclass(frozen=True, slots=True)
class LetGo:
    """A service object whose services are off the node: deleted where it is not yet, its finalizer released."""

    going: Going

    @property
    def ref(self) -> Reference:
        """The object that it is about."""
        return self.going.stands.ref

    @property
    def api_version(self) -> str:
        """The version of that object."""
        return self.going.stands.api_version

    @property
    def is_compute(self) -> bool:
        """Whether a mark depends on it."""
        return self.going.is_compute


@dataclass(frozen=True, slots=True)
class SetMark:
    """The cell that computes are deployed in, on a Node, Role or NodeSet."""

    mark: Mark
    is_compute: ClassVar[bool] = False

    @property
    def ref(self) -> Reference:
        """The object that it is about."""
        return self.mark.stands.ref

    @property
    def api_version(self) -> str:
        """The version of that object."""
        return self.mark.stands.api_version

    def body(self) -> dict[str, Any]:
        """With its uid, so that a Node that is deleted meanwhile is not made anew."""
        stands = self.mark.stands
        metadata = {"uid": stands.uid, "annotations": {DEPLOYED_CELL: self.mark.cell}}
        return object_body(stands.api_version, self.ref, metadata=metadata)


Step = Create | WriteInventory | Apply | RequestRemoval | LetGo | SetMark


@dataclass(frozen=True, slots=True)
class Chain:
    """The steps of one node, in their order: each relies on those before it, except on those for partners' objects."""

    namespace: str
    node: str
    steps: tuple[Step, ...]


def chains(
    world: World,
    wanted: Iterable[Wanted],
    going: Iterable[Going],
    chosen: Chosen,
    lost: Collection[Reference] = frozenset(),
) -> list[Chain]:
    """One for each chosen node that something is to be done for.

    `lost` are inventories that are known not to be there, although the objects that they belong to say they were
    written. Of nodes that something leaves this is seen in the world.
    """
    coming: defaultdict[tuple[str, str], list[Wanted]] = defaultdict(list)
    leaving: defaultdict[tuple[str, str], list[Going]] = defaultdict(list)
    for one in wanted:
        coming[one.ref.namespace, one.node.name].append(one)
    for other in going:
        leaving[other.stands.ref.namespace, other.stands.node].append(other)
    there = _cells(world)
    inventories = Inventories(world, [one for ones in leaving.values() for one in ones], lost)
    found = [
        Chain(*key, tuple(_steps(inventories, key, coming[key], leaving[key], there.get(key, {}))))
        for key in sorted({*coming, *leaving, *inventories.left, *_marked(world)})
        if chosen.has_node(*key)
    ]
    return [chain for chain in found if chain.steps]


def our_fields(wanted: Wanted, stands: Standing | None) -> dict[str, Any]:
    """The fields of the spec that we apply.

    Somebody may have applied a manifest of their own under our name, with edpm.services.cluster_definitions: what they
    set there, a snippet perhaps, would be gone if it were left out, so it is applied as it is.
    """
    others = sorted(stands.ours - FOLLOWING) if stands is not None else []
    kept = {name: stands.spec[name] for name in others if name in stands.spec} if stands is not None else {}
    return kept | {name: value for name, value in wanted.spec.items() if not taken_over(wanted, stands, name)}


def taken_over(wanted: Wanted, stands: Standing | None, name: str) -> bool:
    """Whether a person has set a field to something else. One that is set back is ours again."""
    if stands is None or name not in YIELDING or name in stands.ours or name not in stands.theirs:
        return False
    return bool(stands.spec.get(name) != wanted.spec[name])


def differs(wanted: Wanted, stands: Standing, inventory: str) -> bool:
    """Whether an object is to be applied again."""
    fields = our_fields(wanted, stands)
    return (
        any(name not in stands.ours or stands.spec.get(name) != value for name, value in fields.items())
        or not stands.ours <= fields.keys()
        or FINALIZER not in stands.finalizers
        or wanted.owner not in stands.owners
        or inventory_said(stands) not in (inventory, KEPT)
    )


def _steps(
    inventories: Inventories,
    key: tuple[str, str],
    wanted: list[Wanted],
    going: list[Going],
    there: Mapping[Reference, str],
) -> list[Step]:
    """New objects first, then the inventory that belongs to them, then our fields, which say that it is there."""
    world, text = inventories.world, inventories.text(key, wanted)
    steps: list[Step] = [Create(one) for one in wanted if one.ref not in world.standings]
    steps += inventories.missing(key, text, wanted)
    steps += _coming_steps(inventories, wanted, digest_of(text or ""))
    for one in going:
        if one.free:
            steps.append(LetGo(one))
        elif one.stands.annotations.get(REMOVAL) != REQUESTED:
            steps.append(RequestRemoval(one.stands, True, one.sentence))
    free = {one.stands.ref for one in going if one.free}
    cells = {cell for ref, cell in there.items() if ref not in free}
    cells |= {one.cell for one in wanted if one.is_compute and one.cell}
    mark = node_mark(world, *key, cells)
    if mark is not None:
        steps.append(SetMark(mark))
    return steps


def _coming_steps(inventories: Inventories, wanted: Sequence[Wanted], digest: str) -> Iterator[Step]:
    for one in wanted:
        stands = inventories.world.standings.get(one.ref)
        # Where another's inventory is gone, ours takes its place and is kept in step from now on.
        ours_now = stands is not None and inventory_said(stands) == KEPT and inventories.is_lost(one)
        if stands is None or differs(one, stands, digest) or ours_now:
            yield Apply(one, stands, digest)
        if stands is not None and REMOVAL in stands.annotations:
            yield RequestRemoval(stands, False, "its node asks for it again")


def _cells(world: World) -> dict[tuple[str, str], dict[Reference, str]]:
    """The cells of the computes that stand there, by node."""
    found: defaultdict[tuple[str, str], dict[Reference, str]] = defaultdict(dict)
    for one in world.service_objects():
        if one.spec.get("cellName") and is_compute(world, one):
            found[one.ref.namespace, one.node][one.ref] = str(one.spec["cellName"])
    return found


def _marked(world: World) -> list[tuple[str, str]]:
    """Nodes with a mark: one whose computes have gone in another way must lose it."""
    return [
        (ref.namespace, ref.name)
        for ref, one in world.standings.items()
        if ref.kind == NODE and one.annotations.get(DEPLOYED_CELL)
    ]
