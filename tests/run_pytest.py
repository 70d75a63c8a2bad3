# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the tests of a folder in groups, each in a process and a lab of its own, and say how each went.

A group is a folder or a file, or several that share what takes a while to start, such as OpenStack's control plane.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from tests.side_by_side import BIN, ROOT, Job, run, verdict

#: Groups of more than one place, those that take longest first.
TOGETHER = {
    "tests/integration": {
        "control": ("control",),
        "reading": ("cluster", "inventory", "plan", "report", "lab"),
    },
    "tests/e2e": {
        "cloud": ("cloud", "test_compute_service.py", "test_lab_cloud.py"),
        "lab": ("test_lab_nodes.py", "test_lab_cluster.py"),
        "pods": ("jobs", "operator"),
    },
}


def main(folder: str) -> int:
    """Run all groups of a folder."""
    return verdict(run([_job(folder, name, places) for name, places in _groups(folder)]))


def _groups(folder: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    together = TOGETHER.get(folder, {})
    yield from together.items()
    grouped = {place for places in together.values() for place in places}
    for path in sorted((ROOT / folder).iterdir()):
        if path.name not in grouped and _has_tests(path):
            yield path.stem.removeprefix("test_"), (path.name,)


def _has_tests(path: Path) -> bool:
    return next(path.rglob("test_*.py"), None) is not None if path.is_dir() else path.match("test_*.py")


def _job(folder: str, name: str, places: tuple[str, ...]) -> Job:
    words: list[str | Path] = [BIN / "pytest", "--durations=15", *(f"{folder}/{place}" for place in places)]
    return Job(f"{Path(folder).name}-{name}", words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
