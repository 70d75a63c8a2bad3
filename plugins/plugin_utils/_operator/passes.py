# SPDX-License-Identifier: GPL-3.0-or-later
"""One pass: read all, bring service objects and their status up to date, start the runs that are missing.

A pass keeps nothing that the next one could not find out again, but for how often a node was tried, and of whom nobody
had told when a Job ended.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from .._control.applying import OF_ONE_OBJECT, Outcome
from .._control.conditions import READY, Told
from .._control.events import Event, post
from .._control.inventories import LABELS, inventory_of, inventory_said
from .._control.look import WatchfulClient, World, look
from .._control.names import KEPT, PAUSED, REQUESTS_MANAGER
from .._control.reconcile import Pass, pass_over
from .._control.results import run_of
from .._control.status import Services, services_in, status_over
from .._control.wanted import Chosen
from .._dataplane.model import Reference
from .._dataplane.references import references
from .._jobs.order import BadOrderError
from .._jobs.running import Outcome as Started
from .._kube.client import Resource
from .._kube.connection import Connection, Settings
from .._kube.errors import KubernetesError, NotAllowedError, UnreachableError
from .._kube.live import STORES
from .deciding import DEPLOY, REMOVE, REQUESTS, Batch, Need, batches, dealt_with, managed, needs, paused
from .dying import Deaths, Silence, differs
from .failing import Failures
from .metrics import Metrics
from .runs import Going, OperatorRuns, busy
from .settings import OperatorSettings
from .trying import Attempts

LOG = logging.getLogger("edpm.operator")
NAMESPACES = Resource("v1", "Namespace", "namespaces", namespaced=False)
#: Nodes that a line names before it counts the rest.
MOST_NAMED = 5


@dataclass(frozen=True)
class Done:
    """What a pass has found: when the next is due, which Secrets and ConfigMaps count, and the partners' kinds."""

    due: float | None
    named: frozenset[Reference]
    kinds: frozenset[tuple[str, str]]


@dataclass(frozen=True)
class _Hands:
    """What the steps of one pass work with."""

    client: WatchfulClient
    runs: OperatorRuns
    world: World
    services: Services


