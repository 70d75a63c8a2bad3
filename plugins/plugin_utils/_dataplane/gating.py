# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node waits for before phase 1, as a table: what must hold, and the sentence for a person when it does not.

What a service waits for, its Secrets and their keys, is in `sources`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .index import Index
from .model import Condition, Metadata, NovaCell, Reference
from .placement import Placement


@dataclass(frozen=True, slots=True)
class Facts:
    """What the table asks about."""

    placement: Placement
    cell: NovaCell | None
    makers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition, and what to tell when it does not hold."""

    holds: Callable[[Facts], bool]
    sentence: Callable[[Facts], str]


def blocked(index: Index, placement: Placement) -> tuple[str, ...]:
    """The sentences of all gates that are shut."""
    cell = placement.choice.cell
    key = (placement.node.namespace, cell or "")
    makers = tuple(str(nova.meta.ref) for nova, _cell in index.templates.get(key, ()))
    facts = Facts(placement, index.cells.get(key), makers)
    return tuple(gate.sentence(facts) for gate in GATES if not gate.holds(facts))


def _phase_0(facts: Facts) -> Condition | None:
    node = facts.placement.node
    return _condition(node.meta, node.gate)


def _condition(meta: Metadata, name: str) -> Condition | None:
    """The condition; one that holds where there is no status, None where a status does not have it."""
    return Condition("True") if meta.conditions is None else meta.conditions.get(name)


def _true(condition: Condition | None) -> bool:
    return condition is not None and condition.true


def _says(condition: Condition | None) -> str:
    """What the condition's own message adds."""
    return (
        f" ({' '.join(condition.message.split()).rstrip('.')})" if condition is not None and condition.message else ""
    )


def _cell_is_missing(facts: Facts) -> str:
    choice, namespace = facts.placement.choice, facts.placement.node.namespace
    remedy = (
        f"{facts.makers[0]} makes it from its cellTemplates."
        if facts.makers
        else "name a NovaCell that does, for example nova-cell1, or add the cell to a Nova."
    )
    return f"{choice.said_by}: NovaCell {namespace}/{choice.cell} does not exist; {remedy}"


def _cell_is_not_ready(facts: Facts) -> str:
    condition = _condition(facts.cell.meta, "Ready") if facts.cell is not None else None
    ref = Reference("NovaCell", facts.placement.node.namespace, facts.placement.choice.cell or "")
    return f"{ref} is not Ready{_says(condition)}; the node goes on once it is."


def _deploy_is_false(facts: Facts) -> str:
    node, role = facts.placement.node, facts.placement.role
    owner = node.where if node.deploy is False or role is None else str(role.meta.ref)
    return f"{owner}, field deployStrategy.deploy: is false; set it to true to deploy."


def _phase_0_is_not_done(facts: Facts) -> str:
    node = facts.placement.node
    return f"{node.where} is not {node.gate}{_says(_phase_0(facts))}; the node goes on once phase 0 is done."


GATES = (
    Gate(lambda facts: facts.placement.inherited.deploy, _deploy_is_false),
    Gate(lambda facts: _true(_phase_0(facts)), _phase_0_is_not_done),
    Gate(lambda facts: facts.placement.choice.cell is None or facts.cell is not None, _cell_is_missing),
    Gate(lambda facts: facts.cell is None or _true(_condition(facts.cell.meta, "Ready")), _cell_is_not_ready),
)
