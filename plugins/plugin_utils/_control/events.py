# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubernetes Events for what a person wants to notice: a service object that became ready, failed, was refused or left.

They are a courtesy. An account that may not create them goes without, and a server that is in trouble is not asked for
more of them.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from .._kube.client import Client, Resource
from .._kube.errors import ConflictError, KubernetesError, NotFoundError, RefusedError
from .conditions import READY
from .leaving import REMOVED
from .names import MANAGER
from .standing import Standing

EVENTS = Resource("v1", "Event", "events", namespaced=True)
LONGEST = 1024
#: Of so many that become news in one go the first ones are told, the rest is in the objects' own conditions.
MOST = 200
FAILURES = frozenset(("Failed", "Refused", "RemovalFailed"))


@dataclass(frozen=True, slots=True)
class Event:
    """One sentence about an object."""

    about: Standing
    type: Literal["Normal", "Warning"]
    reason: str
    message: str

    def body(self, now: str) -> dict[str, Any]:
        """As the API server takes it."""
        about = self.about
        involved = {
            "apiVersion": about.api_version,
            "kind": about.ref.kind,
            "name": about.ref.name,
            "namespace": about.ref.namespace,
            "uid": about.uid,
        }
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{about.ref.name[:230]}.{secrets.token_hex(8)}",
                "namespace": about.ref.namespace,
            },
            "involvedObject": involved,
            "type": self.type,
            "reason": self.reason,
            "message": self.message[:LONGEST],
            "source": {"component": MANAGER},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }


def news_of(before: Standing, now: Standing) -> Iterator[Event]:
    """What is worth an Event of an object whose status has changed."""
    ready, old = now.condition(READY), before.condition(READY)
    if ready.get("status") == "True" and (old.get("status") != "True" or old.get("message") != ready.get("message")):
        yield Event(now, "Normal", "Deployed", str(ready.get("message", "")))
    for name in (READY, REMOVED):
        one, earlier = now.condition(name), before.condition(name)
        said = (one.get("reason"), one.get("message"))
        if one.get("reason") in FAILURES and said != (earlier.get("reason"), earlier.get("message")):
            yield Event(now, "Warning", str(one["reason"]), str(one.get("message", "")))
    if now.condition(REMOVED).get("status") == "True" and before.condition(REMOVED).get("status") != "True":
        yield Event(now, "Normal", "ServicesRemoved", str(now.condition(REMOVED).get("message", "")))


def post(client: Client, events: Iterable[Event]) -> None:
    """Store them, as far as this account may."""
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for event in list(events)[:MOST]:
        try:
            with suppress(ConflictError, NotFoundError, RefusedError):
                client.create(EVENTS, event.body(stamp))
        except KubernetesError:
            return
