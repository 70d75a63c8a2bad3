# SPDX-License-Identifier: GPL-3.0-or-later
"""A lab has one owner, and nothing of it outlives that owner unless it is kept on purpose."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from edpm_lab import labs, places
from edpm_lab.errors import LabError

#: A program that opens a lab, starts a process in it, says the process's number, and then waits to be ended.
OWNER = """
import sys, time
from pathlib import Path
from edpm_lab import labs
with labs.opened("mine", kept=sys.argv[1] == "kept") as lab:
    process = lab.start("sleeper", ["sleep", "300"], log=lab.folder / "log")
    print(process.pid, flush=True)
    time.sleep(300 if sys.argv[1] == "own" else 0)
"""

#: A program whose first thread ends while another has not, as it may be for a moment when a process is killed.
FIRST_THREAD_ENDED = """
import ctypes, os, threading, time
from pathlib import Path

def rest():
    while Path(f"/proc/{os.getpid()}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
        time.sleep(0.01)
    print("ended", flush=True)
    time.sleep(300)

threading.Thread(target=rest).start()
ctypes.CDLL(None).pthread_exit(None)
"""


@pytest.fixture
def removed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of labs that the removers were called for."""
    names: list[str] = []
    monkeypatch.setattr(labs, "REMOVERS", [names.append])
    return names


def test_a_lab_is_gone_after_its_owner_is_done(removed: list[str]) -> None:
    with labs.opened("mine") as lab:
        assert labs.names() == ["mine"]
        process = lab.start("sleeper", ["sleep", "300"], log=lab.folder / "log")
    assert labs.names() == []
    assert removed == ["mine"]
    assert not is_alive(process.pid)


def test_a_lab_is_gone_after_a_fault_inside_it(removed: list[str]) -> None:
    with pytest.raises(ZeroDivisionError), labs.opened("mine"):
        _ = 1 / 0
    assert (labs.names(), removed) == ([], ["mine"])


def test_a_lab_in_use_is_refused_with_the_number_of_its_owner() -> None:
    with started_owner("own") as owner:
        with pytest.raises(LabError, match=rf"^the lab mine is in use by process {owner.pid}; wait .* --name$"):
            labs.close("mine")
        with pytest.raises(LabError, match="in use"), labs.opened("mine"):
            pass


def test_two_labs_at_once_do_not_see_each_other(removed: list[str]) -> None:
    with labs.opened("one"), labs.opened("two"):
        assert labs.names() == ["one", "two"]
    assert removed == ["two", "one"]


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_what_a_killed_owner_left_dies_and_is_swept_by_the_next_lab(
    end: signal.Signals, removed: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    with started_owner("own") as owner:
        os.kill(owner.pid, end)
        owner.wait(30)
        assert_dies(owner.sleeper)
    assert labs.names() == ["mine"]
    with labs.opened("another"):
        assert labs.names() == ["another"]
    assert removed == ["mine", "another"]
    assert "removing the lab mine, which a run that was cut off left behind" in capfd.readouterr().err


def test_a_kept_lab_stays_until_it_is_closed(removed: list[str]) -> None:
    with started_owner("kept") as owner:
        owner.wait(30)
        with labs.opened("another"):
            pass
        assert labs.names() == ["mine"]
        assert is_alive(owner.sleeper)
        sentence = r"^the lab mine is kept running; take it down first with: edpm-lab down --name mine$"
        with pytest.raises(LabError, match=sentence), labs.opened("mine"):
            pass
        labs.close("mine")
        assert_dies(owner.sleeper)
    assert labs.names() == []
    assert removed == ["another", "mine"]


def test_a_process_has_not_ended_before_its_last_thread_has() -> None:
    with labs.opened("mine") as lab:
        log = lab.folder / "log"
        lab.start("half", [sys.executable, "-c", FIRST_THREAD_ENDED], log=log)
        limit = time.monotonic() + 60
        while "ended" not in log.read_text():
            assert time.monotonic() < limit, log.read_text()
            time.sleep(0.05)
        assert lab.runs("half")
        lab.end("half", at_once=True)
        assert not lab.runs("half")


def test_a_process_that_merely_has_the_number_of_one_of_ours_is_left_alone() -> None:
    stranger = subprocess.Popen(["sleep", "300"])
    try:
        with labs.opened("mine") as lab:
            (lab.folder / "processes").mkdir()
            record = f'{{"what": "old", "pid": {stranger.pid}, "started": "an-earlier-boot/42"}}'
            (lab.folder / "processes" / "old.json").write_text(record)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.parametrize("name", ["", "Upper", "a b", "../up", "x" * 40, "-dash"])
def test_a_name_that_cannot_be_a_labs_is_refused(name: str) -> None:
    with pytest.raises(LabError, match="cannot name a lab"), labs.opened(name):
        pass
    assert not places.labs().exists() or not any(places.labs().iterdir())


@dataclass(frozen=True)
class Owner:
    """A process that owns a lab, and the number of the process that it started there."""

    process: subprocess.Popen[str]
    sleeper: int

    @property
    def pid(self) -> int:
        return self.process.pid

    def wait(self, seconds: float) -> None:
        self.process.wait(seconds)


@contextmanager
def started_owner(how: str) -> Iterator[Owner]:
    with subprocess.Popen([sys.executable, "-c", OWNER, how], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            owner = Owner(process, int(process.stdout.readline()))
            _until_tied(owner.sleeper)
            yield owner
        finally:
            process.kill()


def _until_tied(pid: int) -> None:
    """Wait until the program itself runs: what comes before it has tied it to its owner by then."""
    limit = time.monotonic() + 30
    while Path(f"/proc/{pid}/comm").read_text().strip() != "sleep":
        assert time.monotonic() < limit, f"process {pid} never became what it was started for"
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def assert_dies(pid: int) -> None:
    limit = time.monotonic() + 30
    while is_alive(pid):
        assert time.monotonic() < limit, f"process {pid} is still there"
        time.sleep(0.02)
