# SPDX-License-Identifier: GPL-3.0-or-later
"""A data plane whose nodes run a partner's small service, and the operator as a Deployment beside it.

The service is a shell script in an image that all images of services are made from, so a deployment takes seconds. Its
Roles stand for two cells: each has a Secret of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from edpm_lab import images
from edpm_lab.cluster import Cluster
from edpm_lab.nodes import Nodes

NAMESPACE = "edpm-operator"
NODES = ["edpm-op-0", "edpm-op-1"]
#: A node that becomes a compute.
COMPUTE = "edpm-op-2"
LIBVIRT = "edpm.openstack.org/service-libvirt"
CELLS = dict(zip(NODES, ("one", "two"), strict=True))
SERVICE = "acme-agent"
ASKS = "acme.example.com/agent"
KIND, PLURAL, GROUP = "AcmeAgent", "acmeagents", "acme.example.com"
TREE = Path(__file__).resolve().parents[3]
DEPLOY = TREE / "extensions/operator/deploy"
DATA_PLANE = "dataplane.openstack.org/v1beta1"
LIMIT = 240.0

Body = dict[str, Any]


@dataclass(frozen=True)
class Site:
    """What a person at this data plane has: kubectl, and ssh to look at the nodes with."""

    cluster: Cluster
    nodes: Nodes

    def kubectl(self, *words: str | Path, check: bool = True, stdin: str | None = None, timeout: float = 120) -> str:
        done = self.cluster.kubectl("--namespace", NAMESPACE, *words, check=check, stdin=stdin, timeout=timeout)
        return done.stdout

    def get(self, kind: str, name: str) -> Body:
        text = self.kubectl("get", kind, name, "--ignore-not-found", "-o", "json")
        found: Body = json.loads(text or "{}")
        return found

    def all(self, kind: str, *words: str) -> list[Body]:
        found: list[Body] = json.loads(self.kubectl("get", kind, *words, "-o", "json"))["items"]
        return found

    def apply(self, *bodies: Body) -> None:
        self.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(bodies))

    def annotate(self, kind: str, name: str, *words: str) -> None:
        self.kubectl("annotate", "--overwrite", kind, name, *words)

    def configure(self, node: str, text: str) -> None:
        body = json.dumps({"spec": {"customServiceConfig": text}})
        self.kubectl("patch", PLURAL, node, "--type=merge", "-p", body)

    def digest(self, node: str) -> str:
        """What the service object says is live."""
        return str((self.get(PLURAL, node).get("status") or {}).get("deployedDigests", {}).get(SERVICE, ""))

    def await_ready(self, node: str, *, other_than: str | None = None) -> str:
        """The digest that is live once the service object is ready for its newest generation."""

        def is_ready() -> bool:
            body = self.get(PLURAL, node)
            conditions = {one["type"]: one for one in (body.get("status") or {}).get("conditions") or ()}
            ready = conditions.get("Ready") or {}
            newest = ready.get("observedGeneration") == body["metadata"]["generation"] if body else False
            return ready.get("status") == "True" and newest and self.digest(node) != other_than

        self.until(is_ready, f"{node} is ready")
        return self.digest(node)

    def live(self, node: str) -> str:
        """The digest on the node itself."""
        words = f"readlink /var/lib/openstack/{SERVICE}/current || true"
        return self.nodes.execute(node, "sh", "-c", words).stdout.strip().rpartition("/")[2]

    def starts(self, node: str) -> int:
        """How often the service was started: it writes a line itself."""
        return len(self.nodes.execute(node, "sh", "-c", "cat /var/lib/acme/starts || true").stdout.split())

    def certificate(self, node: str) -> str:
        """What the running service has."""
        return self.nodes.execute(node, "podman", "exec", f"edpm_{SERVICE}", "cat", "/etc/acme/tls/acme.crt").stdout

    def jobs(self) -> list[str]:
        return [one["metadata"]["name"] for one in self.all("jobs")]

    def new_job(self, known: set[str]) -> str:
        """The Job that is there beside those known."""
        self.until(lambda: bool(set(self.jobs()) - known), "a Job is started")
        return next(iter(set(self.jobs()) - known))

    def running_pod(self, job: str, *, other_than: str = "") -> str:
        """The pod of a Job whose program runs."""
        found: list[str] = []
        chosen = ("-l", f"batch.kubernetes.io/job-name={job}", "--field-selector=status.phase=Running")

        def is_there() -> bool:
            found[:] = [name for one in self.all("pods", *chosen) if (name := one["metadata"]["name"]) != other_than]
            return bool(found)

        self.until(is_there, f"a pod of {job} runs")
        return found[0]

    def evict(self, pod: str) -> None:
        """As draining a cluster's node does."""
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": NAMESPACE},
            "deleteOptions": {"gracePeriodSeconds": 1},
        }
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/eviction"
        self.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(eviction))

    def operator_pod(self) -> str:
        pods = self.all("pods", "-l", "app.kubernetes.io/name=edpm-services-operator")
        return str(next(one["metadata"]["name"] for one in pods if not one["metadata"].get("deletionTimestamp")))

    def metrics(self) -> str:
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{self.operator_pod()}:8080/proxy/metrics"
        return self.kubectl("get", "--raw", path)

    def until(self, what: Callable[[], bool], wanted: str) -> None:
        limit = time.monotonic() + LIMIT
        while not what():
            assert time.monotonic() < limit, f"not within {LIMIT:.0f} s: {wanted}\n{self.told()}"
            time.sleep(0.5)

    def told(self) -> str:
        """What the operator and the pods have printed, for whoever reads why a test failed."""
        words = ("logs", "--tail=60", "--prefix", "-l")
        operator = self.kubectl(*words, "app.kubernetes.io/name=edpm-services-operator", check=False)
        runs = self.kubectl(*words, "app.kubernetes.io/name=edpm-services-run", check=False)
        return f"{operator}\n{runs}\n{self.kubectl('get', 'jobs,pods', check=False)}"


