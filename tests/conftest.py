# SPDX-License-Identifier: GPL-3.0-or-later
"""What every test level shares: a lab of the run's own, and an honest account of what could not run here."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from types import FrameType

import pytest
from edpm_lab import labs
from edpm_lab.errors import NotOnThisHost
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[1]
STRICT = os.environ.get("STRICT") == "1"

# Machines are shared, so no example is too slow; CI tries the same examples each time, people try new ones.
settings.register_profile(
    "edpm", deadline=None, derandomize="CI" in os.environ, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("edpm")

_not_run: dict[str, list[str]] = {}


def pytest_configure() -> None:
    """A run that is told to end ends its lab first, as with Ctrl-C."""

    def end(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)


@pytest.fixture(scope="session")
def lab() -> Iterator[labs.Lab]:
    """A lab that lives as long as this test run and no longer."""
    with labs.opened(f"test-{os.getpid()}") as opened:
        yield opened


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    return (yield from _reporting(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    return (yield from _reporting(item))


def _reporting(item: pytest.Item) -> Generator[None, None, None]:
    try:
        return (yield)
    except NotOnThisHost as reason:
        _not_run.setdefault(str(reason), []).append(item.nodeid)
        if STRICT:
            pytest.fail(f"cannot run on this host, and STRICT=1 asks for it: {reason}", pytrace=False)
        pytest.skip(str(reason))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not _not_run:
        return
    terminalreporter.section("NOT RUN on this host", sep="!", red=True, bold=True)
    for reason, tests in _not_run.items():
        terminalreporter.line(f"{len(tests)} tests: {reason}")
