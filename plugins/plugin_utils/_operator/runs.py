# SPDX-License-Identifier: GPL-3.0-or-later
"""The operator's runs in the cluster: those that are going, by their label, and new ones. Nothing is kept in memory."""

from __future__ import annotations

import json
import logging
import os
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from ...module_utils._node.names import exactly
from .._control.look import World
from .._control.names import ABANDON
from .._jobs import manifests
from .._jobs.jobs import CONFIG_MAPS, PODS
from .._jobs.order import BadOrderError, Order
from .._jobs.running import Outcome, Runs, Wishes
from .._jobs.sources import IMAGE_VARIABLE, resolved
from .._jobs.standing import Pod, Standing, obstacle, of_job, of_pod, warning
from .._jobs.watching import EVENTS, PATIENCE
from .._kube.client import Client, Object, Resource
from .._kube.errors import NotAllowedError, NotFoundError
from .deciding import DEPLOY, PLAYBOOKS, REMOVE, REQUESTS, Batch
from .settings import OperatorSettings

LOG = logging.getLogger("edpm.operator")
JOBS = Resource("batch/v1", "Job", "jobs", namespaced=True)
OPERATOR_LABEL = "edpm.openstack.org/operator"
TASK_LABEL = "edpm.openstack.org/task"
KEY_LABEL = "edpm.openstack.org/key"
ASKER_LABEL = "edpm.openstack.org/asker"


@dataclass(frozen=True)
class Work:
    """What a run is to do: nodes, by shard as well, and services, which are all of them where none is named."""

    nodes: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    shards: tuple[tuple[str, ...], ...] = ()

    def concerns(self, service: str) -> bool:
        """Whether it is to do something to a service of its nodes."""
        return not self.services or service in self.services

    def left_by(self, done: Collection[int]) -> dict[str, int]:
        """The nodes of all shards but those that are done, and the shard of each."""
        if not any(self.shards):
            return dict.fromkeys(self.nodes, 0) if 0 not in done else {}
        return {node: index for index, nodes in enumerate(self.shards) if index not in done for node in nodes}


@dataclass(frozen=True)
class Going:
    """A run that is not over: what it does, why it never will, where that shows, or what it waits for meanwhile."""

    name: str
    namespace: str
    task: str
    work: Work
    hopeless: str = ""
    waits: str = ""

    @property
    def nodes(self) -> tuple[str, ...]:
        """Those that it works on."""
        return self.work.nodes

    def concerns(self, service: str) -> bool:
        """Whether it was to do something to a service of its nodes."""
        return self.work.concerns(service)


@dataclass(frozen=True)
class Failed:
    """A run that a person asked for and that came to nothing: it is not started again by itself."""

    name: str
    namespace: str
    uid: str
    task: str
    asker: str
    why: str


