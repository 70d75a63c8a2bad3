# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""firewalld: a service of its own, permanent, and the same ports open in what runs.

What runs is not reloaded, since that would take away the rules that others have put there. So the permanent service
counts from the next start on, and until then the ports themselves are open.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from .commands import Run
from .errors import NodeRefused

_ZONE = re.compile(r"^(\S+)(?: \(([^)]*)\))?$", re.MULTILINE)


class Firewalld:
    """firewall-cmd, and firewalld's own files, which are read without asking it."""

    def __init__(self, run: Run, folder: Path) -> None:
        self._run = run
        self._folder = folder

    def knows(self, tag: str) -> bool:
        """Whether there is a service of this name."""
        return self._file(tag).exists()

    def lacking(self, tag: str, ports: Sequence[str]) -> tuple[str, ...]:
        """Ports that are closed somewhere, and those of the service that are not wanted."""
        kept, zones = self._kept(tag), self._zones()
        lasting = all(self._lasts(tag, zone) for zone in zones)
        closed = [port for port in ports if port not in kept or not lasting or not self._all_open(tag, port, zones)]
        spare = sorted(kept - set(ports)) + (["at all"] if self.knows(tag) and not (ports or kept) else [])
        return (*(f"port {port}" for port in closed), *(f"port {port}, no longer needed" for port in spare))

    def have(self, tag: str, ports: Sequence[str]) -> None:
        """Have these ports open and no others of this service."""
        name, kept, zones = _name(tag), self._kept(tag), self._zones()
        for port in sorted(kept - set(ports)):
            self._shut(port, zones)
        if not ports:
            self._drop(tag, zones)
            return
        if not self.knows(tag):
            self._do("--permanent", f"--new-service={name}")
        for port in sorted(kept ^ set(ports)):
            verb = "add" if port in ports else "remove"
            self._do("--permanent", f"--service={name}", f"--{verb}-port={_written(port)}")
        for zone, inside in zones.items():
            if not self._lasts(tag, zone):
                self._do("--permanent", f"--zone={zone}", f"--add-service={name}")
            for port in ports:
                if name not in inside and _written(port) not in inside:
                    self._do(f"--zone={zone}", f"--add-port={_written(port)}")

    def _drop(self, tag: str, zones: dict[str, set[str]]) -> None:
        name = _name(tag)
        for zone, inside in zones.items():
            if name in inside:
                self._do(f"--zone={zone}", f"--remove-service={name}")
            if self._lasts(tag, zone):
                self._do("--permanent", f"--zone={zone}", f"--remove-service={name}")
        if self.knows(tag):
            self._do("--permanent", f"--delete-service={name}")

    def _shut(self, port: str, zones: dict[str, set[str]]) -> None:
        """Close a port in what runs, unless an administrator has it open for good."""
        for zone, inside in zones.items():
            if _written(port) in inside and not self._administered(zone, port):
                self._do(f"--zone={zone}", f"--remove-port={_written(port)}")

    def _all_open(self, tag: str, port: str, zones: dict[str, set[str]]) -> bool:
        return all({_name(tag), _written(port)} & inside for inside in zones.values())

    def _zones(self) -> dict[str, set[str]]:
        """The services and ports that are open in each zone that is in use; in the default one where none is."""
        every, used = {}, []
        for block in re.split(r"\n\s*\n", self._do("--list-all-zones")):
            head = _ZONE.search(block.strip())
            if head:
                listed = re.findall(r"^ +(?:services|ports): (.*)$", block, re.MULTILINE)
                every[head.group(1)] = set(" ".join(listed).split())
                used += [head.group(1)] if "active" in (head.group(2) or "") else []
        return {zone: every.get(zone, set()) for zone in used or [self._do("--get-default-zone").strip()]}

    def _kept(self, tag: str) -> set[str]:
        return {f"{one.get('protocol')} {one.get('port')}" for one in self._read(self._file(tag), "port")}

    def _lasts(self, tag: str, zone: str) -> bool:
        return any(one.get("name") == _name(tag) for one in self._read(self._zone_file(zone), "service"))

    def _administered(self, zone: str, port: str) -> bool:
        kind, numbers = port.split()
        return any(
            (one.get("protocol"), one.get("port")) == (kind, numbers)
            for one in self._read(self._zone_file(zone), "port")
        )

    def _file(self, tag: str) -> Path:
        return self._folder / "services" / f"{_name(tag)}.xml"

    def _zone_file(self, zone: str) -> Path:
        return self._folder / "zones" / f"{zone}.xml"

    @staticmethod
    def _read(path: Path, kind: str) -> list[dict[str, str]]:
        """The attributes of all elements of a kind; firewalld writes each on a line of its own."""
        try:
            text = path.read_text(errors="replace")
        except OSError:
            return []
        return [dict(re.findall(r'(\w+)="([^"]*)"', found)) for found in re.findall(rf"<{kind}\s([^>]*)>", text)]

    def _do(self, *words: str) -> str:
        answer = self._run(["firewall-cmd", *words], {})
        if not answer.ok:
            raise NodeRefused(
                f"firewall-cmd {' '.join(words)} failed on the node: {answer.said}; see to its firewall, then run "
                "again."
            )
        return answer.out


def _name(tag: str) -> str:
    return tag.replace("@", "-")


def _written(port: str) -> str:
    """As firewalld writes it: `5900-6923/tcp`."""
    kind, numbers = port.split()
    return f"{numbers}/{kind}"
