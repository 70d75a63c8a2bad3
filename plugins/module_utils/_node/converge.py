# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One call makes a node run a bundle, or leaves it as it was.

The order is what makes it safe: all that can be refused is refused before the first step that anyone would notice.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from . import guards
from .bundle import Bundle
from .changes import Changes, Seen, compare, differences, look
from .claims import Claims, undone
from .commands import Result, bounded
from .errors import Failed, Invalid, NodeError, Unhealthy, one_line
from .generations import Home
from .ground import Ground
from .health import await_health
from .live import Live
from .lock import held
from .node import Node
from .outcome import Outcome
from .record import UNITS, contents, kept_image, link_of, recorded
from .secrecy import Source, scrubbed
from .seeds import Seeds
from .switch import Switch, release_images
from .systemd import UnitState

_RELOAD_LIMIT = 60
_MOVING = (
    "{name} is to pull {image} always, which is a tag that may move: nobody notices while nothing else of the service "
    "changes. Name the image by its digest (@sha256:...), and a new one is a change that is seen."
)
_NOT_KEPT = (
    "The generation {old} of {name} has not kept its image: should the service go back to it, it starts from what "
    "{image} names by then. From now on each generation keeps its own."
)
#: As much of a validator's remarks as anybody reads.
_TOLD_LINES, _LONGEST = 10, 300


def converge(node: Node, bundle: Bundle, *, check: bool, patience: float) -> Outcome:
    """Have the bundle live and healthy on the node; in check mode, say what that would change."""
    if check:
        return Convergence(node, bundle).foresee()
    with held(node.places.lock, patience, node.clock.sleep, node.clock.now):
        run = Convergence(node, bundle)
        try:
            return run.run()
        except NodeError as error:
            error.warnings = tuple(run.warnings)
            raise


