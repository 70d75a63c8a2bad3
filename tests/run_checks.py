# SPDX-License-Identifier: GPL-3.0-or-later
"""Run every check while the lab's parts are built beside the first of them, and say how each went.

A check that fails does not keep the later ones from running; the exit code counts them all.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from edpm_lab.command import tied

from tests.side_by_side import ROOT, Job, Outcome, run

BUILD_LOG = ROOT / "build/lab-build.log"
STATIC = ("test-unit", "lint", "docs")
ON_THE_LAB = ("test-integration", "test-molecule", "test-e2e")


def main() -> int:
    """Run all, print the table, and give the number of failed checks as the verdict."""
    began = time.monotonic()
    BUILD_LOG.parent.mkdir(exist_ok=True)
    with BUILD_LOG.open("w") as log:
        builder = subprocess.Popen(
            [*tied(), Path(sys.executable).parent / "edpm-lab", "build"],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        outcomes = run([Job(check, ["make", "--no-print-directory", check]) for check in STATIC])
        outcomes.append(_wait_for(builder))
        outcomes += [_make(check) for check in ON_THE_LAB]
    finally:
        if builder.poll() is None:
            builder.terminate()
            builder.wait()
    failed = [outcome for outcome in outcomes if not outcome.passed]
    print("\n" + "\n".join(map(str, outcomes)))
    print(f"all of it in {time.monotonic() - began:.0f} s")
    print(f"checks: {len(outcomes) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


def _make(check: str) -> Outcome:
    print(f"\n===== {check}", flush=True)
    start = time.monotonic()
    code = subprocess.run(["make", "--no-print-directory", check], cwd=ROOT, check=False).returncode
    return Outcome(check, code == 0, time.monotonic() - start)


def _wait_for(builder: subprocess.Popen[bytes]) -> Outcome:
    """Show what the build beside the static checks has to tell, from its beginning to its end."""
    print("\n===== the lab's parts, built beside the checks above", flush=True)
    start = time.monotonic()
    with BUILD_LOG.open() as log:
        while builder.poll() is None:
            sys.stdout.write(log.read())
            sys.stdout.flush()
            time.sleep(1)
        sys.stdout.write(log.read())
    if builder.returncode != 0 and os.environ.get("STRICT") != "1":
        print("the checks that need these parts will say what they miss")
    return Outcome("build of the lab", builder.returncode == 0, time.monotonic() - start)


if __name__ == "__main__":
    sys.exit(main())
