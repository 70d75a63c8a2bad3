# SPDX-License-Identifier: GPL-3.0-or-later
"""The course of one run over many nodes.

It is set by the parent process, in keywords of plays, where the answers of all nodes are at hand. Every worker that
Ansible forks afterwards inherits it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from .._kube import snapshot
from .._report.near import NotThereError, did_you_mean
from .._report.overview import PlannedService, Question, overview, services_of
from .batches import Pace, pace
from .comparing import FIRST, WORK, Standing, State, read, standings
from .known_hosts import KnownHosts, cell_of, gather

#: Where the playbooks register what a node answered.
FOUND, PULLED, TOLD, BATCH, DONE, AFTER, SUMMARY = (
    f"edpm_rollout_{name}" for name in ("found", "pulled", "told", "batch", "done", "after", "summary")
)

#: A pattern that matches no host, and that Ansible does not warn of.
NOBODY = ["all:!all"]


class Mode(StrEnum):
    """What is done to the services."""

    DEPLOY = "deploy"
    ROLLBACK = "rollback"
    REMOVE = "remove"
    STATUS = "status"


#: The service that OpenStack knows of, too.
COMPUTE = "nova_compute"

#: What the node's half is asked for.
STATES = {Mode.DEPLOY: "present", Mode.ROLLBACK: "previous", Mode.REMOVE: "absent"}


class NotBegunError(NotThereError):
    """A step of a run was asked for, and there is no run."""


@dataclass
class Course:
    """Who is asked, who has work, and in which order they come."""

    mode: Mode
    question: Question
    nodes: tuple[str, ...]
    pace: Pace = field(default_factory=lambda: Pace(0, 1, 0))
    work: dict[str, tuple[str, ...]] = field(default_factory=dict)
    #: How many failed before their turn.
    lost: int = 0
    #: By cell.
    known_hosts: dict[str, KnownHosts] = field(default_factory=dict)
    begun: float = field(default_factory=time.time)
    #: Whether the nodes have answered and it is known who has work.
    settled: bool = False
    #: Why OpenStack is not told of computes that leave.
    untold: str = ""

    @property
    def name(self) -> str:
        """What tells this run from others of the same process."""
        return f"{self.mode}-{self.begun}"

    @property
    def order(self) -> list[str]:
        """The nodes with work, as they come."""
        return list(self.work)

    @property
    def sizes(self) -> list[int]:
        """The sizes of the batches."""
        return self.pace.sizes(len(self.work))


def begin(mode: str, question: Question, inventory: Iterable[str]) -> Course:
    """Start a run; NotThereError where what is asked for is not there, NotTakenError without a data plane."""
    global _course  # noqa: PLW0603 - one for the process and its forks, like the snapshot
    kind = Mode(mode)
    _course = Course(kind, question, tuple(_leaving(question, inventory) if kind is Mode.REMOVE else _asked(question)))
    return _course


def course() -> Course:
    """The run that was begun."""
    if _course is None:
        raise NotBegunError(
            "No run was begun, so there is no step of it; use the playbooks edpm.services.deploy, status, rollback "
            "and remove."
        )
    return _course


def planned(course: Course, node: str) -> tuple[PlannedService, ...]:
    """The services of a node that are asked about; none where the plan does not know the node."""
    if snapshot.taken() is None:
        return ()
    return services_of(snapshot.plan(), Question(node, course.question.service)) or ()


def standing_of(course: Course, node: str, answer: Mapping[str, Any]) -> list[Standing]:
    """The services of a node that are asked about, by its answer, or by the plan alone where it was not asked."""
    if "planned" in answer:
        known = [read(one) for one in answer["planned"]]
    else:
        known = standings(planned(course, node), answer.get("services") or {})
    return [one for one in known if course.question.asks(one.name)]


def set_work(course: Course, answers: Mapping[str, Mapping[str, Any]], variables: Mapping[str, Any]) -> None:
    """Find out who has work, from the answers of all nodes, and how fast it goes."""
    if course.mode is Mode.DEPLOY:
        course.known_hosts = gather(snapshot.plan(), answers)
    course.work = {
        node: names for node in course.nodes if node in answers and (names := tuple(_work(course, node, answers[node])))
    }
    course.pace = pace(variables, len(course.work))
    course.settled = True


def _asked(question: Question) -> Iterable[str]:
    seen = overview(snapshot.plan(), question)
    return dict.fromkeys(node.plan.name for node in seen.nodes)


def _leaving(question: Question, inventory: Iterable[str]) -> Iterable[str]:
    """Whom services are taken from must be named, and need not be in any plan."""
    names = list(inventory)
    if not question.node:
        raise NotThereError("Nothing is removed unless a node is named; name one with -e node=, for example its name.")
    if question.node not in names:
        near = did_you_mean(question.node, names, "hosts")
        raise NotThereError(
            f"The inventory has no host {question.node}; {near} One that the data plane does not list any more can "
            "come from a second inventory, named with -i."
        )
    return [question.node]


def _work(course: Course, node: str, answer: Mapping[str, Any]) -> Iterable[str]:
    stands = standing_of(course, node, answer)
    if course.mode is Mode.DEPLOY:
        return [one.name for one in stands if one.state in WORK or _meets_others(course, node, one, answer)]
    found: Mapping[str, Any] = answer.get("services") or {}
    there = sorted(
        (one for one in found if course.question.asks(one)),
        key=lambda one: (one.partition("@")[0] not in FIRST, one),
    )
    if course.mode is Mode.ROLLBACK:
        return [one for one in there if found[one].get("previous")]
    return reversed(there)


def _meets_others(course: Course, node: str, one: Standing, answer: Mapping[str, Any]) -> bool:
    """Whether a service that is up to date has to get to know other hosts."""
    if one.state is not State.UP_TO_DATE or not course.known_hosts:
        return False
    service = next(each.plan for each in planned(course, node) if each.plan.name == one.name)
    known = course.known_hosts.get(cell_of(service))
    return known is not None and known.differs(service, answer)


_course: Course | None = None