class OperatorRuns:
    """Finds and starts runs with one client."""

    def __init__(self, client: Client, settings: OperatorSettings) -> None:
        self._client, self._settings = client, settings
        self._work: dict[str, Work] = {}
        self._ended: Counter[str] = Counter()
        #: Of those that `going` has seen: what persons have asked for in vain, and the Jobs that have ended.
        self.failed: tuple[Failed, ...] = ()
        self.ended: tuple[Object, ...] = ()

    def going(self) -> list[Going]:
        """All that are not over, whoever started them. What can get nowhere is removed, and told once."""
        chosen = f"{OPERATOR_LABEL}={self._settings.lease}"
        live = [job for name in self._settings.namespaces for job in self._client.get_all(JOBS, name, chosen)]
        found = [job for job in live if not _is_over(job)]
        self._ended = Counter((job["metadata"].get("labels") or {}).get(KEY_LABEL, "") for job in live if _is_over(job))
        self.ended = tuple(job for job in live if of_job(job).finished and not _is_going_away(job))
        self.failed = tuple(ended for job in live if (ended := _failed_request(job)) is not None)
        names = {str(one["metadata"]["uid"]) for one in found}
        self._work = {uid: work for uid, work in self._work.items() if uid in names}
        return [one for job in found if (one := self._looked_at(job)) is not None]

    def start(self, batch: Batch, world: World) -> Outcome:
        """Start it, or find it where the same was started a moment ago by one who could not tell any more."""
        ended, asked_for = self._ended[batch.key], batch.task in REQUESTS
        order = self.order(batch, world, 0 if asked_for else ended)
        if asked_for and ended:
            # A request is met once, also where the one who started its Job could not say so any more. An operator with
            # other settings than that one would not find the Job by its name.
            return Outcome(order, JOBS.kind, False, False, Standing(len(order.shards)))
        # Ended Jobs expire, so a count may lead to the name of one that is over: it makes room for the new one.
        return Runs(self._client, LOG.debug).carry_out(order, Wishes(wait=False, rerun=not asked_for))

    def order(self, batch: Batch, world: World, ended: int = 0) -> Order:
        """The run that meets a batch, after so many others that were meant to."""
        options = self._settings.options(namespace=batch.namespace, playbook=PLAYBOOKS[batch.task])
        options["image"] = options["image"] or _image(batch)
        if options["dns_config"] is None:
            options["dns_config"] = _dns(batch)
        # A service object stands for its own services alone, and not for other instances on its node.
        told: dict[str, Any] = {"service": ",".join(map(exactly, _services(batch)))}
        if batch.task != DEPLOY:
            told["node"] = batch.nodes[0]
        if batch.task == REMOVE:
            options["shard_size"] = 0
        else:
            options["nodes"] = list(batch.nodes)
        options["extra_vars"] = {**self._settings.extra_vars, **options["extra_vars"], **told}
        found = resolved(options, world.snapshot, world.plan, os.environ, _no_pattern)
        if batch.task == REMOVE:
            need = batch.needs[0]
            found |= {"inventory_config_maps": tuple(filter(None, (need.inventory,))), "ssh_key_secret": need.ssh_key}
            found |= {"reads_data_plane": True, "network_attachments": need.network_attachments}
        labels = {OPERATOR_LABEL: self._settings.lease, TASK_LABEL: batch.task, KEY_LABEL: batch.key}
        if batch.task in REQUESTS:
            labels[ASKER_LABEL] = batch.needs[0].objects[0].uid
        name = f"edpm-{batch.task}{f'-{batch.nodes[0]}' if len(batch.nodes) == 1 else ''}"
        fields = {**options, "name": name[:40], "run": f"{batch.key}-{ended}"}
        return Order.from_options(fields, **found, labels=labels)

    def remove(self, run: Going) -> None:
        """Take a run away with its pods."""
        with suppress(NotFoundError):
            self._client.delete(JOBS, run.name, run.namespace, propagation="Background")

    def _looked_at(self, job: Object) -> Going | None:
        meta = job["metadata"]
        labels: Mapping[str, str] = meta.get("labels") or {}
        work = self._work_of(meta["uid"], meta["name"], meta["namespace"], labels)
        run = Going(meta["name"], meta["namespace"], labels.get(TASK_LABEL, DEPLOY), work or Work())
        if work is None:
            # Its starter was killed before it could say what the pods are to do: they would wait for ever.
            self.remove(run)
            return None
        hopeless, waits = self._obstacle(job)
        if hopeless and run.task in REQUESTS:
            asker = labels.get(ASKER_LABEL, "")
            why = f"could not begin: {hopeless}"
            self.failed += (Failed(run.name, run.namespace, str(meta["uid"]), run.task, asker, why),)
        return replace(run, hopeless=hopeless, waits=waits)

    def _work_of(self, uid: str, name: str, namespace: str, labels: Mapping[str, str]) -> Work | None:
        if uid not in self._work:
            body = self._client.get(CONFIG_MAPS, f"{name}-{labels.get(manifests.START_LABEL, '')}", namespace)
            work = work_of(body) if body is not None else None
            if work is None:
                return None
            self._work[uid] = work
        return self._work[uid]

    def _obstacle(self, job: Object) -> tuple[str, str]:
        """Why it can go nowhere, and what it waits for; both empty where its pods run, or may still be on their way."""
        meta = job["metadata"]
        age = time.time() - datetime.fromisoformat(str(meta["creationTimestamp"])).timestamp()
        if age < PATIENCE:
            return "", ""
        chosen = f"{manifests.RUN_LABEL}={meta['name']}"
        pods = [of_pod(one) for one in self._client.get_all(PODS, meta["namespace"], chosen)]
        image = job["spec"]["template"]["spec"]["containers"][0]["image"]
        if found := obstacle(pods, meta["namespace"], image):
            return found, ""
        if any(pod.has_started for pod in pods):
            return "", ""
        homeless = next((pod for pod in pods if pod.unscheduled), None)
        return self._missing(meta, pods), _no_place(meta["namespace"], homeless) if homeless is not None else ""

    def _missing(self, meta: Mapping[str, Any], pods: Sequence[Pod]) -> str:
        """What pods that have not started need and nobody will make, as their events tell."""
        kind, name = ("Pod", pods[0].name) if pods else ("Job", meta["name"])
        try:
            fields = f"involvedObject.name={name}"
            text, hopeless = warning(self._client.get_all(EVENTS, meta["namespace"], fields=fields))
        except NotAllowedError:
            return ""
        place = f"{meta['namespace']}/{name}"
        return f"{kind} {place} cannot start ({text}); create what is missing or correct its name." if hopeless else ""


