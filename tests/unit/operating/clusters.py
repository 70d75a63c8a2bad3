# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster in memory: what the operator's own steps ask of a client, and no more."""

from __future__ import annotations

import copy
from typing import Any

from ansible_collections.edpm.services.plugins.plugin_utils._jobs.order import Order
from ansible_collections.edpm.services.plugins.plugin_utils._kube.client import Object, Resource
from ansible_collections.edpm.services.plugins.plugin_utils._kube.errors import ConflictError, NotFoundError

Body = dict[str, Any]


class FakeCluster:
    """Keeps bodies by kind, namespace and name; what is deleted is gone at once."""

    dry_run = False
    server = "memory"

    def __init__(self) -> None:
        self.bodies: dict[tuple[str, str, str], Body] = {}
        self.made = 0
        #: The kind of everything that was read.
        self.asked: list[str] = []
        for kind, name in (("ServiceAccount", "edpm-services-runner"), ("Secret", "ssh-key")):
            self._store(kind, {"metadata": {"name": name, "namespace": "openstack"}})

    def all(self, kind: str) -> list[Body]:
        return [body for (of, _namespace, _name), body in self.bodies.items() if of == kind]

    def resource(self, api_version: str, kind: str) -> Resource:
        return Resource(api_version, kind, f"{kind.lower()}s", namespaced=True)

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object | None:
        self.asked.append(resource.kind)
        return self.bodies.get((resource.kind, namespace or "", name))

    def get_all(
        self, resource: Resource, namespace: str | None = None, labels: str | None = None, *, fields: str | None = None
    ) -> list[Object]:
        del fields
        self.asked.append(resource.kind)
        wanted = dict(one.split("=", 1) for one in (labels or "").split(",") if "=" in one)
        return [
            body
            for (kind, where, _name), body in self.bodies.items()
            if (kind, where) == (resource.kind, namespace)
            and wanted.items() <= (body["metadata"].get("labels") or {}).items()
        ]

    def create(self, resource: Resource, body: Object) -> Object:
        meta = body["metadata"]
        if (resource.kind, meta.get("namespace", ""), meta["name"]) in self.bodies:
            raise ConflictError(f"{meta['name']} is there already.")
        return self._store(resource.kind, body)

    def apply(self, resource: Resource, body: Object, **_how: object) -> Object:
        return self._store(resource.kind, body)

    def delete(self, resource: Resource, name: str, namespace: str | None = None, **_how: object) -> Object:
        try:
            return self.bodies.pop((resource.kind, namespace or "", name))
        except KeyError:
            raise NotFoundError(f"{name} is not there.") from None

    def finish(self, order: Order, how: str = "Complete", message: str = "", reason: str = "") -> None:
        """Let the Job of an order be over."""
        job = self.bodies["Job", order.namespace, order.run_name]
        done = {"completedIndexes": f"0-{len(order.shards) - 1}"} if how == "Complete" else {"failedIndexes": "0"}
        said = {"type": how, "status": "True", "message": message, "reason": reason}
        job["status"] = {**done, "conditions": [said]}

    def _store(self, kind: str, body: Object) -> Body:
        self.made += 1
        stored: Body = copy.deepcopy(dict(body))
        meta = stored["metadata"]
        meta |= {"uid": f"uid-{self.made}", "creationTimestamp": "2999-01-01T00:00:00Z"}
        self.bodies[kind, meta.get("namespace", ""), meta["name"]] = stored
        return stored