def prepare(site: Site, folder: Path) -> None:
    """The collection's definitions, the partner's kind, the data plane without a wish, and the operator."""
    quiet = {key: value for key, value in os.environ.items() if not key.startswith(("K8S_AUTH_", "ANSIBLE_"))}
    subprocess.run(
        [Path(sys.executable).parent / "ansible-playbook", "edpm.services.install_cluster"],
        env={**quiet, **site.cluster.environment()},
        check=True,
        capture_output=True,
        timeout=300,
    )
    site.cluster.kubectl("create", "namespace", NAMESPACE)
    site.cluster.kubectl("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")
    site.cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(partner_kind()))
    site.cluster.kubectl("wait", "--for=condition=Established", f"crd/{PLURAL}.{GROUP}", "--timeout=60s")
    site.apply(*data_plane(site.nodes))
    site.kubectl("apply", "-k", str(overlay(folder)))
    for account in ("edpm-services-operator", "edpm-services-runner"):
        subject = f"--serviceaccount={NAMESPACE}:{account}"
        site.kubectl("create", "rolebinding", f"acme-{account}", "--clusterrole=acme-agents", subject)
    site.kubectl("rollout", "status", "deployment/edpm-services-operator", "--timeout=120s", timeout=150)


def overlay(folder: Path) -> Path:
    """What a site lays over the manifests: its namespace, its image, its settings."""
    settings = {
        "namespaces": [NAMESPACE],
        "settle": 1,
        "first_pause": 5,
        "lease_duration": 10,
        "run": {"image": images.image("ee"), "image_pull_policy": "Never", "known_hosts": "known-hosts", "ttl": 3600},
    }
    (folder / "settings.yaml").write_text(yaml.safe_dump(settings))
    name, _colon, tag = images.image("operator").rpartition(":")
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": NAMESPACE,
        "resources": [os.path.relpath(DEPLOY, folder)],
        "images": [{"name": "edpm-services-operator", "newName": name, "newTag": tag}],
        "patches": [{"target": {"kind": "Deployment"}, "patch": yaml.safe_dump(images_of_services())}],
        "configMapGenerator": [
            {"name": "edpm-services-operator-settings", "behavior": "replace", "files": ["settings.yaml"]},
        ],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    return folder


def images_of_services() -> list[Body]:
    """What its environment says of the images that new service objects get."""
    named = {
        "RELATED_IMAGE_NOVA_LIBVIRT_IMAGE_URL_DEFAULT": images.image("libvirt"),
        "RELATED_IMAGE_NOVA_COMPUTE_IMAGE_URL_DEFAULT": images.image("nova-compute"),
    }
    at = "/spec/template/spec/containers/0/env/-"
    return [{"op": "add", "path": at, "value": {"name": name, "value": image}} for name, image in named.items()]


