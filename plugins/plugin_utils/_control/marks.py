# SPDX-License-Identifier: GPL-3.0-or-later
"""The mark of the cell that computes are deployed in, on the objects that decide on it.

An admission policy sees one object. The mark tells it what it cannot see: that a compute is deployed, and where.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .._dataplane.cells import DEFAULT_CELL, DEFAULT_NOVA
from .._dataplane.model import CELL_ANNOTATION, Node, Reference
from .look import World
from .names import DEPLOYED_CELL, MARKED_KINDS, NODE, ROLE
from .standing import Standing


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark that is to be set, or released by an empty value."""

    stands: Standing
    cell: str

    @property
    def sentence(self) -> str:
        """What it means to a reader."""
        if self.cell:
            return f"its computes are deployed in {self.cell}"
        return f"no compute is deployed in {self.stands.annotations.get(DEPLOYED_CELL)} any more"


@dataclass(frozen=True, slots=True)
class Compute:
    """A node's service object that names a cell, in the cluster now or when the run has ended."""

    namespace: str
    node: str
    cell: str


def node_mark(world: World, namespace: str, name: str, cells: Iterable[str]) -> Mark | None:
    """The change of a Node's mark, where its computes are in these cells. A node of a NodeSet has no object."""
    stands = world.standings.get(Reference(NODE, namespace, name))
    return _change(world, stands, set(cells)) if stands is not None else None


def role_marks(world: World, computes: Iterable[Compute]) -> list[Mark]:
    """The changes of the marks of Roles and NodeSets: those whose word decides on a deployed compute have one."""
    deciding: defaultdict[Reference, set[str]] = defaultdict(set)
    nodes: dict[tuple[str, str], Node] = {}
    for node in world.snapshot.resources.nodes:
        nodes.setdefault((node.namespace, node.name), node)
    for compute in computes:
        described = nodes.get((compute.namespace, compute.node))
        if described is not None and not _decides_itself(described):
            deciding[_role_of(described)].add(compute.cell)
    found = (
        _change(world, stands, deciding.get(ref, set()))
        for ref, stands in sorted(world.standings.items())
        if ref.kind in MARKED_KINDS and ref.kind != NODE
    )
    return [mark for mark in found if mark is not None]


def computes_of(world: World, gone: Iterable[Reference], made: Mapping[Reference, Compute]) -> list[Compute]:
    """All of them after a run that has made some and let others go."""
    left = set(gone)
    found: dict[Reference, Compute] = {}
    for one in world.service_objects():
        cell = one.spec.get("cellName")
        if cell and one.ref not in left and is_compute(world, one):
            found[one.ref] = Compute(one.ref.namespace, one.node, str(cell))
    return list({**found, **made}.values())


def is_compute(world: World, one: Standing) -> bool:
    """Whether an object is of a kind that needs a cell."""
    known = world.definitions(one.ref.namespace).values()
    return any(definition.needs_cell and definition.kind == one.ref.kind for definition in known)


def _change(world: World, stands: Standing, cells: set[str]) -> Mark | None:
    """Where the cells differ nothing is marked: the plan tells of it, and a mark could only be half true.

    Where computes cannot be seen a mark stays as it is, since it may tell of one of them.
    """
    known = stands.annotations.get(DEPLOYED_CELL, "")
    if stands.deleting or len(cells) > 1 or (known and _hides_computes(world, stands.ref.namespace)):
        return None
    cell = next(iter(cells), "")
    return Mark(stands, cell) if known != cell else None


def _hides_computes(world: World, namespace: str) -> bool:
    definitions = world.definitions(namespace)
    return any(definitions[name].needs_cell for name in world.unseen(namespace))


def _role_of(node: Node) -> Reference:
    return node.role_ref or Reference(ROLE, node.namespace, node.role)


def _decides_itself(node: Node) -> bool:
    """Whether its Role has no say: it has an annotation, or an older section that is more than defaults."""
    section = node.section.nova
    older = section is not None and (
        section.cell_name not in (None, DEFAULT_CELL) or section.nova_instance not in (None, DEFAULT_NOVA)
    )
    return CELL_ANNOTATION in node.meta.annotations or older
