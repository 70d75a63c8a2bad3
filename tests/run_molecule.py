# SPDX-License-Identifier: GPL-3.0-or-later
"""Run Molecule's scenarios, or those that are named, and say how each went."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache

from edpm_lab import build

from tests.side_by_side import ROOT, Job, run, verdict

#: Those that need no containers.
WITHOUT_NODES = ("cluster",)


def jobs(names: Sequence[str] = ()) -> list[Job]:
    """Those that are named, or all."""
    return [
        Job(f"molecule-{name}", ["molecule", "test", "-s", name], str if name in WITHOUT_NODES else _hindrance)
        for name in names or sorted(file.parent.name for file in (ROOT / "extensions/molecule").glob("*/molecule.yml"))
    ]


@cache
def _hindrance() -> str:
    return build.not_on_this_host().get("images", "")


if __name__ == "__main__":
    sys.exit(verdict(run(jobs(sys.argv[1:]))))
