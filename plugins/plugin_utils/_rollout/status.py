# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs where, as the nodes tell it, beside what the plan wants."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .._bundle.digest import short
from .._report.lines import Line, Tone, columns
from .._report.table import NOTHING, short_image
from .comparing import Standing, State, is_there, sentence
from .course import FOUND, Course, standing_of

HEADINGS = ("NODE", "SERVICE", "IMAGE", "LIVE", "WANTED", "HEALTH", "DRIFT", "RESTARTS", "STATE")
_TONES = {State.UP_TO_DATE: Tone.GOOD, State.BLOCKED: Tone.BAD, State.UNDEPLOYABLE: Tone.BAD}


@dataclass(frozen=True)
class NodeStatus:
    """One node; `trouble` says why it does not tell of itself."""

    name: str
    services: tuple[tuple[Standing, Mapping[str, Any]], ...] = ()
    trouble: str = ""
    unreachable: bool = False

    def data(self) -> dict[str, Any]:
        """For a program."""
        return {
            "name": self.name,
            "trouble": self.trouble,
            "unreachable": self.unreachable,
            "services": [{**stands.data(), **_live(found)} for stands, found in self.services],
        }


def status_of(course: Course, node: str, registered: Mapping[str, Any]) -> NodeStatus:
    """A node by what it answered."""
    found = registered.get(FOUND) or {}
    if found.get("unreachable") or found.get("failed"):
        return NodeStatus(node, (), str(found.get("msg") or "it did not answer"), bool(found.get("unreachable")))
    services = {name: one for name, one in (found.get("services") or {}).items() if is_there(one)}
    return NodeStatus(node, tuple((one, services.get(one.name) or {}) for one in standing_of(course, node, found)))


def shown(nodes: list[NodeStatus], output: str) -> list[Line]:
    """As text or as JSON."""
    if output == "json":
        data = {"nodes": [one.data() for one in nodes], "summary": said(nodes)}
        return [Line(text) for text in json.dumps(data, indent=2).split("\n")]
    rows = [row for one in nodes for row in _rows(one)]
    texts = columns([HEADINGS, *(texts for texts, _tone in rows)]) if rows else []
    tones = [Tone.HEADING, *(tone for _texts, tone in rows)]
    return [*(Line(text, tone) for text, tone in zip(texts, tones, strict=bool(rows))), Line(said(nodes))]


def said(nodes: list[NodeStatus]) -> str:
    """All in one line."""
    services = [pair for one in nodes for pair in one.services]
    there = [found for _stands, found in services if found.get("digest")]
    sick = sum(1 for found in there if not found.get("healthy"))
    counts = {
        "up to date": sum(1 for stands, _found in services if stands.state is State.UP_TO_DATE),
        "not up to date": sum(1 for one, _found in services if one.state in (State.NEW, State.WILL_CHANGE)),
        "unhealthy": sick,
        "drifted": sum(1 for found in there if found.get("drift")),
        "leaving": sum(1 for stands, _found in services if stands.state is State.LEAVING),
    }
    silent = sum(1 for one in nodes if one.trouble)
    told = ", ".join(f"{count} {word}" for word, count in counts.items() if count or word == "up to date")
    plural = "" if len(nodes) == 1 else "s"
    quiet = f" · {silent} did not answer" if silent else ""
    return f"{len(nodes)} node{plural} · {len(there)} service{'' if len(there) == 1 else 's'} live: {told}{quiet}"


def _rows(one: NodeStatus) -> Iterator[tuple[tuple[str, ...], Tone]]:
    nothing = (NOTHING,) * (len(HEADINGS) - 2)
    if one.trouble or not one.services:
        yield (one.name, *nothing, one.trouble or "nothing of ours"), Tone.BAD if one.trouble else Tone.PLAIN
    for number, (stands, found) in enumerate(one.services):
        yield ("" if number else one.name, *_texts(stands, found)), _tone(stands, found)


def _texts(stands: Standing, found: Mapping[str, Any]) -> tuple[str, ...]:
    drift = ", ".join(str(each["name"]) for each in found.get("drift") or ())
    unit = found.get("unit") or {}
    health = ("healthy" if found.get("healthy") else str(found.get("fault") or "unhealthy")) if found else NOTHING
    return (
        stands.name,
        short_image(found.get("image") or stands.image),
        short(stands.live or "") or NOTHING,
        short(stands.digest or "") or NOTHING,
        health,
        drift or NOTHING,
        str(unit.get("restarts", NOTHING)),
        sentence(stands),
    )


def _tone(stands: Standing, found: Mapping[str, Any]) -> Tone:
    if found and not found.get("healthy"):
        return Tone.BAD
    return _TONES.get(stands.state, Tone.REMARK)


def _live(found: Mapping[str, Any]) -> dict[str, Any]:
    names = ("healthy", "fault", "drift", "previous", "unfinished", "restart_pending", "unit")
    return {"live_image": found.get("image"), **{name: found.get(name) for name in names}}
