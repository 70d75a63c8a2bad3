# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ports of a service in the node's firewall, whichever the node has; a node without one needs nothing.

The ports of a service are told from all others by a name of their own, so that what an administrator opened is never
closed. With firewalld that is a service of its own in every zone in use; else a comment on rules in nftables. A
firewalld that is down closes nothing: nftables counts, and firewalld's files say what it opens when it is started.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from .commands import Run
from .disk import Disk
from .labels import Labels
from .record import PLACED_MODE, Places
from .systemd import Systemd, UnitState

if TYPE_CHECKING:
    from .firewalld import Firewalld
    from .nftables import Nftables

#: Its state tells which firewall counts.
FIREWALLD = "firewalld.service"
#: The section in which a unit of a kind may have commands to be run before it starts.
_SECTIONS = {"service": "Service", "socket": "Socket"}


class Firewall:
    """The node's firewall."""

    def __init__(self, run: Run, disk: Disk, systemd: Systemd, labels: Labels, places: Places) -> None:
        self._run = run
        self._disk = disk
        self._labels = labels
        self._systemd = systemd
        self._places = places
        self._firewalld_unit: UnitState | None = None

    def know(self, firewalld: UnitState) -> None:
        """Take firewalld's state from somebody who has asked systemd anyway."""
        self._firewalld_unit = firewalld

    def lacking(self, name: str, unit: str, ports: Sequence[str]) -> tuple[str, ...]:
        """What is not as the service needs it: ports that are closed, and those open for it that it needs no more."""
        if not ports and not self._known(name, unit):
            return ()
        if self._is_managed():
            found = self._firewalld.lacking(_tag(name), ports)
        else:
            found = self._nftables.lacking(_tag(name), ports)
            if self._is_due(name):
                found += self._firewalld.lacking_at_start(_tag(name), ports)
        return (*found, *(("ports at start",) if self._is_stale(name, unit, ports) else ()))

    def have(self, name: str, unit: str, ports: Sequence[str]) -> None:
        """Have just these ports open for a service, now and after the node's next start."""
        if self.lacking(name, unit, ports):
            self._apply(name, unit, ports)
        elif not ports:
            self._disk.remove_empty(self._path(name, unit).parent)

    def close(self, name: str, unit: str, ports: Sequence[str]) -> None:
        """Close what was opened for a service, and forget it; a node where nothing was opened is asked nothing."""
        if ports or self._known(name, unit):
            self._apply(name, unit, ())
        self._disk.remove_empty(self._path(name, unit).parent)

    def files(self, name: str, unit: str) -> tuple[Path, ...]:
        """The file that keeps the ports open over the node's next start, where there is one."""
        path = self._path(name, unit)
        return (path,) if path.exists() else ()

    # A node reads all that it imports anew in each call, so what most services never need is left out until then.
    @cached_property
    def _nftables(self) -> Nftables:
        from .nftables import Nftables  # noqa: PLC0415  (see above)

        return Nftables(self._run)

    @cached_property
    def _firewalld(self) -> Firewalld:
        from .firewalld import Firewalld  # noqa: PLC0415  (see above)

        return Firewalld(self._run, self._disk, self._places)

    def _known(self, name: str, unit: str) -> bool:
        """Whether anything of a service without ports may be left; a node that never had any is asked nothing."""
        if self.files(name, unit):
            return True
        return (self._places.etc / "firewalld").is_dir() and self._firewalld.knows(_tag(name))

    def _apply(self, name: str, unit: str, ports: Sequence[str]) -> None:
        """The file is there as long as any rule may be: by it a later run knows that there is something to undo."""
        path, text = self._path(name, unit), self._at_start(name, unit, ports)
        stale = self._is_stale(name, unit, ports)
        if stale and text:
            self._disk.make_folder(path.parent, 0o755, 0o755)
            self._disk.write(path, text, PLACED_MODE)
            self._labels.restore([path.parent, path])
        if self._is_managed():
            self._firewalld.have(_tag(name), ports)
            if stale:
                # They were made while it did not run.
                self._nftables.have(_tag(name), ())
        else:
            self._nftables.have(_tag(name), ports)
            if self._is_due(name):
                self._firewalld.have_at_start(_tag(name), ports)
        if text is None:
            self._disk.take(path)
        if stale:
            self._systemd.reload()

    def _is_managed(self) -> bool:
        return self._unit().is_active

    def _is_due(self, name: str) -> bool:
        """Whether firewalld, which is down, opens ports or will do so with the node's next start."""
        unit = self._unit()
        return unit.load != "not-found" and (unit.file == "enabled" or self._firewalld.knows(_tag(name)))

    def _unit(self) -> UnitState:
        if self._firewalld_unit is None:
            self._firewalld_unit = self._systemd.state(FIREWALLD)
        return self._firewalld_unit

    def _is_stale(self, name: str, unit: str, ports: Sequence[str]) -> bool:
        return self._disk.read(self._path(name, unit)) != self._at_start(name, unit, ports)

    def _path(self, name: str, unit: str) -> Path:
        return self._places.etc / "systemd/system" / f"{unit}.d" / f"50-{_tag(name)}-ports.conf"

    def _at_start(self, name: str, unit: str, ports: Sequence[str]) -> bytes | None:
        """A setting of the unit that makes the rules before it starts, where they are not there by then."""
        rules = [] if not ports or self._is_managed() else self._nftables.commands(_tag(name), ports)
        if not rules:
            return None
        text = f"# The ports of {name}, written by edpm.services\n[Unit]\nAfter=nftables.service\n"
        section = _SECTIONS.get(unit.rpartition(".")[2])
        if section:
            there = f"nft list ruleset | grep -qF 'comment \"{_tag(name)}\"'"
            made = "; ".join(f"nft {rule}" for rule in rules)
            script = f"{there} || {{ {made}; }}".replace('"', '\\"')
            text += f'\n[{section}]\nExecStartPre=+-/bin/sh -c "{script}"\n'
        return text.encode()


def _tag(name: str) -> str:
    return f"edpm_{name}"
