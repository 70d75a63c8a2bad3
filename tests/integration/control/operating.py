# SPDX-License-Identifier: GPL-3.0-or-later
"""The operator as a process, beside a real API server that has no controllers: the tests play the Jobs' pods."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.bundle import bundle
from ansible_collections.edpm.services.plugins.plugin_utils._control.conditions import Run, Told
from ansible_collections.edpm.services.plugins.plugin_utils._control.look import WatchfulClient, look
from ansible_collections.edpm.services.plugins.plugin_utils._control.status import write_status
from ansible_collections.edpm.services.plugins.plugin_utils._control.wanted import Chosen
from ansible_collections.edpm.services.plugins.plugin_utils._kube.connection import Connection
from edpm_lab.command import tied
from edpm_lab.ports import free_port

from .conftest import Body, Site, until

DEPLOY = Path(__file__).resolve().parents[3] / "extensions/operator/deploy"
PROGRAM = "ansible_collections.edpm.services.plugins.plugin_utils._operator.main"
IMAGES = {f"RELATED_IMAGE_NOVA_{name}_IMAGE_URL_DEFAULT": f"{name.lower()}:1" for name in ("COMPUTE", "LIBVIRT")}
NOW = "2026-01-01T00:00:00Z"
QUICK = {"settle": 1, "resync": 60, "first_pause": 2, "lease_duration": 8}


def run_now(name: str) -> Run:
    """A run of this moment: of what was told before a Job began, the operator knows that the Job has not told it."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Run(name, now, now)


def prepare(site: Site) -> None:
    """The rights that the manifests give, and the pods' account."""
    user = f"operator-{site.namespace}"
    site.kubectl("create", "-f", str(DEPLOY / "role.yaml"))
    site.kubectl("create", "rolebinding", "operates", "--role=edpm-services-operator", f"--user={user}")
    site.kubectl("create", "rolebinding", "starts", "--clusterrole=edpm-services-jobs", f"--user={user}")
    site.kubectl("create", "serviceaccount", "edpm-services-runner")


@dataclass
class Operator:
    """One process, from start to end."""

    site: Site
    folder: Path
    settings: dict[str, Any] = field(default_factory=dict)
    account: Path | None = None
    name: str = "one"
    process: subprocess.Popen[bytes] | None = None
    port: int = 0

    def __enter__(self) -> Operator:
        self.start()
        return self

    def __exit__(self, *ending: object) -> None:
        self.end()

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    def start(self) -> None:
        self.port = free_port()
        told = {"namespaces": [self.site.namespace], "run": {"image": "ee:1"}, "port": self.port, **QUICK}
        file = self.folder / f"{self.name}.yaml"
        file.write_text(yaml.safe_dump({**told, **self.settings}))
        env = {**os.environ, **IMAGES, "KUBECONFIG": str(self.account or self.site.account)}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*tied(), sys.executable, "-m", PROGRAM],
                env={**env, "EDPM_OPERATOR_SETTINGS": str(file)},
                stderr=log,
            )

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(30)

    def page(self, path: str) -> str:
        """Empty while nobody answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
                text: str = answer.read().decode()
                return text
        except OSError:
            return ""

    def figure(self, name: str) -> float:
        found = re.findall(rf"^{re.escape(name)} (\S+)$", self.page("/metrics"), re.MULTILINE)
        return float(found[0]) if found else 0.0

    @property
    def leads(self) -> bool:
        return self.figure("edpm_operator_leader") == 1

    def passes(self) -> float:
        return self.figure('edpm_operator_passes_total{result="ok"}')

    def said(self, text: str) -> bool:
        return text in " ".join(self.log.read_text().split())


@dataclass(frozen=True)
class Pods:
    """What the pods of the operator's Jobs would do."""

    site: Site

    def jobs(self) -> dict[str, Body]:
        return self.site.all("jobs")

    def unfinished(self) -> list[str]:
        return [name for name, job in self.jobs().items() if not (job.get("status") or {}).get("conditions")]

    def nodes(self, job: str) -> list[str]:
        return [node for shard in json.loads(self._settings(job)["shards.json"]) for node in shard]

    def told(self, job: str) -> Body:
        found: Body = json.loads(self._settings(job)["run.json"])
        return found

    def _settings(self, job: str) -> dict[str, str]:
        """What belongs to a Job is made after it, and its pods wait for that."""
        name = f"{job}-{self.site.get('job', job)['metadata']['labels']['edpm.openstack.org/start']}"
        until(lambda: name in self.site.there("configmap"), f"the settings {name} are there")
        found: dict[str, str] = self.site.get("configmap", name)["data"]
        return found

    def deploy(self, job: str) -> None:
        """Tell that the nodes of a Job are as the plan wants them, and that the Job is over."""
        names = self.nodes(job)
        with Connection(self.site.settings) as connection:
            client = WatchfulClient(connection)
            world = look(client, [self.site.namespace])
            told = [
                Told(node.name, service.name, digest=bundle(service).digest, image="image:1", changed=True)
                for node in world.plan.nodes
                if node.name in names
                for service in node.services
            ]
            write_status(client, [self.site.namespace], told, run_now("deploy"), Chosen(nodes=frozenset(names)))
        self.finish(job)

    def digest(self, name: str, service: str) -> str:
        with Connection(self.site.settings) as connection:
            plan = look(WatchfulClient(connection), [self.site.namespace]).plan
        return next(bundle(one).digest for one in plan.by_name()[name].services if one.name == service)

    def report(self, told: Iterable[Told]) -> None:
        with Connection(self.site.settings) as connection:
            write_status(WatchfulClient(connection), [self.site.namespace], list(told), run_now("run"), Chosen())

    def finish(self, job: str) -> None:
        count = self.site.get("job", job)["spec"]["completions"]
        done = {
            "completionTime": NOW,
            "succeeded": count,
            "completedIndexes": f"0-{count - 1}" if count > 1 else "0",
        }
        self._end(job, done, "SuccessCriteriaMet", "Complete")

    def fail(self, job: str) -> None:
        """Let the first shard of a Job fail, and with it the Job."""
        self._end(job, {"failed": 1, "failedIndexes": "0"}, "FailureTarget", "Failed")

    def _end(self, job: str, status: Body, *conditions: str) -> None:
        times = {"lastProbeTime": NOW, "lastTransitionTime": NOW, "status": "True", "message": "as the test says"}
        ended = {"startTime": NOW, **status, "conditions": [{"type": kind, **times} for kind in conditions]}
        self.site.patch("job", job, {"status": ended}, "--subresource=status")
