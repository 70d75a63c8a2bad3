# SPDX-License-Identifier: GPL-3.0-or-later
"""A package manager, firewalls and SELinux of a few lines each."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.edpm.services.plugins.module_utils._node.commands import NOT_FOUND, Result

from .firewalld_programs import Environment, FirewalldPrograms, Words

NO_MATCH = {"match": {"op": "==", "left": {"meta": {"key": "iifname"}}, "right": "lo"}}


@dataclass
class Fabric:
    """The part of a node that is no service of ours."""

    packages: set[str] = field(default_factory=set)
    #: What can be installed, and what only after the lists are fetched.
    available: set[str] = field(default_factory=set)
    unlisted: set[str] = field(default_factory=set)
    #: Units of the node: whether they are enabled, and which of them are up.
    files: dict[str, str] = field(default_factory=dict)
    up: set[str] = field(default_factory=set)
    #: Those that were started with a package, before anybody could bring the files that they read when they start.
    early: set[str] = field(default_factory=set)
    #: What a masked unit is again afterwards.
    behind_masks: dict[str, str] = field(default_factory=dict)
    #: The services of sockets.
    triggers: dict[str, str] = field(default_factory=dict)
    #: nftables' objects, or None where there is no nft.
    ruleset: list[dict[str, Any]] | None = None
    handles: int = 100
    #: firewalld's zones with what is open in them, while it runs, and the services that it has loaded.
    zones: dict[str, set[str]] = field(default_factory=dict)
    loaded: dict[str, list[str]] = field(default_factory=dict)
    #: Lines of a zone that say something else than usual, and whether every zone has an interface and says so.
    zone_lines: dict[str, dict[str, str]] = field(default_factory=dict)
    zones_are_active: bool = True
    #: SELinux: what was set, and the types that paths have besides the usual one.
    labels: list[str] = field(default_factory=list)
    kinds: dict[str, str] = field(default_factory=dict)

    def chain(
        self, name: str, policy: str = "", rules: tuple[list[dict[str, Any]], ...] = (), table: str = "filter"
    ) -> None:
        """Add a chain of the node's own; with a policy all input goes through it."""
        place = {"family": "inet", "table": table}
        base = {"type": "filter", "hook": "input", "prio": 0, "policy": policy} if policy else {}
        self.ruleset = [*(self.ruleset or []), {"chain": {**place, "name": name, **base}}]
        for body in rules:
            self.handles += 1
            self.ruleset.append({"rule": {**place, "chain": name, "handle": self.handles, "expr": body}})

    def rules(self, chain: str = "INPUT") -> list[str]:
        """The rules of a chain that have a comment, as `tcp 22 edpm_x`."""
        found = [one["rule"] for one in self.ruleset or [] if "rule" in one and one["rule"]["chain"] == chain]
        return [f"{_port(one)} {one['comment']}" for one in found if "comment" in one]


def _port(rule: dict[str, Any]) -> str:
    match = rule["expr"][0]["match"]
    right = match["right"]
    numbers = "-".join(map(str, right["range"])) if isinstance(right, dict) else str(right)
    return f"{match['left']['payload']['protocol']} {numbers}"