def work_of(body: Object) -> Work | None:
    """What the settings of a run say; None where somebody has spoiled them."""
    try:
        told = dict(json.loads(body["data"]["run.json"])["extra_vars"])
        shards = tuple(tuple(map(str, shard)) for shard in json.loads(body["data"]["shards.json"]))
    except (KeyError, TypeError, ValueError):
        return None
    services = (name.removesuffix("@") for name in str(told.get("service") or "").split(","))
    nodes = tuple(node for shard in shards for node in shard) or tuple(filter(None, (told.get("node"),)))
    return Work(nodes, tuple(filter(None, services)), shards)


def _no_place(namespace: str, pod: Pod) -> str:
    return (
        f"Pod {namespace}/{pod.name} finds no place ({pod.unscheduled.rstrip('.')}); make room for it, or ask for less "
        "with resources under run in the operator's settings."
    )


def _is_over(job: Object) -> bool:
    return of_job(job).finished or _is_going_away(job)


def _is_going_away(job: Object) -> bool:
    return bool(job["metadata"].get("deletionTimestamp"))


def _failed_request(job: Object) -> Failed | None:
    meta, stands = job["metadata"], of_job(job)
    labels: Mapping[str, str] = meta.get("labels") or {}
    task = labels.get(TASK_LABEL, DEPLOY)
    if task not in REQUESTS or not stands.finished or len(stands.done) == stands.total:
        return None
    said = stands.message or f"{stands.total - len(stands.done)} of {stands.total} shards failed"
    why = f"failed ({said}); look at the log of its pods."
    return Failed(meta["name"], meta["namespace"], str(meta["uid"]), task, labels.get(ASKER_LABEL, ""), why)


def _services(batch: Batch) -> tuple[str, ...]:
    """Whom the run is for; to a playbook no name at all would mean whatever is on the node."""
    if not batch.services:
        raise BadOrderError(
            f"{batch.needs[0].objects[0].ref} stands for no known service, and a {batch.task} that names none is of "
            f"the whole node; restore its kind's definition, or let the object go by its annotation {ABANDON}: true."
        )
    return batch.services


def _image(batch: Batch) -> str:
    """The image that the nodes' own service objects name; empty where the whole cluster has to be asked.

    Where those of one node disagree, any of them can take services off.
    """
    images = batch.needs[0].images
    if batch.task == REMOVE:
        return images[0] if images else os.environ.get(IMAGE_VARIABLE, "")
    return images[0] if len(images) == 1 else ""


def _dns(batch: Batch) -> Mapping[str, Any] | None:
    """The DNS settings that the nodes' own service objects name, in the same way."""
    found = batch.needs[0].dns_configs
    if batch.task == REMOVE:
        return found[0] if found else {}
    return found[0] if len(found) == 1 else None


def _no_pattern(pattern: str) -> tuple[str, ...]:
    """Nodes are named here, and never chosen by a pattern."""
    raise ValueError(pattern)


def busy(going: Collection[Going]) -> frozenset[tuple[str, str]]:
    """Namespace and name of every node that a run works on."""
    return frozenset((run.namespace, node) for run in going for node in run.nodes)
