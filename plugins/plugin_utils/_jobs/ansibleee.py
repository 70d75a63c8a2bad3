# SPDX-License-Identifier: GPL-3.0-or-later
"""A run as OpenStackAnsibleEE resources, one for each shard: their operator makes the Jobs and the pods.

The resources take the run's own program as `args`, so that results are stored the same way. What that operator decides
by itself (security context, time to live, failure policy) is as it decides.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from .._kube.client import Client, Object, Resource
from .._kube.errors import KindNotServedError, NotFoundError, one_line
from . import manifests
from .jobs import CONFIG_MAPS, await_absence
from .order import Order
from .standing import Pod, Standing

GROUP = "ansibleee.openstack.org"
API_VERSION = f"{GROUP}/v1beta1"
OLDER = f"{GROUP}/v1alpha1"
KIND = "OpenStackAnsibleEE"


def served(client: Client) -> Resource | None:
    """Where the kind is served; None where its CRD is not installed, an error where only another version is."""
    with suppress(KindNotServedError):
        return client.resource(API_VERSION, KIND)
    try:
        client.resource(OLDER, KIND)
    except KindNotServedError:
        return None
    raise WrongVersionError(
        f"{client.server} serves {KIND} as {OLDER} only, and runs are written as {API_VERSION}; "
        "upgrade the operator that it belongs to, or let engine be job."
    )


class WrongVersionError(KindNotServedError):
    """The CRD is there, in a version whose fields mean something else."""


def resource(order: Order, start: str, index: int) -> dict[str, Any]:
    """The resource of one shard."""
    mounted = manifests.volumes(order, start)
    spec: dict[str, Any] = {
        "image": order.image,
        "args": list(manifests.PROGRAM),
        "env": [*manifests.environment(order), {"name": "EDPM_SHARD", "value": str(index)}],
        "extraMounts": [
            {
                "volumes": [volume for volume, _path in mounted],
                "mounts": [manifests.volume_mount(volume, path) for volume, path in mounted],
            }
        ],
        "serviceAccountName": order.service_account,
        "backoffLimit": order.backoff_limit,
        "restartPolicy": "Never",
        "preserveJobs": True,
    }
    if order.network_attachments:
        spec["networkAttachments"] = list(order.network_attachments)
    if order.dns_config:
        spec["dnsConfig"] = dict(order.dns_config)
    if order.run_as_user is not None:
        spec["uid"] = order.run_as_user
    metadata = {
        "name": f"{order.run_name}-{index}",
        "namespace": order.namespace,
        "labels": manifests.labels(order, start),
    }
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}


class AnsibleEEs:
    """Finds, starts, looks at and removes the resources of an order; at most `parallel` of them at a time are begun."""

    kind = KIND

    def __init__(
        self, client: Client, order: Order, kind: Resource, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._client, self._order, self._resource, self._sleep = client, order, kind, sleep
        self.start = ""

    def find(self) -> Standing | None:
        """The run that is there already, unless it is being removed."""
        live = self._live()
        if not live or any(one["metadata"].get("deletionTimestamp") for one in live.values()):
            return None
        labels = next(iter(live.values()))["metadata"].get("labels") or {}
        self.start = labels.get(manifests.START_LABEL, "")
        return self._standing(live)

    def begin(self) -> bool:
        """Start the first ones."""
        if not self._client.dry_run:
            await_absence(lambda: bool(self._live()), f"{KIND} {self._order.run_name}", self._sleep)
        self.start = secrets.token_hex(3)
        self._begin(range(min(self._order.parallel, len(self._order.shards))))
        if not self._client.dry_run:
            self.mend()
        return True

    def mend(self) -> None:
        """Make the ConfigMap that all of them read, owned by the first."""
        first = self._client.get(self._resource, f"{self._order.run_name}-0", self._order.namespace)
        if first is not None:
            self._client.apply(CONFIG_MAPS, manifests.settings(self._order, self.start, first), force=True)

    def look(self) -> Standing:
        """How it stands now; where some are done, the next ones are begun."""
        live = self._live()
        stands = self._standing(live)
        waiting = [index for index in range(stands.total) if index not in live]
        if waiting and stands.active < self._order.parallel:
            self._begin(waiting[: self._order.parallel - stands.active])
        return stands

    def pods(self) -> list[Pod]:
        """Each resource in its pod's place: which pods it has is the operator's affair."""
        return [
            Pod(one["metadata"]["name"], index, _state(one), message=_said(one), reason=_state(one))
            for index, one in sorted(self._live().items())
        ]

    def remove(self) -> None:
        """Take all of them away."""
        for index in self._live():
            with suppress(NotFoundError):
                self._client.delete(self._resource, f"{self._order.run_name}-{index}", self._order.namespace)

    def manifest(self) -> list[dict[str, object]]:
        """What would be created, for a person to read."""
        start = self.start or "000000"
        made = [resource(self._order, start, index) for index in range(len(self._order.shards))]
        return [*made, manifests.settings(self._order, start)]

    def _begin(self, numbers: range | list[int]) -> None:
        for index in numbers:
            self._client.apply(self._resource, resource(self._order, self.start, index), force=True)

    def _live(self) -> dict[int, Object]:
        chosen = f"{manifests.RUN_LABEL}={self._order.run_name}"
        found = self._client.get_all(self._resource, self._order.namespace, chosen)
        return {int(one["metadata"]["name"].rpartition("-")[2]): one for one in found}

    def _standing(self, live: Mapping[int, Object]) -> Standing:
        states = {index: _state(one) for index, one in live.items()}
        done = frozenset(index for index, state in states.items() if state == "Succeeded")
        failed = frozenset(index for index, state in states.items() if state == "Failed")
        total = len(self._order.shards)
        said = "; ".join(filter(None, (_said(live[index]) for index in sorted(failed))))
        return Standing(
            total=total,
            done=done,
            failed=failed,
            active=len(live) - len(done) - len(failed),
            finished=len(done) + len(failed) == total,
            message=said,
        )


def _state(one: Object) -> str:
    """Pending, Running, Succeeded or Failed, which are a pod's phases too."""
    return str((one.get("status") or {}).get("JobStatus") or "Pending")


def _said(one: Object) -> str:
    conditions = (one.get("status") or {}).get("conditions") or ()
    return next((one_line(c.get("message") or "") for c in conditions if c.get("status") == "False"), "")
