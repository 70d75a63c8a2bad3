# SPDX-License-Identifier: GPL-3.0-or-later
"""A service may run more than once on a node: names that are per instance. "" is the plain, usually only, one."""

from __future__ import annotations

from .model import Node, Role


def resource_name(node: str, instance: str) -> str:
    """The name of the service CR."""
    return f"{node}-{instance}" if instance else node


def state_path(plain: str, instance: str) -> str:
    """Where an instance keeps its state."""
    return f"{plain}-{instance}" if instance else plain


def host_of(plain: str, instance: str) -> str:
    """The `host` of an instance: OpenStack tells its services apart by it."""
    return f"{plain}-{instance}" if instance else plain


def names_for(annotations: tuple[str, ...], node: Node, role: Role | None, instance: str) -> tuple[str, ...]:
    """The annotations that count for an instance: its own, `<name>.<instance>`, where Node or Role has them."""
    own = tuple(f"{name}.{instance}" for name in annotations) if instance else ()
    there = [*node.meta.annotations, *(role.meta.annotations if role is not None else ())]
    return own if any(name in there for name in own) else annotations
