# SPDX-License-Identifier: GPL-3.0-or-later
"""firewalld of a few lines: what runs, what is written down, and the little that the two know of each other.

It does as firewalld 2.3 was seen to do, which tests/hosts/test_firewalld.py shows of the real one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from ansible_collections.edpm.services.plugins.module_utils._node.commands import Result

from .plug import Plug

Words = list[str]
Environment = Mapping[str, str]
_LINES = ("target", "interfaces", "sources", "services", "ports", "masquerade", "rich rules")


class Runs(Protocol):
    """What firewalld runs with."""

    up: set[str]
    zones: dict[str, set[str]]
    loaded: dict[str, list[str]]
    zone_lines: dict[str, dict[str, str]]
    zones_are_active: bool


class FirewalldPrograms:
    """Answers in the name of firewalld's programs."""

    fabric: Runs
    plug: Plug
    etc: Path

    def reload_firewalld(self) -> None:
        """What runs is what is written down."""
        folder = self.etc / "firewalld"
        self.fabric.loaded = {path.stem: _ports(path) for path in (folder / "services").glob("*.xml")}
        for zone in self.fabric.zones:
            path = folder / f"zones/{zone}.xml"
            text = path.read_text() if path.exists() else ""
            self.fabric.zones[zone] = {*re.findall(r'<service name="([^"]+)"', text), *_ports(path)}

    def _firewall_cmd(self, words: Words, _: Environment) -> Result:
        if "firewalld.service" not in self.fabric.up:
            return Result(252, "", "FirewallD is not running")
        if words == ["--list-all-zones"]:
            return Result(0, "\n\n".join(self._zone(name) for name in ("block", *self.fabric.zones)) + "\n")
        if words == ["--get-default-zone"]:
            return Result(0, "public\n")
        options = _options(words)
        if options[0][0] == "info-service":
            ports = self.fabric.loaded.get(options[0][1])
            told = f"{options[0][1]}\n  ports: {' '.join(ports or ())}\n  source-ports: \n"
            return Result(0, told) if ports is not None else Result(101, "", f"INVALID_SERVICE: {options[0][1]}")
        change = self._change_files if "--permanent" in words else self._change_what_runs
        self.plug.around(" ".join(words), lambda: change(options))
        return Result(0)

    def _firewall_offline_cmd(self, words: Words, _: Environment) -> Result:
        options = [(key.replace("-from-zone", ""), value) for key, value in _options(words)]
        self.plug.around(" ".join(words), lambda: self._change_files(options))
        return Result(0)

    def _zone(self, name: str) -> str:
        found = self.fabric.zones.get(name)
        is_active = found is not None and self.fabric.zones_are_active
        marks = [*(["default"] if name == "public" else []), "active"] if is_active else []
        lines = {
            "target": "default",
            "interfaces": f"eth-{name}" if is_active else "",
            "services": " ".join(sorted(one for one in found or () if "/" not in one)),
            "ports": " ".join(sorted(one for one in found or () if "/" in one)),
            **self.fabric.zone_lines.get(name, {}),
        }
        head = f"{name} ({', '.join(marks)})" if marks else name
        return "\n".join([head, *(f"  {key}: {lines.get(key, '')}" for key in _LINES)])

    def _change_what_runs(self, options: list[tuple[str, str]]) -> None:
        zone = self.fabric.zones[dict(options)["zone"]]
        for key, value in options:
            if key == "add-port":
                _join(zone, value)
            if key == "remove-port":
                _cut(zone, value)
            if key == "remove-service":
                zone.remove(value)
            assert key != "add-service", "what runs does not know a service that is new"

    def _change_files(self, options: list[tuple[str, str]]) -> None:
        folder, said = self.etc / "firewalld", dict(options)
        named = said.get("service") or said.get("new-service") or said.get("delete-service")
        path = folder / (f"services/{named}.xml" if named else f"zones/{said['zone']}.xml")
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text().splitlines() if path.exists() else ["<x>"]
        if named and path.exists():
            path.with_suffix(".xml.old").write_text(path.read_text())
        if "delete-service" in said:
            path.unlink()
            return
        for key, value in options:
            number, _slash, protocol = value.partition("/")
            line = f'  <port port="{number}" protocol="{protocol}"/>' if protocol else f'  <service name="{value}"/>'
            if key.startswith("add-"):
                lines.append(line)
            if key.startswith("remove-"):
                lines.remove(line)
        path.write_text("\n".join(lines))


def _options(words: Words) -> list[tuple[str, str]]:
    return [(word.lstrip("-").partition("=")[0], word.partition("=")[2]) for word in words if word != "--permanent"]


def _ports(path: Path) -> list[str]:
    text = path.read_text() if path.exists() else ""
    return [f"{port}/{kind}" for port, kind in re.findall(r'<port port="([^"]+)" protocol="([^"]+)"', text)]


def _bounds(port: str) -> tuple[int, int, str]:
    number, _slash, kind = port.partition("/")
    first, _dash, last = number.partition("-")
    return int(first), int(last or first), kind


def _text(first: int, last: int, kind: str) -> str:
    return f"{first}/{kind}" if first == last else f"{first}-{last}/{kind}"


def _join(zone: set[str], port: str) -> None:
    """Ranges that overlap become one."""
    first, last, kind = _bounds(port)
    for one in [one for one in zone if one.endswith(f"/{kind}")]:
        low, high, _kind = _bounds(one)
        if low <= last and high >= first:
            zone.remove(one)
            first, last = min(first, low), max(last, high)
    zone.add(_text(first, last, kind))


def _cut(zone: set[str], port: str) -> None:
    """A range that does not lie in one of those that are there is not cut out of any."""
    first, last, kind = _bounds(port)
    for one in [one for one in zone if one.endswith(f"/{kind}")]:
        low, high, _kind = _bounds(one)
        if low <= first and last <= high:
            zone.remove(one)
            zone.update(_text(*part, kind) for part in ((low, first - 1), (last + 1, high)) if part[0] <= part[1])
            return
    raise AssertionError(f"NOT_ENABLED: {port}")
