# SPDX-License-Identifier: GPL-3.0-or-later
"""Hold: all is resolved and shown, and the node is not touched by the service."""

from __future__ import annotations

from .asking import ANSWERS
from .cells import OlderNova
from .definitions import ServiceDefinition
from .instances import names_for
from .model import Node, Role, ServiceResource


def hold_of(
    node: Node,
    role: Role | None,
    definition: ServiceDefinition,
    instance: str,
    *,
    resource: ServiceResource | None,
    older: OlderNova | None,
) -> tuple[str | None, tuple[str, ...]]:
    """The sentence that says why the service is held, or None; and what is wrong with the annotations."""
    errors: list[str] = []
    held = _annotated(node, role, names_for(definition.hold_annotations, node, role, instance), errors)
    if held is None and resource is not None and not resource.deploy:
        held = f"{resource.meta.ref}, field spec.deploy: is false; set it to true to deploy."
    if held is None and resource is None and older is not None and definition.asked_by_cell and not older.deploy:
        ref, field = older.snippet_of
        held = f"{ref}, field {field.rpartition('.')[0]}.deploy: is false; set it to true to deploy."
    return held, tuple(errors)


def _annotated(node: Node, role: Role | None, names: tuple[str, ...], errors: list[str]) -> str | None:
    """Of two spellings on one object a "false" counts: to hold too much is safe."""
    for owner in (node, role):
        found = (
            [(name, owner.meta.annotations[name].strip()) for name in names if name in owner.meta.annotations]
            if owner
            else []
        )
        for name, value in found:
            if value not in ANSWERS and owner is not None:
                errors.append(f'{owner.meta.ref}, annotation {name}: is "{value}"; write "true" or "false".')
        for name, value in found:
            if value == "false" and owner is not None:
                return f'{owner.meta.ref}, annotation {name}: is "false"; set it to "true" or remove it to deploy.'
        if found:
            return None
    return None
