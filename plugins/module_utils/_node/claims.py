# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a service takes of the node and gives back when it is removed: units of the node's own, and ports.

What was as it should be before is somebody else's and stays so. Hence what this service switched on, or off, is written
down before it is done.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager

from .errors import NodeError, NodeRefused
from .generations import AWAY, Drift, Home
from .node import Node
from .record import Record
from .systemd import UnitState

_NOTE = "claims.json"
#: Daemons that packages bring, from before that until they were started with the files that they read at their start.
_EARLY = "early.json"
#: What else may help where a unit is not there: the daemon that the node may have instead, and the setting for it.
_INSTEAD = {
    ("libvirt", "virtqemud.service"): ("libvirtd, as Debian packages it", "monolithic"),
    ("libvirt", "libvirtd.service"): ("virtqemud", "modular"),
}


class Claims:
    """The claims of one generation of a service."""

    def __init__(self, node: Node, home: Home, record: Record) -> None:
        self._node = node
        self._home = home
        self._record = record

    def lacking(self) -> tuple[str, ...]:
        """What is not as the service needs it, by name."""
        return tuple(f"{one.name}, {one.what}" if one.what else one.name for one in self._lacking())

    def drift(self) -> Iterator[Drift]:
        """The same, for a service that has had all of it."""
        for one in self._lacking():
            yield Drift(one.name, one.what or "missing")

    def refuse(self, *, more_come: bool) -> None:
        """Refuse what cannot be had, before anything is touched; packages that are missing may bring more units."""
        states, own = self._states(), self._home.note(_NOTE).get("masked", ())
        for unit in self._record.node_units:
            awaited = more_come and states[unit].load == "not-found"
            if not awaited and unit not in own:
                self._refuse(unit, states[unit])

    def hold_back(self) -> None:
        """Mask units, which must be done before a package starts them, and note what is still to be switched on.

        What another generation claimed and this one does not is given back first: it may want the very opposite.
        """
        record = self._record
        self._give_back(set(record.node_units), set(record.masked), revive=self._is_good())
        states = self._states()
        off = [unit for unit in record.node_units if states[unit].file in ("disabled", "")]
        bare = [unit for unit in record.masked if not _is_masked(states[unit])]
        self._remember(off, bare, [unit for unit in (*off, *bare) if states[unit].is_active])
        for unit in bare:
            self._change("mask", unit, "--now")

    def expect(self) -> None:
        """Note the daemons that the node does not have yet, before packages bring them and start them at once."""
        states, known = self._states(), self._early()
        daemons = (unit for unit in self._record.node_units if unit.endswith(".service"))
        new = {unit for unit in daemons if states[unit].load == "not-found"}
        if new - known:
            self._home.write_note(_EARLY, {"units": sorted(new | known)})

    def have(self, *, restarts: bool) -> None:
        """Have all of it. The unit that is watched is only enabled: starting it is the switch's to do.

        While it is up, none of its sockets can be started; where it `restarts` afterwards, it brings them itself.
        Where it comes in the place of a container, sockets are the switch's to start as well: what listens in there may
        have them at the same paths, and takes them away when it ends.
        A daemon that packages have brought may have been started before there were the files that it reads at its
        start: it is started anew.
        """
        states, early = self._states(), self._early()
        watched = "" if self._record.contained else self._record.unit
        brought = watched if restarts and watched and states[watched].is_active else ""
        later = self._record.sockets if restarts and watched and self._home.displaces(self._record) else ()
        for unit in self._record.node_units:
            self._refuse(unit, states[unit])
            if states[unit].file == "disabled":
                self._change("enable", unit)
            if unit in later or (brought and states[unit].triggers == brought):
                continue
            if unit != watched and not states[unit].is_active:
                self._free(unit, self._record.node_units, states)
                self._started(unit)
            elif unit != watched and unit in early:
                self._check("restart", unit, self._node.systemd.restart([unit]))
        self._home.remove_note(_EARLY)
        self._node.firewall.have(self._record.name, self._record.unit, self._record.ports)

    def have_again(self) -> None:
        """Have all of it for the generation that is live, after another one had a part of it for a while."""
        self.hold_back()
        self.have(restarts=True)
        watched, states = self._record.unit, self._states()
        sockets = (state for state in states.values() if state.triggers == watched)
        if not self._record.contained and not all(one.is_active for one in (states[watched], *sockets)):
            self._check("restart", watched, self._node.systemd.restart([watched]))

    def release(self) -> None:
        """Give everything back, as it was before."""
        self._give_back(set(), set(), revive=True)
        self._node.firewall.close(self._record.name, self._record.unit, self._record.ports)
        self._home.remove_note(_EARLY)
        self._home.remove_note(_NOTE)

    def _early(self) -> set[str]:
        return set(self._home.note(_EARLY).get("units", ()))

    def _is_good(self) -> bool:
        """Whether this is the generation that is live; what is claimed beyond it is of a run that did not succeed."""
        return self._home.good == self._record.digest

    def _give_back(self, enabled: set[str], masked: set[str], *, revive: bool) -> None:
        """Switch back whatever this service switched, but for these units and those that other services claim.

        `revive` starts those again that were up before they were masked.
        """
        note = self._home.note(_NOTE)
        off, bare = _without(enabled, note.get("enabled", ())), _without(masked, note.get("masked", ()))
        if not off and not bare:
            return
        others, states, up = self._others(), self._states(off), note.get("up", ())
        for unit in _without(others, off):
            self._node.systemd.change("disable", unit, *(() if unit in up else ("--now",)))
        for unit in _without(others, bare):
            self._node.systemd.change("unmask", unit)
        for unit in _without({*others, *up}, off):
            self._free(unit, enabled, states)
        if revive:
            self._revive(unit for unit in _without({*others, *enabled}, bare) if unit in up)
        gone = {"enabled": off, "masked": bare, "up": (*off, *bare)}
        self._home.write_note(_NOTE, {key: _without(gone[key], note.get(key, ())) for key in gone})

    def _revive(self, units: Iterable[str]) -> None:
        """Start units that were up, all at once: a socket must be there before its service."""
        states = self._node.systemd.states(tuple(units))
        down = [unit for unit, state in states.items() if not state.is_active]
        if down:
            self._node.systemd.restart(down)

    def _lacking(self) -> Iterator[Drift]:
        record, states, early = self._record, self._states(), self._early()
        for unit in record.masked:
            if not _is_masked(states[unit]):
                yield Drift(f"unit {unit}", "not masked")
        watched = "" if record.contained else record.unit
        for unit in record.node_units:
            if states[unit].file == "disabled":
                yield Drift(f"unit {unit}", "disabled")
            elif unit != watched and not states[unit].is_active:
                yield Drift(f"unit {unit}", "down")
            elif unit != watched and unit in early:
                yield Drift(f"unit {unit}", "older than its files")
        if self._is_good():
            note = self._home.note(_NOTE)
            for unit in _without(record.masked, note.get("masked", ())):
                yield Drift(f"unit {unit}", "left masked")
            for unit in _without(record.node_units, note.get("enabled", ())):
                yield Drift(f"unit {unit}", "left enabled")
        for told in self._node.firewall.lacking(record.name, record.unit, record.ports):
            yield Drift(told, "")

    def _states(self, more: Iterable[str] = ()) -> dict[str, UnitState]:
        units = (*self._record.node_units, *self._record.masked, *more)
        found = self._node.systemd.states(units)
        return {unit: found.get(unit, UnitState()) for unit in units}

    def _remember(self, enabled: list[str], masked: list[str], up: list[str]) -> None:
        """Write down what is about to be claimed, and which of it was `up` without this service."""
        note = self._home.note(_NOTE)
        known = {*note.get("enabled", ()), *note.get("masked", ())}
        new = {"enabled": enabled, "masked": masked, "up": _without(known, up)}
        told = {key: sorted({*note.get(key, ()), *more}) for key, more in new.items()}
        if any(told.values()) and told != note:
            self._home.write_note(_NOTE, told)

    def _others(self) -> set[str]:
        """The units that the other services of the node claim."""
        found: set[str] = set()
        for home in self._home.neighbours():
            record = home.record(home.current)
            if record:
                found |= {*record.node_units, *record.masked}
        return found

    def _refuse(self, unit: str, state: UnitState) -> None:
        if state.load == "not-found":
            has, daemons = _INSTEAD.get((self._record.service, unit), ("", ""))
            other = f"where the node has {has}, set libvirt_daemons (edpm_libvirt_daemons) to {daemons}"
            raise NodeRefused(
                f"The node has no unit {unit}, which {self._record.name} needs; install the package that brings it, "
                f"or {other if has else 'change the definition'}. The service was not touched."
            )
        if state.load == "masked":
            raise NodeRefused(
                f"The unit {unit}, which {self._record.name} needs, is masked on the node; unmask it, or change the "
                "definition. The service was not touched."
            )

    def _change(self, verb: str, unit: str, *words: str) -> None:
        self._check(verb, unit, self._node.systemd.change(verb, unit, *words))

    def _started(self, unit: str) -> None:
        self._check("start", unit, self._node.systemd.start(unit))

    def _free(self, unit: str, fellows: Iterable[str], states: dict[str, UnitState]) -> None:
        """End the service of a socket that comes or goes: it has the sockets that it began with, and no others.

        Only one that a fellow of the socket starts again is ended, and never the one that is watched.
        """
        service = states[unit].triggers
        again = (states[one].triggers for one in fellows if one != unit)
        if service and service != self._record.unit and service in again:
            self._node.systemd.stop([service])

    def _check(self, verb: str, unit: str, complaint: str) -> None:
        if complaint:
            raise NodeRefused(
                f"systemctl {verb} {unit} failed on the node, and {self._record.name} needs it: {complaint}; see to it "
                "there, then run again. The service was not touched."
            )


@contextmanager
def undone(node: Node, home: Home, withdraw: Callable[[], None]) -> Iterator[None]:
    """Where the way to a new generation is not even begun, the live one has its claims again, as if nothing was.

    Where none is live, `withdraw` gives everything back. A switch that was cut off is left as it is: the next run
    finishes it.
    """
    try:
        yield
    except NodeError as fault:
        try:
            _undo(node, home, withdraw)
        except NodeError as second:
            raise NodeRefused(f"{fault} But what it had taken of the node is not all given back: {second}") from fault
        raise


def _undo(node: Node, home: Home, withdraw: Callable[[], None]) -> None:
    intent, record = home.intent, home.record(home.good)
    if intent and intent.way != AWAY:
        return
    if record:
        Claims(node, home, record).have_again()
    else:
        withdraw()


def _is_masked(state: UnitState) -> bool:
    return state.load == "masked" or state.file == "masked"


def _without(gone: Collection[str], units: Iterable[str]) -> list[str]:
    return [unit for unit in units if unit not in gone]
