# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory of one node as text, so that it can be reached from its service object alone when its Node is gone."""

from __future__ import annotations

import hashlib

import yaml

from .._dataplane.connections import INVENTORY_KEY
from .._dataplane.fields import plain
from .._dataplane.planned import Connection, NodePlan

__all__ = ["INVENTORY_KEY", "digest_of", "inventory_text", "text_of"]


def inventory_text(node: NodePlan) -> str:
    """A static inventory in YAML with the one host. Same plan, same bytes."""
    return text_of(node.name, node.connection)


def text_of(name: str, reached: Connection) -> str:
    """The same of a node that is not in the plan any more."""
    told = {
        "ansible_host": reached.ansible_host,
        "ansible_user": reached.ansible_user,
        "ansible_port": reached.ansible_port,
    }
    variables = {
        **{name: plain(value) for name, value in reached.variables.items()},
        **{name: value for name, value in told.items() if value is not None},
    }
    hosts = {"all": {"hosts": {name: variables}}}
    return str(yaml.safe_dump(hosts, sort_keys=True, allow_unicode=True, width=120))


def digest_of(text: str) -> str:
    """Short, since it only tells one text of a node from the next."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
