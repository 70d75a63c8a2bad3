# SPDX-License-Identifier: GPL-3.0-or-later
"""What became of every node at the end of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from .._bundle.digest import short
from .comparing import Standing, State, sentence
from .course import AFTER, DONE, FOUND, PULLED, TOLD, Course, Mode, planned, standing_of


class Fate(StrEnum):
    """Of a node; of several that fit, the first counts."""

    UNREACHABLE = "unreachable"
    FAILED = "failed"
    NOT_STARTED = "not started"
    CHANGED = "changed"
    WAITING = "waiting"
    BLOCKED = "blocked"
    HELD = "held"
    UNCHANGED = "unchanged"


#: Those that are worth a second run.
AGAIN = (Fate.UNREACHABLE, Fate.FAILED, Fate.NOT_STARTED)


@dataclass(frozen=True)
class ServiceOutcome:
    """One service: in `state` a word for a program, in `says` the same for a person."""

    name: str
    state: str
    says: str
    image: str | None
    digest: str | None
    restarted: bool = False
    bad: bool = False

    def data(self) -> dict[str, Any]:
        """For a program."""
        names = ("name", "state", "says", "image", "digest", "restarted")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class NodeOutcome:
    """One node."""

    name: str
    cell: str | None
    fate: Fate
    services: tuple[ServiceOutcome, ...]
    restarts: int = 0
    reason: str = ""

    @property
    def blocked(self) -> tuple[str, ...]:
        """What keeps services of it waiting, also where others of them have changed."""
        return tuple(one.says for one in self.services if one.state == State.BLOCKED)

    def data(self) -> dict[str, Any]:
        """For a program."""
        return {
            "name": self.name,
            "cell": self.cell,
            "outcome": self.fate.value,
            "reason": self.reason,
            "restarts": self.restarts,
            "services": [one.data() for one in self.services],
        }


#: What Ansible knows of a host: what its tasks registered.
Registered = Mapping[str, Any]


def outcome(course: Course, node: str, registered: Registered, *, check: bool, stopped: str = "") -> NodeOutcome:
    """What became of a node. `stopped` says why no further batch began, where that is so."""
    found = registered.get(FOUND) or {}
    pulled, done = (of_run(course, registered.get(name)) for name in (PULLED, DONE))
    others = (registered.get(name) or {} for name in (TOLD, AFTER))
    steps = (found, pulled, *others, done)
    stands = standing_of(course, node, found)
    fate = _fate(course, node, steps, stands, stopped)
    services = tuple(_service(one, done, check=check) for one in _with_gone(stands, done))
    return NodeOutcome(
        name=node,
        cell=next((one.node.cell for one in planned(course, node)), None),
        fate=fate,
        services=services,
        restarts=int(done.get("restarts") or 0),
        reason=_reason(fate, steps, stands, stopped),
    )


def of_run(course: Course, registered: Any) -> Registered:
    """What a step of this very run registered; a process may make several."""
    return registered if isinstance(registered, Mapping) and registered.get("run") == course.name else {}


def counted(nodes: Iterable[NodeOutcome]) -> dict[str, int]:
    """How many nodes have which fate."""
    counts = Counter(one.fate for one in nodes)
    always = (Fate.CHANGED, Fate.UNCHANGED, Fate.BLOCKED, Fate.FAILED)
    return {fate.value: counts[fate] for fate in (*always, *(one for one in Fate if one not in always and counts[one]))}


def _fate(course: Course, node: str, steps: Iterable[Registered], stands: list[Standing], stopped: str) -> Fate:
    *earlier, done = steps
    states = {one.state for one in stands} if course.mode is Mode.DEPLOY else set()
    waits = node in course.work and not done
    rules = {
        Fate.UNREACHABLE: any(one.get("unreachable") for one in (*earlier, done)),
        Fate.FAILED: any(one.get("failed") for one in (*earlier, done)) or State.UNDEPLOYABLE in states,
        Fate.NOT_STARTED: waits and stopped,
        Fate.WAITING: waits,
        Fate.CHANGED: done.get("changed"),
        Fate.BLOCKED: State.BLOCKED in states,
        Fate.HELD: State.HELD in states,
    }
    return next((fate for fate, holds in rules.items() if holds), Fate.UNCHANGED)


def _reason(fate: Fate, steps: Iterable[Registered], stands: list[Standing], stopped: str) -> str:
    if fate is Fate.NOT_STARTED:
        return stopped
    if fate in (Fate.FAILED, Fate.UNREACHABLE):
        bad = [str(one.get("msg") or fate.value) for one in steps if one.get("failed") or one.get("unreachable")]
        refused = [word for one in stands if one.state is State.UNDEPLOYABLE for word in one.what]
        return " ".join(bad or refused)
    return ""


def _with_gone(stands: list[Standing], done: Registered) -> list[Standing]:
    """Those that were worked on without being known before come last."""
    known = {one.name for one in stands}
    gone = [name for name in done.get("services") or {} if name not in known]
    return [*stands, *(Standing(name, State.LEAVING) for name in gone)]


def _service(one: Standing, done: Registered, *, check: bool) -> ServiceOutcome:
    result = (done.get("services") or {}).get(one.name)
    digest = one.digest or one.live
    if one.name in (done.get("not_begun") or ()):
        return ServiceOutcome(
            one.name, "not_begun", "not begun, since one before it failed", one.image, digest, bad=True
        )
    if result is None:
        bad = one.state in (State.BLOCKED, State.UNDEPLOYABLE)
        return ServiceOutcome(one.name, one.state.value, sentence(one), one.image, digest, bad=bad)
    digest = result.get("digest") or digest
    said = str(result.get("msg") or "")
    if result.get("failed") or result.get("unreachable"):
        return ServiceOutcome(one.name, "failed", f"failed: {said}", one.image, digest, bad=True)
    if not result.get("changed"):
        return ServiceOutcome(one.name, "unchanged", f"unchanged  {short(digest or '')}", one.image, digest)
    if result.get("removed") is not None:
        word = "would be removed" if check else "removed"
        return ServiceOutcome(one.name, word.replace(" ", "_"), f"{word}: {said}", one.image, None)
    word = "would change" if check else "changed"
    told = f"{word}  {short(digest or '')}  {said.partition(': ')[2] or said}"
    return ServiceOutcome(one.name, word.replace(" ", "_"), told, one.image, digest, bool(result.get("restarted")))
