# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All services of a node at a glance: which generation is live, whether it is as it was written, whether it runs."""

from __future__ import annotations

from typing import Any

from . import guards, health
from .changes import Seen
from .generations import Home
from .node import Node
from .record import Record
from .systemd import UnitState


def facts(node: Node, *, ask: bool) -> dict[str, dict[str, Any]]:
    """Each service by its name. `ask` runs the health checks of those that are up."""
    homes = _homes(node)
    records = {home.name: home.record(home.current) for home in homes}
    states = node.systemd.states([_unit(home) for home in homes])
    return {
        home.name: _one(node, home, records[home.name], states.get(_unit(home), UnitState()), ask=ask) for home in homes
    }


def _homes(node: Node) -> list[Home]:
    root = node.places.root
    found = sorted(root.iterdir()) if root.is_dir() else []
    return [Home(node.disk, node.places, one.name) for one in found if (one / "generations").is_dir()]


def _unit(home: Home) -> str:
    return f"edpm_{home.name}.service"


def _one(node: Node, home: Home, record: Record | None, state: UnitState, *, ask: bool) -> dict[str, Any]:
    seen = Seen(record, state, home.drift(record) if record else ())
    service, _at, instance = home.name.partition("@")
    pending = home.note("pending.json").get("invocation", "")
    return {
        "service": service,
        "instance": instance,
        "digest": record.digest if record else None,
        "previous": home.previous or None,
        "generations": home.digests(),
        "image": record.image if record else None,
        "drift": [{"name": one.name, "what": one.what} for one in seen.drift],
        "unit": {
            "name": _unit(home),
            "active": state.active,
            "sub": state.sub,
            "invocation": state.invocation,
            "restarts": state.restarts,
        },
        **_health(node, record, state, ask=ask),
        "unfinished": home.intent is not None,
        "restart_pending": bool(pending) and pending == state.invocation,
        "identity": guards.known(home),
    }


def _health(node: Node, record: Record | None, state: UnitState, *, ask: bool) -> dict[str, Any]:
    if record is None:
        return {"healthy": False, "fault": "it has no live generation"}
    told = health.fault(node, record, state) if ask or not state.is_active else ""
    return {"healthy": not told, "fault": told or None}
