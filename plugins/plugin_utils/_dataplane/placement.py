# SPDX-License-Identifier: GPL-3.0-or-later
"""A node with its role, its cell and the services that it runs: all that follows from resources alone.

Both the list of Secrets to read and the plan are made from it, so that they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .cells import CellChoice, choose_cell, refuse_cell0, refuse_moves
from .index import Index
from .inheritance import Inherited, inherit, role_of
from .model import Metadata, Node, NodeSection, Reference, Resources, Role, ServiceResource
from .secrets import Uses, uses_of
from .services import Answers, Asked, Wanted, is_hand_made, is_of, told_by_others


@dataclass(frozen=True, slots=True)
class Placement:
    """One node. `errors` are rules that it breaks; `unreadable` tells that an object it rests on is malformed."""

    node: Node
    role: Role | None
    inherited: Inherited
    choice: CellChoice
    asked: Asked
    resources: tuple[ServiceResource, ...] = ()
    errors: tuple[str, ...] = ()
    unreadable: bool = False

    def resource_of(self, wanted: Wanted, instance: str) -> ServiceResource | None:
        """The service CR of a service and instance."""
        found = (one for one in self.resources if one.instance == instance and is_of(one, wanted.definition))
        return next(found, None)


class Needs:
    """The Secrets and ConfigMaps of services, worked out once for all nodes of a cell that need the same."""

    def __init__(self, index: Index):
        self._index = index
        self._known: dict[tuple[str, str | None, str, tuple[Reference, ...], bool], Uses] = {}

    def of(self, placement: Placement, wanted: Wanted) -> Uses:
        """Those of one service on one node."""
        namespace, cell, services = placement.node.namespace, placement.choice.cell, wanted.dataplane_services
        refs = tuple(service.meta.ref for service in services)
        key = (namespace, cell, wanted.definition.name, refs, wanted.listed)
        if key not in self._known:
            uses = uses_of(self._index, namespace, cell, wanted.definition, services, listed=wanted.listed)
            self._known[key] = uses
        return self._known[key]


def placements(index: Index, resources: Resources) -> Iterator[Placement]:
    """Every node, and after them the nodes that only service CRs know."""
    answers = Answers(index)
    for node in resources.nodes:
        yield _place(index, answers, node)
    for (namespace, name), theirs in sorted(index.service_resources.items()):
        if (namespace, name) not in index.nodes:
            yield _place_alone(index, answers, name, theirs)


def _place(index: Index, answers: Answers, node: Node) -> Placement:
    found = role_of(index, node)
    role = found if isinstance(found, Role) else None
    missing = [] if isinstance(found, Role) else [found]
    faults = [fault.sentence for fault in (*node.meta.faults, *(role.meta.faults if role else ()))]
    if not node.role and node.meta.faults:
        missing = []  # that the role is not named is among the faults already
    return _placed(index, answers, node, role, [*faults, *missing])


def _placed(index: Index, answers: Answers, node: Node, role: Role | None, broken: list[str]) -> Placement:
    resources = index.service_resources.get((node.namespace, node.name), ())
    choice = choose_cell(node, role)
    asked = answers.of(node, role, choice, tuple(one for one in resources if _asks_by_itself(index, one)))
    if any(wanted.definition.needs_cell or wanted.definition.derived for wanted in asked.wanted):
        choice = told_by_others(index, node, role, choice, resources)
    inherited = inherit(node, role)
    theirs = [fault.sentence for one in resources for fault in one.meta.faults]
    cell = index.cells.get((node.namespace, choice.cell or ""))
    theirs += [fault.sentence for fault in cell.meta.faults] if cell is not None else []
    cell0 = refuse_cell0(index, node, choice)
    errors = [*broken, *theirs, *inherited.errors, *asked.errors, *([cell0] if cell0 else ())]
    errors += [*refuse_moves(choice, (one for one in resources if not one.meta.deleting)), *_twice(resources)]
    return Placement(
        node=node,
        role=role,
        inherited=inherited,
        choice=choice,
        asked=asked,
        resources=resources,
        errors=tuple(dict.fromkeys(errors)),
        unreadable=bool(broken or theirs),
    )


def _asks_by_itself(index: Index, resource: ServiceResource) -> bool:
    """A service CR that a person made, or whose Node is not known. One that follows from a Node goes with it."""
    known = (resource.meta.ref.namespace, resource.node) in index.nodes
    return not resource.meta.deleting and (is_hand_made(resource) or not known)


def _place_alone(index: Index, answers: Answers, name: str, resources: tuple[ServiceResource, ...]) -> Placement:
    """A node without Node or Role: its service CRs say all that there is to say, and a status that is not there
    counts as ready."""
    first = resources[0]
    section = NodeSection(ssh_key_secret=next((one.ssh_key_secret for one in resources if one.ssh_key_secret), None))
    attachments = next((one.network_attachments for one in resources if one.network_attachments), None)
    node = Node(
        name=name,
        role="",
        meta=Metadata(first.meta.ref),
        section=section,
        network_attachments=attachments,
    )
    return _placed(index, answers, node, None, [])


def _twice(resources: tuple[ServiceResource, ...]) -> Iterator[str]:
    seen: dict[tuple[str, str, str], Reference] = {}
    for one in resources:
        ref = one.meta.ref
        key = (ref.kind, one.api_version.rpartition("/")[0], one.instance)
        if key in seen:
            yield (
                f"{seen[key]} and {ref} both describe {ref.kind} {one.instance or '(plain)'} of node {one.node}; "
                "keep the one that is named like the node."
            )
        seen.setdefault(key, ref)
