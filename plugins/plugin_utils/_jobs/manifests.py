# SPDX-License-Identifier: GPL-3.0-or-later
"""A run as Kubernetes objects: the ConfigMap that its pods read, and the Indexed Job whose pods are its shards.

Pods pass the Pod Security Standard "restricted" and have a read-only root. They run in the group root, which owns what
is mounted from Secrets: the image says so, and a UID that a cluster chooses by itself has it too. So no fsGroup is
needed, which some clusters would refuse.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .order import LARGEST_CONFIG_MAP, BadOrderError, Order

RUN_LABEL = "edpm.openstack.org/run"
START_LABEL = "edpm.openstack.org/start"
RESULT_LABEL = "edpm.openstack.org/result"
MANAGED = {"app.kubernetes.io/managed-by": "edpm.services", "app.kubernetes.io/name": "edpm-services-run"}
NETWORKS = "k8s.v1.cni.cncf.io/networks"
JOB_UID = "batch.kubernetes.io/controller-uid"

CONTAINER = "runner"
PROGRAM = ("python3", "-m", "ansible_collections.edpm.services.plugins.plugin_utils._jobs.pod.main")
#: The pod's own folders: what it reads, and the only one that it writes.
SETTINGS, INVENTORY, SSH, KNOWN_HOSTS, CA, VARIABLES, WORK = (
    "/etc/edpm/run",
    "/etc/edpm/inventory",
    "/etc/edpm/ssh",
    "/etc/edpm/known_hosts",
    "/etc/edpm/ca",
    "/etc/edpm/vars",
    "/run/edpm",
)
INVENTORY_KEY, SSH_KEY, CA_KEY, KNOWN_HOSTS_KEY = "inventory", "ssh-privatekey", "tls-ca-bundle.pem", "known_hosts"

#: How the program ends: all is well; nodes failed; nothing could be played. Any other end is tried again.
DONE, NODES_FAILED, NOT_PLAYED = 0, 2, 3

#: Where ansible-builder puts collections; Python is to find the program there too.
_PATHS = {"PYTHONPATH": "/usr/share/ansible/collections"}
RESOURCES = {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "1Gi"}}
#: Seconds for a pod that must go, to end Ansible in order.
GRACE = 30

Body = Mapping[str, Any]


def labels(order: Order, start: str) -> dict[str, str]:
    """What all objects of a run carry; `start` tells this start of it from an earlier one."""
    return {**order.labels, **MANAGED, RUN_LABEL: order.run_name, START_LABEL: start}


def settings_name(order: Order, start: str) -> str:
    """The ConfigMap that the pods of this start read."""
    return f"{order.run_name}-{start}"


def settings(order: Order, start: str, owner: Body | None = None) -> dict[str, Any]:
    """That ConfigMap; with its owner it goes when the owner goes."""
    told = {
        "run": order.run_name,
        "namespace": order.namespace,
        "playbook": order.playbook,
        "limit": order.limit,
        "tags": order.tags,
        "skip_tags": order.skip_tags,
        "extra_vars": order.extra_vars,
        "arguments": order.arguments,
        "forks": order.forks,
        "reads_data_plane": order.reads_data_plane,
        "labels": labels(order, start),
    }
    data = {"run.json": json.dumps(told, sort_keys=True), "shards.json": json.dumps(order.shards)}
    if order.play:
        data["play.yml"] = order.play
    size = sum(len(text.encode()) for text in data.values())
    if size > LARGEST_CONFIG_MAP:
        raise BadOrderError(
            f"What the pods must know takes {size} bytes, and a ConfigMap holds {LARGEST_CONFIG_MAP}; "
            "run over fewer nodes at a time, or keep large variables in a Secret that extra_vars_secrets names."
        )
    metadata: dict[str, Any] = {
        "name": settings_name(order, start),
        "namespace": order.namespace,
        "labels": labels(order, start),
    }
    if owner is not None:
        metadata["ownerReferences"] = [owned_by(owner)]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def owned_by(owner: Body) -> dict[str, str]:
    """An owner reference."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }


