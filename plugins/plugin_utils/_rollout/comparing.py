# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node should run against what it runs: which services are to be touched, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from hashlib import sha256
from typing import Any

from ...module_utils._node import bundle as node
from ...module_utils._node.record import settings
from .._bundle.digest import short
from .._bundle.migration import known_hosts_path
from .._bundle.parcel import parcel
from .._bundle.settings import settings_digest
from .._dataplane.images import undeployable
from .._report.overview import PlannedService
from .._report.overview import State as Plans

#: What must be there before the others: nova-compute asks libvirt for its guests.
FIRST = ("libvirt",)

#: One service as the node's half tells of it.
Found = Mapping[str, Any]


class State(StrEnum):
    """Where a service stands on its node."""

    UP_TO_DATE = "up_to_date"
    NEW = "new"
    WILL_CHANGE = "will_change"
    HELD = "held"
    BLOCKED = "blocked"
    UNDEPLOYABLE = "undeployable"
    LEAVING = "leaving"


#: Those that a deployment works on.
WORK = (State.NEW, State.WILL_CHANGE)


@dataclass(frozen=True)
class Standing:
    """One service on one node: what is wanted, what is live, and in `what` the difference or the reasons.

    `settings` is the digest of what `digest` leaves out of what is wanted.
    """

    name: str
    state: State
    what: tuple[str, ...] = ()
    image: str | None = None
    digest: str | None = None
    live: str | None = None
    settings: str = ""

    def data(self) -> dict[str, Any]:
        """For a program; `read` is the way back."""
        return {**asdict(self), "state": self.state.value, "what": list(self.what)}


def read(data: Mapping[str, Any]) -> Standing:
    """What `data` gave."""
    return Standing(**{**data, "state": State(data["state"]), "what": tuple(data["what"])})


def standings(services: Iterable[PlannedService], found: Mapping[str, Found]) -> list[Standing]:
    """Services of a node in the order in which they are deployed, those that the plan does not know last."""
    planned = in_order(services)
    known = {one.plan.name for one in planned}
    leaving = (name for name in sorted(found) if name not in known)
    return [*(standing(one, found.get(one.plan.name)) for one in planned), *(_leaving(found[name]) for name in leaving)]


def in_order(services: Iterable[PlannedService]) -> list[PlannedService]:
    """Services as they must follow each other on a node."""
    return sorted(services, key=lambda one: one.plan.service not in FIRST)


def standing(one: PlannedService, found: Found | None) -> Standing:
    """Where a planned service stands."""
    made = one.bundle
    live = (found or {}).get("digest")
    wants = settings_digest(one.plan, made)
    told = Standing(one.plan.name, State.UP_TO_DATE, (), made.image, made.digest, live, wants)
    if one.state is Plans.BLOCKED:
        return replace(told, state=State.BLOCKED, what=one.reasons)
    lack = lacks(one)
    if lack:
        return replace(told, state=State.UNDEPLOYABLE, what=(lack,))
    if one.state is Plans.HELD:
        return replace(told, state=State.HELD, what=(one.plan.hold or "",))
    wanted = parcel(one.plan, made)
    what = tuple(differences(wanted, found, known_hosts_path(one.plan) or "")) if wanted and found else ()
    if found is None or not live:
        return replace(told, state=State.NEW, what=what)
    return replace(told, state=State.WILL_CHANGE, what=what) if what else told


def lacks(one: PlannedService) -> str:
    """Why a service that nothing blocks cannot be deployed all the same, empty when it can."""
    if parcel(one.plan, one.bundle) is not None:
        return ""
    told = undeployable(one.plan)
    return told or f"Nothing here says how to run {one.plan.name}; give it a definition (edpm-service.yaml)."


def differences(wanted: node.Bundle, found: Found, apart: str = "") -> Iterator[str]:
    """What is not as it should be, in a few words each; nothing when the node can be left alone.

    `apart` is a live file that is not the bundle's own matter: the known_hosts, which depends on all other nodes.
    """
    if found.get("digest") != wanted.digest:
        before, after = found.get("image") or "", wanted.image.reference
        yield f"image {before or 'none'} → {after}" if before != after else "files"
    elif found.get("settings") != settings(wanted):
        yield "settings"
    yield from (_drifted(one["name"], one["what"]) for one in found.get("drift") or ())
    yield from live_differences(wanted.live, found, apart)
    if found.get("unfinished"):
        yield "an unfinished run"
    if found.get("restart_pending") and wanted.restart == "restart":
        yield "a restart is due"
    if not found.get("healthy") and found.get("digest") == wanted.digest:
        yield str(found.get("fault") or "it is not healthy")


def _drifted(name: str, what: str) -> str:
    """What a run that was cut off left behind is nobody's hand."""
    return f"{name} was {what}{'' if what.startswith('left ') else ' by hand'}"


def live_differences(wanted: Iterable[node.LiveFile], found: Found, apart: str = "") -> Iterator[str]:
    """The live files that are new, have another content or are no longer wanted."""
    there = {path: digest for path, digest in (found.get("live") or {}).items() if path != apart}
    for file in wanted:
        if there.pop(file.path, None) != sha256(file.content).hexdigest():
            yield file.path
    yield from (f"{path} is no longer wanted" for path in sorted(there))


def is_there(found: Found) -> bool:
    """Whether a node has more of a service than notes, such as the cell that it was first sent to."""
    return bool(found.get("digest") or found.get("generations"))


def sentence(one: Standing) -> str:
    """A standing in a table."""
    digest = short(one.digest or "")
    words = {
        State.UP_TO_DATE: f"up to date  {digest}",
        State.NEW: f"new  {digest}",
        State.WILL_CHANGE: f"will change  {', '.join(one.what)}",
        State.HELD: f"held: {' '.join(one.what)}",
        State.BLOCKED: f"blocked: {' '.join(one.what)}",
        State.UNDEPLOYABLE: f"refused: {' '.join(one.what)}",
        State.LEAVING: f"leaving: {' '.join(one.what) or 'the plan does not know it'}",
    }
    return words[one.state]


def _leaving(found: Found) -> Standing:
    name = f"{found['service']}@{found['instance']}" if found.get("instance") else str(found["service"])
    what = () if is_there(found) else ("only the rest of a deployment that failed is there",)
    return Standing(name, State.LEAVING, what, found.get("image"), None, found.get("digest"))
