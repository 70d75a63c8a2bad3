# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole cluster runs pods that may do little and reach what a deployment needs: Secrets, the API, nodes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from edpm_lab import images, labs, podman
from edpm_lab.access import GivenCluster, given_cluster
from edpm_lab.cluster import Cluster, cluster
from edpm_lab.nodes import Nodes

NOBODY = 65534
ASK_THE_API = """
import os, ssl, urllib.request
mount = "/var/run/secrets/kubernetes.io/serviceaccount"
url = f"https://{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}"
request = urllib.request.Request(f"{url}/version", headers={"Authorization": "Bearer " + open(f"{mount}/token").read()})
trust = ssl.create_default_context(cafile=f"{mount}/ca.crt")
with urllib.request.urlopen(request, context=trust, timeout=10) as answer:
    print("API", answer.status)
"""


@pytest.fixture(scope="module")
def whole(lab: labs.Lab) -> Iterator[Cluster]:
    with cluster(lab) as started:
        started.load(images.image("base"))
        yield started


@pytest.fixture(scope="module")
def nodes(lab: labs.Lab) -> Nodes:
    nodes = Nodes(lab)
    nodes.up(["edpm-compute-0"])
    return nodes


def job(name: str, *command: str, secret: str | None = None) -> dict[str, Any]:
    """A Job whose pod passes the Pod Security Standard "restricted" and has a read-only root."""
    container = {
        "name": "main",
        "image": images.image("base"),
        "imagePullPolicy": "Never",
        "command": list(command),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "resources": {"limits": {"cpu": "500m", "memory": "128Mi"}},
        "volumeMounts": [{"name": "secret", "mountPath": "/secret", "readOnly": True}] if secret else [],
    }
    pod = {
        "restartPolicy": "Never",
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": NOBODY,
            "runAsGroup": NOBODY,
            "fsGroup": NOBODY,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [{"name": "secret", "secret": {"secretName": secret, "defaultMode": 0o400}}] if secret else [],
    }
    spec = {"backoffLimit": 0, "template": {"spec": pod}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def output(whole: Cluster, wanted: dict[str, Any]) -> str:
    """What a Job's pod prints, in a namespace that refuses pods that may do more."""
    whole.kubectl("apply", "--namespace=pods", "-f", "-", stdin=json.dumps(wanted))
    name = f"job/{wanted['metadata']['name']}"
    limit = time.monotonic() + 120
    while not (said := ended(whole, name)):
        assert time.monotonic() < limit, whole.kubectl("describe", "--namespace=pods", name, "pods").stdout
        time.sleep(0.5)
    logs = whole.kubectl("logs", "--namespace=pods", name).stdout
    assert said == "Complete", logs
    return logs


def ended(whole: Cluster, name: str) -> str:
    """How a Job ended, empty before; a moment earlier other conditions tell how it is going to."""
    status = json.loads(whole.kubectl("get", "--namespace=pods", name, "-o", "json").stdout)["status"]
    true = {one["type"] for one in status.get("conditions", ()) if one["status"] == "True"}
    return next(iter(true & {"Complete", "Failed"}), "")


@pytest.fixture(scope="module", autouse=True)
def namespace(whole: Cluster) -> None:
    whole.kubectl("create", "namespace", "pods")
    whole.kubectl("label", "namespace", "pods", "pod-security.kubernetes.io/enforce=restricted")
    limit = time.monotonic() + 30
    while whole.kubectl("get", "serviceaccount", "default", "--namespace=pods", check=False).returncode != 0:
        assert time.monotonic() < limit
        time.sleep(0.2)


def test_a_jobs_pod_reads_a_secret_and_reaches_a_node_by_ssh(whole: Cluster, nodes: Nodes) -> None:
    files = {"id": nodes.private_key, "known_hosts": nodes.known_hosts}
    words = [f"--from-file={name}={path}" for name, path in files.items()]
    whole.kubectl("create", "secret", "generic", "ssh", "--namespace=pods", "--from-literal=word=xyzzy", *words)
    address = nodes.address("edpm-compute-0")
    ssh = (
        "ssh -F /dev/null -i /secret/id -o BatchMode=yes -o StrictHostKeyChecking=yes "
        f"-o UserKnownHostsFile=/secret/known_hosts root@{address} hostname"
    )

    shown = output(whole, job("reach", "sh", "-c", f"id -u; cat /secret/word; echo; {ssh}", secret="ssh"))

    assert shown.split() == [str(NOBODY), "xyzzy", "edpm-compute-0"]


def test_the_root_of_a_pod_is_read_only_and_it_has_no_capability(whole: Cluster) -> None:
    shown = output(whole, job("little", "sh", "-c", "touch /tmp/file 2>&1; grep CapEff /proc/self/status"))

    assert "Read-only file system" in shown
    assert shown.split()[-2:] == ["CapEff:", "0000000000000000"]


def test_a_pod_reaches_the_api_at_its_cluster_address_as_its_own_account(whole: Cluster) -> None:
    assert output(whole, job("ask", "python3", "-c", ASK_THE_API)) == "API 200\n"


def test_a_component_that_dies_is_started_again(whole: Cluster) -> None:
    podman.run("exec", f"edpm-{whole.lab.name}-kube", "pkill", "-KILL", "kube-scheduler")

    assert output(whole, job("after", "echo", "scheduled")) == "scheduled\n"
    assert "kube-scheduler ended (137), starting it again" in (whole.logs / "kube-scheduler.log").read_text()


def test_a_given_cluster_signs_certificates_for_users_with_less_rights(
    whole: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_KUBECONFIG", str(whole.kubeconfig))
    given = given_cluster(tmp_path / "given")
    assert isinstance(given, GivenCluster)

    jane = given.client_certificate("jane", ["readers"])

    assert 'User "jane" cannot list' in given.kubectl("get", "pods", "--kubeconfig", jane, check=False).stderr
    assert "No resources found" in given.kubectl("get", "csr").stderr


def test_nothing_of_a_cluster_is_left_when_it_is_stopped(whole: Cluster) -> None:
    """The last test of this file: the cluster is gone after it."""
    before = cgroups()
    whole.kubectl("apply", "--namespace=pods", "-f", "-", stdin=json.dumps(job("lasting", "sleep", "600")))
    whole.kubectl("wait", "--namespace=pods", "job/lasting", "--for=jsonpath={.status.ready}=1", "--timeout=60s")
    of_the_pod = cgroups() - before
    assert of_the_pod

    whole.stop()

    assert cgroups() & of_the_pod == set()
    assert processes(whole.folder) == []
    assert podman.run("container", "exists", f"edpm-{whole.lab.name}-kube", check=False).returncode == 1
    assert str(whole.folder) not in Path("/proc/self/mountinfo").read_text()


def cgroups() -> set[Path]:
    """The cgroups of pods, on a host with either kind of them."""
    return {
        path for pattern in ("k8s.io/*", "*/k8s.io/*") for path in Path("/sys/fs/cgroup").glob(pattern) if path.is_dir()
    }


def processes(folder: Path) -> list[str]:
    lines = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(entry.read_text(errors="replace").replace("\0", " "))
        except OSError:
            continue
    return [line for line in lines if str(folder) in line]
