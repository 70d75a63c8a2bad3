# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""firewalld: a service of its own, permanent, and the same ports open in what runs.

What runs is not reloaded, since that would take away the rules that others have put there. So the permanent service
counts from the next start on, and until then the ports themselves are open. Once what runs has loaded the service, it
keeps the ports that the service had then: where others are wanted, the ports themselves take its place.

A port in what runs does not say who opened it. Those of the administrator's own settings and those of the other
services stay, and so do those that were open before this service came, which are noted as long as the node runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .commands import Run
from .disk import Disk
from .errors import NodeRefused
from .firewalld_files import FirewalldFiles
from .port_numbers import Numbers, numbers, ranges
from .record import Places

_ZONE = re.compile(r"^(\S+)(?: \(([^)]*)\))?$", re.MULTILINE)
_RUNS = ("firewall-cmd",)
_FOR_GOOD = ("firewall-cmd", "--permanent")
_DOWN = ("firewall-offline-cmd",)
_CLOSED = ("DROP", "REJECT", "%%REJECT%%")


@dataclass(frozen=True)
class Zone:
    """A zone of what runs. It is in use where packets come through it that it does not accept anyway.

    One that refuses everything and has sources alone is a list of those who are shut out.
    """

    name: str
    services: Collection[str]
    ports: Sequence[str]
    is_in_use: bool


class Firewalld:
    """firewall-cmd, and firewall-offline-cmd where firewalld is down."""

    def __init__(self, run: Run, disk: Disk, places: Places) -> None:
        self._run = run
        self._files = FirewalldFiles(places.etc / "firewalld")
        self._found = _Found(disk, places.run / "edpm_firewalld")
        self._disk = disk

    def knows(self, tag: str) -> bool:
        """Whether there is a service of this name."""
        return self._files.knows(_name(tag))

    # --- while it runs -----------------------------------------------------------------------------------------------
    def lacking(self, tag: str, ports: Sequence[str]) -> tuple[str, ...]:
        """Ports that are closed somewhere, and those of the service that are not wanted."""
        name, used = _name(tag), [zone for zone in self._zones() if zone.is_in_use]
        wanted, kept, live = ports if used else (), self._files.kept(name), self._live(name, used)
        lasting = all(self._files.lasts(name, zone.name) for zone in used)
        open_in = [numbers(zone.ports) | (live if name in zone.services else frozenset()) for zone in used]
        closed = [
            port
            for port in wanted
            if port not in kept or not lasting or not all(numbers([port]) <= there for there in open_in)
        ]
        spare = (*sorted(kept - set(wanted)), *ranges(live - numbers(kept) - numbers(wanted)))
        return _told(closed, spare, is_empty=self.knows(tag) and not (wanted or kept))

    def have(self, tag: str, ports: Sequence[str]) -> None:
        """Have these ports open and no others of this service."""
        name, every = _name(tag), self._zones()
        used = [zone for zone in every if zone.is_in_use]
        wanted, kept, live = tuple(ports) if used else (), self._files.kept(name), self._live(name, every)
        opened = [zone for zone in every if name not in zone.services and self._files.lasts(name, zone.name)]
        theirs = {zone.name: self._theirs(name, zone) for zone in opened}
        self._found.note(name, {zone.name: self._found_open(name, zone, numbers(wanted)) for zone in used})
        self._keep(_FOR_GOOD, name, wanted, [zone.name for zone in used])
        for zone in every:
            is_stale = name in zone.services and (live != numbers(wanted) or not wanted)
            if zone.is_in_use and (is_stale or name not in zone.services):
                self._open(zone, wanted)
            if is_stale:
                self._do(_RUNS, f"--zone={zone.name}", f"--remove-service={name}")
        for zone in opened:
            self._shut(zone, numbers(kept) - numbers(wanted) - theirs[zone.name])
        self._let_go(_FOR_GOOD, name, wanted)

    def _open(self, zone: Zone, ports: Sequence[str]) -> None:
        closed = [port for port in ports if not numbers([port]) <= numbers(zone.ports)]
        if closed:
            self._do(_RUNS, f"--zone={zone.name}", *(f"--add-port={_written(port)}" for port in closed))

    def _shut(self, zone: Zone, gone: Numbers) -> None:
        """Close ports in what runs; what is asked for must lie in one of the ranges that are listed."""
        parts = [part for port in zone.ports for part in ranges(numbers([port]) & gone)]
        if parts:
            self._do(_RUNS, f"--zone={zone.name}", *(f"--remove-port={_written(part)}" for part in parts))

    def _theirs(self, name: str, zone: Zone) -> Numbers:
        """The ports in a zone that stay when this service goes."""
        mine = self._found.read(name, zone.name)
        return self._files.administered(zone.name) | mine | self._fellows(name, zone)

    def _fellows(self, name: str, zone: Zone) -> Numbers:
        """The ports that other services have open in a zone; one that is loaded there has its own way to do it."""
        return numbers(
            port
            for fellow in self._files.fellows(name)
            if fellow not in zone.services and self._files.lasts(fellow, zone.name)
            for port in self._files.kept(fellow)
        )

    def _found_open(self, name: str, zone: Zone, wanted: Numbers) -> Numbers:
        """Ports that are open in a zone, and neither by this service nor by another of this collection."""
        before, known = self._found.read(name, zone.name), numbers(self._files.kept(name))
        if name in zone.services or not self._files.lasts(name, zone.name):
            # None of the ports that are listed there is this service's.
            before, known = frozenset(), frozenset()
        their_finds = (self._found.read(fellow, zone.name) for fellow in self._files.fellows(name))
        by_fellows = self._fellows(name, zone).difference(*their_finds)
        return (before | (numbers(zone.ports) - known - by_fellows)) & wanted

    def _live(self, name: str, zones: Sequence[Zone]) -> Numbers:
        """What the service opens in what runs, where it is loaded."""
        if not any(name in zone.services for zone in zones):
            return frozenset()
        return numbers(_listed(self._do(_RUNS, f"--info-service={name}"), "ports"))

    def _zones(self) -> list[Zone]:
        blocks = re.split(r"\n\s*\n", self._do(_RUNS, "--list-all-zones"))
        heads = [(head, block) for block in blocks for head in (_ZONE.search(block.strip()),) if head]
        default = [head.group(1) for head, _block in heads if "default" in (head.group(2) or "")]
        if not default:
            default = [self._do(_RUNS, "--get-default-zone").strip()]
        return [_zone(head.group(1), block, is_default=head.group(1) in default) for head, block in heads]

    # --- for good ----------------------------------------------------------------------------------------------------
    def lacking_at_start(self, tag: str, ports: Sequence[str]) -> tuple[str, ...]:
        """What it will not open, or still open, when it is started."""
        name, kept = _name(tag), self._files.kept(_name(tag))
        lasting = all(self._files.lasts(name, zone) for zone in self._files.zones_at_start())
        closed = [port for port in ports if port not in kept or not lasting]
        is_empty = self.knows(tag) and not (ports or kept)
        return _told(closed, sorted(kept - set(ports)), " in firewalld", is_empty=is_empty)

    def have_at_start(self, tag: str, ports: Sequence[str]) -> None:
        """Have it open just these ports once it is started."""
        name = _name(tag)
        self._keep(_DOWN, name, ports, self._files.zones_at_start())
        self._let_go(_DOWN, name, ports)

    def _keep(self, program: tuple[str, ...], name: str, ports: Sequence[str], zones: Sequence[str]) -> None:
        if not ports:
            return
        if not self._files.knows(name):
            self._do(program, f"--new-service={name}")
        kept = self._files.kept(name)
        new = [f"--add-port={_written(port)}" for port in ports if port not in kept]
        if new:
            self._do(program, f"--service={name}", *new)
        for zone in zones:
            if not self._files.lasts(name, zone):
                self._do(program, f"--zone={zone}", f"--add-service={name}")

    def _let_go(self, program: tuple[str, ...], name: str, ports: Sequence[str]) -> None:
        if ports:
            gone = [f"--remove-port={_written(port)}" for port in sorted(self._files.kept(name) - set(ports))]
            if gone:
                self._do(program, f"--service={name}", *gone)
            return
        verb = "remove-service-from-zone" if program == _DOWN else "remove-service"
        for zone in self._files.holders(name):
            self._do(program, f"--zone={zone}", f"--{verb}={name}")
        if self._files.knows(name):
            self._do(program, f"--delete-service={name}")
        self._disk.remove(self._files.backup(name))
        self._found.note(name, {})

    def _do(self, program: tuple[str, ...], *words: str) -> str:
        answer = self._run([*program, *words], {})
        if not answer.ok:
            raise NodeRefused(
                f"{' '.join((*program, *words))} failed on the node: {answer.said}; see to its firewall, then run "
                "again."
            )
        return answer.out


