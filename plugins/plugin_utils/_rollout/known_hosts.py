# SPDX-License-Identifier: GPL-3.0-or-later
"""Whom the computes of a cell know: the host keys of all of them, also of those that a run leaves out.

Nodes of the run tell their keys themselves, the others are asked over the network. A node that cannot be asked keeps
the lines that others have of it.
"""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from .._bundle.migration import known_hosts, known_hosts_path
from .._dataplane.planned import NodePlan, Plan, ServicePlan

SSH_PORT = 22
#: Seconds for one host; all are asked at once.
PATIENCE = 4
_LIMIT = 60
_SHORT = 8

#: Public keys by type.
Keys = Mapping[str, str]
#: From addresses and the port behind which they listen to the keys of those that answer.
Scan = Callable[[Iterable[str], int], Mapping[str, Keys]]


@dataclass(frozen=True)
class KnownHosts:
    """What all computes of one cell should know; `unasked` are the names of hosts that could not be asked."""

    text: bytes
    unasked: frozenset[str] = frozenset()

    def differs(self, service: ServicePlan, answer: Mapping[str, Any]) -> bool:
        """Whether a node knows somebody not, or somebody who is gone; `answer` is what the node says of itself."""
        path = known_hosts_path(service)
        if path is None or not (self.text or self.unasked):
            return False
        found = (answer.get("services") or {}).get(service.name) or {}
        if self.unasked:
            there = set(str((answer.get("known_hosts") or {}).get(path, "")).split())
            return not there.issuperset(fingerprints(self.text.decode()).split())
        return bool((found.get("live") or {}).get(path) != sha256(self.text).hexdigest())

    def beside(self, before: str) -> bytes:
        """The text, with what a node knew before of those that could not be asked."""
        kept = [line for line in before.splitlines() if self.unasked.intersection(line.partition(" ")[0].split(","))]
        return "".join(f"{line}\n" for line in sorted({*self.text.decode().splitlines(), *kept})).encode()


def cell_of(service: ServicePlan) -> str:
    """The cell whose computes know each other."""
    return service.cell or ""


def fingerprints(text: str) -> str:
    """A word for every line: enough to tell whether a line is there, and little enough for thousands of nodes."""
    return " ".join(sorted(sha256(line.encode()).hexdigest()[:_SHORT] for line in text.splitlines()))


def gather(plan: Plan, answers: Mapping[str, Mapping[str, Any]], scan: Scan | None = None) -> dict[str, KnownHosts]:
    """For every cell with a node among the answers what its computes should know; nobody is asked where none wants it.

    The scan asks nobody whose keys are among the answers.
    """
    cells: defaultdict[str, dict[str, tuple[NodePlan, ServicePlan]]] = defaultdict(dict)
    for node in plan.by_name().values():
        for service in node.services:
            if known_hosts_path(service):
                cells[cell_of(service)][node.name] = (node, service)
    cells = defaultdict(dict, {cell: nodes for cell, nodes in cells.items() if not nodes.keys().isdisjoint(answers)})
    told = {name: keys for name, answer in answers.items() if (keys := answer.get("ssh_host_keys"))}
    silent = [node for nodes in cells.values() for node, _service in nodes.values() if node.name not in told]
    told |= _scanned(silent, scan or keyscan) if silent else {}
    return {cell: _known(nodes, told) for cell, nodes in cells.items()}


def keyscan(addresses: Iterable[str], port: int) -> Mapping[str, Keys]:
    """The keys of hosts over the network, asked by one process and side by side; who is silent is left out."""
    names = list(addresses)
    argv = ["ssh-keyscan", "-T", str(PATIENCE), "-p", str(port), "-t", "ed25519,ecdsa,rsa", "-f", "-"]
    try:
        done = subprocess.run(
            argv, input="\n".join(names), capture_output=True, text=True, timeout=_LIMIT + len(names), check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    found: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for line in done.stdout.splitlines():
        name, _space, rest = line.partition(" ")
        kind, _space, key = rest.partition(" ")
        if key and not name.startswith("#"):
            found[name.removeprefix("[").partition("]:")[0] if name.startswith("[") else name][kind] = key.strip()
    return found


def _scanned(nodes: Iterable[NodePlan], scan: Scan) -> dict[str, Keys]:
    by_port: defaultdict[int, dict[str, str]] = defaultdict(dict)
    for node in nodes:
        by_port[node.connection.ansible_port or SSH_PORT][node.connection.ansible_host or node.host_name] = node.name
    return {
        names[address]: keys
        for port, names in by_port.items()
        for address, keys in scan(names, port).items()
        if address in names
    }


def _known(nodes: Mapping[str, tuple[NodePlan, ServicePlan]], told: Mapping[str, Keys]) -> KnownHosts:
    names = {name: list(_names(*one)) for name, one in nodes.items()}
    text = known_hosts((names[name], told[name]) for name in nodes if name in told)
    unasked = frozenset(each for name in nodes if name not in told for each in names[name])
    return KnownHosts(text, unasked)


def _names(node: NodePlan, service: ServicePlan) -> Iterator[str]:
    """By what others may call it."""
    who = service.identity
    told = (node.name, node.host_name, node.connection.ansible_host, *((who.host, who.my_ip) if who else ()))
    yield from dict.fromkeys(name.lower() for name in told if name)
