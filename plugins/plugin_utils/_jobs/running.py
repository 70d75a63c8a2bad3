# SPDX-License-Identifier: GPL-3.0-or-later
"""One run from its start to what became of each node.

The same order while it is running is waited for and not started again; who was first does not matter.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from .._kube.client import Client, Resource
from .._kube.errors import NotAllowedError, NotFoundError
from . import ansibleee, manifests
from .jobs import CONFIG_MAPS, Jobs
from .order import Order
from .results import NodeResult, ShardResult, State, counted, decode
from .standing import Standing
from .watching import Engine, HopelessError, Watch

STARTER = "edpm-services-jobs"
RUNNER = "edpm-services-runner"
SECRETS = Resource("v1", "Secret", "secrets", namespaced=True)
ACCOUNTS = Resource("v1", "ServiceAccount", "serviceaccounts", namespaced=True)


@dataclass(frozen=True)
class Outcome:
    """What became of a run. `started` tells that this call began it, `waited` that its end was awaited."""

    order: Order
    engine: str
    started: bool
    waited: bool
    standing: Standing
    nodes: tuple[NodeResult, ...] = ()
    shards: tuple[ShardResult, ...] = ()
    objects: tuple[dict[str, object], ...] = ()


@dataclass(frozen=True)
class Wishes:
    """How a run is followed."""

    engine: str = "job"
    rerun: bool = True
    wait: bool = True
    timeout: float = 3600.0


class Runs:
    """Carries out orders with one client. `say` shows a line to the person who waits."""

    def __init__(
        self,
        client: Client,
        say: Callable[[str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client, self._say, self._clock, self._sleep = client, say, clock, sleep

    def carry_out(self, order: Order, wishes: Wishes) -> Outcome:
        """Start or find the run, wait for it, gather the results."""
        try:
            return self._carry_out(order, wishes)
        except NotAllowedError as error:
            raise NotAllowedError(
                f"{str(error).rstrip('.')}; what helps is a RoleBinding to the ClusterRole {STARTER} "
                f"in namespace {order.namespace}."
            ) from error

    def _carry_out(self, order: Order, wishes: Wishes) -> Outcome:
        manifests.settings(order, "")  # refuses what is too large before anything is asked
        engine = self._engine(order, wishes.engine)
        self._require(order)
        stands = engine.find()
        again = stands is not None and stands.finished and wishes.rerun
        if self._client.dry_run:
            started = again or (stands is None and engine.begin())
            objects = tuple(engine.manifest())
            return Outcome(order, engine.kind, started, False, Standing(len(order.shards)), objects=objects)
        if again:
            engine.remove()
            stands = None
        started = stands is None and engine.begin()
        if not started:
            engine.mend()
        if not wishes.wait:
            return Outcome(order, engine.kind, started, False, stands or Standing(len(order.shards)))
        self._tell(order, engine, started=started, stands=stands)
        watch = Watch(self._client, order, engine, self._say, clock=self._clock, sleep=self._sleep)
        try:
            final = watch.to_the_end(wishes.timeout)
        except HopelessError:
            if started:
                engine.remove()
            raise
        return self._gathered(order, engine, final, started=started)

    def _engine(self, order: Order, wanted: str) -> Engine:
        kind = None if wanted == "job" else ansibleee.served(self._client)
        if kind is not None:
            return ansibleee.AnsibleEEs(self._client, order, kind, sleep=self._sleep)
        if wanted == "openstackansibleee":
            self._client.resource(ansibleee.API_VERSION, ansibleee.KIND)  # says that it is not installed
        return Jobs(self._client, order, sleep=self._sleep)

    def _require(self, order: Order) -> None:
        """Refuse to start what could only wait: an account, Secrets or ConfigMaps that are not there."""
        if self._absent(ACCOUNTS, order.service_account, order.namespace):
            bind = f"kubectl -n {order.namespace} create rolebinding {RUNNER} --clusterrole={RUNNER}"
            raise NotFoundError(
                f"ServiceAccount {order.namespace}/{order.service_account} of the pods does not exist; "
                f"create it and bind it to the ClusterRoles {RUNNER} and edpm-services-reader, the first with: "
                f"{bind} --serviceaccount={order.namespace}:{order.service_account}."
            )
        secrets = [(name, "ssh_key_secret") for name in (order.ssh_key_secret,) if name]
        secrets += [(name, "extra_vars_secrets") for name in order.extra_vars_secrets]
        secrets += [(name, "image_pull_secrets") for name in order.image_pull_secrets]
        maps = [(name, "inventory_config_maps") for name in order.inventory_config_maps]
        maps += [(name, "known_hosts") for name in (order.known_hosts,) if name]
        for mount in order.mounts:
            if not mount.optional:
                (secrets if mount.kind == "Secret" else maps).append((mount.name, "mounts"))
        for resource, wanted in ((SECRETS, secrets), (CONFIG_MAPS, maps)):
            for name, option in dict(wanted).items():
                if self._absent(resource, name, order.namespace):
                    raise NotFoundError(
                        f"{resource.kind} {order.namespace}/{name} of {option} does not exist; create it, or correct "
                        f"{option}."
                    )

    def _absent(self, resource: Resource, name: str, namespace: str) -> bool:
        """Whether it is not there, as far as this account may know."""
        try:
            return self._client.get(resource, name, namespace) is None
        except NotAllowedError:
            return False

    def _tell(self, order: Order, engine: Engine, *, started: bool, stands: Standing | None) -> None:
        count = len(order.shards)
        nodes, pods = f"{_several(len(order.nodes), 'node')} in " if order.nodes else "", _several(count, "pod")
        how = "started" if started else "found finished" if stands and stands.finished else "joined, it runs already"
        self._say(
            f"{engine.kind} {order.namespace}/{order.run_name}: {how} · {nodes}{pods}"
            f"{f', {order.parallel} at once' if count > order.parallel else ''} · {order.playbook or 'a play'}"
        )

    def _gathered(self, order: Order, engine: Engine, final: Standing, *, started: bool) -> Outcome:
        stored = self._stored(order, engine)
        lost = [index for index in range(final.total) if index not in stored]
        pods = {pod.index: pod for pod in engine.pods()} if lost else {}
        nodes = [node for index in sorted(stored) for node in stored[index].nodes]
        for index in lost:
            pod = pods.get(index)
            why = f"pod {pod.name} ended with {pod.end}" if pod else final.message or "its pod left no result"
            nodes += [NodeResult(node, State.UNKNOWN, message=why, shard=index) for node in order.shards[index]]
            stored[index] = ShardResult(index, -1, 0.0, (), why)
        shards = tuple(replace(stored[index], nodes=()) for index in sorted(stored))
        outcome = Outcome(order, engine.kind, started, True, final, tuple(nodes), shards)
        self._say(summary(outcome))
        return outcome

    def _stored(self, order: Order, engine: Engine) -> dict[int, ShardResult]:
        """The results of each shard; of several pods of one shard, the newest's."""
        chosen = (
            f"{manifests.RUN_LABEL}={order.run_name},{manifests.START_LABEL}={engine.start},{manifests.RESULT_LABEL}"
        )
        found = self._client.get_all(CONFIG_MAPS, order.namespace, chosen)
        found.sort(key=lambda one: str(one["metadata"].get("creationTimestamp")))
        return {(shard := decode(one["data"])).index: shard for one in found}


def _several(count: int, thing: str) -> str:
    return f"{count} {thing}{'' if count == 1 else 's'}"


def summary(outcome: Outcome) -> str:
    """How many nodes are in which state."""
    counts = {name: count for name, count in counted(outcome.nodes).items() if count}
    told = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items()) or "no node"
    failed = f" · {len(outcome.standing.failed)} of {outcome.standing.total} shards failed"
    return f"{told}{failed if outcome.standing.failed else ''}"
