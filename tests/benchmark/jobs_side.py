# SPDX-License-Identifier: GPL-3.0-or-later
"""What each part of a run in the cluster costs, with 4, 8 and 16 nodes in one pod, and what 2,000 would take.

A pod's time is its start, the same for every pod, and its play, which grows with its nodes. Pods and nodes share the
processors here, so a node's share is what it costs on such a machine, and elsewhere it is less.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import yaml
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.manifests import RESULT_LABEL, RUN_LABEL
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.results import decode
from edpm_lab import images
from edpm_lab.cluster import Cluster, cluster
from edpm_lab.labs import Lab
from edpm_lab.nodes import Nodes

from .figures import TREE, Figure, timed
from .lab_side import BIN, ansible

NAMESPACE, ACCOUNT = "openstack", "edpm-services-runner"
GROUP = "dataplane.openstack.org/v1beta1"
SIZES = (4, 8, 16)
#: As `run_in_cluster` cuts them by itself.
ALL, SHARD, AT_ONCE = 2000, 50, 10


@dataclass(frozen=True)
class Part:
    """One run over some nodes in one pod, in seconds."""

    nodes: int
    #: From the command to its end.
    whole: float
    #: From the pod's creation until its program runs.
    pod: float
    #: What the program does beside the play: it reads its files, and stores what became of the nodes.
    beside: float
    #: ansible-playbook, with its start and its look at the data plane.
    play: float


@dataclass(frozen=True)
class Line:
    """The straight line through several measurements: what every pod costs, and what a node adds."""

    fixed: float
    each: float

    @classmethod
    def through(cls, points: Sequence[tuple[float, float]]) -> Line:
        middle_x, middle_y = (sum(values) / len(points) for values in zip(*points, strict=True))
        slope = sum((x - middle_x) * (y - middle_y) for x, y in points) / sum((x - middle_x) ** 2 for x, _y in points)
        return cls(middle_y - slope * middle_x, slope)

    def at(self, nodes: int) -> float:
        return self.fixed + self.each * nodes


def jobs(lab: Lab) -> Iterator[Figure]:
    """First deployments of libvirt to 4, 8 and 16 nodes, each in one pod; then all of them with nothing to change."""
    groups = {size: [f"edpm-shard-{size}-{number}" for number in range(size)] for size in SIZES}
    nodes = Nodes(lab)
    nodes.up([name for names in groups.values() for name in names])
    with cluster(lab) as whole:
        whole.load(images.image("ee"))
        _prepare(whole, nodes)
        first = [_run(whole, lab, names) for names in groups.values()]
        again = [_run(whole, lab, names) for names in groups.values()]
    for what, parts in (("first deploy", first), ("nothing to change", again)):
        yield from _figures(what, parts)


def _figures(what: str, parts: Sequence[Part]) -> Iterator[Figure]:
    for part in parts:
        one = parts[0]
        yield Figure(f"jobs: {what}, {part.nodes} nodes in a pod", part.whole, f"{one.nodes} nodes", one.whole)
    line = Line.through([(part.nodes, part.play) for part in parts])
    pod = sum(part.pod + part.beside for part in parts) / len(parts)
    outside = sum(part.whole - part.pod - part.beside - part.play for part in parts) / len(parts)
    rounds = math.ceil(ALL / SHARD / AT_ONCE)
    every = f"{ALL} nodes, {SHARD} a pod, {AT_ONCE} pods at once: {rounds} rounds"
    total = outside + rounds * (pod + line.at(SHARD))
    yield Figure(f"jobs: {what}: outside of the pod", outside, every, total)
    yield Figure(f"jobs: {what}: a pod's start and end", pod, every, total)
    yield Figure(f"jobs: {what}: a play's own share", line.fixed, every, total)
    yield Figure(f"jobs: {what}: a node's share", line.each, every, total)


def _run(whole: Cluster, lab: Lab, names: Sequence[str]) -> Part:
    told = {
        "node": ",".join(names),
        "edpm_run_image": images.image("ee"),
        "edpm_run_image_pull_policy": "Never",
        "edpm_run_known_hosts": "known-hosts",
    }
    inventory = lab.folder / "jobs.dataplane.yml"
    inventory.write_text(json.dumps({"plugin": "edpm.services.dataplane", "namespaces": [NAMESPACE]}))
    words = [BIN / "ansible-playbook", "edpm.services.run_in_cluster", "-i", inventory, "-e", json.dumps(told)]
    environment = {"RELATED_IMAGE_NOVA_LIBVIRT_IMAGE_URL_DEFAULT": images.image("libvirt"), **whole.environment()}
    seconds = timed(lambda: _quietly(words, environment))
    return _part(whole, len(names), seconds)


def _quietly(words: Sequence[Any], environment: dict[str, str]) -> None:
    done = subprocess.run(
        words, cwd=TREE, env={**os.environ, **environment}, check=False, capture_output=True, text=True, timeout=900
    )
    if done.returncode:
        raise RuntimeError(f"the run failed:\n{done.stdout}{done.stderr}")


def _part(whole: Cluster, nodes: int, seconds: float) -> Part:
    """The parts of the newest run."""
    pod = max(_found(whole, "pods", RUN_LABEL), key=lambda one: str(one["metadata"]["creationTimestamp"]))
    results = _found(whole, "configmaps", f"{RUN_LABEL}={pod['metadata']['labels'][RUN_LABEL]},{RESULT_LABEL}")
    [shard] = (decode(one["data"]) for one in results if one["metadata"]["name"].startswith(pod["metadata"]["name"]))
    if len(shard.nodes) != nodes or shard.code:
        raise RuntimeError(f"not all of {nodes} nodes are well: {shard}")
    [container] = pod["status"]["containerStatuses"]
    ended = container["state"]["terminated"]
    created, began, end = (
        datetime.fromisoformat(text)
        for text in (pod["metadata"]["creationTimestamp"], ended["startedAt"], ended["finishedAt"])
    )
    inside = (end - began).total_seconds()
    return Part(nodes, seconds, (began - created).total_seconds(), max(inside - shard.seconds, 0.0), shard.seconds)


def _found(whole: Cluster, kind: str, chosen: str) -> list[dict[str, Any]]:
    text = whole.kubectl("--namespace", NAMESPACE, "get", kind, "-l", chosen, "-o", "json").stdout
    found: list[dict[str, Any]] = json.loads(text)["items"]
    return found


def _prepare(whole: Cluster, nodes: Nodes) -> None:
    """The definitions, an account for the pods, and a data plane of hosts with libvirt alone."""
    ansible("edpm.services.install_cluster", whole.environment())
    whole.kubectl("create", "namespace", NAMESPACE)
    here = ("--namespace", NAMESPACE)
    whole.kubectl(*here, "create", "serviceaccount", ACCOUNT)
    for role in (ACCOUNT, "edpm-services-reader"):
        bound = (f"--clusterrole={role}", f"--serviceaccount={NAMESPACE}:{ACCOUNT}")
        whole.kubectl(*here, "create", "rolebinding", f"runner-{role}", *bound)
    whole.kubectl(*here, "apply", "-f", "-", stdin=yaml.safe_dump_all(_objects(nodes)), timeout=120)


def _objects(nodes: Nodes) -> Iterator[dict[str, Any]]:
    template = {"ansibleUser": "root", "ansibleSSHPrivateKeySecret": "dataplane-ssh"}
    asking = {"name": "hosts", "annotations": {"edpm.openstack.org/service-libvirt": "true"}}
    role = {"apiVersion": GROUP, "kind": "OpenStackDataPlaneRole", "metadata": asking}
    yield {**role, "spec": {"nodeTemplate": template}}
    key = {"ssh-privatekey": nodes.private_key.read_text()}
    yield {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "dataplane-ssh"}, "stringData": key}
    known = {"known_hosts": nodes.known_hosts.read_text()}
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "known-hosts"}, "data": known}
    for node in nodes.list():
        if node.name.startswith("edpm-shard-"):
            spec = {"role": "hosts", "hostName": node.name, "ansibleHost": node.address}
            one = {"apiVersion": GROUP, "kind": "OpenStackDataPlaneNode", "metadata": {"name": node.name}}
            yield {**one, "spec": spec}
