# SPDX-License-Identifier: GPL-3.0-or-later
"""One look at a node: what is asked, and what its answer says against the plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Self

from .._bundle.migration import known_hosts_path
from .._bundle.parcel import parcel
from .._kube import snapshot
from .._report.overview import PlannedService, Question, services_of
from .._report.overview import State as Plans
from .comparing import standings
from .known_hosts import fingerprints


@dataclass(frozen=True)
class Look:
    """A node, and what the run's plan wants there; `services` is None where the run has no plan that knows it.

    They are those that the task asks about, as the node tells of those alone.
    """

    services: tuple[PlannedService, ...] | None

    @classmethod
    def at(cls, host: str, given: Mapping[str, Any] = MappingProxyType({})) -> Self:
        """Look at a host, with the options of the task; NotTakenError where the run's plan could not be read."""
        if snapshot.taken() is None and snapshot.failure() is None:
            return cls(None)
        named = given.get("services") or ""
        asked = named if isinstance(named, str) else ",".join(map(str, named))
        return cls(services_of(snapshot.plan(), Question(host, asked)))

    def options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What the node's half is asked: whether the images are there too that it will need, and whom it knows."""
        images = sorted({image for one in self.services or () if (image := _image(one))})
        asked = {**({"images": images} if images else {}), **given}
        return {**asked, "read": [*given.get("read", ()), *self._paths]} if self._paths else asked

    def judged(self, answer: dict[str, Any]) -> dict[str, Any]:
        """The answer, with every service's standing."""
        if self.services is None or "services" not in answer:
            return answer
        contents = dict(answer.get("contents") or {})
        met = {path: fingerprints(contents.pop(path, "")) for path in self._paths}
        told = {"planned": [one.data() for one in standings(self.services, answer["services"])]}
        return answer | told | ({"contents": contents, "known_hosts": met} if met else {})

    @property
    def _paths(self) -> list[str]:
        return [path for one in self.services or () if (path := known_hosts_path(one.plan))]


def _image(one: PlannedService) -> str:
    """The image of a service that may be deployed now."""
    wanted = parcel(one.plan, one.bundle) if one.state is Plans.READY else None
    return wanted.image.reference if wanted else ""
