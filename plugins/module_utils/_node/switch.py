# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From one generation to another, and back where it does not get well.

From the note of intent on, a run that is cut off is finished by the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from .claims import Claims
from .errors import Failed, NodeError, Unhealthy
from .generations import FORTH, Home, Intent, homes
from .health import await_health
from .node import Node
from .record import KEPT_IMAGES, Placed, Record
from .secrecy import Source, scrubbed
from .systemd import UnitState, complaints, service_of

_STARTED = (".container", ".kube", ".pod")
_TOLD_LINES = 6


class Switch:
    """One service's way to a generation, from a state of its unit. No message shows a secret of `files`."""

    def __init__(self, node: Node, home: Home, wanted: Record, state: UnitState, files: tuple[Source, ...]) -> None:
        self.node = node
        self.home = home
        self.wanted = wanted
        self.state = state
        self.files = files
        #: Whether a running service has felt anything of this run yet, or of one before it that was cut off.
        self.felt = self.resumed = home.intent is not None
        #: Whether systemd may know another unit than the one that is in place.
        self.stale = state.stale or self.resumed
        #: When a service was first started; what it logged before that is of no interest.
        self.began = 0.0

    def make(
        self,
        good: str,
        *,
        way: str = FORTH,
        ready: Callable[[], None] = lambda: None,
        withdraw: Callable[[], None] = lambda: None,
    ) -> None:
        """Go there. `good` is the generation to go back to; `ready` is called once the intent is noted.

        Where there is none, `withdraw` undoes what a first deployment brought to the node besides its files.
        """
        try:
            self.home.begin(Intent(good, self.wanted.digest, way))
        except NodeError:
            self.home.unstage()
            raise
        try:
            ready()
            self._go()
        except NodeError as fault:
            raise self._back(good, fault, withdraw) from fault
        if good and good != self.wanted.digest:
            self.home.remember(good)
        self.home.end()

    # --- forth -----------------------------------------------------------------------------------------------------
    def _go(self) -> None:
        state = self.state
        if self.wanted.restart == "never" and not state.is_active:
            # Somebody may have started it meanwhile; one that has ended meanwhile is systemd's to start.
            state = self.node.systemd.state(self.wanted.unit)
        if self.wanted.restart == "never" and state.is_active:
            self.home.write_note("pending.json", {"invocation": state.invocation})
            self._install(self.wanted)
            return
        self.home.remove_note("pending.json")
        await_health(self.node, self.wanted, self._start(self.wanted))

    def _start(self, record: Record) -> str:
        """Make a generation the live one and start it; the answer is what systemd complained about."""
        displaces = self.home.displaces(record)
        changed = self._install(record)
        self.felt = True
        self.began = self.began or self.node.clock.date()
        sockets = record.sockets if displaces and not record.contained else ()
        if sockets:
            # One that a package opened beside the container's has lost its path with the container.
            self.node.systemd.stop([record.unit, *sockets])
        return self.node.systemd.restart([*sockets, record.unit, *(unit for unit in changed if unit != record.unit)])

    def _install(self, record: Record) -> tuple[str, ...]:
        """Put a generation's units in place and make it the live one; the answer is the services that changed."""
        other = self.resumed or self.home.current != record.digest
        self.home.mount(record)
        changed = self.home.place(record)
        self.node.labels.restore(Path(path) for path in changed)
        self.home.flip(record.digest)
        gone = self.home.misplaced(record)
        self._displace(gone)
        if changed or gone or self.stale:
            self.node.systemd.reload()
        mounting = self.home.mounting(record) if other else ()
        return services(one for one in record.placed if one.path in changed or one in mounting)

    def _displace(self, placed: tuple[Placed, ...]) -> None:
        stopped = services(placed)
        self.felt = self.felt or bool(stopped)
        self.node.systemd.stop(stopped)
        self.node.labels.restore(Path(path) for path in self.home.displace(placed))

    # --- back ------------------------------------------------------------------------------------------------------
    def _back(self, good: str, fault: NodeError, withdraw: Callable[[], None]) -> Failed:
        """Undo a switch, and say what became of it."""
        new = self.wanted.digest[:7]
        lines = self.node.systemd.log(self.wanted.unit, self.began) if isinstance(fault, Unhealthy) else ()
        log = tuple(scrubbed(line, self.files) for line in lines)
        back = False
        try:
            end, back = self._restored(good, withdraw, started=isinstance(fault, Unhealthy))
        except NodeError as second:
            end = f"going back failed too: {second} The next run goes on from here"
        told = f" It last logged: {' / '.join((complaints(log) or log)[-_TOLD_LINES:])}" if log else ""
        said = scrubbed(str(fault), self.files).rstrip(".")
        verb = "does not run as" if isinstance(fault, Unhealthy) else "cannot be switched to"
        message = f"{self.wanted.name} {verb} generation {new}: {said}; {end}.{told}"
        return Failed(message, log=log, rolled_back=back)

    def _restored(self, good: str, withdraw: Callable[[], None], *, started: bool) -> tuple[str, bool]:
        record = self.home.record(good)
        if good == self.wanted.digest:
            if started:
                self.home.end()
            return "there is no other generation to go back to, so correct the cause and run again", False
        if record is None:
            self._withdraw(withdraw)
            return "nothing of this first deployment was left running; correct the cause and run again", True
        end = self._put_back(record)
        self._forget()
        return end, True

    def _put_back(self, record: Record) -> str:
        old = record.digest[:7]
        claims = Claims(self.node, self.home, record)
        claims.hold_back()
        claims.have(restarts=self.felt)
        if not self.felt:
            self._install(record)
            return f"generation {old} was not disturbed; correct the cause and run again"
        try:
            await_health(self.node, record, self._start(record))
        except Unhealthy as second:
            return f"generation {old} was put back and is not healthy either ({second}); look at its log on the node"
        return f"generation {old} runs again as before; correct the cause and run again"

    def _withdraw(self, rest: Callable[[], None]) -> None:
        self.node.systemd.stop([self.wanted.unit])
        self._displace(self.home.misplaced(None))
        rest()
        self.node.systemd.reload()
        self.home.leave()
        self._forget()

    def _forget(self) -> None:
        self.home.discard(self.wanted.digest)
        self.home.end()
        self.home.unstage()
        if self.wanted.kept:
            release_images(self.node)


def release_images(node: Node) -> None:
    """Let go of the images that were kept for generations which are no more."""
    node.podman.release(KEPT_IMAGES, {digest for home in homes(node.disk, node.places) for digest in home.digests()})


def services(placed: Iterable[Placed]) -> tuple[str, ...]:
    """The services that systemd has of placed files."""
    return tuple(service_of(one.unit) for one in placed if one.unit.endswith(_STARTED))
