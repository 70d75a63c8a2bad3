# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a unit's log is told when it does not get well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansible_collections.edpm.services.plugins.module_utils._node.commands import Result
from ansible_collections.edpm.services.plugins.module_utils._node.systemd import Systemd, complaints

AGENT = "neutron.agent.sriov_nic_agent"
CAUSE = "ValueError: Invalid mapping: 'nowhere'"
START = [f"INFO:__main__:step {number} of a start" for number in range(30)]


def log(lines: Sequence[str], since: float = 0) -> tuple[tuple[str, ...], list[str]]:
    asked: list[str] = []

    def run(argv: Sequence[str], _environment: Mapping[str, str]) -> Result:
        asked.extend(argv)
        return Result(0, "\n".join(lines))

    return Systemd(run).log("edpm_agent.service", since), asked


def test_the_cause_is_told_although_the_service_was_started_again_since() -> None:
    told, _asked = log([*START, "CRITICAL agent Invalid mapping: nowhere", *START])
    assert told == ("CRITICAL agent Invalid mapping: nowhere", *START[-19:])


def test_a_log_without_complaints_is_told_by_its_end() -> None:
    assert log(START)[0] == tuple(START[-20:])


def test_no_more_than_half_of_what_is_told_are_earlier_complaints() -> None:
    earlier = [f"agent.Error: {number}" for number in range(50)]
    assert log([*earlier, *START])[0] == (*earlier[-10:], *START[-10:])


def test_a_short_log_is_told_once() -> None:
    assert log(["one", "ERROR two"])[0] == ("one", "ERROR two")


def test_what_was_logged_before_the_start_is_not_asked_for() -> None:
    assert "--since=@1794744012" in log(START, 1794744012.7)[1]


def death(second: int) -> list[str]:
    """What an agent of OpenStack logs when its settings are wrong."""
    at = f"2026-11-17 02:44:{second}.932 2 ERROR {AGENT}"
    frame = ['  File "/usr/lib/neutron.py", line 46, in parse', '    raise ValueError(_("Invalid mapping"))', "    ^^^"]
    lines = ["Traceback (most recent call last):", *frame * 8, CAUSE, ""]
    return [f"{at} [None req-{second} - - - - -] Agent terminated!: {CAUSE}", *(f"{at} {line}" for line in lines)]


def test_of_a_traceback_its_cause_is_told_and_not_the_way_to_it() -> None:
    assert [line.partition(AGENT)[2] for line in complaints(death(48))] == [
        f" [None req-48 - - - - -] Agent terminated!: {CAUSE}",
        f" {CAUSE}",
    ]


def test_what_is_logged_at_every_start_is_told_once_and_as_it_was_last() -> None:
    assert complaints([*death(48), *death(56)]) == complaints(death(56))


def test_the_cause_is_told_while_the_service_is_still_logging_it() -> None:
    told, _asked = log([*START, *death(48), *death(56)[:24]])
    assert [line for line in complaints(told) if CAUSE in line] == complaints(told) != []


def test_a_traceback_without_a_prefix_is_told_by_its_end() -> None:
    lines = ["Traceback (most recent call last):", '  File "/x.py"', '    raise KeyError("x")', "KeyError: 'x'"]
    assert complaints(lines) == ["KeyError: 'x'"]
