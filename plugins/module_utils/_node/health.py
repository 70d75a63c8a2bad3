# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a unit is up and stays up, and whether what runs in it answers."""

from __future__ import annotations

from dataclasses import dataclass

from . import connections
from .commands import bounded
from .connections import Reach
from .errors import Unhealthy
from .node import Node
from .record import Record
from .systemd import UnitState

#: A unit that systemd had to start this often within one check will not recover.
_RESTARTS = 3
_PAUSE = 0.5
#: Asking costs a process on a node that is busy with starting the service.
_ASK_AGAIN = 1
_COMMAND_LIMIT = 30


@dataclass(frozen=True)
class Fault:
    """What is wrong with a unit. One that `waits` runs and lacks only what it works with: no restart brings that."""

    text: str
    waits: bool = False


def fault(node: Node, record: Record, state: UnitState) -> Fault | None:
    """What is wrong with a unit now; None when it is up and answers."""
    if not state.is_active:
        return Fault(f"{record.unit} is {state.active} ({state.sub})")
    return _silence(node, record, state)


def await_health(node: Node, record: Record, complaint: str = "") -> None:
    """Wait until the unit answers, and answers once more after as long again as it took to answer.

    One answer is not enough: a service may reach what it works with and end over its own settings right after that.
    The first must come in time; where the node is slow and it comes late, the second comes after that time.
    `complaint` is what starting it brought.
    """
    health, clock = record.health, node.clock
    begin = clock.now()
    end = in_time = begin + health.timeout
    ask = begin + health.settle / 2
    first = node.systemd.state(record.unit)
    state, answered = first, not health.settle
    silence: Fault | None = None
    while True:
        _give_up_early(record, first, state, complaint)
        now = clock.now()
        if state.is_active and now >= ask:
            silence = _silence(node, record, state)
            if answered and silence is None:
                return
            answered = silence is None
            ask = now + (now - begin if answered else _ASK_AGAIN)
            end = max(in_time, ask) if answered else in_time
        if now >= end:
            unsettled = f"{record.unit} is {state.active} ({state.sub}) and did not stay up for {health.settle} s"
            told = silence or Fault(unsettled)
            raise Unhealthy(f"{told.text} within {health.timeout} s", waits=told.waits)
        clock.sleep(_PAUSE)
        seen = node.systemd.state(record.unit)
        if not seen.is_active or seen.invocation != state.invocation:
            begin, answered, silence = clock.now(), not health.settle, None
            ask, end = begin + health.settle / 2, in_time
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


def _silence(node: Node, record: Record, state: UnitState) -> Fault | None:
    told, program, waits = _command_fault(node, record), record.health.connected, False
    if program and not told:
        found = connections.reach(node.places.proc, state.main, program)
        told, waits = f"{program} {found.value}", found is Reach.WAITS
        if found is Reach.CONNECTED:
            return None
    return Fault(f"{record.unit} is up, and its health check fails ({told})", waits) if told else None


def _command_fault(node: Node, record: Record) -> str:
    command = record.health.command
    if not command:
        return ""
    if record.health.on_node:
        answer = node.run(bounded(_COMMAND_LIMIT, command), {})
    else:
        answer = node.podman.execute(record.container, command, _COMMAND_LIMIT)
    return "" if answer.ok else answer.said