def partner_kind() -> Iterator[Body]:
    open_ended = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": open_ended, "status": open_ended}}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    yield {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": KIND, "plural": PLURAL, "singular": "acmeagent"},
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
        },
    }
    verbs = ["get", "list", "watch", "create", "patch", "delete"]
    rules = [{"apiGroups": [GROUP], "resources": [PLURAL, f"{PLURAL}/status"], "verbs": verbs}]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "acme-agents"}}
    yield {**role, "rules": rules}


def data_plane(nodes: Nodes) -> Iterator[Body]:
    definition = {
        "version": 1,
        "title": "Agent of Acme",
        "image": images.image("kolla"),
        "service_cr": {"api_version": f"{GROUP}/v1", "kind": KIND},
        "asked_by": [ASKS],
        "user": "root",
        "command": "sh /etc/acme/agent",
        "conf_d": "/etc/acme/acme.conf.d",
        "config_directory": "/etc/acme",
        "keys": [{"key": "acme.crt", "directory": "/etc/acme/tls", "live": True}],
        "files": [{"path": "/etc/acme/agent", "mode": "0700", "content": AGENT}],
        "mounts": [{"source": "/var/lib/acme", "own": True}],
        "folders": [{"path": "/var/lib/acme"}],
        "data": ["/var/lib/acme"],
        "privileges": {"confined": True},
        "stop_seconds": 2,
        "health": {"command": ["test", "-s", "/var/lib/acme/starts"], "settle": 1, "timeout": 30},
        "validation": {"command": ["sh", "-c", "! grep -q nonsense /etc/acme/acme.conf.d/*.conf"]},
    }
    yield _object("v1", "ConfigMap", SERVICE, data={"edpm-service.yaml": yaml.safe_dump(definition)})
    sources: Body = {"dataSources": [{"configMapRef": {"name": SERVICE}}]}
    yield _object(DATA_PLANE, "OpenStackDataPlaneService", SERVICE, spec=sources)
    for cell in CELLS.values():
        yield secret(cell, "first")
        sources = {"edpmServiceType": SERVICE, "dataSources": [{"secretRef": {"name": f"acme-{cell}"}}]}
        yield _object(DATA_PLANE, "OpenStackDataPlaneService", f"acme-{cell}", spec=sources)
        template = {"ansibleUser": "root", "ansibleSSHPrivateKeySecret": "dataplane-ssh"}
        spec = {"services": [f"acme-{cell}"], "nodeTemplate": template}
        yield _object(DATA_PLANE, "OpenStackDataPlaneRole", f"cell-{cell}", spec=spec)
    yield _object("v1", "Secret", "dataplane-ssh", stringData={"ssh-privatekey": nodes.private_key.read_text()})
    yield _object("v1", "ConfigMap", "known-hosts", data={"known_hosts": nodes.known_hosts.read_text()})
    for node in (one for one in nodes.list() if one.name in NODES):
        spec = {"role": f"cell-{CELLS[node.name]}", "hostName": node.name, "ansibleHost": node.address}
        body = _object(DATA_PLANE, "OpenStackDataPlaneNode", node.name, spec=spec)
        body["metadata"]["annotations"] = {ASKS: "false"}  # its Role lists the service
        yield body


def compute(nodes: Nodes) -> Iterator[Body]:
    """A Role of computes and its Node, which belongs to no cell yet and has an annotation of its own for libvirt."""
    template = {"ansibleUser": "root", "ansibleSSHPrivateKeySecret": "dataplane-ssh"}
    yield _object(DATA_PLANE, "OpenStackDataPlaneRole", "compute", spec={"nodeTemplate": template})
    node = next(one for one in nodes.list() if one.name == COMPUTE)
    spec = {"role": "compute", "hostName": node.name, "ansibleHost": node.address}
    body = _object(DATA_PLANE, "OpenStackDataPlaneNode", node.name, spec=spec)
    body["metadata"]["annotations"] = {LIBVIRT: "true"}
    yield body


def secret(cell: str, word: str, certificate: str = "certificate of first") -> Body:
    """The Secret of a cell, with a certificate that a running service takes up."""
    data = {"10-acme.conf": f"[DEFAULT]\npassword = {word}\n", "acme.crt": certificate}
    return _object("v1", "Secret", f"acme-{cell}", stringData=data)


def _object(api_version: str, kind: str, name: str, **rest: Any) -> Body:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **rest}


AGENT = """trap 'exit 0' TERM
echo start >> /var/lib/acme/starts
sleep infinity &
wait
"""
