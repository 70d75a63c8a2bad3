# SPDX-License-Identifier: GPL-3.0-or-later
"""Run every check, a few at a time, while the lab's parts are built beside the first of them; say how each went.

A check that fails does not keep the others from running; the exit code counts them all.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

from tests import run_molecule, run_pytest
from tests.side_by_side import LOGS, ROOT, Job, Outcome, run, run_one, verdict

#: They need nothing of the lab, so they are begun from the end of the list while its parts are built.
STATIC = ("lint-ansible", "test-unit", "lint-sanity", "lint-python", "lint-galaxy", "lint-docs", "lint-imports", "docs")
BUILD = "build-of-the-lab"
SETUP = "setup-newest"
NEWEST_BIN = ROOT / ".venv/newest/bin"
#: They run with the newest Python of the host and its ansible-core, the others with those of .venv: so both ends of
#: what the collection supports meet each plugin, playbook and role.
NEWEST = ("integration-reading", "e2e-deploy", "e2e-roles")
#: Those that take longest, in this order: begun late, each would be the only one that runs in the end.
LONG = (
    "e2e-cloud",
    "e2e-pods",
    "e2e-deploy",
    "e2e-services",
    "e2e-node",
    "integration-control",
    "integration-scale",
    "integration-reading",
    "e2e-roles",
    "e2e-tutorial",
    "e2e-lab",
    "e2e-demo",
)


def main() -> int:
    """Run all, print the table, and return the verdict."""
    began = time.monotonic()
    with ThreadPoolExecutor(2) as beside:
        built = beside.submit(run_one, Job(BUILD, ["edpm-lab", "build"]))
        made = beside.submit(run_one, Job(SETUP, ["tests/setup.sh", "newest"]))
        jobs = [*_on_the_lab(built), *_static()]
        outcomes = run([on_newest(job, made) if job.name in NEWEST else job for job in jobs])
        outcomes += [built.result(), made.result()]
    print(*outcomes[-2:], sep="\n")
    failed = sum(not outcome.passed for outcome in outcomes)
    print(f"all of it in {time.monotonic() - began:.0f} s")
    print(f"checks: {len(outcomes) - failed} passed, {failed} failed")
    return verdict(outcomes)


def _static() -> list[Job]:
    return [Job(check, ["make", "--no-print-directory", check], patient=True) for check in reversed(STATIC)]


def _on_the_lab(built: Future[Outcome]) -> list[Job]:
    found = [*run_pytest.jobs("tests/integration"), *run_pytest.jobs("tests/e2e"), *run_molecule.jobs()]
    places = {name: place for place, name in enumerate(LONG)}
    found.sort(key=lambda job: places.get(job.name, len(places)))
    return [replace(job, ready=lambda: _wait_for(built)) for job in found]


def on_newest(job: Job, made: Future[Outcome]) -> Job:
    """The same with the newest Python, as soon as that is there."""

    def ready() -> None:
        made.result()
        job.ready()

    # make puts the programs of BIN before all others.
    words = [f"BIN={NEWEST_BIN}"] if job.argv[0] == "make" else []
    return replace(job, argv=[*job.argv, *words], ready=ready, bin=NEWEST_BIN)


def _wait_for(built: Future[Outcome]) -> None:
    if not built.done():
        print(f"== waiting for the lab's parts; {LOGS / BUILD}.log tells how far they are", flush=True)
    built.result()


if __name__ == "__main__":
    sys.exit(main())
