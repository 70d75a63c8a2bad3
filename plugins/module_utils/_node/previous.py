# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Back to the generation before, with the same care as forth. All of it is on the node, so nobody else is asked."""

from __future__ import annotations

from pathlib import PurePosixPath

from .bundle import File, Footing
from .changes import Changes, Seen, compare, differences, look
from .claims import Claims, undone
from .errors import ImageMissing, NothingBefore
from .generations import AWAY, BACK, FORTH, Home
from .ground import Ground
from .live import Live
from .lock import held
from .node import Node
from .outcome import Outcome
from .record import UNITS, Record
from .switch import Switch


def go_back(node: Node, name: str, *, check: bool, patience: float) -> Outcome:
    """Have the generation before live and healthy; in check mode, say what that would change."""
    if check:
        return Return(node, name).foresee()
    with held(node.places.lock, patience, node.clock.sleep, node.clock.now):
        return Return(node, name).run()


class Return:
    """One service's way back."""

    def __init__(self, node: Node, name: str) -> None:
        self.node = node
        self.home = Home(node.disk, node.places, name)
        self.wanted = self._target()
        self.files = self.home.files(self.wanted)
        self.claims = Claims(node, self.home, self.wanted)

    def foresee(self) -> Outcome:
        """What a run would do."""
        self._refuse()
        return self._outcome(*self._compare())

    def run(self) -> Outcome:
        """Do it. The node's lock is held."""
        self.node.podman.forget()
        self.home.tidy()
        self._refuse()
        seen, changes = self._compare()
        outcome = self._outcome(seen, changes)
        if self.wanted.units:
            folder = self.home.generation(self.wanted.digest)
            self.node.systemd.accepts(tuple(self.wanted.units), [folder / UNITS, self.node.places.units])
        with undone(self.node, self.home, self.claims.release):
            self._prepare()
        Switch(self.node, self.home, self.wanted, seen.state, self.files).make(self._origin(), way=BACK)
        Live(self.node, self.home).read()
        return outcome.but(restart_pending=self.home.note("pending.json") != {})

    # --- where to --------------------------------------------------------------------------------------------------
    def _target(self) -> Record:
        """The generation before: of a switch that was cut off, the one that it left."""
        home, intent = self.home, self.home.intent
        if not home.current and not intent:
            raise NothingBefore(f"{home.name} is not on this node, so it cannot go back; deploy it.")
        if intent and intent.way == AWAY:
            raise NothingBefore(f"The removal of {home.name} was cut off; run it again, or deploy the service.")
        digest = home.previous
        if intent and intent.way == BACK:
            digest = intent.next
        elif intent and intent.good != intent.next:
            digest = intent.good
        record = home.record(digest)
        if record is None:
            raise NothingBefore(
                f"{home.name} on this node has no generation before {home.current[:7]}; deploy the one that is wanted."
            )
        return record

    def _origin(self) -> str:
        """The generation to return to should this one not get well: one that is proven, or none."""
        home, intent = self.home, self.home.intent
        if intent is None or (intent.way == FORTH and home.previous == self.wanted.digest):
            return home.current
        return intent.good

    def _refuse(self) -> None:
        home, wanted = self.home, self.wanted
        spoilt = home.spoilt(wanted)
        if spoilt or (wanted.contained and not wanted.image):
            raise NothingBefore(
                f"Generation {wanted.digest[:7]} of {home.name} is not what was written "
                f"({', '.join(spoilt) or 'its record is gone'}); deploy the one that is wanted. Nothing was touched."
            )
        self.claims.refuse(more_come=False)
        if not wanted.contained:
            return
        self.node.podman.require()
        if not self.node.podman.has(wanted.starts_from):
            load = "load it there (podman load) or pull it, then run again"
            raise ImageMissing(
                f"The image {wanted.starts_from} of generation {wanted.digest[:7]} of {home.name} is no longer on the "
                f"node; {'deploy the one that is wanted' if wanted.kept else load}. Nothing was touched."
            )

    # --- what changes ----------------------------------------------------------------------------------------------
    def _compare(self) -> tuple[Seen, Changes]:
        seen = look(self.node, self.home, self.wanted.unit)
        return seen, compare(self.node, seen, self.wanted, self.claims.lacking(), wait=False)

    def _outcome(self, seen: Seen, changes: Changes) -> Outcome:
        wanted = self.wanted
        diff = differences(self.node.disk, self.home, seen, wanted, self.files)
        before = seen.record.digest if seen.record else ""
        restarted = not (wanted.restart == "never" and seen.state.is_active)
        return Outcome(wanted.name, wanted.digest, before, changes, seen.drift, restarted, False, diff)

    def _prepare(self) -> None:
        """Accounts and folders are only ever added to, so they are still there; settings may have changed since."""
        generation = self.home.generation(self.wanted.digest)
        Ground(self.node, self.home.name, _footing(self.files)).settle(generation / "node/tmpfiles.conf")
        self.claims.hold_back()
        self.claims.have(restarts=True)


def _footing(files: tuple[File, ...]) -> Footing:
    """As much of what a generation stands on as its files for the node tell."""
    texts = {file.path: file.content.decode() for file in files if PurePosixPath(file.path).parent.name == "node"}
    lines = {
        path: tuple(line for line in text.splitlines() if line and not line.startswith("#"))
        for path, text in texts.items()
    }
    parted = (line.partition(" = ") for line in lines.get("node/sysctl.conf", ()))
    return Footing(
        tmpfiles=lines.get("node/tmpfiles.conf", ()),
        modules=lines.get("node/modules.conf", ()),
        sysctls={key: value for key, _equals, value in parted},
    )
