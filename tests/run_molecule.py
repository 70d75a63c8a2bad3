# SPDX-License-Identifier: GPL-3.0-or-later
"""Run Molecule's scenarios, or those that are named, and say how each went."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from edpm_lab import build

from tests.side_by_side import BIN, ROOT, Job, run, verdict

#: Those that need no containers.
WITHOUT_NODES = ("cluster",)


def main(names: Sequence[str]) -> int:
    """Run those that are named, or all."""
    reason = build.not_on_this_host().get("images", "")
    chosen = names or sorted(file.parent.name for file in (ROOT / "extensions/molecule").glob("*/molecule.yml"))
    return verdict(run([_job(name, reason) for name in chosen]))


def _job(name: str, reason: str) -> Job:
    return Job(f"molecule-{name}", [BIN / "molecule", "test", "-s", name], "" if name in WITHOUT_NODES else reason)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