class NodePrograms(FirewalldPrograms):
    """Answers in the name of the node's programs."""

    fabric: Fabric

    # --- systemctl for units of the node ---------------------------------------------------------------------------
    def change_unit(self, verb: str, unit: str, *, now: bool) -> Result:
        files, up = self.fabric.files, self.fabric.up
        if unit not in files and verb in ("enable", "disable", "start"):
            return Result(5, "", f"Unit {unit} not found.")
        if verb == "start" and self.fabric.triggers.get(unit) in up:
            return Result(1, "", f"Socket service {self.fabric.triggers[unit]} already active, refusing.")
        state = {"enable": "enabled", "disable": "disabled", "mask": "masked"}

        def change() -> None:
            if verb == "mask" and files.get(unit) not in (None, "masked"):
                self.fabric.behind_masks[unit] = files[unit]
            if verb == "unmask" and files.get(unit) == "masked":
                files[unit] = self.fabric.behind_masks.pop(unit, "disabled")
            if verb in state:
                files[unit] = state[verb]
            if verb == "start":
                up.add(unit)
            elif now:
                up.discard(unit)
            if verb == "start" or now:
                self.fabric.early.discard(unit)

        self.plug.around(f"{verb} {unit}", change)
        return Result(0)

    def unit_values(self, unit: str) -> dict[str, str]:
        file = self.fabric.files[unit]
        active = "active" if unit in self.fabric.up else "inactive"
        load = "masked" if file == "masked" else "loaded"
        told = {"ActiveState": active, "LoadState": load, "UnitFileState": file, "InvocationID": unit}
        return {**told, "Triggers": self.fabric.triggers.get(unit, "")}

    # --- packages --------------------------------------------------------------------------------------------------
    def _dpkg_query(self, words: Words, _: Environment) -> Result:
        asked = words[words.index("--") + 1 :]
        there = [name for name in asked if name in self.fabric.packages]
        missing = [name for name in asked if name not in there]
        told = "".join(f"dpkg-query: no packages found matching {name}\n" for name in missing)
        return Result(
            1 if missing else 0, "".join(f"{name} installed\n" for name in there) + "gone config-files\n", told
        )

    def _rpm(self, words: Words, _: Environment) -> Result:
        asked = words[words.index("--") + 1 :]
        lines = [
            f"{one} installed" if one in self.fabric.packages else f"package {one} is not installed" for one in asked
        ]
        return Result(sum("not" in line for line in lines), "\n".join(lines))

    def _apt_get(self, words: Words, environment: Environment) -> Result:
        assert environment["DEBIAN_FRONTEND"] == "noninteractive"
        return self._installed(words)

    def _dnf(self, words: Words, _: Environment) -> Result:
        return self._installed(words)

    def _installed(self, words: Words) -> Result:
        fabric = self.fabric
        if "--" not in words:
            self.plug.around("fetch lists", lambda: fabric.available.update(fabric.unlisted))
            return Result(0)
        wanted = words[words.index("--") + 1 :]
        unknown = [name for name in wanted if name not in fabric.available]
        if unknown:
            return Result(100, "", f"E: Unable to locate package {unknown[0]}")

        def install() -> None:
            fabric.packages.update(wanted)
            for name in wanted:
                fabric.files.setdefault(f"{name}.service", "enabled")
                fabric.up.add(f"{name}.service")
                fabric.early.add(f"{name}.service")

        self.plug.around("install", install)
        return Result(0)

    # --- firewalls -------------------------------------------------------------------------------------------------
    def _nft(self, words: Words, _: Environment) -> Result:
        fabric = self.fabric
        if fabric.ruleset is None:
            return Result(NOT_FOUND, "", "nft: No such file or directory")
        if words == ["--json", "list", "ruleset"]:
            return Result(0, json.dumps({"nftables": [{"metainfo": {}}, *fabric.ruleset]}))
        if words[0] == "delete":
            handle = int(words[-1])
            kept = [one for one in fabric.ruleset if one.get("rule", {}).get("handle") != handle]
            self.plug.around("delete rule", lambda: setattr(fabric, "ruleset", kept))
            return Result(0)
        assert words[0] == "insert", words
        self.plug.around("insert rule", lambda: self._insert(words[2:]))
        return Result(0)

    def _insert(self, words: Words) -> None:
        family, table, chain, protocol, _dport, numbers, _accept, _comment, tag = words
        self.fabric.handles += 1
        first, _dash, last = numbers.partition("-")
        right: Any = {"range": [int(first), int(last)]} if last else int(first)
        left = {"payload": {"protocol": protocol, "field": "dport"}}
        body = [{"match": {"op": "==", "left": left, "right": right}}, {"accept": None}]
        rule = {"family": family, "table": table, "chain": chain, "handle": self.fabric.handles}
        assert self.fabric.ruleset is not None
        self.fabric.ruleset.insert(0, {"rule": {**rule, "comment": tag.strip('"'), "expr": body}})

    # --- SELinux ---------------------------------------------------------------------------------------------------
    def _restorecon(self, words: Words, _: Environment) -> Result:
        self.fabric.labels += [f"restored {path}" for path in words[1:]]
        return Result(0)

    def _chcon(self, words: Words, _: Environment) -> Result:
        kind, path = words[0].partition("=")[2], words[-1]
        self.fabric.labels.append(f"{kind} {path}")
        self.fabric.kinds[path] = kind
        return Result(0)
