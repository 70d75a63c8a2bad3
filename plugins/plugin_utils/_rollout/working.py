# SPDX-License-Identifier: GPL-3.0-or-later
"""The work on one node: its services one after the other, until one fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible.errors import AnsibleConnectionFailure

from ...module_utils._node import bundle as node
from .._bundle.migration import known_hosts_path, with_known_hosts
from .._bundle.parcel import parcel
from .._report.lines import Line, Tone
from .._report.overview import PlannedService
from .course import STATES, Course, Mode, planned
from .known_hosts import KnownHosts, cell_of
from .questions import NotDeployableError, question

#: Calls a module of the node with these options.
Call = Callable[[str, dict[str, Any]], dict[str, Any]]
#: What is kept of a module's answer.
_KEPT = (
    *("changed", "failed", "msg", "digest", "digest_before", "files", "units", "node", "image", "pulled", "drift"),
    *("restarted", "restart_pending", "rolled_back", "log", "pruned", "removed", "busy", "live", "unhealthy"),
)


@dataclass
class Work:
    """A node, and what is to be done there. `tell` shows a line while it happens."""

    course: Course
    host: str
    call: Call
    tell: Callable[[Line], None]
    passed: Mapping[str, Any] = field(default_factory=dict)
    batch: str = ""
    services: dict[str, dict[str, Any]] = field(default_factory=dict)
    diff: list[Any] = field(default_factory=list)
    warnings: list[Any] = field(default_factory=list)

    def converge(self) -> dict[str, Any]:
        """Do all of it; a service that fails keeps the later ones from being touched."""
        names = self.course.work.get(self.host, ())
        for name in names:
            ending = self._one(name)
            if ending:
                return self._result(names, ending)
        return self._result(names, {})

    def prefetch(self, images: Mapping[str, Any]) -> dict[str, Any]:
        """Have the images on the node that its work will need."""
        wanted = [one for one in self._planned() if one.plan.name in self.course.work.get(self.host, ())]
        lacking = {one.bundle.image: one for one in wanted if one.bundle.image in images}
        for image, one in lacking.items():
            self.tell(Line(f"{self.host} · {image} · is being pulled"))
            ending = self._asked(str(image), "service", question(parcel(one.plan, one.bundle), "pulled", self.passed))
            if ending:
                return self._result(list(self.services), ending)
        return self._result(list(self.services), {})

    def _one(self, name: str) -> dict[str, Any]:
        """How it ended where it did not end well, else nothing."""
        state = STATES[self.course.mode]
        try:
            if self.course.mode is Mode.DEPLOY:
                options = question(self._wanted(name), state, self.passed)
            else:
                service, _at, instance = name.partition("@")
                options = {**self.passed, "state": state, "service": service, "instance": instance}
            return self._asked(name, "service", options)
        except NotDeployableError as error:
            return self._ended(name, {"failed": True, "msg": str(error)}, 0.0)
        except AnsibleConnectionFailure as error:
            return self._ended(name, {"unreachable": True, "msg": f"The node cannot be reached any more: {error}"}, 0.0)

    def _asked(self, name: str, module: str, options: dict[str, Any]) -> dict[str, Any]:
        begun = time.monotonic()
        try:
            answer = self.call(module, options)
        except AnsibleConnectionFailure as error:
            answer = {"unreachable": True, "msg": f"The node cannot be reached any more: {error}"}
        return self._ended(name, answer, time.monotonic() - begun)

    def _ended(self, name: str, answer: dict[str, Any], seconds: float) -> dict[str, Any]:
        bad = {key: True for key in ("failed", "unreachable") if answer.get(key)}
        said = str(answer.get("msg") or ("it failed" if bad else "done"))
        self.services[name] = (
            {key: answer[key] for key in _KEPT if key in answer} | bad | {"seconds": round(seconds, 1)}
        )
        told = answer.get("diff") or []
        self.diff += told if isinstance(told, list) else [told]
        self.warnings += answer.get("warnings") or []
        prefix = f"{self.batch} " if self.batch else ""
        tone = Tone.BAD if bad else Tone.GOOD
        self.tell(Line(f"{prefix}{self.host} · {name} · {said} ({seconds:.1f} s)", tone))
        return {**bad, "msg": said} if bad else {}

    def _planned(self) -> tuple[PlannedService, ...]:
        return planned(self.course, self.host)

    def _wanted(self, name: str) -> node.Bundle:
        one = next(each for each in self._planned() if each.plan.name == name)
        wanted = parcel(one.plan, one.bundle)
        if wanted is None:
            raise NotDeployableError(f"{name} has no image; name one, then run again.")
        path, known = known_hosts_path(one.plan), self.course.known_hosts.get(cell_of(one.plan))
        return with_known_hosts(wanted, self._met(known, path)) if path and known else wanted

    def _met(self, known: KnownHosts, path: str) -> bytes:
        if not known.unasked:
            return known.text
        answer = self.call("service_facts", {"health_checks": False, "read": [path]})
        return known.beside(str((answer.get("contents") or {}).get(path, "")))

    def _result(self, names: Any, ending: dict[str, Any]) -> dict[str, Any]:
        changed = any(one.get("changed") for one in self.services.values())
        return {
            "changed": changed,
            "run": self.course.name,
            "services": self.services,
            "not_begun": [name for name in names if name not in self.services],
            "restarts": sum(1 for one in self.services.values() if one.get("restarted")),
            "msg": " ".join(self._sentences()) or "Nothing to do.",
            **({"diff": self.diff} if self.diff else {}),
            **({"warnings": self.warnings} if self.warnings else {}),
            **ending,
        }

    def _sentences(self) -> Iterator[str]:
        return (str(one["msg"]) for one in self.services.values() if one.get("msg"))
