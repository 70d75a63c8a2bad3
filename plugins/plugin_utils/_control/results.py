# SPDX-License-Identifier: GPL-3.0-or-later
"""The edge where the results of a run come in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from .._kube.errors import BadSettingsError
from .conditions import Run, Told

RESULTS_SPEC: dict[str, dict[str, object]] = {
    "results": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "node": {"type": "str", "required": True},
            "service": {"type": "str", "required": True},
            "namespace": {"type": "str", "default": ""},
            "state": {"type": "str", "default": "present", "choices": ["present", "absent"]},
            "digest": {"type": "str", "default": ""},
            "settings": {"type": "str", "default": ""},
            "image": {"type": "str", "default": ""},
            "changed": {"type": "bool", "default": False},
            "failed": {"type": "bool", "default": False},
            "restarted": {"type": "bool", "default": False},
            "msg": {"type": "str", "default": ""},
        },
    },
    "run": {"type": "str", "default": "by hand"},
    "started": {"type": "str", "default": ""},
    "ended": {"type": "str", "default": ""},
}


def results_of(given: Iterable[Mapping[str, Any]]) -> list[Told]:
    """The results, checked by the argument spec before."""
    return [
        Told(absent=one["state"] == "absent", **{name: one[name] for name in one if name != "state"}) for one in given
    ]


def run_of(given: Mapping[str, Any], now: datetime | None = None) -> Run:
    """Which run it was; one that does not say when it was is now."""
    moment = (now or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")
    times = {name: _time(name, given[name]) if given[name] else moment for name in ("started", "ended")}
    return Run(name=given["run"], **times)


def _time(name: str, text: str) -> str:
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadSettingsError(f"The time {text} in {name} is none; write it like 2026-11-01T08:00:00Z.") from error
    whole = found if found.tzinfo else found.replace(tzinfo=UTC)
    return whole.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