def job(order: Order, start: str) -> dict[str, Any]:
    """The Job: a failed shard stops no other, an evicted pod is not counted, and a real failure is not tried again."""
    count = len(order.shards)
    spec: dict[str, Any] = {
        "completionMode": "Indexed",
        "completions": count,
        "parallelism": min(order.parallel, count),
        "backoffLimitPerIndex": order.backoff_limit,
        "ttlSecondsAfterFinished": order.ttl,
        "podFailurePolicy": {
            "rules": [
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                {
                    "action": "FailIndex",
                    "onExitCodes": {
                        "containerName": CONTAINER,
                        "operator": "In",
                        "values": [NODES_FAILED, NOT_PLAYED],
                    },
                },
            ]
        },
        "template": {"metadata": _pod_metadata(order, start), "spec": _pod(order, start)},
    }
    if order.deadline is not None:
        spec["activeDeadlineSeconds"] = order.deadline
    metadata = {"name": order.run_name, "namespace": order.namespace, "labels": labels(order, start)}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def volumes(order: Order, start: str) -> list[tuple[dict[str, Any], str]]:
    """Every volume and the path that it is mounted at; all but the last are read-only."""
    found: list[tuple[dict[str, Any], str]] = [(_config_map("settings", settings_name(order, start)), SETTINGS)]
    if order.inventory_config_maps:
        sources = [
            {"configMap": {"name": name, "items": [{"key": INVENTORY_KEY, "path": f"{name}.yml"}]}}
            for name in order.inventory_config_maps
        ]
        found.append(({"name": "inventory", "projected": {"sources": sources}}, INVENTORY))
    if order.ssh_key_secret:
        found.append((_secret("ssh", order.ssh_key_secret), SSH))
    if order.known_hosts:
        found.append((_config_map("known-hosts", order.known_hosts), KNOWN_HOSTS))
    if order.ca_secret:
        found.append((_secret("ca", order.ca_secret, optional=True), CA))
    for number, name in enumerate(order.extra_vars_secrets):
        found.append((_secret(f"vars-{number}", name), f"{VARIABLES}/{number}"))
    for number, mount in enumerate(order.mounts):
        made = _secret if mount.kind == "Secret" else _config_map
        found.append((made(f"mount-{number}", mount.name, optional=mount.optional), mount.path))
    return [*found, ({"name": "work", "emptyDir": {"sizeLimit": "1Gi"}}, WORK)]


def volume_mount(volume: Body, path: str) -> dict[str, Any]:
    """Where a container sees a volume."""
    return {"name": volume["name"], "mountPath": path, **({} if path == WORK else {"readOnly": True})}


def environment(order: Order) -> list[dict[str, Any]]:
    """What the program and Ansible find in their environment."""
    named = [{"name": name, "value": value} for name, value in sorted({**_PATHS, **order.environment}.items())]
    fields = {
        "EDPM_POD": "metadata.name",
        "EDPM_JOB_UID": f"metadata.labels['{JOB_UID}']",
        "EDPM_JOB": "metadata.labels['batch.kubernetes.io/job-name']",
    }
    own = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()]
    return [*own, *named]


def _pod_metadata(order: Order, start: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {"labels": labels(order, start)}
    if order.network_attachments:
        metadata["annotations"] = {NETWORKS: ",".join(order.network_attachments)}
    return metadata


def _pod(order: Order, start: str) -> dict[str, Any]:
    mounted = volumes(order, start)
    user = {} if order.run_as_user is None else {"runAsUser": order.run_as_user, "runAsGroup": 0}
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "serviceAccountName": order.service_account,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": GRACE,
        "securityContext": {
            "runAsNonRoot": True,
            **user,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": CONTAINER,
                "image": order.image,
                "imagePullPolicy": order.image_pull_policy,
                "command": list(PROGRAM),
                "env": environment(order),
                "resources": order.resources or RESOURCES,
                "terminationMessagePolicy": "FallbackToLogsOnError",
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
                "volumeMounts": [volume_mount(volume, path) for volume, path in mounted],
            }
        ],
        "volumes": [volume for volume, _path in mounted],
    }
    if order.image_pull_secrets:
        pod["imagePullSecrets"] = [{"name": name} for name in order.image_pull_secrets]
    if order.dns_config:
        pod["dnsConfig"] = dict(order.dns_config)
    if order.dns_config.get("nameservers"):
        # A server that does not know a name ends the search: behind the cluster's own, these would not be asked.
        pod["dnsPolicy"] = "None"
    return pod


def _secret(name: str, secret: str, *, optional: bool = False) -> dict[str, Any]:
    """Files that the group may read and nobody else."""
    return {"name": name, "secret": {"secretName": secret, "defaultMode": 0o440, **_optionally(optional)}}


def _config_map(name: str, config_map: str, *, optional: bool = False) -> dict[str, Any]:
    return {"name": name, "configMap": {"name": config_map, **_optionally(optional)}}


def _optionally(optional: bool) -> dict[str, bool]:
    return {"optional": True} if optional else {}
