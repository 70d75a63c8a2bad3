# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of a plan that somebody asks about, every service with its bundle."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

from ...module_utils._node.names import exactly, is_meant
from .._bundle.bundle import Bundle, against, bundle
from .._dataplane.planned import Leaving, LeftAlone, LeftToOperator, NodePlan, Plan, ServicePlan
from .near import NotThereError, did_you_mean


class State(StrEnum):
    """What would become of a service if it were deployed now."""

    READY = "ready"
    HELD = "held"
    BLOCKED = "blocked"


@dataclass(frozen=True)
class Question:
    """What is asked about; an empty text is no limit. A service's plain name means all of its instances.

    `<service>@` means the one without an instance alone. Several services are named with commas between them.
    """

    node: str = ""
    service: str = ""
    option: str = ""

    @property
    def named(self) -> frozenset[str]:
        """The services as they are written; empty where there is no limit."""
        return frozenset(one.strip() for one in self.service.split(",")) if self.service else frozenset()

    def asks(self, name: str) -> bool:
        """Whether a service is meant."""
        return is_meant(name, self.named)


@dataclass(frozen=True)
class PlannedService:
    """A service on a node with its bundle."""

    node: NodePlan
    plan: ServicePlan
    bundle: Bundle

    @cached_property
    def own_reasons(self) -> tuple[str, ...]:
        """What keeps it waiting and is no matter of its whole node."""
        return tuple(reason for reason in self.reasons if reason not in _reasons_of(self.node))

    @cached_property
    def reasons(self) -> tuple[str, ...]:
        """All that keeps it waiting."""
        return against(self.node, self.plan, self.bundle)

    @property
    def state(self) -> State:
        """Whether it can go on; what blocks it counts more than what holds it."""
        if self.reasons:
            return State.BLOCKED
        return State.HELD if self.plan.hold else State.READY


@dataclass(frozen=True)
class PlannedNode:
    """A node and those of its services that are asked about."""

    plan: NodePlan
    services: tuple[PlannedService, ...]

    @property
    def own_reasons(self) -> tuple[str, ...]:
        """What keeps the whole node waiting."""
        return _reasons_of(self.plan)

    @property
    def reasons(self) -> tuple[str, ...]:
        """All that keeps the node or one of its services waiting."""
        theirs = (reason for service in self.services for reason in service.reasons)
        return tuple(dict.fromkeys((*self.own_reasons, *theirs)))


@dataclass(frozen=True)
class Overview:
    """What is shown. `nodes` are in the plan's order."""

    nodes: tuple[PlannedNode, ...] = ()
    left_alone: tuple[LeftAlone, ...] = ()
    left_to_operator: tuple[LeftToOperator, ...] = ()
    leaving: tuple[Leaving, ...] = ()
    warnings: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()

    @property
    def services(self) -> tuple[PlannedService, ...]:
        """All services of all nodes."""
        return tuple(service for node in self.nodes for service in node.services)


def overview(plan: Plan, question: Question) -> Overview:
    """What the question asks for; NotThereError where there is no such node, or it does not run such a service."""
    plan = _of_node(plan, question.node) if question.node else plan
    nodes = tuple(_planned(node, question) for node in plan.nodes)
    if question.service:
        nodes = tuple(node for node in nodes if node.services)
        if not nodes:
            raise NotThereError(_no_service(plan, question))
        plan = replace(plan, left_alone=(), left_to_operator=())
    return Overview(nodes, plan.left_alone, plan.left_to_operator, plan.leaving, plan.warnings, plan.errors)


def services_of(plan: Plan, question: Question) -> tuple[PlannedService, ...] | None:
    """Those services of a node that are asked about, which may be none; None where the plan does not know the node."""
    node = next((one for one in plan.nodes if one.name == question.node), None)
    return _planned(node, question).services if node else None


def _of_node(plan: Plan, name: str) -> Plan:
    nodes = tuple(node for node in plan.nodes if node.name == name)
    alone = tuple(node for node in plan.left_alone if node.name == name)
    if not (nodes or alone):
        known = dict.fromkeys([*(one.name for one in plan.nodes), *(one.name for one in plan.left_alone)])
        raise NotThereError(f"The data plane has no node {name}; {did_you_mean(name, known, 'nodes')}")
    leaving = tuple(one for one in plan.leaving if one.node == name)
    return Plan(nodes=nodes, left_alone=alone, leaving=leaving)


def _planned(node: NodePlan, question: Question) -> PlannedNode:
    asked = (one for one in node.services if question.asks(one.name))
    return PlannedNode(node, tuple(PlannedService(node, one, bundle(one)) for one in asked))


def _no_service(plan: Plan, question: Question) -> str:
    if question.node and not plan.nodes:
        return f"{question.node} runs nothing of ours: {plan.left_alone[0].sentence}."
    # Who means one service alone is not led to a name that means all of its instances.
    alone = any(one.endswith("@") for one in question.named)
    names = (service.name for node in plan.nodes for service in node.services)
    known = dict.fromkeys(exactly(name) if alone else name for name in names)
    who = f"The node {question.node} does not run" if question.node else "No node runs"
    return f"{who} {question.service}; {did_you_mean(question.service, known, 'services')}"


def _reasons_of(node: NodePlan) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*node.errors, *node.blocked)))
