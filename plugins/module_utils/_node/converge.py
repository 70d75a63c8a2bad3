# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One call makes a node run a bundle, or leaves it as it was.

The order is what makes it safe: all that can be refused is refused before the first step that anyone would notice. From
the note of intent on, a run that is cut off is finished by the next one, and a service that does not get well goes back
to the generation that did.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from . import guards
from .bundle import Bundle
from .changes import Changes, Seen, compare, differences, look
from .errors import Failed, Invalid, NodeError, Unhealthy
from .generations import Home
from .ground import Ground
from .health import await_health
from .lock import held
from .node import Node
from .outcome import Outcome
from .record import UNITS, Placed, Record, contents, recorded
from .secrecy import scrubbed
from .systemd import service_of

_STARTED = (".container", ".kube", ".pod")
_TOLD_LINES = 6


def converge(node: Node, bundle: Bundle, *, check: bool, patience: float) -> Outcome:
    """Have the bundle live and healthy on the node; in check mode, say what that would change."""
    if check:
        return Convergence(node, bundle).foresee()
    with held(node.places.lock, patience, node.clock.sleep, node.clock.now):
        return Convergence(node, bundle).run()


class Convergence:
    """One bundle on one node."""

    def __init__(self, node: Node, bundle: Bundle) -> None:
        self.node = node
        self.bundle = bundle
        self.home = Home(node.disk, node.places, bundle.name)
        self.files = contents(bundle, self.home.generation(bundle.digest))
        self.wanted = recorded(bundle, self.files, node.places)
        self.ground = Ground(node, bundle)
        self.warnings: list[str] = []
        #: Whether a running service has felt anything of this run yet, or of one before it that was cut off.
        self._felt = False

    def foresee(self) -> Outcome:
        """What a run would do; nothing is touched, so nothing is pulled or validated either."""
        seen, changes = self._compare(wait=False)
        pull = False
        if changes.switch:
            self.node.podman.require()
            pull = self.node.podman.needs(self.bundle.image)
        return self._outcome(seen, changes, pulled=pull, restarted=self._restarts(seen, changes))

    def run(self) -> Outcome:
        """Do it. The node's lock is held."""
        seen, changes = self._compare(wait=True)
        self.home.tidy()
        for one in self.wanted.placed:
            self.node.disk.sweep(Path(one.path))
        if not seen.restart_pending:
            self.home.remove_note("pending.json")
        self._felt = seen.unfinished
        outcome = self._outcome(seen, changes, restarted=self._restarts(seen, changes))
        if changes.switch:
            outcome = outcome.but(pulled=self._switch())
        elif changes.any:
            self._touch_up()
        pending = self.home.note("pending.json") != {}
        # Until it is restarted, the service may live in any generation.
        gone = () if pending else self.home.prune(self.bundle.keep)
        return outcome.but(pruned=gone, warnings=tuple(self.warnings), restart_pending=pending)

    def _compare(self, *, wait: bool) -> tuple[Seen, Changes]:
        guards.check(self.home, self.bundle.guards)
        seen = look(self.node, self.home, self.wanted.unit)
        return seen, compare(self.node, seen, self.wanted, self.ground.lacking(), wait=wait)

    def _restarts(self, seen: Seen, changes: Changes) -> bool:
        return changes.switch and not (self.bundle.restart == "never" and seen.state.is_active)

    def _outcome(self, seen: Seen, changes: Changes, *, restarted: bool, pulled: bool = False) -> Outcome:
        diff = differences(self.node.disk, self.home, seen, self.wanted, self.files) if changes.any else []
        before = seen.record.digest if seen.record else ""
        return Outcome(self.bundle.name, self.bundle.digest, before, changes, seen.drift, restarted, pulled, diff)

    # --- before anything is touched --------------------------------------------------------------------------------
    def _switch(self) -> bool:
        self.node.podman.require()
        pulled = self.node.podman.provide(self.bundle.image)
        staged = self.home.stage(self.files, self.wanted)
        try:
            self.node.systemd.accepts(tuple(self.bundle.units), [staged / UNITS, self.node.places.units])
            self._validate(staged)
            self.ground.prepare(staged / "node/tmpfiles.conf")
            good = self.home.good
            self.home.write_note("intent.json", {"good": good, "next": self.bundle.digest})
        except Exception:
            self.home.unstage()
            raise
        try:
            guards.remember(self.home, self.bundle.guards)
            self._go()
        except NodeError as fault:
            raise self._back(good, fault) from fault
        if good and good != self.bundle.digest:
            self.home.remember(good)
        self.home.remove_note("intent.json")
        return pulled

    def _validate(self, staged: Path) -> None:
        validation = self.bundle.validation
        if validation is None or validation.policy == "off":
            return
        name = f"edpm_{self.bundle.name.replace('@', '-')}-validate"
        answer = self.node.podman.judge(name, self.bundle.image.reference, validation, staged)
        if answer.ok:
            return
        said = scrubbed(answer.err.strip() or answer.out.strip() or answer.said, self.files)
        if validation.policy == "warn" and answer.rc not in validation.fatal:
            self.warnings.append(f"The image of {self.bundle.name} finds fault with its configuration: {said}")
            return
        raise Invalid(
            f"The configuration of {self.bundle.name} is refused by the image {self.bundle.image.reference}: {said}; "
            "correct what it names. The running service was not touched."
        )

    # --- forth and back --------------------------------------------------------------------------------------------
    def _go(self) -> None:
        state = self.node.systemd.state(self.wanted.unit)
        self.home.adopt(self.wanted)
        if self.bundle.restart == "never" and state.is_active:
            self.home.write_note("pending.json", {"invocation": state.invocation})
            self._install(self.wanted)
            return
        self.home.remove_note("pending.json")
        await_health(self.node, self.wanted, self._start(self.wanted))

    def _start(self, record: Record) -> str:
        """Make a generation the live one and start it; the answer is what systemd complained about."""
        changed = self._install(record)
        self._felt = True
        return self.node.systemd.restart([record.unit, *(unit for unit in changed if unit != record.unit)])

    def _install(self, record: Record) -> tuple[str, ...]:
        """Put a generation's units in place and make it the live one; the answer is the services that changed."""
        changed = self.home.place(record)
        self.home.flip(record.digest)
        self._displace(self.home.misplaced(record))
        self.node.systemd.reload()
        return _services(one for one in record.placed if one.path in changed)

    def _displace(self, placed: tuple[Placed, ...]) -> None:
        services = _services(placed)
        self._felt = self._felt or bool(services)
        self.node.systemd.stop(services)
        self.home.displace(placed)

    def _back(self, good: str, fault: NodeError) -> Failed:
        """Undo a switch, and say what became of it."""
        new = self.bundle.digest[:7]
        lines = self.node.systemd.log(self.wanted.unit) if isinstance(fault, Unhealthy) else ()
        log = tuple(scrubbed(line, self.files) for line in lines)
        back = False
        try:
            end, back = self._restored(good, started=isinstance(fault, Unhealthy))
        except NodeError as second:
            end = f"going back failed too: {second} The next run goes on from here"
        told = f" It last logged: {' / '.join(log[-_TOLD_LINES:])}" if log else ""
        said = scrubbed(str(fault), self.files).rstrip(".")
        verb = "does not run as" if isinstance(fault, Unhealthy) else "cannot be switched to"
        message = f"{self.bundle.name} {verb} generation {new}: {said}; {end}.{told}"
        return Failed(message, log=log, rolled_back=back)

    def _restored(self, good: str, *, started: bool) -> tuple[str, bool]:
        record = self.home.record(good)
        if good == self.bundle.digest:
            if started:
                self.home.remove_note("intent.json")
            return "there is no other generation to go back to, so correct the cause and run again", False
        if record is None:
            self._withdraw()
            return "nothing of this first deployment was left running; correct the cause and run again", True
        end = self._put_back(record)
        self._forget()
        return end, True

    def _put_back(self, record: Record) -> str:
        old = record.digest[:7]
        if not self._felt:
            self._install(record)
            return f"generation {old} was not disturbed; correct the cause and run again"
        try:
            await_health(self.node, record, self._start(record))
        except Unhealthy as second:
            return f"generation {old} was put back and is not healthy either ({second}); look at its log on the node"
        return f"generation {old} runs again as before; correct the cause and run again"

    def _withdraw(self) -> None:
        self.node.systemd.stop([self.wanted.unit])
        self._displace(self.home.misplaced(None))
        self.node.systemd.reload()
        self.home.leave()
        self._forget()

    def _forget(self) -> None:
        self.home.discard(self.bundle.digest)
        self.home.remove_note("intent.json")
        self.home.unstage()

    # --- without a restart -----------------------------------------------------------------------------------------
    def _touch_up(self) -> None:
        generation = self.home.generation(self.bundle.digest)
        self.ground.prepare(generation / "node/tmpfiles.conf")
        self.node.disk.write(generation / "bundle.json", self.wanted.text())


def _services(placed: Iterable[Placed]) -> tuple[str, ...]:
    return tuple(service_of(one.unit) for one in placed if one.unit.endswith(_STARTED))
