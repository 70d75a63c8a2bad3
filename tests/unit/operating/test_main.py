# SPDX-License-Identifier: GPL-3.0-or-later
"""The process around the passes: what ends it, what keeps it alive, and how it holds the lease."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.model import Reference
from ansible_collections.edpm.services.plugins.plugin_utils._kube.errors import UnreachableError
from ansible_collections.edpm.services.plugins.plugin_utils._operator import main
from ansible_collections.edpm.services.plugins.plugin_utils._operator.main import STUCK_AFTER, Operator
from ansible_collections.edpm.services.plugins.plugin_utils._operator.passes import Done
from ansible_collections.edpm.services.plugins.plugin_utils._operator.settings import OperatorSettings

NOTHING = Done(None, frozenset(), frozenset())


class Ended(BaseException):
    """The process would be gone now."""


class FakeConnection:
    """Leads nowhere."""

    def __init__(self, _settings: object) -> None:
        self.server = "nowhere"

    def __enter__(self) -> FakeConnection:
        return self

    def __exit__(self, *_ending: type[BaseException] | BaseException | TracebackType | None) -> None: ...


class FakeLease:
    """Answers what it is told to, once for each time that it is asked; the last answer stays."""

    def __init__(self, *answers: Callable[[], bool]) -> None:
        self.answers = list(answers)
        self.asked = 0

    def hold(self) -> bool:
        self.asked += 1
        return self.answers.pop(0)() if len(self.answers) > 1 else self.answers[0]()

    def release(self) -> None: ...


class FakePages:
    def shutdown(self) -> None: ...


def yes() -> bool:
    return True


def no() -> bool:
    return False


def unreachable() -> bool:
    raise UnreachableError("The server does not answer.")


def hangs() -> bool:
    time.sleep(1.5)
    return True


def hangs_long() -> bool:
    time.sleep(5)
    return True


@pytest.fixture(autouse=True)
def codes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """With which codes the process has ended by itself."""
    found: list[int] = []

    def leave(code: int) -> None:
        found.append(code)
        raise Ended

    monkeypatch.setattr(os, "_exit", leave)
    monkeypatch.setattr(logging, "shutdown", lambda: None)
    return found


def operator(monkeypatch: pytest.MonkeyPatch, lease: FakeLease, once: Callable[[], Done], **more: float) -> Operator:
    settings = OperatorSettings(namespaces=("openstack",), **more)  # type: ignore[arg-type]  # numbers alone are given
    made = Operator(settings)
    monkeypatch.setattr(main, "Connection", FakeConnection)
    monkeypatch.setattr(main, "Lease", lambda *_about: lease)
    monkeypatch.setattr(main, "serve", lambda *_about: FakePages())
    monkeypatch.setattr(made._passes, "once", once)
    return made


async def ending(one: Operator, seconds: float = 10.0) -> int:
    return await asyncio.wait_for(one.run(), seconds)


def test_a_pass_that_breaks_ends_the_process_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, codes: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> Done:
        raise KeyError("shards.json")

    with pytest.raises(Ended):
        asyncio.run(ending(operator(monkeypatch, FakeLease(yes), broken)))
    assert codes == [1]
    assert "The operator cannot go on (KeyError: 'shards.json'); it ends, to be started anew." in caplog.text


def test_a_signal_ends_it_in_peace(monkeypatch: pytest.MonkeyPatch, codes: list[int]) -> None:
    async def signalled() -> int:
        one = operator(monkeypatch, FakeLease(yes), lambda: NOTHING)
        asyncio.get_running_loop().call_later(0.2, one._stop.set)
        return await ending(one)

    assert asyncio.run(signalled()) == 0
    assert codes == []


def test_what_was_told_to_stop_stops_also_where_nobody_cancels_it(monkeypatch: pytest.MonkeyPatch) -> None:
    lease = FakeLease(yes)
    one = operator(monkeypatch, lease, lambda: NOTHING, lease_duration=1, settle=0.0)

    async def stopped() -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(0.3, one._stop.set)
        loop.call_later(0.3, one._wake.set)
        kept = one._keep(lease)  # type: ignore[arg-type]  # it has what is asked of a lease
        await asyncio.wait_for(asyncio.gather(one._work(), kept), 5)

    asyncio.run(stopped())


@pytest.mark.parametrize(
    ("known", "found", "again"),
    [("", "a", True), ("a", "ab", True), ("ab", "ab", False), ("ab", "a", False)],
)
def test_secrets_that_a_pass_has_come_to_know_are_read_once_more(
    monkeypatch: pytest.MonkeyPatch, known: str, found: str, again: bool
) -> None:
    def named(names: str) -> Done:
        return Done(None, frozenset(Reference("Secret", "openstack", name) for name in names), frozenset())

    one = operator(monkeypatch, FakeLease(yes), lambda: named(found))
    asyncio.run(one._passed())
    assert not one._wake.is_set(), "the watch has not begun, and its first list has all that happens until then"
    one._read.set()
    one._done = named(known)
    asyncio.run(one._passed())
    assert one._wake.is_set() is again


def test_a_cluster_that_fails_is_asked_again_and_is_a_sign_of_life(
    monkeypatch: pytest.MonkeyPatch, codes: list[int]
) -> None:
    def failing() -> Done:
        raise UnreachableError("The server does not answer.")

    one = operator(monkeypatch, FakeLease(yes), failing)
    one._sign = 0.0
    assert asyncio.run(one._passed()) is False
    assert one._sign > 0.0
    assert codes == []


@pytest.mark.parametrize(("silent", "alive"), [(STUCK_AFTER + 3500, True), (STUCK_AFTER + 3700, False)])
def test_a_quiet_cluster_is_no_sign_of_a_stuck_process(
    monkeypatch: pytest.MonkeyPatch, silent: float, alive: bool
) -> None:
    one = operator(monkeypatch, FakeLease(yes), lambda: NOTHING, resync=3600.0)
    one._sign = time.monotonic() - silent
    assert (one._alive() == "") is alive


class TestTheLease:
    async def keep(self, one: Operator, lease: FakeLease, seconds: float) -> None:
        one._renewed = time.monotonic()
        await asyncio.wait_for(one._keep(lease), seconds)  # type: ignore[arg-type]  # it has what is asked of a lease

    def test_one_that_another_has_ends_the_process(self, monkeypatch: pytest.MonkeyPatch, codes: list[int]) -> None:
        lease = FakeLease(no)
        one = operator(monkeypatch, lease, lambda: NOTHING, lease_duration=1)
        with pytest.raises(Ended):
            asyncio.run(self.keep(one, lease, 5))
        assert (codes, lease.asked) == ([1], 1)

    def test_a_request_that_hangs_ends_it_before_another_may_take_the_lease(
        self, monkeypatch: pytest.MonkeyPatch, codes: list[int], caplog: pytest.LogCaptureFixture
    ) -> None:
        lease = FakeLease(hangs_long)
        one = operator(monkeypatch, lease, lambda: NOTHING, lease_duration=4)

        async def timed() -> float:
            begun = time.monotonic()
            with pytest.raises(Ended):
                await self.keep(one, lease, 20)
            return time.monotonic() - begun

        assert asyncio.run(timed()) < 4.0
        assert codes == [1]
        assert "is lost; another may work now" in caplog.text

    def test_one_failure_in_time_is_none(self, monkeypatch: pytest.MonkeyPatch, codes: list[int]) -> None:
        lease = FakeLease(unreachable, yes, yes, yes, no)
        pauses: list[float] = []
        at_once = asyncio.sleep

        def soon(seconds: float) -> Coroutine[Any, Any, None]:
            pauses.append(seconds)
            return at_once(0)

        one = operator(monkeypatch, lease, lambda: NOTHING, lease_duration=60)
        monkeypatch.setattr(asyncio, "sleep", soon)
        with pytest.raises(Ended):
            asyncio.run(self.keep(one, lease, 30))
        assert (codes, lease.asked) == ([1], 5), "not at the failure, but when another had it"
        assert set(pauses) == {12}

    def test_its_time_counts_from_before_it_was_asked_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        lease = FakeLease(hangs)
        one = operator(monkeypatch, lease, lambda: NOTHING)
        assert asyncio.run(one._acquired(lease))  # type: ignore[arg-type]  # it has what is asked of a lease
        assert time.monotonic() - one._renewed > 1.4


@pytest.fixture(autouse=True)
def heard(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="edpm.operator")
