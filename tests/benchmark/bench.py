# SPDX-License-Identifier: GPL-3.0-or-later
"""How fast things are, as ratios inside one run: machines differ and are shared, a ratio travels.

Each measurement is a pair: what is measured and what it is compared with, both taken here and now, the best of
several tries. The table goes to the terminal, the same figures to build/bench.json.

With names of benchmarks, only those run: `python -m tests.benchmark.bench live manifests` at the root of the tree.
"""

from __future__ import annotations

import json
import os
import sys
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
    """Measure, print, write."""
    figures: list[Figure] = []
    with labs.opened(f"bench-{os.getpid()}") as lab:
        for benchmark in BENCHMARKS:
            if chosen and benchmark.__name__ not in chosen:
                continue
            try:
                figures += benchmark(lab)
            except NotOnThisHost as reason:
                print(f"NOT RUN: {benchmark.__name__}: {reason}")
    print(text(figures))
    out = TREE / "build/bench.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(data(figures), indent=2, ensure_ascii=False) + "\n")
    print(f"\nwritten to {out.relative_to(TREE)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
