# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks run in lanes: all of them once, the long ones first, and one lane does the patient ones before."""

from __future__ import annotations

import signal
import sys
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from tests import run_checks, run_molecule, run_pytest, side_by_side
from tests.side_by_side import Job, Outcome, run

TELL = "import os, sys; print(sys.argv[1], os.nice(0), os.environ.get('PYTHONDONTWRITEBYTECODE'))"


@pytest.fixture(autouse=True)
def quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_by_side, "LOGS", tmp_path)
    monkeypatch.setattr(signal, "signal", lambda *_: None)


def jobs(*names: str) -> list[Job]:
    return [Job(name, [sys.executable, "-c", TELL, name]) for name in names]


def told(folder: Path, name: str) -> list[str]:
    return (folder / f"{name}.log").read_text().split()


@pytest.mark.parametrize(
    ("processors", "gibibytes", "wanted"),
    [(1, 2, 2), (1, 24, 2), (2, 24, 3), (2, 11.7, 2), (3, 24, 4), (3, 15.6, 3), (8, 7.7, 2), (64, 512, 4)],
)
def test_as_many_run_at_a_time_as_the_host_has_processors_and_memory_for(
    processors: int, gibibytes: float, wanted: int
) -> None:
    assert side_by_side.lanes(processors, gibibytes) == wanted


@pytest.mark.parametrize("width", [1, 2, 3])
def test_every_job_runs_and_is_told_of_in_the_order_of_the_list(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_by_side, "WIDTH", width)
    names = ["one", "two", "three", "four", "five"]
    assert [(one.name, one.passed) for one in run(jobs(*names))] == [(name, True) for name in names]


def test_a_patient_one_gives_way_to_the_others_and_only_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_by_side, "WIDTH", 2)
    first, second, last = jobs("first", "second", "last")
    run([first, second, replace(last, patient=True)])
    own = int(told(tmp_path, "first")[1])
    assert [int(told(tmp_path, name)[1]) for name in ("second", "last")] == [own, min(19, own + 10)]


def test_one_lane_does_the_patient_ones_and_then_as_the_others_the_longest(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(side_by_side, "WIDTH", 2)
    over = Event()
    long, middle, short, slow, last = jobs("long", "middle", "short", "slow", "last")

    def wait() -> None:
        assert over.wait(60)

    def end() -> None:
        over.set()

    patient = [replace(one, patient=True) for one in (slow, last)]
    run([replace(long, ready=wait), middle, replace(short, ready=end), *patient])
    begun = [line.split()[1] for line in capsys.readouterr().out.splitlines() if line.endswith("begun")]
    assert begun[:3] == ["last:", "slow:", "middle:"]
    assert sorted(begun[3:]) == ["long:", "short:"]


def test_a_lane_that_is_alone_gives_way_to_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_by_side, "WIDTH", 1)
    first, last = jobs("first", "last")
    run([first, replace(last, patient=True)])
    assert told(tmp_path, "first")[1] == told(tmp_path, "last")[1]


def test_bytecode_is_kept_whatever_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    run(jobs("only"))
    assert told(tmp_path, "only")[2] == "None"


def test_the_long_ones_are_checks_that_there_are() -> None:
    found = [*run_pytest.jobs("tests/integration"), *run_pytest.jobs("tests/e2e"), *run_molecule.jobs()]
    assert set(run_checks.LONG) <= {job.name for job in found}


def test_what_openstack_answered_is_shown_of_tests_that_passed() -> None:
    assert {"-rP" in job.argv for job in run_pytest.jobs("tests/e2e")} == {True}
    assert {"-rP" in job.argv for job in run_pytest.jobs("tests/integration")} == {False}


def test_a_job_has_the_programs_of_its_own_environment(tmp_path: Path) -> None:
    (tmp_path / "tell").write_text("#!/bin/sh\necho its own\n")
    (tmp_path / "tell").chmod(0o755)
    assert run([Job("only", ["tell"], bin=tmp_path)])[0].passed
    assert told(tmp_path, "only") == ["its", "own"]


def test_those_for_the_newest_python_wait_until_it_is_there() -> None:
    waited: list[str] = []

    class Made(Future[Outcome]):
        def result(self, timeout: float | None = None) -> Outcome:
            waited.append("newest")
            return super().result(timeout)

    made = Made()
    made.set_result(Outcome("setup", passed=True))
    job = run_checks.on_newest(Job("one", ["make", "one"], ready=lambda: waited.append("lab")), made)
    job.ready()
    assert (job.bin, waited) == (run_checks.NEWEST_BIN, ["newest", "lab"])
    assert job.argv == ["make", "one", f"BIN={run_checks.NEWEST_BIN}"]
    assert run_checks.on_newest(Job("two", ["pytest"]), made).argv == ["pytest"]


def test_those_for_the_newest_python_are_checks_that_there_are() -> None:
    found = [*run_pytest.jobs("tests/integration"), *run_pytest.jobs("tests/e2e")]
    assert set(run_checks.NEWEST) <= {*run_checks.STATIC, *(job.name for job in found)}
