# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""nftables: accept rules at the top of the node's own input chains, as far as those close anything."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .commands import Run
from .errors import NodeRefused

_FAMILIES = ("ip", "ip6", "inet")
#: What may stand before a verdict without making it depend on the packet.
_IDLE = ("counter", "log", "comment")
_CLOSING = ("drop", "reject")


@dataclass(frozen=True)
class Chain:
    """A chain by its place."""

    family: str
    table: str
    name: str

    @property
    def words(self) -> tuple[str, str, str]:
        """As nft wants it."""
        return self.family, self.table, self.name


@dataclass(frozen=True)
class Rule:
    """A rule of a chain."""

    chain: Chain
    handle: int
    comment: str
    body: tuple[Mapping[str, Any], ...]


class Nftables:
    """The node's ruleset, read once; a change is followed by another look."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._seen: tuple[Mapping[str, Any], ...] | None = None

    def lacking(self, tag: str, ports: Sequence[str]) -> tuple[str, ...]:
        """Ports that are closed, and rules with this tag that are not wanted."""
        closed = {port for port in ports for chain in self._closing() if not self._is_open(chain, tag, port)}
        spare = sorted({_told(rule) for rule in self._spare(tag, ports)})
        return (
            *(f"port {port}" for port in ports if port in closed),
            *(f"port {port}, no longer needed" for port in spare),
        )

    def have(self, tag: str, ports: Sequence[str]) -> None:
        """Have the rules of this tag for these ports and no others."""
        try:
            for rule in self._spare(tag, ports):
                self._do(["delete", "rule", *rule.chain.words, "handle", str(rule.handle)])
            for chain in self._closing():
                for port in ports:
                    if not self._is_open(chain, tag, port):
                        self._do(["insert", *_rule(chain, tag, port)])
        finally:
            self._seen = None

    def commands(self, tag: str, ports: Sequence[str]) -> list[str]:
        """What nft is told to make the same rules anew, for a shell; none where nothing is closed."""
        return [shlex.join(("insert", *_rule(chain, tag, port))) for chain in self._closing() for port in ports]

    # --- reading the ruleset -----------------------------------------------------------------------------------------
    def _objects(self, kind: str) -> Iterator[Mapping[str, Any]]:
        if self._seen is None:
            answer = self._run(["nft", "--json", "list", "ruleset"], {})
            try:
                self._seen = tuple(json.loads(answer.out)["nftables"]) if answer.ok else ()
            except (ValueError, KeyError, TypeError):
                self._seen = ()
        return (one[kind] for one in self._seen if kind in one)

    def _rules(self) -> list[Rule]:
        return [
            Rule(_chain(one, "chain"), one["handle"], one.get("comment", ""), tuple(one.get("expr", ())))
            for one in self._objects("rule")
        ]

    def _closing(self) -> list[Chain]:
        """The chains through which all input goes and that let not all of it pass."""
        rules = self._rules()
        return [
            _chain(one, "name")
            for one in self._objects("chain")
            if (one.get("type"), one.get("hook")) == ("filter", "input")
            and one["family"] in _FAMILIES
            and (one.get("policy") == "drop" or _blocks(_chain(one, "name"), rules, set()))
        ]

    def _is_open(self, chain: Chain, tag: str, port: str) -> bool:
        return any(rule.chain == chain and rule.comment == tag and _told(rule) == port for rule in self._rules())

    def _spare(self, tag: str, ports: Sequence[str]) -> list[Rule]:
        closing = self._closing()
        ours = (rule for rule in self._rules() if rule.comment == tag)
        return [rule for rule in ours if _told(rule) not in ports or rule.chain not in closing]

    def _do(self, words: list[str]) -> None:
        answer = self._run(["nft", *words], {})
        if not answer.ok:
            raise NodeRefused(
                f"nft {' '.join(words)} failed on the node: {answer.said}; see to its firewall, then run again."
            )


def _chain(one: Mapping[str, Any], name: str) -> Chain:
    return Chain(one["family"], one["table"], one[name])


def _blocks(chain: Chain, rules: Sequence[Rule], seen: set[Chain]) -> bool:
    """Whether a chain, or one that it calls, refuses whatever has come that far."""
    seen.add(chain)
    for rule in rules:
        if rule.chain != chain or not rule.body:
            continue
        if _refuses(rule.body[-1]) and all(set(one) & set(_IDLE) for one in rule.body[:-1]):
            return True
        for target in _called(rule):
            if target not in seen and _blocks(target, rules, seen):
                return True
    return False


def _refuses(last: Mapping[str, Any]) -> bool:
    """Also where iptables wrote the rule, whose targets nft only names."""
    target = last.get("xt") or {}
    return bool(set(last) & set(_CLOSING)) or str(target.get("name", "")).lower() in _CLOSING


def _called(rule: Rule) -> Iterator[Chain]:
    for one in rule.body:
        for verb in ("jump", "goto"):
            if verb in one:
                yield Chain(rule.chain.family, rule.chain.table, one[verb]["target"])


def _rule(chain: Chain, tag: str, port: str) -> tuple[str, ...]:
    kind, numbers = port.split()
    return ("rule", *chain.words, kind, "dport", numbers, "accept", "comment", f'"{tag}"')


def _told(rule: Rule) -> str:
    """The port that a rule accepts, as a service names it; something else for any other rule."""
    try:
        match = rule.body[0]["match"]
        left, right = match["left"]["payload"], match["right"]
        numbers = "-".join(map(str, right["range"])) if isinstance(right, dict) else str(right)
        accepts = match["op"] == "==" and left["field"] == "dport" and "accept" in rule.body[-1]
        return f"{left['protocol']} {numbers}" if accepts else "of another form"
    except (KeyError, IndexError, TypeError):
        return "of another form"