class Convergence:
    """One bundle on one node."""

    def __init__(self, node: Node, bundle: Bundle) -> None:
        self.node = node
        self.bundle = bundle
        self.home = Home(node.disk, node.places, bundle.name)
        there = self.home.record(bundle.digest)
        # A generation stays as it was made, whenever its image is pulled by now.
        as_made = there if there and there.image else None
        kept = as_made.kept if as_made else kept_image(bundle)
        link = as_made.link if as_made else link_of(bundle, kept)
        self.files = contents(bundle, self.home.folder, kept, link)
        self.wanted = recorded(bundle, self.files, node.places, kept, link)
        self.ground = Ground(node, bundle.name, bundle.footing)
        self.claims = Claims(node, self.home, self.wanted)
        self.live = Live(node, self.home)
        self.seeds = Seeds(node, self.home)
        self.warnings = [_MOVING.format(name=bundle.name, image=bundle.image.reference)] if bundle.image.moves else []

    def foresee(self) -> Outcome:
        """What a run would do; nothing is touched, so nothing is pulled or validated either."""
        seen, changes = self._compare(wait=False)
        pull = False
        if changes.switch and self.wanted.contained:
            self.node.podman.require()
            pull = self.node.podman.needs(self.bundle.image)
        if changes.any:
            self._refuse()
        self._warn_of_unkept(seen, changes)
        waits = (self._waiting(changes),) if changes.waits else ()
        return self._outcome(seen, changes, pulled=pull).but(warnings=(*self.warnings, *waits))

    def run(self) -> Outcome:
        """Do it. The node's lock is held."""
        self.node.podman.forget()
        seen, changes = self._compare(wait=True)
        self.home.tidy()
        for path in (*(one.path for one in self.wanted.placed), *(one.path for one in self.bundle.live)):
            self.node.disk.sweep(Path(path))
        if not seen.restart_pending:
            self.home.remove_note("pending.json")
        outcome = self._outcome(seen, changes)
        self._warn_of_unkept(seen, changes)
        keeping = any(one.kept for one in (self.wanted, *self.home.records()))
        if changes.switch:
            outcome = outcome.but(pulled=self._switch(seen.state))
        elif changes.any and self._touch_up(changes):
            changes = replace(changes, waits="")
            outcome = outcome.but(changes=changes)
        pending = self.home.note("pending.json") != {}
        # Until it is restarted, the service may live in any generation.
        gone = () if pending else self.home.prune(self.bundle.keep)
        if keeping and (gone or changes.switch):
            release_images(self.node)
        if changes.waits:
            raise Failed(self._waiting(changes), changed=changes.any)
        return outcome.but(pruned=gone, warnings=tuple(self.warnings), restart_pending=pending)

    def _warn_of_unkept(self, seen: Seen, changes: Changes) -> None:
        old = seen.record
        moves = self.bundle.image.moves
        if old and changes.digest and moves and old.image == self.wanted.image and not old.kept:
            name, image = self.bundle.name, old.image
            self.warnings.append(_NOT_KEPT.format(old=old.digest[:7], name=name, image=image))

    def _waiting(self, changes: Changes) -> str:
        return (
            f"{self.bundle.name} {self.bundle.digest[:7]} is as it should be and not healthy: {changes.waits}; see to "
            "what it works with, such as its message bus. It was not restarted, which would not help."
        )

    def _compare(self, *, wait: bool) -> tuple[Seen, Changes]:
        guards.check(self.home, self.bundle.guards)
        lacking = (*self.ground.lacking(), *self.claims.lacking(), *self.seeds.lacking(self.bundle.seeds))
        live = self.live.changes(self.bundle.live)
        seen = look(self.node, self.home, self.wanted.unit)
        return seen, compare(self.node, seen, self.wanted, lacking, wait=wait).with_live(live, unread=self.live.unread)

    def _outcome(self, seen: Seen, changes: Changes, *, pulled: bool = False) -> Outcome:
        diff = []
        if changes.any:
            diff = differences(self.node.disk, self.home, seen, self.wanted, self.files)
            diff += self.live.differences(self.bundle.live)
        before = seen.record.digest if seen.record else ""
        restarted = changes.switch and not (self.bundle.restart == "never" and seen.state.is_active)
        reloaded = bool(self.bundle.reload) and changes.reload and not changes.switch
        made = Outcome(self.bundle.name, self.bundle.digest, before, changes, seen.drift, restarted, pulled, diff)
        return made.but(reloaded=reloaded)

    # --- before anything is touched --------------------------------------------------------------------------------
    def _switch(self, state: UnitState) -> bool:
        pulled = False
        if self.wanted.contained:
            self.node.podman.require(note=True)
            pulled = self.node.podman.provide(self.bundle.image)
        staged = self.home.stage(self.files, self.wanted)
        try:
            if self.bundle.units:
                new = () if self.home.has_units(self.wanted) else tuple(self.bundle.units)
                self.node.systemd.accepts(new, [staged / UNITS, self.node.places.units])
            self._validate(staged)
            with undone(self.node, self.home, self._withdraw):
                self._prepare(staged, restarts=True)
        except Exception:
            self.home.unstage()
            raise
        Switch(self.node, self.home, self.wanted, state, self._secrets()).make(
            self.home.good, ready=self._ready, withdraw=self._withdraw
        )
        self.live.read()
        return pulled

    def _validate(self, staged: Path) -> None:
        validation = self.bundle.validation
        if validation is None or validation.policy == "off":
            return
        name = f"edpm_{self.bundle.name.replace('@', '-')}-validate"
        answer = self.node.podman.judge(name, self.bundle.image.reference, validation, staged)
        if answer.ok:
            self._pass_on(scrubbed(answer.out, self.files))
            return
        said = scrubbed(answer.err.strip() or answer.out.strip() or answer.said, self.files)
        if validation.policy == "warn" and answer.rc not in validation.fatal:
            self.warnings.append(f"The image of {self.bundle.name} finds fault with its configuration: {said}")
            return
        raise Invalid(
            f"The configuration of {self.bundle.name} is refused by the image {self.bundle.image.reference}: {said}; "
            "correct what it names. The running service was not touched."
        )

    def _pass_on(self, text: str) -> None:
        """Tell what a validator that accepts the files has to say of them all the same."""
        lines = [one_line(line)[:_LONGEST] for line in text.splitlines() if line.strip()]
        more = [f"and {len(lines) - _TOLD_LINES} more lines"] if len(lines) > _TOLD_LINES else []
        for line in (*lines[:_TOLD_LINES], *more):
            self.warnings.append(f"The image of {self.bundle.name} says of its configuration: {line}")

    def _refuse(self) -> bool:
        """Refuse what cannot be had; else the answer is whether packages are still to come."""
        more_come = self.ground.lacks_packages()
        self.claims.refuse(more_come=more_come)
        return more_come

    def _prepare(self, generation: Path, *, restarts: bool) -> None:
        """All that the service stands on, in an order in which each finds what it needs."""
        more_come = self._refuse()
        self.ground.people()
        self.claims.hold_back()
        if more_come:
            self.claims.expect()
        self.ground.prepare(generation / "node/tmpfiles.conf")
        self._refuse()
        self.live.have(self.bundle.live)
        self.claims.have(restarts=restarts)

    # --- the switch's own ------------------------------------------------------------------------------------------
    def _ready(self) -> None:
        guards.remember(self.home, self.bundle.guards)
        kept = self.wanted.kept
        if kept and (self.bundle.image.moves or not self.node.podman.has(kept)):
            self.node.podman.keep(self.wanted.image, kept)
        self.seeds.have(self.bundle.seeds)
        self.home.adopt(self.wanted)

    def _withdraw(self) -> None:
        self.claims.release()
        self.live.remove()

    # --- without a restart -----------------------------------------------------------------------------------------
    def _touch_up(self, changes: Changes) -> bool:
        """Whether it was seen to be healthy afterwards."""
        generation = self.home.generation(self.bundle.digest)
        self._prepare(generation, restarts=False)
        self.seeds.have(self.bundle.seeds)
        if changes.record:
            self.node.disk.write(generation / "bundle.json", self.wanted.text())
        return changes.reload and self._reload(waits=bool(changes.waits))

    def _reload(self, *, waits: bool) -> bool:
        """Let the running service read its live files again; until that succeeds, every run tries it anew.

        One that waited for its bus before may go on waiting: its new files are not to blame for that.
        """
        command, healthy = self.bundle.reload, False
        if command:
            answer = self._executed(command)
            if not answer.ok:
                raise Failed(
                    f"{self.bundle.name} has new files and cannot be made to read them: "
                    f"{scrubbed(answer.said, self._secrets())}; it runs on with the old ones: correct the cause and "
                    "run again."
                )
            try:
                await_health(self.node, self.wanted)
                healthy = True
            except Unhealthy as fault:
                if not (waits and fault.waits):
                    log = tuple(scrubbed(line, self._secrets()) for line in self.node.systemd.log(self.wanted.unit))
                    raise Failed(
                        f"{self.bundle.name} is not well since it read its new files: {fault}; correct them and run "
                        "again.",
                        log=log,
                        changed=True,
                    ) from fault
        self.live.read()
        return healthy

    def _executed(self, command: tuple[str, ...]) -> Result:
        if self.wanted.contained:
            return self.node.podman.execute(self.bundle.container, command, _RELOAD_LIMIT)
        return self.node.run(bounded(_RELOAD_LIMIT, command), {})

    def _secrets(self) -> tuple[Source, ...]:
        return (*self.files, *self.bundle.live)
