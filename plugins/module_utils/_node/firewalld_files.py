# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What firewalld has written down for its next start, read without asking it."""

from __future__ import annotations

import re
from pathlib import Path

from .port_numbers import Numbers, numbers

#: How the names of all services begin that this collection makes.
OURS = "edpm_"
#: Comments, and rich rules, which are about some packets alone.
_ASIDE = re.compile(r"<!--.*?-->|<rule\b.*?</rule>", re.DOTALL)
_ATTRIBUTE = re.compile(r"""(\w+)=["']([^"']*)["']""")
_DEFAULT_ZONE = re.compile(r"^\s*DefaultZone\s*=\s*(\S+)", re.MULTILINE)


class FirewalldFiles:
    """The folder of an administrator's own settings; firewall-cmd writes there too."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def knows(self, name: str) -> bool:
        """Whether there is a service of this name."""
        return self._service(name).exists()

    def kept(self, name: str) -> set[str]:
        """The ports of a service, such as `tcp 22`."""
        return set(self._ports(self._service(name)))

    def backup(self, name: str) -> Path:
        """Where firewalld leaves a service that it changed or deleted."""
        return self._service(name).with_suffix(".xml.old")

    def lasts(self, name: str, zone: str) -> bool:
        """Whether a zone has a service for good."""
        return any(one.get("name") == name for one in _elements(self._zone(zone), "service"))

    def holders(self, name: str) -> list[str]:
        """All zones that have a service for good, in use or not."""
        return [zone for zone in self._zones() if self.lasts(name, zone)]

    def administered(self, zone: str) -> Numbers:
        """The ports that an administrator has opened in a zone for good."""
        return numbers(self._ports(self._zone(zone)))

    def fellows(self, name: str) -> list[str]:
        """The other services that this collection has made."""
        found = sorted(path.stem for path in (self._folder / "services").glob(f"{OURS}*.xml"))
        return [one for one in found if one != name]

    def zones_at_start(self) -> list[str]:
        """The default zone, and those that are bound to something; what a network manager binds is not told here."""
        said = _DEFAULT_ZONE.search(_text(self._folder / "firewalld.conf"))
        bound = [zone for zone in self._zones() if _elements(self._zone(zone), "interface")]
        return sorted({said.group(1) if said else "public", *bound})

    def _zones(self) -> list[str]:
        return sorted(path.stem for path in (self._folder / "zones").glob("*.xml"))

    def _service(self, name: str) -> Path:
        return self._folder / "services" / f"{name}.xml"

    def _zone(self, zone: str) -> Path:
        return self._folder / "zones" / f"{zone}.xml"

    @staticmethod
    def _ports(path: Path) -> list[str]:
        return [f"{one.get('protocol')} {one.get('port')}" for one in _elements(path, "port")]


def _elements(path: Path, kind: str) -> list[dict[str, str]]:
    """The attributes of all elements of a kind."""
    found = re.findall(rf"<{kind}\s([^>]*)>", _ASIDE.sub("", _text(path)))
    return [dict(_ATTRIBUTE.findall(one)) for one in found]


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
