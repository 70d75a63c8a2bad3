# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the tests of a folder in groups, each in a process and a lab of its own, and say how each went.

A group is a folder or a file, or several that share what takes a while to start, such as OpenStack's control plane.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from tests.side_by_side import ROOT, Job, run, verdict

#: Groups of more than one place, those that take longest first.
TOGETHER = {
    "tests/integration": {
        "scale": ("control/test_scale.py",),
        "control": ("control",),
        "reading": ("cluster", "inventory", "plan", "report", "lab"),
    },
    "tests/e2e": {
        "cloud": ("cloud", "test_compute_service.py", "test_lab_cloud.py"),
        "pods": ("jobs", "operator"),
        "lab": ("test_lab_nodes.py", "test_lab_cluster.py"),
    },
}

#: Its tests print what OpenStack and the nodes answered, which is shown of those that passed, too.
ANSWERING = "tests/e2e"


def jobs(folder: str) -> list[Job]:
    """All groups of a folder."""
    return [_job(folder, name, places) for name, places in _groups(folder)]


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
    others = (other for group in TOGETHER.get(folder, {}).values() for other in group)
    apart = (f"--ignore={folder}/{other}" for other in others if other.rpartition("/")[0] in places)
    shown = ["-rP"] if folder == ANSWERING else []
    words = ["pytest", "--durations=15", *shown, *apart, *(f"{folder}/{place}" for place in places)]
    return Job(f"{Path(folder).name}-{name}", words)


if __name__ == "__main__":
    sys.exit(verdict(run(jobs(sys.argv[1]))))
