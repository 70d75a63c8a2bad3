# SPDX-License-Identifier: GPL-3.0-or-later
"""How fast things are, as ratios inside one run: machines differ and are shared, a ratio travels.

Each measurement is a pair: what is measured and what it is compared with, both taken here and now, the best of
several tries or the one in their middle. The table goes to the terminal, the same figures to build/bench.json. The last
line tells what is wrong: a limit that is broken, or a benchmark that this host cannot run. With either, it fails.

With names of benchmarks, only those run: `python -m tests.benchmark.bench live manifests` at the root of the tree.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from edpm_lab import labs
from edpm_lab.errors import NotOnThisHost

from tests.benchmark import control_side, jobs_side, lab_side, node_side, read_side
from tests.benchmark.figures import Figure, data, text

TREE = Path(__file__).resolve().parents[2]
BENCHMARKS = (
    read_side.live,
    read_side.manifests,
    control_side.reconciling,
    lab_side.definitions,
    lab_side.nodes,
    node_side.copies,
    node_side.deployments,
    jobs_side.jobs,
)


def main(chosen: list[str]) -> int:
    """Measure, print, write, judge."""
    if unknown := sorted(set(chosen) - {benchmark.__name__ for benchmark in BENCHMARKS}):
        print(f"there is no {', '.join(unknown)}; there are {', '.join(one.__name__ for one in BENCHMARKS)}")
        return 1
    figures: list[Figure] = []
    not_run: list[str] = []
    with labs.opened(f"bench-{os.getpid()}") as lab:
        for benchmark in BENCHMARKS:
            if chosen and benchmark.__name__ not in chosen:
                continue
            try:
                figures += benchmark(lab)
            except NotOnThisHost as reason:
                not_run.append(benchmark.__name__)
                print(f"NOT RUN: {benchmark.__name__}: {reason}")
    print(text(figures))
    out = TREE / "build/bench.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(data(figures), indent=2, ensure_ascii=False) + "\n")
    print(f"\nwritten to {out.relative_to(TREE)}")
    broken = [figure.name for figure in figures if not figure.holds]
    print(_verdict(broken, not_run))
    return int(bool(broken or not_run))


def _verdict(broken: Sequence[str], not_run: Sequence[str]) -> str:
    faults = [f"IS BROKEN: {name}" for name in broken] + [f"NOT RUN: {name}" for name in not_run]
    return "; ".join(faults) or "all limits hold"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
