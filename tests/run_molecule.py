# SPDX-License-Identifier: GPL-3.0-or-later
"""Run Molecule's scenarios, two at a time, and say how each went.

Every scenario has a lab of its own, so they do not meet; much of their time they wait. What one printed is shown when
it has ended, and kept in build/molecule. A scenario whose parts this host cannot run is told, and fails under STRICT=1.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from edpm_lab import build
from edpm_lab.command import tied

ROOT = Path(__file__).resolve().parents[1]
SCENARIOS = ROOT / "extensions/molecule"
LOGS = ROOT / "build/molecule"
BIN = Path(sys.executable).parent
#: Those that need no containers.
WITHOUT_NODES = ("cluster",)
JOBS = int(os.environ.get("MOLECULE_JOBS", "2"))


@dataclass(frozen=True)
class Outcome:
    """How one scenario went; `reason` tells why it was not run."""

    scenario: str
    passed: bool
    seconds: float = 0
    reason: str = ""

    def __str__(self) -> str:
        told = "not run" if self.reason else "passed" if self.passed else "FAILED"
        return f"{self.scenario:<20}{told:<8}{self.reason or f'{self.seconds:6.0f} s'}"


def main(names: Sequence[str]) -> int:
    """Run those that are named, or all."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    LOGS.mkdir(parents=True, exist_ok=True)
    reason = build.not_on_this_host().get("images", "")
    chosen = names or sorted(file.parent.name for file in SCENARIOS.glob("*/molecule.yml"))
    with ThreadPoolExecutor(JOBS) as pool:
        outcomes = list(pool.map(lambda name: _run(name, reason), chosen))
    print("\n" + "\n".join(map(str, outcomes)))
    strict = os.environ.get("STRICT") == "1"
    return int(any(not one.passed and (strict or not one.reason) for one in outcomes))


def _run(name: str, reason: str) -> Outcome:
    if reason and name not in WITHOUT_NODES:
        return Outcome(name, passed=False, reason=reason)
    began = time.monotonic()
    log = LOGS / f"{name}.log"
    with log.open("w") as out:
        code = subprocess.run(
            [*tied(), BIN / "molecule", "test", "-s", name],
            cwd=ROOT,
            env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
        ).returncode
    outcome = Outcome(name, code == 0, time.monotonic() - began)
    print(f"\n== molecule scenario {name}\n{log.read_text(errors='replace')}\n{outcome}", flush=True)
    return outcome


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
