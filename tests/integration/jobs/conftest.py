# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs against a real API server. It has no controllers: the tests tell what a Job's controller would tell."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.order import Order
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.pod.main import Part, result_map
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.results import NodeResult, ShardResult, State
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.running import Outcome, Runs, Wishes
from ansible_collections.edpm.services.plugins.plugin_utils._kube.client import Client, Resource
from ansible_collections.edpm.services.plugins.plugin_utils._kube.connection import Connection, Settings
from edpm_lab.access import Access

CONFIG_MAPS = Resource("v1", "ConfigMap", "configmaps", namespaced=True)
ACCOUNT = "edpm-services-runner"
NOW = "2026-01-01T00:00:00Z"


@dataclass
class Desk:
    """Where runs are ordered, and where a test plays the cluster's part in them."""

    kube: Access
    namespace: str
    said: list[str] = field(default_factory=list)

    def order(self, **fields: Any) -> Order:
        usual: dict[str, Any] = {"image": "example.com/ee:1", "playbook": "edpm.services.deploy"}
        return Order(**usual | {"namespace": self.namespace} | fields)

    def carry_out(self, order: Order, *, account: Path | None = None, check: bool = False, **wishes: Any) -> Outcome:
        with Connection(Settings(kubeconfig=str(account or self.kube.kubeconfig))) as connection:
            client = Client(connection, dry_run=check)
            return Runs(client, self.said.append).carry_out(order, Wishes(**{"timeout": 60} | wishes))

    def get(self, kind: str, name: str) -> Any:
        words = ("get", kind, name, "--namespace", self.namespace, "--ignore-not-found", "-o", "json")
        return json.loads(self.kube.kubectl(*words).stdout or "null")

    def all(self, kind: str) -> Any:
        return json.loads(self.kube.kubectl("get", kind, "--namespace", self.namespace, "-o", "json").stdout)["items"]

    def await_job(self, order: Order) -> Any:
        limit = time.monotonic() + 60
        while (job := self.get("job", order.run_name)) is None:
            assert time.monotonic() < limit, self.said
            time.sleep(0.2)
        return job

    def store(self, order: Order, start: str, index: int, state: State, *, code: int = 0) -> None:
        """What a pod would store, by the pods' own account."""
        nodes = tuple(NodeResult(name, state, shard=index) for name in order.shards[index])
        told = {"namespace": self.namespace, "labels": labels(order, start)}
        part = Part(told, index, order.shards[index], f"{order.run_name}-{index}-{start}", "", "")
        with Connection(Settings(kubeconfig=str(self.runner()))) as connection:
            Client(connection).create(CONFIG_MAPS, result_map(part, ShardResult(index, code, 1.0, nodes)))

    def runner(self) -> Path:
        user = f"system:serviceaccount:{self.namespace}:{ACCOUNT}"
        return self.kube.client_certificate(user, ["system:serviceaccounts"])

    def finish(self, order: Order, *, done: str, failed: str = "") -> None:
        """Say of a Job what its controller says when it is over."""
        ended = ("FailureTarget", "Failed") if failed else ("SuccessCriteriaMet", "Complete")
        times = {"lastProbeTime": NOW, "lastTransitionTime": NOW}
        conditions = [{"type": kind, "status": "True", "message": "as the test says", **times} for kind in ended]
        status: dict[str, Any] = {"startTime": NOW, "conditions": conditions, "completedIndexes": done}
        status |= {"failedIndexes": failed, "failed": 1} if failed else {"completionTime": NOW}
        status["succeeded"] = len(order.shards) if not failed else 1
        words = ("patch", "job", order.run_name, "--namespace", self.namespace, "--subresource=status", "--type=merge")
        self.kube.kubectl(*words, "-p", json.dumps({"status": status}))


def labels(order: Order, start: str) -> dict[str, str]:
    return {"edpm.openstack.org/run": order.run_name, "edpm.openstack.org/start": start}


def start_of(found: Any) -> str:
    return str(found["metadata"]["labels"]["edpm.openstack.org/start"])


@pytest.fixture
def desk(installed: Access, namespace: str) -> Desk:
    """A namespace with the pods' account in it."""
    installed.kubectl("create", "serviceaccount", ACCOUNT, "--namespace", namespace)
    for role in (ACCOUNT, "edpm-services-reader"):
        words = (f"--clusterrole={role}", f"--serviceaccount={namespace}:{ACCOUNT}", "--namespace", namespace)
        installed.kubectl("create", "rolebinding", f"runner-{role}", *words)
    return Desk(installed, namespace)


@pytest.fixture
def beside() -> Iterator[ThreadPoolExecutor]:
    """Threads for callers that wait."""
    with ThreadPoolExecutor(2) as threads:
        yield threads


def answered(waiting: Future[Outcome]) -> Outcome:
    return waiting.result(timeout=90)
