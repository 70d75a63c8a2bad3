# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Off the node: a service's units, containers, generations and files go, its data stays unless told otherwise.

What is needed to find all of it goes last, so that a removal that is cut off is finished by the next one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from .bundle import Health
from .changes import differences, look
from .claims import Claims
from .commands import bounded
from .errors import InUse, NodeRefused
from .generations import AWAY, Home, Intent
from .live import Live
from .lock import held
from .node import Node
from .outcome import Removed
from .record import Placed, Record
from .seeds import Seeds
from .switch import release_images, services

_BUSY_LIMIT = 60
_TOLD = 5


def remove(node: Node, name: str, *, force: bool, purge: bool, check: bool, patience: float) -> Removed:
    """Take a service off the node; in check mode, say what would go."""
    if check:
        return Removal(node, name, purge=purge).foresee(force=force)
    with held(node.places.lock, patience, node.clock.sleep, node.clock.now):
        return Removal(node, name, purge=purge).run(force=force)


class Removal:
    """One service that goes."""

    def __init__(self, node: Node, name: str, *, purge: bool) -> None:
        self.node = node
        self.home = Home(node.disk, node.places, name)
        self.purge = purge
        self.records = tuple(self.home.records())
        current = self.home.record(self.home.current)
        self.record = current or next(iter(self.records), None) or _nothing(name)
        self.claims = Claims(node, self.home, self.record)
        self.live = Live(node, self.home)
        self.seeds = Seeds(node, self.home)

    def foresee(self, *, force: bool) -> Removed:
        """What a run would do."""
        self._refuse_mounts()
        return self._removed(() if force else self._busy())

    def run(self, *, force: bool) -> Removed:
        """Do it. The node's lock is held."""
        self.node.podman.forget()
        if not self.home.folder.exists():
            return self._removed(())
        self._refuse_mounts()
        removed = self._removed(() if force else self._busy())
        self.home.begin(Intent("", "", AWAY))
        self._stop()
        self.claims.release()
        self.live.remove()
        self.node.labels.restore(Path(path) for path in self.home.displace(self.home.misplaced(None)))
        self.node.systemd.reload()
        self.seeds.remove()
        for path in self._data() if self.purge else ():
            self.node.disk.remove_tree(path)
        self._forget()
        return removed

    # --- may it go -------------------------------------------------------------------------------------------------
    def _refuse_mounts(self) -> None:
        """Refuse to purge what is mounted: it may be another machine's, or everybody's."""
        for path in self._data() if self.purge else ():
            below = [mount for mount in self.node.disk.mounts() if mount == path or path in mount.parents]
            if below:
                raise InUse(
                    f"{path} of {self.home.name} holds the mounted file system {below[0]}, which may be shared; "
                    "unmount it first, or remove the service without its data. Nothing was touched."
                )

    def _busy(self) -> tuple[str, ...]:
        """Refuse to remove what still does something. A removal that had begun was allowed to."""
        intent, record = self.home.intent, self.record
        if not record.busy or (intent and intent.way == AWAY):
            return ()
        if record.contained:
            if not self.node.systemd.state(record.unit).is_active:
                raise InUse(
                    f"{record.name} does not run, so it cannot be asked whether it is still in use; start it, or "
                    "remove it with force. Nothing was touched."
                )
            answer = self.node.podman.execute(record.container, record.busy, _BUSY_LIMIT)
        else:
            answer = self.node.run(bounded(_BUSY_LIMIT, record.busy), {})
        if not answer.ok:
            raise InUse(
                f"{record.name} does not say whether it is still in use: {answer.said}; see to it, or remove it with "
                "force. Nothing was touched."
            )
        lines = tuple(line.strip() for line in answer.out.splitlines() if line.strip())
        if lines:
            raise InUse(
                f"{record.name} is still in use by {', '.join(lines[:_TOLD])}{' and more' if lines[_TOLD:] else ''}; "
                "end or move that first, or remove the service with force. Nothing was touched.",
                lines,
            )
        return ()

    # --- going -----------------------------------------------------------------------------------------------------
    def _stop(self) -> None:
        """Stop whatever runs from a unit of this service, also of a generation that is not the live one."""
        units = services(self._placed())
        self.node.systemd.stop(units)
        still = [unit for unit, state in self.node.systemd.states(units).items() if state.is_active]
        if still:
            raise NodeRefused(
                f"{still[0]} does not stop on the node; see to it there (systemctl stop), then run again."
            )
        if units:
            self.node.podman.remove(sorted(set(self._containers())))

    def _forget(self) -> None:
        disk, home = self.node.disk, self.home
        disk.remove_tree(home.generations)
        if self.record.contained:
            release_images(self.node)
        home.leave()
        for name in ("pending.json", "identity.json"):
            home.remove_note(name)
        home.end()
        disk.remove_tree(home.folder)

    def _placed(self) -> tuple[Placed, ...]:
        return tuple({one.path: one for record in self.records for one in record.placed}.values())

    def _containers(self) -> Iterator[str]:
        """The names that the units of any generation gave to theirs, and the validator's, which a kill may leave."""
        yield f"edpm_{self.home.name.replace('@', '-')}-validate"
        for record in self.records:
            yield from (one for one in (record.container,) if one)
            for one in record.placed:
                path = self.home.generation(record.digest) / one.source
                text = (self.node.disk.read(path) or b"").decode("utf-8", "replace")
                yield from re.findall(r"^ContainerName=(\S+)", text, re.MULTILINE)

    # --- what goes -------------------------------------------------------------------------------------------------
    def _data(self) -> list[Path]:
        paths = sorted({path for record in self.records for path in record.data})
        return [Path(path) for path in paths if Path(path).exists()]

    def _removed(self, busy: tuple[str, ...]) -> Removed:
        if not self.home.folder.exists():
            return Removed(self.home.name, "", (), (), (), (), [])
        firewall = self.node.firewall.files(self.record.name, self.record.unit)
        paths = [
            *(one.path for one in self.home.misplaced(None)),
            *map(str, firewall),
            *sorted(self.live.known()),
            *self.seeds.removable(),
            *(map(str, self._data()) if self.purge else ()),
            str(self.home.folder),
        ]
        given_back = self.home.note("claims.json")
        node = [f"unit {one}" for key in ("enabled", "masked") for one in given_back.get(key, ())]
        node += [f"port {one}" for one in self.record.ports]
        kept = () if self.purge else tuple(map(str, self._data()))
        before = self.record.digest
        return Removed(self.home.name, before, tuple(paths), tuple(node), kept, busy, self._differences())

    def _differences(self) -> list[dict[str, str]]:
        seen = look(self.node, self.home, self.record.unit)
        diff = differences(self.node.disk, self.home, seen, _nothing(self.home.name), ())
        return [*diff, *self.live.differences(())]


def _nothing(name: str) -> Record:
    """The record of a service that has nothing."""
    service, _at, instance = name.partition("@")
    return Record(service, instance, "", "", "", (), (), Health())
