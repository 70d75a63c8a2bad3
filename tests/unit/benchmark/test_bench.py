# SPDX-License-Identifier: GPL-3.0-or-later
"""The benchmark fails where a limit is broken or something could not be measured, and its last line says which."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import GENERATION
from ansible_collections.edpm.services.plugins.module_utils._node.travel import written
from edpm_lab.errors import NotOnThisHost

from tests.benchmark import bench, node_side
from tests.benchmark.figures import Figure, median

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


def test_a_median_is_the_run_in_the_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter((0.0, 5.0, 10.0, 11.0, 20.0, 22.0))
    monkeypatch.setattr("tests.benchmark.figures.time.monotonic", lambda: next(clock))
    assert median([lambda: None] * 3) == 2.0


def test_each_run_brings_files_of_a_generation_of_its_own_and_restarts_nothing() -> None:
    first, second = (node_side._generation("image", run) for run in (1, 2))
    assert first.digest != second.digest
    assert len(first.files) == node_side.FILES
    assert (first.live, first.restart) == ((), "never")
    assert f"{GENERATION}/conf.d" in first.units["edpm_bench.container"]
    assert written(first) != written(second)
