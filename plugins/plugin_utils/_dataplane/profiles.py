# SPDX-License-Identifier: GPL-3.0-or-later
"""The one profile of a service on a node: one snippet for many nodes, never composed."""

from __future__ import annotations

from .asking import Said, said
from .definitions import ServiceDefinition
from .index import Index
from .instances import names_for
from .model import Node, Role, ServiceProfile


def profile_of(
    index: Index, node: Node, role: Role | None, definition: ServiceDefinition, instance: str
) -> ServiceProfile | str | None:
    """The profile, a sentence that says why it cannot be had, or None where none is chosen."""
    found = said(node, role, names_for(definition.profile_annotations, node, role, instance))
    if found.error is not None:
        return found.error
    if not found.value:
        return None
    return _checked(index.profiles.get((node.namespace, found.value)), node.namespace, found, definition)


def _checked(
    profile: ServiceProfile | None, namespace: str, found: Said, definition: ServiceDefinition
) -> ServiceProfile | str:
    if profile is None:
        return f"{found.where}: ServiceProfile {namespace}/{found.value} does not exist; create it or name another."
    if profile.meta.faults:
        return profile.meta.faults[0].sentence
    if profile.service != definition.name:
        return (
            f"{found.where}: {profile.meta.ref} is for {profile.service}, not for {definition.name}; "
            f"name a profile of {definition.name}."
        )
    if not definition.takes_snippet:
        return f"{found.where}: {definition.name} takes no customServiceConfig; remove the annotation."
    return profile
