# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs several test commands, a few at a time, and says how each went.

Each has a lab of its own, so they do not meet. Those that take longest are begun first, so that all end at about the
same time; one lane does the patient ones of the list's end before, with what the others leave of the processors. What
one printed is shown when it has ended, and kept in build/logs. TEST_JOBS says how many run at a time; else the host's
size does.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from edpm_lab.command import tied

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
LOGS = ROOT / "build/logs"
#: What the largest check takes of the memory, in GiB.
_LARGEST = 4


def lanes(processors: int, gibibytes: float) -> int:
    """How many checks run at a time on a host of that size: one more than processors, since each waits now and then."""
    return max(2, min(4, processors + 1, int(gibibytes / _LARGEST)))


def _lanes_here() -> int:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return lanes(len(os.sched_getaffinity(0)), memory)


WIDTH = int(os.environ.get("TEST_JOBS") or _lanes_here())
#: Before the commands that give way to the others.
PATIENTLY = ("nice", "-n", "10")
#: Bytecode that nobody keeps is compiled anew by each of some thousand processes.
UNWANTED = ("PYTHONDONTWRITEBYTECODE",)


@dataclass(frozen=True)
class Job:
    """A command that begins when `ready` returns, unless `hindrance` says why it cannot run on this host.

    Its programs are those of the environment whose folder of programs is `bin`. A `patient` one waits for nothing, and
    nothing in it depends on time.
    """

    name: str
    argv: Sequence[str]
    hindrance: Callable[[], str] = str
    ready: Callable[[], object] = bool
    bin: Path = BIN
    patient: bool = False


@dataclass(frozen=True)
class Outcome:
    """How one went."""

    name: str
    passed: bool
    seconds: float = 0
    reason: str = ""

    def __str__(self) -> str:
        told = "not run" if self.reason else "passed" if self.passed else "FAILED"
        return f"{self.name:<28}{told:<8}{self.reason or f'{self.seconds:6.0f} s'}"


def run(jobs: Sequence[Job]) -> list[Outcome]:
    """Run all, print what each printed as soon as it has ended, and then a table."""
    # The commands are tied to this process: they end with it, and take their labs down.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(1))
    waiting, ended, one_takes = deque(jobs), dict[str, Outcome](), Lock()

    def lane(number: int) -> None:
        while True:
            with one_takes:
                if not waiting:
                    return
                patiently = waiting[-1].patient and 0 < number == WIDTH - 1
                job = waiting.pop() if patiently else waiting.popleft()
            ended[job.name] = run_one(job, PATIENTLY if patiently else ())

    with ThreadPoolExecutor(WIDTH) as pool:
        list(pool.map(lane, range(WIDTH)))
    outcomes = [ended[job.name] for job in jobs]
    print("\n" + "\n".join(map(str, outcomes)), flush=True)
    return outcomes


def run_one(job: Job, before: Sequence[str] = ()) -> Outcome:
    """Run it, with words before its command, and print what it printed."""
    job.ready()
    if reason := job.hindrance():
        return Outcome(job.name, passed=False, reason=reason)
    LOGS.mkdir(parents=True, exist_ok=True)
    print(f"== {job.name}: begun", flush=True)
    began = time.monotonic()
    log = LOGS / f"{job.name}.log"
    with log.open("w") as out:
        code = subprocess.run(
            [*tied(), *before, *job.argv],
            cwd=ROOT,
            env={**_environment(), "PATH": f"{job.bin}:{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
        ).returncode
    outcome = Outcome(job.name, code == 0, time.monotonic() - began)
    print(f"\n== {job.name}\n{log.read_text(errors='replace')}\n{outcome}", flush=True)
    return outcome


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in UNWANTED}


def verdict(outcomes: Sequence[Outcome]) -> int:
    """The exit code. What this host cannot run counts only under STRICT=1."""
    strict = os.environ.get("STRICT") == "1"
    return int(any(not one.passed and (strict or not one.reason) for one in outcomes))