class Passes:
    """Makes one pass after the other over one cluster."""

    def __init__(self, settings: OperatorSettings, metrics: Metrics, *, clock: Callable[[], float] = time.time) -> None:
        self._settings, self._metrics, self._clock = settings, metrics, clock
        self._attempts = Attempts(settings.first_pause, settings.longest_pause)
        self._failures = Failures()
        self._deaths = Deaths()
        #: Keys of requests whose runs were started, and whose objects did not let that be written down.
        self._unmarked: set[str] = set()
        self._told: frozenset[str] = frozenset()
        self._telling: set[str] = set()
        #: When it was last looked whether inventories are there.
        self._looked: float | None = None

    def once(self, connection: Connection | None = None) -> Done:
        """One pass; with a connection of one's own, or one that is opened for it."""
        if connection is not None:
            return self._once(WatchfulClient(connection))
        with Connection(Settings()) as opened:
            return self._once(WatchfulClient(opened))

    def _once(self, client: WatchfulClient) -> Done:
        self._telling = set()
        done = self._all_of_it(client)
        self._told = frozenset(self._telling)
        return done

    def _all_of_it(self, client: WatchfulClient) -> Done:
        runs = OperatorRuns(client, self._settings)
        # Before all else: what ends in the meantime still counts as busy, since the world may not show what it did.
        going = runs.going()
        world = look(client, self._settings.namespaces)
        chosen = self._chosen(client, world)
        done = pass_over(client, world, chosen, lost=self._lost(client, world))
        self._tell(done)
        if any(one.changed for one in done.outcomes):
            world = look(client, self._settings.namespaces)
        self._tell_of_waiting(client, world, going)
        services = services_in(world)
        results = [told for run in going if run.hopeless for told in self._gave_up(run, runs, world, services)]
        silence = Silence(world, services, chosen, frozenset(one.stands.ref for one in done.going if not one.free))
        dead = self._deaths.told(client, runs.ended, silence)
        for sentence in dict.fromkeys(one.msg for one in dead.results):
            self._once_only(sentence)
        results += dead.results
        # Jobs have the server's times, by which it is judged whether anybody has told of them since.
        at = datetime.fromtimestamp(dead.at, UTC) if dead.results else None
        run = run_of({"run": "reconcile", "started": "", "ended": ""}, at)
        status_over(client, world, results, run, chosen=chosen, services=services)
        if results:
            # What has just failed is to be tried again after a pause, also by one who has not tried it before.
            world = look(client, self._settings.namespaces)
            services = services_in(world)
        self._failures.tell(client, world, runs.failed)
        wanted = list(needs(world, services, done.going, chosen))
        due = self._start(_Hands(client, runs, world, services), wanted, going)
        self._count(world, going)
        named = references(world.snapshot.resources, partners=world.snapshot.definitions)
        theirs = frozenset((one.api_version, one.kind) for one in world.snapshot.definitions if one.kind)
        return Done(due, frozenset(named), theirs)

    def _lost(self, client: WatchfulClient, world: World) -> frozenset[Reference]:
        """The inventories of ours that somebody has deleted, looked for in pages and no more often than it resyncs."""
        now = self._clock()
        if self._looked is not None and now - self._looked < self._settings.resync:
            return frozenset()
        self._looked = now
        labels = ",".join(f"{name}={value}" for name, value in LABELS.items())
        try:
            there = {
                (namespace, str(one))
                for namespace in self._settings.namespaces
                for one in client.map_all(lambda body: body["metadata"]["name"], STORES["ConfigMap"], namespace, labels)
            }
        except NotAllowedError as error:
            self._once_only(f"{error} Whether an inventory was deleted is seen when its node leaves.")
            return frozenset()
        ours = (one for one in world.service_objects() if inventory_said(one) not in (None, KEPT))
        return frozenset(ref for one in ours if ((ref := inventory_of(one)).namespace, ref.name) not in there)

    def _chosen(self, client: WatchfulClient, world: World) -> Chosen:
        asleep = {name for name in self._settings.namespaces if self._sleeps(client, name)}
        return Chosen(services=managed(world, self._settings.kinds), spared=paused(world, asleep))

    def _sleeps(self, client: WatchfulClient, namespace: str) -> bool:
        try:
            found = client.get(NAMESPACES, namespace) or {}
        except NotAllowedError as error:
            self._once_only(f"{error} Whether the namespace is paused cannot be told.")
            return False
        return ((found.get("metadata") or {}).get("annotations") or {}).get(PAUSED) == "true"

    def _start(self, hands: _Hands, wanted: Sequence[Need], going: Sequence[Going]) -> float | None:
        """Start what is due; the answer is when the next is."""
        now = self._clock()
        for run in going:
            self._attempts.busy(run.task, run.namespace, run.nodes, now)
        self._attempts.settled(wanted)
        taken = busy([run for run in going if not run.hopeless])
        free = [need for need in wanted if (need.namespace, need.node) not in taken]
        ready = [need for need in free if self._attempts.due(need) <= now]
        room = max(0, self._settings.removals_at_once - sum(1 for run in going if run.task != DEPLOY))
        single = _one_each(need for need in ready if need.task != DEPLOY)[:room]
        first = {(need.namespace, need.node) for need in single}
        rest = [need for need in ready if need.task == DEPLOY and (need.namespace, need.node) not in first]
        for batch in batches([*single, *rest]):
            self._started(hands, batch, now)
        later = [self._attempts.due(need) for need in free]
        return min((at for at in later if at > now), default=None)

    def _started(self, hands: _Hands, batch: Batch, now: float) -> None:
        for need in batch.needs:
            self._attempts.began(need, now)
        about = [one for need in batch.needs for one in need.objects]
        if batch.key in self._unmarked:
            self._requests_met(hands, batch)
            return
        try:
            run = hands.runs.start(batch, hands.world)
        except UnreachableError:
            raise
        except (KubernetesError, BadOrderError) as error:
            LOG.warning("%s of %s could not be started: %s", batch.task, _listed(batch.nodes), error)
            post(hands.client, [Event(one, "Warning", "NotStarted", str(error)) for one in about])
            return
        self._requests_met(hands, batch)
        if not run.started:
            LOG.info("%s is there already: %s %s", _job(run), batch.task, _listed(batch.nodes))
            return
        self._metrics.add("edpm_operator_runs_total", task=batch.task)
        LOG.info("%s: %s %s", _job(run), batch.task, _listed(batch.nodes))
        said = f"{_job(run)} is to {batch.task} {', '.join(batch.services)}."
        post(hands.client, [Event(one, "Normal", "Started", said) for one in about])

    def _requests_met(self, hands: _Hands, batch: Batch) -> None:
        if batch.task not in REQUESTS:
            return
        for need in batch.needs:
            one = need.objects[0]
            metadata = {
                "name": one.ref.name,
                "namespace": one.ref.namespace,
                "uid": one.uid,
                "annotations": dict(dealt_with(need, hands.services)),
            }
            body = {"apiVersion": one.api_version, "kind": one.ref.kind, "metadata": metadata}
            try:
                resource = hands.client.resource(one.api_version, one.ref.kind)
                hands.client.apply(resource, body, force=True, manager=REQUESTS_MANAGER)
            except (*OF_ONE_OBJECT, NotAllowedError) as error:
                self._unmarked.add(batch.key)
                self._once_only(f"{one.ref}: that it was to {need.task} cannot be written down: {error}")
            else:
                self._unmarked.discard(batch.key)

    def _gave_up(self, run: Going, runs: OperatorRuns, world: World, services: Services) -> Iterable[Told]:
        """A run that can get nowhere is a failure of what it was to do, and is taken away; requests have Events."""
        LOG.warning("Job %s/%s: %s", run.namespace, run.name, run.hopeless)
        runs.remove(run)
        absent = run.task == REMOVE
        for one in world.service_objects():
            if run.task in REQUESTS or one.ref.namespace != run.namespace or one.node not in run.nodes:
                continue
            for service in services[one.ref]:
                meant = absent or (not service.hold and differs(one, service))
                if meant and run.concerns(service.name):
                    yield Told(one.node, service.name, run.namespace, absent=absent, failed=True, msg=run.hopeless)

    def _tell_of_waiting(self, client: WatchfulClient, world: World, going: Sequence[Going]) -> None:
        """A run that cannot begin yet, and may later: its objects have an Event of it, once."""
        for run in going:
            if run.waits and self._once_only(run.waits):
                theirs = [one for one in world.service_objects() if one.ref.namespace == run.namespace]
                about = [one for one in theirs if one.node in run.nodes]
                post(client, [Event(one, "Warning", "Waiting", run.waits) for one in about])

    def _count(self, world: World, going: Sequence[Going]) -> None:
        reasons = Counter(str(one.condition(READY).get("reason") or "Unknown") for one in world.service_objects())
        self._metrics.set_all(
            "edpm_operator_service_objects", "reason", {name: float(n) for name, n in reasons.items()}
        )
        tasks = Counter(run.task for run in going)
        self._metrics.set_all("edpm_operator_runs_going", "task", {name: float(n) for name, n in tasks.items()})
        self._metrics.set("edpm_operator_nodes_backing_off", self._attempts.failures())

    def _tell(self, done: Pass) -> None:
        for name, number in Counter(one.result for one in done.outcomes if one.changed).items():
            self._metrics.add("edpm_operator_writes_total", number, result=name)
            LOG.info("%s service objects and what belongs to them: %s", number, name)
        for one in done.outcomes:
            if one.result in ("failed", "refused"):
                self._once_only(_sentence(one))
        for warning in done.warnings:
            self._once_only(warning)

    def _once_only(self, sentence: str) -> bool:
        """What stays wrong is told once, and again where it comes back; the answer is whether it was told now."""
        news = sentence not in self._told and sentence not in self._telling
        if news:
            LOG.warning("%s", sentence)
        self._telling.add(sentence)
        return news


def _one_each(found: Iterable[Need]) -> list[Need]:
    """The first of every node: two runs would be in each other's way there, and the next pass comes to the others."""
    first: dict[tuple[str, str], Need] = {}
    for need in found:
        first.setdefault((need.namespace, need.node), need)
    return list(first.values())


def _sentence(one: Outcome) -> str:
    return one.sentence if str(one.ref) in one.sentence else f"{one.ref}: {one.sentence}"


def _job(run: Started) -> str:
    return f"Job {run.order.namespace}/{run.order.run_name}"


def _listed(nodes: Sequence[str]) -> str:
    more = f" and {len(nodes) - MOST_NAMED} more" if len(nodes) > MOST_NAMED else ""
    return ", ".join(nodes[:MOST_NAMED]) + more
