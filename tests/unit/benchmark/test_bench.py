# SPDX-License-Identifier: GPL-3.0-or-later
"""The benchmark fails where a limit is broken or something could not be measured, and its last line says which."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import GENERATION
from ansible_collections.edpm.services.plugins.module_utils._node.travel import written
from edpm_lab.errors import NotOnThisHost

from tests.benchmark import bench, node_side
from tests.benchmark.figures import SHORT, Figure, in_turns, medians

Run = Callable[..., tuple[int, str]]


def within(_lab: object) -> Iterator[Figure]:
    yield Figure("quick", 1.0, "other", 2.0, 1)


def without_limit(_lab: object) -> Iterator[Figure]:
    yield Figure("free", 9.0, "other", 2.0)


def over(_lab: object) -> Iterator[Figure]:
    yield Figure("slow", 3.0, "other", 2.0, 1)


def elsewhere(_lab: object) -> Iterator[Figure]:
    raise NotOnThisHost("no podman")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run these benchmarks; the answer is the exit code and the last line."""
    monkeypatch.setattr(bench, "TREE", tmp_path)
    monkeypatch.setattr("tests.benchmark.bench.labs.opened", lambda _name: nullcontext())

    def ran(*benchmarks: Callable[[object], Iterator[Figure]], chosen: tuple[str, ...] = ()) -> tuple[int, str]:
        monkeypatch.setattr(bench, "BENCHMARKS", benchmarks)
        code = bench.main(list(chosen))
        return code, capsys.readouterr().out.splitlines()[-1]

    return ran


def test_it_passes_where_all_limits_hold(run: Run, tmp_path: Path) -> None:
    assert run(within, without_limit) == (0, "all limits hold")
    assert set(json.loads((tmp_path / "build/bench.json").read_text())) == {"quick", "free"}


def test_it_fails_where_a_limit_is_broken(run: Run) -> None:
    assert run(within, over) == (1, "IS BROKEN: slow")


def test_it_fails_where_something_was_not_run(run: Run) -> None:
    assert run(elsewhere, within, over) == (1, "IS BROKEN: slow; NOT RUN: elsewhere")


def test_it_judges_only_what_was_chosen(run: Run) -> None:
    assert run(within, over, chosen=("within",)) == (0, "all limits hold")


def test_it_fails_where_there_is_no_such_benchmark(run: Run) -> None:
    assert run(within, over, chosen=("wihtin",)) == (1, "there is no wihtin; there are within, over")


def test_medians_are_the_runs_in_the_middle_of_those_that_count_and_all_take_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, turns = [0.0], []

    def work(name: str, times: tuple[float, ...], run: int) -> None:
        now[0] += times[run]
        turns.append((run, name))

    monkeypatch.setattr("tests.benchmark.figures.time.monotonic", lambda: now[0])
    ways = {"one": partial(work, "one", (90.0, 5.0, 1.0, 2.0)), "two": partial(work, "two", (90.0, 3.0, 3.0, 8.0))}
    assert medians(ways, 3) == {"one": 2.0, "two": 3.0}
    assert turns == [(run, name) for run in range(4) for name in ways]


def test_tries_are_taken_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    now, turns = [0.0], []

    def work(name: str, times: list[float]) -> None:
        now[0] += times.pop(0)
        turns.append(name)

    monkeypatch.setattr("tests.benchmark.figures.time.monotonic", lambda: now[0])
    ways = {"one": partial(work, "one", [3.0, 1.0, 2.0]), "two": partial(work, "two", [4.0, 6.0, 5.0])}
    assert in_turns(ways, 3) == {"one": [3.0, 1.0, 2.0], "two": [4.0, 6.0, 5.0]}
    assert turns == ["one", "two"] * 3


def test_what_is_short_has_several_turns_in_a_round_and_nothing_is_done_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    now, turns = [0.0], []

    def work(name: str, run: int) -> None:
        now[0] += run
        turns.append((name, run))

    monkeypatch.setattr("tests.benchmark.figures.time.monotonic", lambda: now[0])
    ways = {name: partial(work, name) for name in ("short", "long", "brief")}
    counted = range(SHORT, 3 * SHORT)
    middle = sum(counted) / len(counted)
    assert medians(ways, 2, short=["short", "brief"]) == {"short": middle, "brief": middle, "long": 1.5}
    assert turns == [
        turn
        for number in range(3)
        for turn in (
            *((name, SHORT * number + one) for one in range(SHORT) for name in ("short", "brief")),
            ("long", number),
        )
    ]


def test_each_run_brings_files_of_a_generation_of_its_own_and_restarts_nothing() -> None:
    first, second = (node_side._generation("image", run) for run in (1, 2))
    assert first.digest != second.digest
    assert len(first.files) == node_side.FILES
    assert (first.live, first.restart) == ((), "never")
    assert f"{GENERATION}/conf.d" in first.units["edpm_bench.container"]
    assert written(first) != written(second)


@pytest.mark.parametrize(
    ("slower", "alone", "holds"),
    [
        (1, 2.8, [True, True]),
        (1, 2.9, [False, False]),
        (2, 2.8, [True, True]),
        (2, 5.6, [False, True]),
        (2, 5.8, [False, False]),
        (0.5, 2.8, [True, False]),
    ],
)
def test_the_communitys_time_counts_as_it_was_and_as_it_would_be_on_this_machine(
    slower: float, alone: float, holds: list[bool]
) -> None:
    once, now, call = node_side.beside_the_community(alone, slower * node_side.COMMUNITY_CALL)
    assert [once.holds, now.holds] == holds
    assert (once.reference, now.reference, call.limit) == (86, slower * 86, None)
    assert len({once.name, now.name, call.name}) == 3, "the figures for programs go by their names"
