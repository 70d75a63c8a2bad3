# SPDX-License-Identifier: GPL-3.0-or-later
"""How fast things are, as ratios inside one run: machines differ and are shared, a ratio travels.

Each measurement is a pair: what is measured and what it is compared with, both taken here and now, the best of
several tries. The table goes to the terminal, the same figures to build/bench.json.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from edpm_lab import labs, table
from edpm_lab.api_server import api_server
from edpm_lab.errors import NotOnThisHost
from edpm_lab.labs import Lab
from edpm_lab.nodes import Nodes, default_names

TREE = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Figure:
    """One measurement beside what it is compared with, in seconds."""

    name: str
    measured: float
    compared_with: str
    reference: float

    @property
    def ratio(self) -> float:
        """Below one: faster than what it is compared with."""
        return self.measured / self.reference


def main() -> int:
    """Measure, print, write."""
    figures: list[Figure] = []
    with labs.opened(f"bench-{os.getpid()}") as lab:
        for benchmark in (definitions, nodes):
            try:
                figures += benchmark(lab)
            except NotOnThisHost as reason:
                print(f"NOT RUN: {benchmark.__name__}: {reason}")
    rows = [(f.name, f"{f.measured:.2f} s", f.compared_with, f"{f.reference:.2f} s", f"{f.ratio:.2f}") for f in figures]
    print(table.text(("MEASURED", "", "COMPARED WITH", "", "RATIO"), rows))
    out = TREE / "build/bench.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps({f.name: {**asdict(f), "ratio": round(f.ratio, 3)} for f in figures}, indent=2) + "\n")
    print(f"\nwritten to {out.relative_to(TREE)}")
    return 0


def definitions(lab: Lab) -> Iterator[Figure]:
    """A second run of install_cluster has nothing to write; an empty playbook is what Ansible itself costs."""
    with api_server(lab, "bench") as server, empty_playbook(lab) as empty:
        floor = best(lambda: ansible(empty, server.environment()))
        first = timed(lambda: ansible("edpm.services.install_cluster", server.environment()))
        again = best(lambda: ansible("edpm.services.install_cluster", server.environment()))
    yield Figure("install_cluster, nothing to change", again, "the first install_cluster", first)
    yield Figure("install_cluster, nothing to change: over Ansible itself", again, "an empty playbook", floor)


def nodes(lab: Lab) -> Iterator[Figure]:
    """Four nodes start side by side."""
    several = Nodes(lab)
    one = timed(lambda: several.up(default_names(1)))
    four = timed(lambda: several.up([f"bench-{number}" for number in range(4)]))
    again = best(lambda: several.up(default_names(1)))
    yield Figure("start of four nodes", four, "start of one node", one)
    yield Figure("a node that runs already", again, "start of one node", one)


@contextmanager
def empty_playbook(lab: Lab) -> Iterator[str]:
    """A playbook with one play and no task."""
    path = lab.folder / "empty.yml"
    path.write_text("- hosts: localhost\n  gather_facts: false\n")
    yield str(path)


def ansible(playbook: str, environment: dict[str, str]) -> None:
    """Run a playbook; one that fails is no measurement."""
    subprocess.run(
        [BIN / "ansible-playbook", playbook],
        cwd=TREE,
        env={**os.environ, **environment},
        check=True,
        capture_output=True,
        timeout=300,
    )


def timed(work: Callable[[], object]) -> float:
    """Seconds that something takes."""
    start = time.monotonic()
    work()
    return time.monotonic() - start


def best(work: Callable[[], object], tries: int = 3) -> float:
    """The quickest of several tries: noise only ever adds."""
    return min(timed(work) for _ in range(tries))


if __name__ == "__main__":
    sys.exit(main())
