# SPDX-License-Identifier: GPL-3.0-or-later
"""When a unit counts as well, and how soon it does not."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node import connections
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import Bundle, Health, Image
from ansible_collections.edpm.services.plugins.module_utils._node.commands import Result
from ansible_collections.edpm.services.plugins.module_utils._node.connections import Reach
from ansible_collections.edpm.services.plugins.module_utils._node.errors import Unhealthy
from ansible_collections.edpm.services.plugins.module_utils._node.health import await_health
from ansible_collections.edpm.services.plugins.module_utils._node.node import Clock, Node, real_node
from ansible_collections.edpm.services.plugins.module_utils._node.record import Places, Record, recorded


class Course:
    """A unit that goes through states, one each time it is looked at; the last one stays."""

    def __init__(self, *states: str) -> None:
        self.states = list(states)
        self.seconds = 0.0

    def __call__(self, _argv: Sequence[str], _environment: Mapping[str, str]) -> Result:
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        active, invocation, restarts = state.split()
        return Result(
            0,
            f"ActiveState={active}\nSubState=x\nLoadState=loaded\nInvocationID={invocation}\n"
            f"NRestarts={restarts}\nResult=exit-code\n",
        )

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


def node_of(course: Course) -> Node:
    clock = Clock(lambda: course.seconds, course.sleep)
    return dataclasses.replace(real_node(course, Places()), clock=clock)


def record(settle: int = 2, timeout: int = 10) -> Record:
    bundle = Bundle("a", "0" * 7, Image("i"), {}, health=Health(settle=settle, timeout=timeout))
    return recorded(bundle, (), Places(root=Path("/nowhere")))


def test_a_unit_must_stay_up_as_one_process_before_it_is_well() -> None:
    course = Course("activating a 0", "active a 0", "active b 1", "active b 1")
    await_health(node_of(course), record())
    assert course.seconds == 3.0


class Asked(Course):
    """A unit whose health command says something else each time it runs; nothing means that all is well."""

    def __init__(self, states: Sequence[str], *answers: str) -> None:
        super().__init__(*states)
        self.answers = iter(answers)
        self.asked: list[float] = []

    def __call__(self, argv: Sequence[str], environment: Mapping[str, str]) -> Result:
        if "ask" not in argv:
            return super().__call__(argv, environment)
        self.asked.append(self.seconds)
        fault = next(self.answers)
        return Result(1 if fault else 0, fault)


def asked(course: Asked) -> list[float]:
    """When the health command ran until the unit was well."""
    checked = record()
    command = dataclasses.replace(checked.health, command=("ask",))
    await_health(node_of(course), dataclasses.replace(checked, health=command))
    return course.asked


def test_a_unit_that_answers_once_and_dies_right_after_that_is_not_well() -> None:
    """nova-compute reaches its bus before it loads its driver, and ends when it cannot."""
    states = (*["active a 0"] * 3, "activating a 0", "active b 1")
    assert asked(Asked(states, "", "", "")) == [1.0, 3.0, 4.0]


def test_a_unit_that_took_long_to_answer_must_stay_up_for_as_long_again() -> None:
    assert asked(Asked(["active a 0"], *["no connection yet"] * 2, "", "")) == [1.0, 2.0, 3.0, 6.0]


def test_a_unit_that_answers_late_must_stay_up_for_as_long_again_all_the_same() -> None:
    assert asked(Asked(["active a 0"], *["no connection yet"] * 7, "", ""))[-2:] == [8.0, 16.0]


#: What a unit that answers after eight of its ten seconds comes to before it is asked again, and what is told then.
LATE = {
    "dies and starts again": ("activating a 0", [""], r"is activating \(x\) and did not stay up for 2 s within 10 s"),
    "is another process": ("active b 1", [""], r"is active \(x\) and did not stay up for 2 s within 10 s"),
    "falls silent": ("active a 0", ["", "no connection any more"], r"\(no connection any more\) within 10 s"),
}


@pytest.mark.parametrize(("then", "answers", "says"), LATE.values(), ids=LATE)
def test_a_unit_that_answers_late_and_goes_wrong_after_its_time_is_not_well(
    then: str, answers: list[str], says: str
) -> None:
    """A crash loop on a slow node: it was taken for healthy because its time was up between two deaths."""
    with pytest.raises(Unhealthy, match=says):
        asked(Asked([*["active a 0"] * 22, then], *["no connection yet"] * 7, *answers))


def test_no_settling_is_waited_for_where_none_is_asked() -> None:
    course = Course("active a 0")
    await_health(node_of(course), record(settle=0))
    assert course.seconds == 0


SICK = {
    "failed": (("active a 0", "failed a 0"), r"edpm_a.service failed \(exit-code\)"),
    "loops": (
        ("active a 0", "activating b 1", "active c 2", "active d 3"),
        "dies as soon as it runs: systemd started it 3",
    ),
    "ended": (("active a 0", "inactive a 0"), r"edpm_a.service does not run \(it ended by itself\)"),
    "never up": (("activating a 0",), r"is activating \(x\) and did not stay up for 2 s within 10 s"),
    "never settles": (("active a 0", "active b 0") * 30, "did not stay up for 2 s within 10 s"),
}


@pytest.mark.parametrize(("states", "says"), SICK.values(), ids=SICK)
def test_a_unit_that_will_not_get_well_is_given_up(states: tuple[str, ...], says: str) -> None:
    course = Course(*states)
    with pytest.raises(Unhealthy, match=says):
        await_health(node_of(course), record())
    assert course.seconds <= 10


@pytest.mark.parametrize(("last", "waits"), [("active a 0", True), ("activating a 0", False)])
def test_a_unit_waits_for_others_only_while_it_is_up_itself(
    monkeypatch: pytest.MonkeyPatch, last: str, waits: bool
) -> None:
    monkeypatch.setattr(connections, "reach", lambda *_: Reach.WAITS)
    made = dataclasses.replace(record(), health=Health(connected="a", settle=2, timeout=10))
    with pytest.raises(Unhealthy) as caught:
        await_health(node_of(Course(*["active a 0"] * 10, last)), made)
    assert caught.value.waits is waits