class _Found:
    """Notes of ports that were open in a zone before a service came; what runs lasts no longer than they do."""

    def __init__(self, disk: Disk, folder: Path) -> None:
        self._disk = disk
        self._folder = folder

    def read(self, name: str, zone: str) -> Numbers:
        return numbers(self._all(name).get(zone, ()))

    def note(self, name: str, found: Mapping[str, Numbers]) -> None:
        told = {zone: ranges(ports) for zone, ports in sorted(found.items()) if ports}
        if told == self._all(name):
            return
        if told:
            self._disk.make_folder(self._folder)
            self._disk.write(self._path(name), json.dumps(told).encode())
        else:
            self._disk.remove(self._path(name))
            self._disk.remove_empty(self._folder)

    def _all(self, name: str) -> dict[str, list[str]]:
        found: dict[str, list[str]] = json.loads(self._disk.read(self._path(name)) or b"{}")
        return found

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.json"


def _zone(name: str, block: str, *, is_default: bool) -> Zone:
    said = {key: _words(block, key) for key in ("target", "interfaces", "sources", "services")}
    shuts_out = set(said["target"]) & set(_CLOSED)
    comes = is_default or bool(said["interfaces"]) or bool(said["sources"] and not shuts_out)
    return Zone(name, said["services"], _listed(block, "ports"), comes and said["target"] != ["ACCEPT"])


def _words(block: str, key: str) -> list[str]:
    found = re.search(rf"^ +{key}: (.*)$", block, re.MULTILINE)
    return found.group(1).split() if found else []


def _listed(block: str, key: str) -> list[str]:
    return [" ".join(reversed(one.split("/"))) for one in _words(block, key)]


def _told(closed: Iterable[str], spare: Iterable[str], where: str = "", *, is_empty: bool) -> tuple[str, ...]:
    unneeded = (*spare, *(("at all",) if is_empty else ()))
    return (
        *(f"port {port}{where}" for port in closed),
        *(f"port {port}{where}, no longer needed" for port in unneeded),
    )


def _name(tag: str) -> str:
    return tag.replace("@", "-")


def _written(port: str) -> str:
    """As firewalld writes it: `5900-6923/tcp`."""
    kind, number = port.split()
    return f"{number}/{kind}"
