# SPDX-License-Identifier: GPL-3.0-or-later
"""A run as one Indexed Job."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from contextlib import suppress

from .._kube.client import Client, Object, Resource
from .._kube.errors import ConflictError, KubernetesError, NotFoundError
from . import manifests
from .order import Order
from .standing import Pod, Standing, of_job, of_pod

CONFIG_MAPS = Resource("v1", "ConfigMap", "configmaps", namespaced=True)
PODS = Resource("v1", "Pod", "pods", namespaced=True)
#: Seconds for a finished Job to be removed before it is run again.
REMOVED_WITHIN = 60.0


class StillThereError(KubernetesError):
    """A Job that was deleted does not go."""


class Jobs:
    """Finds, starts, looks at and removes the Job of an order."""

    kind = "Job"

    def __init__(self, client: Client, order: Order, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._client, self._order, self._sleep = client, order, sleep
        self._jobs = client.resource("batch/v1", "Job")
        self.start = ""

    def find(self) -> Standing | None:
        """The run that is there already, unless it is being removed."""
        live = self._live()
        if live is None or live["metadata"].get("deletionTimestamp"):
            return None
        self.start = (live["metadata"].get("labels") or {}).get(manifests.START_LABEL, "")
        return of_job(live)

    def begin(self) -> bool:
        """Start it; False where somebody else did so this very moment, and that run is meant from now on."""
        if not self._client.dry_run:
            where = f"Job {self._order.namespace}/{self._order.run_name}"
            await_absence(lambda: self._live() is not None, where, self._sleep)
        self.start = secrets.token_hex(3)
        try:
            job = self._client.create(self._jobs, manifests.job(self._order, self.start))
        except ConflictError:
            if self.find() is None:
                raise
            return False
        if not self._client.dry_run:
            self._client.apply(CONFIG_MAPS, manifests.settings(self._order, self.start, job), force=True)
        return True

    def mend(self) -> None:
        """Make what a caller that was killed in the middle of `begin` did not come to."""
        name, namespace = manifests.settings_name(self._order, self.start), self._order.namespace
        live = self._live()
        if live is not None and self._client.get(CONFIG_MAPS, name, namespace) is None:
            self._client.apply(CONFIG_MAPS, manifests.settings(self._order, self.start, live), force=True)

    def look(self) -> Standing:
        """How it stands now."""
        live = self._live()
        if live is None:
            raise NotFoundError(
                f"Job {self._order.namespace}/{self._order.run_name} was removed by somebody while it ran; run again."
            )
        return of_job(live)

    def pods(self) -> list[Pod]:
        """All pods of it, ended ones too, the oldest first."""
        chosen = f"{manifests.RUN_LABEL}={self._order.run_name},{manifests.START_LABEL}={self.start}"
        found = self._client.get_all(PODS, self._order.namespace, chosen)
        found.sort(key=lambda pod: str(pod["metadata"].get("creationTimestamp")))
        return [of_pod(pod) for pod in found]

    def remove(self) -> None:
        """Take it away with its pods."""
        with suppress(NotFoundError):
            place = (self._order.run_name, self._order.namespace)
            self._client.delete(self._jobs, *place, propagation="Foreground")

    def manifest(self) -> list[dict[str, object]]:
        """What would be created, for a person to read."""
        start = self.start or "000000"
        return [manifests.job(self._order, start), manifests.settings(self._order, start)]

    def _live(self) -> Object | None:
        return self._client.get(self._jobs, self._order.run_name, self._order.namespace)


def await_absence(present: Callable[[], bool], where: str, sleep: Callable[[float], None]) -> None:
    """Let what is being removed go before it is made anew."""
    waited = 0.0
    while present():
        if waited >= REMOVED_WITHIN:
            raise StillThereError(
                f"{where} is being removed and does not go; look for a finalizer on it or on what it owns."
            )
        sleep(0.5)
        waited += 0.5
