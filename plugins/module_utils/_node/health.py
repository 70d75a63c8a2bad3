# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a unit is up and stays up, and whether what runs in it answers."""

from __future__ import annotations

from . import connections
from .commands import bounded
from .errors import Unhealthy
from .node import Node
from .record import Record
from .systemd import UnitState

#: A unit that systemd had to start this often within one check will not recover.
_RESTARTS = 3
_PAUSE = 0.5
_COMMAND_LIMIT = 30


def fault(node: Node, record: Record, state: UnitState) -> str:
    """What is wrong with a unit now; empty when it is up and answers."""
    if not state.is_active:
        return f"{record.unit} is {state.active} ({state.sub})"
    return _silence(node, record, state)


def await_health(node: Node, record: Record, complaint: str = "") -> None:
    """Wait until the unit is up, has stayed up and answers. `complaint` is what starting it brought."""
    health, clock = record.health, node.clock
    end = clock.now() + health.timeout
    first = node.systemd.state(record.unit)
    state, since, silence = first, clock.now(), ""
    while True:
        _give_up_early(record, first, state, complaint)
        if state.is_active and clock.now() - since >= health.settle:
            silence = _silence(node, record, state)
            if not silence:
                return
        if clock.now() >= end:
            told = silence or f"{record.unit} is {state.active} ({state.sub}) and did not stay up for {health.settle} s"
            raise Unhealthy(f"{told} within {health.timeout} s")
        clock.sleep(_PAUSE)
        seen = node.systemd.state(record.unit)
        if not seen.is_active or seen.invocation != state.invocation:
            since = clock.now()
        state = seen


def _give_up_early(record: Record, first: UnitState, state: UnitState, complaint: str) -> None:
    if state.load == "not-found":
        raise Unhealthy(f"systemd has no {record.unit}")
    if state.active == "failed":
        raise Unhealthy(f"{record.unit} failed ({complaint or state.result})")
    if state.restarts - first.restarts >= _RESTARTS:
        raise Unhealthy(f"{record.unit} dies as soon as it runs: systemd started it {state.restarts} times")
    if state.active == "inactive":
        raise Unhealthy(f"{record.unit} does not run ({complaint or 'it ended by itself'})")


def _silence(node: Node, record: Record, state: UnitState) -> str:
    told = _command_fault(node, record)
    if record.health.connected and not told:
        told = connections.silence(node.places.proc, state.main, record.health.connected)
    return f"{record.unit} is up, and its health check fails ({told})" if told else ""


def _command_fault(node: Node, record: Record) -> str:
    command = record.health.command
    if not command:
        return ""
    if record.health.on_node:
        answer = node.run(bounded(_COMMAND_LIMIT, command), {})
    else:
        answer = node.podman.execute(record.container, command, _COMMAND_LIMIT)
    return "" if answer.ok else answer.said
