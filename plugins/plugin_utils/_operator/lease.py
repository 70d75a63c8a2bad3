# SPDX-License-Identifier: GPL-3.0-or-later
"""One operator at a time: who holds the Lease works, the others wait until it is not renewed any more."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from .._kube.client import Client, Object, Resource
from .._kube.errors import ConflictError

LEASES = Resource("coordination.k8s.io/v1", "Lease", "leases", namespaced=True)


class Lease:
    """A Lease in a cluster. Another's is taken over when it has not changed for its own duration, by this clock."""

    def __init__(
        self,
        client: Client,
        place: tuple[str, str],
        identity: str,
        duration: int,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._identity, self._duration, self._clock = client, identity, duration, clock
        self._namespace, self._name = place
        self._seen: tuple[str, float] = ("", 0.0)

    def hold(self) -> bool:
        """Take or renew it; False where somebody else has it. An unreachable server is the client's error.

        A conflict is no loss by itself: the client sends a request again whose answer was lost, and meets what the
        first one wrote; and anybody may annotate the Lease. So it is read again. A second conflict is an error, too.
        """
        try:
            return self._taken()
        except ConflictError:
            return self._taken()

    def release(self) -> None:
        """Let it go at once, so that nobody has to wait for it."""
        live = self._client.get(LEASES, self._name, self._namespace)
        if live is not None and self._holder(live) == self._identity:
            body = self._body(live, anew=False)
            body["spec"]["holderIdentity"] = ""
            try:
                self._client.merge(LEASES, body)
            except ConflictError:
                return

    def _taken(self) -> bool:
        live = self._client.get(LEASES, self._name, self._namespace)
        if live is None:
            self._client.create(LEASES, self._body({}, anew=True))
            return True
        if not self._may_take(live):
            return False
        self._client.merge(LEASES, self._body(live, anew=self._holder(live) != self._identity))
        return True

    def _holder(self, live: Object) -> str:
        return str((live.get("spec") or {}).get("holderIdentity") or "")

    def _may_take(self, live: Object) -> bool:
        if self._holder(live) in ("", self._identity):
            return True
        version, now = str(live["metadata"]["resourceVersion"]), self._clock()
        if version != self._seen[0]:
            self._seen = (version, now)
        lasts = float((live.get("spec") or {}).get("leaseDurationSeconds") or self._duration)
        return now - self._seen[1] > lasts

    def _body(self, live: Object, *, anew: bool) -> dict[str, Any]:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        before = live.get("spec") or {}
        spec: dict[str, Any] = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": self._duration,
            "renewTime": now,
        }
        if anew:
            spec |= {"acquireTime": now, "leaseTransitions": int(before.get("leaseTransitions") or 0) + bool(live)}
        metadata = {"name": self._name, "namespace": self._namespace}
        if live:
            metadata["resourceVersion"] = live["metadata"]["resourceVersion"]
        return {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": spec}
