# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All services of a node at a glance: which generation is live, whether it is as it was written, whether it runs."""

from __future__ import annotations

import stat
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from . import guards, health
from .claims import Claims
from .errors import NodeRefused, disk_faults
from .firewall import FIREWALLD
from .generations import Drift, Home, homes
from .ground import Ground
from .live import Live
from .names import is_meant
from .node import Node
from .record import Record
from .seeds import Seeds
from .systemd import UnitState

_LARGEST = 1024 * 1024


def facts(node: Node, *, ask: bool, named: Collection[str] = ()) -> dict[str, dict[str, Any]]:
    """Each service by its name, or those that are `named`. `ask` runs the health checks of those that are up."""
    meant = (home for home in homes(node.disk, node.places) if is_meant(home.name, named))
    found = {home.name: (home, home.record(home.current)) for home in meant}
    if not found:
        return {}
    units = {name: record.unit if record else f"edpm_{name}.service" for name, (_home, record) in found.items()}
    states = node.systemd.states([FIREWALLD, *sorted(set(units.values()))])
    node.firewall.know(states.pop(FIREWALLD, UnitState()))
    return {
        name: _one(node, home, record, units[name], states.get(units[name], UnitState()), ask=ask)
        for name, (home, record) in found.items()
    }


def host_keys(node: Node) -> dict[str, str]:
    """The public keys by which the node's sshd is known, by their types."""
    found = {}
    for path in sorted((node.places.etc / "ssh").glob("ssh_host_*_key.pub")):
        words = (node.disk.read(path) or b"").decode("ascii", "replace").split()
        if len(words) > 1:
            found[words[0]] = words[1]
    return found


def public_contents(node: Node, paths: Sequence[str]) -> dict[str, str]:
    """The texts of files that everybody may read; one that is not there is left out."""
    found = {}
    for path in paths:
        with disk_faults(Path(path)):
            try:
                status = Path(path).stat()
            except FileNotFoundError:
                continue
        if not stat.S_ISREG(status.st_mode) or not status.st_mode & stat.S_IROTH or status.st_size > _LARGEST:
            raise NodeRefused(
                f"{path} on the node is not a public text: only a file that everybody may read, of at most "
                f"{_LARGEST >> 20} MiB, is told; name another one."
            )
        found[path] = (node.disk.read(Path(path)) or b"").decode("utf-8", "replace")
    return found


def _one(node: Node, home: Home, record: Record | None, unit: str, state: UnitState, *, ask: bool) -> dict[str, Any]:
    live, seeds = Live(node, home), Seeds(node, home)
    drift: tuple[Drift, ...] = ()
    if record:
        ground = Ground(node, home.name, record.footing).drift()
        drift = (*home.drift(record), *live.drift(), *seeds.drift(), *Claims(node, home, record).drift(), *ground)
    service, _at, instance = home.name.partition("@")
    pending = home.note("pending.json").get("invocation", "")
    return {
        "service": service,
        "instance": instance,
        "digest": record.digest if record else None,
        "settings": record.settings if record else None,
        "previous": home.previous or None,
        "generations": home.digests(),
        "image": record.image if record else None,
        "drift": [{"name": one.name, "what": one.what} for one in drift],
        "unit": {
            "name": unit,
            "active": state.active,
            "sub": state.sub,
            "invocation": state.invocation,
            "restarts": state.restarts,
        },
        **_health(node, record, state, ask=ask),
        "live": {path: one.sha256 for path, one in sorted(live.known().items())},
        "unfinished": home.intent is not None or live.unread,
        "restart_pending": bool(pending) and pending == state.invocation,
        "identity": guards.known(home),
        "seeds": seeds.known(),
    }


def _health(node: Node, record: Record | None, state: UnitState, *, ask: bool) -> dict[str, Any]:
    if record is None:
        return {"healthy": False, "fault": "it has no live generation"}
    told = health.fault(node, record, state) if ask or not state.is_active else None
    return {"healthy": told is None, "fault": told.text if told else None}
