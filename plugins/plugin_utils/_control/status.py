# SPDX-License-Identifier: GPL-3.0-or-later
"""Conditions, digests and the last run back onto service objects, and a summary of them onto their Node or NodeSet."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from .._bundle.bundle import bundle
from .._bundle.settings import settings_digest
from .._dataplane.model import Reference
from .._dataplane.plan import unseen_kinds
from .._dataplane.planned import NodePlan, ServicePlan
from .._kube.connection import Connection, Settings
from .._kube.errors import ConflictError, KubernetesError, NotAllowedError
from .._kube.live import is_partners
from .applying import OF_ONE_OBJECT, Outcome, at_once, lacking, told
from .conditions import READY, Run, Service, Told, cut, status_of
from .events import news_of, post
from .leaving import unreached_sentence
from .look import WatchfulClient, World, look
from .names import (
    FINALIZER,
    MARKED_KINDS,
    ROLE,
    ROLLBACK,
    ROLLED_BACK,
    SERVICES_MESSAGE,
    SERVICES_READY,
    STATUS_MANAGER,
)
from .standing import Standing, standing
from .wanted import Chosen, services_of

LONGEST_SUMMARY = 500
#: How often a run tells an object of its results, or sums up, while others keep changing it.
TRIES = 5
#: So many service objects are read again one by one; more of them in pages.
FEW = 100

_COUNT = re.compile(r"\d+ of (\d+) service objects")
#: The services of every service object.
Services = Mapping[Reference, Sequence[Service]]


@dataclass(frozen=True)
class Reported:
    """What was written, what was told of nodes and services that no service object stands for, and the rest.

    `warnings` are about kinds that cannot be seen.
    """

    outcomes: tuple[Outcome, ...]
    unknown: tuple[str, ...]
    unchanged: int
    warnings: tuple[str, ...] = ()


def report_status(
    settings: Settings, namespaces: Sequence[str], results: Sequence[Told], run: Run, *, chosen: Chosen, check: bool
) -> Reported:
    """Open a connection, read, write what is news, close it."""
    with Connection(settings) as connection:
        return write_status(WatchfulClient(connection, dry_run=check), namespaces, results, run, chosen)


def write_status(
    client: WatchfulClient, namespaces: Sequence[str], results: Sequence[Told], run: Run, chosen: Chosen
) -> Reported:
    """The same with a client that is there already."""
    return status_over(client, look(client, namespaces), results, run, chosen=chosen)


def status_over(
    client: WatchfulClient,
    world: World,
    results: Sequence[Told],
    run: Run,
    *,
    chosen: Chosen,
    services: Services | None = None,
) -> Reported:
    """The same with a cluster that was read already, and with its services where they are known."""
    by_object, unknown = _assigned(world, results)
    services = services_in(world) if services is None else services
    meant = [
        one
        for one in world.service_objects()
        if chosen.has(one.ref.namespace, one.node, [service.name for service in services[one.ref]])
    ]

    def anew(one: Standing, *, behind: bool = False) -> dict[str, Any] | None:
        return status_of(one, services[one.ref], by_object.get(one.ref, {}), run, behind=behind)

    writing = _Writing(client, anew, by_object)
    changes = [_Change(one, status) for one in meant if (status := anew(one)) is not None]
    written = at_once(writing.status, changes)
    now = {one.now.ref: one.now for one in written if one.now is not one.before}
    summed = at_once(lambda one: writing.summary(one, now), list(_summaries(world, now, chosen)))
    stored = [one for one in written if one.outcome is not None and one.outcome.changed]
    post(client, [event for one in stored for event in news_of(one.before, one.now)])
    statuses = [one.outcome for one in written if one.outcome is not None]
    outcomes = (*statuses, *(outcome for outcome in summed if outcome is not None))
    return Reported(outcomes, tuple(unknown), len(meant) - len(statuses), unseen_kinds(world.snapshot))


@dataclass(frozen=True)
class _Change:
    """A status that an object is to get."""

    stands: Standing
    status: Mapping[str, Any]

    @property
    def after(self) -> Standing:
        return replace(self.stands, status=self.status)

    def outcome(self) -> Outcome:
        ready = self.after.condition(READY)
        before, after = {"status": dict(self.stands.status)}, {"status": dict(self.status)}
        sentence = f"{ready['reason']}: {ready['message']}"
        return Outcome(self.stands.ref, self.stands.node, "updated", sentence, before=before, after=after)


@dataclass(frozen=True)
class _Written:
    """How an object stood, and how it stands now: the same where the write failed.

    There is no outcome where its status was left to a faster writer.
    """

    before: Standing
    now: Standing
    outcome: Outcome | None


@dataclass(frozen=True)
class _Summary:
    """What a Node or NodeSet is to say of its service objects.

    `unseen` are the sentences of those that it asks for and that cannot be seen; `why` is one of its namespace.
    """

    stands: Standing
    members: tuple[Standing, ...]
    unseen: tuple[str, ...] = ()
    why: str = ""

    @property
    def said(self) -> dict[str, str]:
        known = self.stands.annotations
        return {name: known[name] for name in (SERVICES_READY, SERVICES_MESSAGE) if name in known}

    @property
    def meant(self) -> dict[str, str]:
        return _sum_of(self.members, self._hidden, next(iter(self.unseen), self.why))

    @property
    def _hidden(self) -> int:
        """How many cannot be seen. What was counted before, and is not asked for any more, may still be there."""
        if not self.why:
            return 0
        counted = _COUNT.match(self.stands.annotations.get(SERVICES_MESSAGE, ""))
        return max(len(self.unseen), int(counted[1]) - len(self.members) if counted else 0)

    def outcome(self) -> Outcome:
        before = {name: self.said.get(name) for name in (SERVICES_READY, SERVICES_MESSAGE)}
        sentence = self.meant.get(SERVICES_MESSAGE, "it has no service objects any more")
        ref = self.stands.ref
        return Outcome(ref, ref.name, "marked", sentence, before=before, after=self.meant)


class _Anew(Protocol):
    def __call__(self, one: Standing, *, behind: bool = False) -> Mapping[str, Any] | None: ...


class _Writing:
    """Writes one object; what fails there does not stop the others."""

    def __init__(
        self,
        client: WatchfulClient,
        anew: _Anew,
        results: Mapping[Reference, Mapping[str, Told]],
    ) -> None:
        self._client, self._anew, self._results = client, anew, results
        #: What may not be written of partners' kinds, by namespace: asked for once, not for every object.
        self._forbidden: dict[tuple[str, str, str], str] = {}

    def status(self, change: _Change) -> _Written:
        """Onto what was read and nothing newer, so that no digest goes back that a run has just written.

        Whoever has no result to tell leaves a newer status to its writer. Results are told again; of a generation that
        somebody has observed meanwhile they do not speak, since the plan is of the one before.
        """
        for _again in range(TRIES):
            stands = change.stands
            body = _body(stands, version=stands.version, status=change.status)
            try:
                outcome = self._write(stands, body, "status", change.outcome())
            except ConflictError as error:
                failed = _failed(stands, error)
                fresh = self._read(stands)
            else:
                return _Written(stands, change.after if outcome.changed else stands, outcome)
            if fresh is None:
                return _Written(stands, stands, failed)
            if fresh.uid != stands.uid:
                return _Written(stands, fresh, failed)
            if not self._results.get(fresh.ref):
                return _Written(stands, fresh, None)
            stands = replace(stands, status=fresh.status, version=fresh.version)
            behind = stands.generation < min(fresh.generation, fresh.observed)
            status = self._anew(stands, behind=behind)
            if status is None:
                return _Written(stands, fresh, None)
            change = _Change(stands, status)
        return _Written(stands, stands, failed)

    def summary(self, one: _Summary, told: Mapping[Reference, Standing]) -> Outcome | None:
        """Onto the Node that was read and nothing newer, and of what stands there since: others sum up as well.

        `told` are the objects that were written just now. Where somebody is faster time and again, it is left to them.
        """
        for _again in range(TRIES):
            one = replace(one, members=self._members(one.members, told))
            if one.said == one.meant:
                return None
            body = _body(one.stands, annotations=one.meant, version=one.stands.version)
            try:
                return self._write(one.stands, body, "", one.outcome())
            except ConflictError as error:
                failed = _failed(one.stands, error)
                fresh = self._read(one.stands)
            if fresh is None or fresh.uid != one.stands.uid:
                return failed
            if fresh.deleting:
                return None
            one, told = replace(one, stands=fresh), {}
        return None

    def _members(self, members: Sequence[Standing], told: Mapping[Reference, Standing]) -> tuple[Standing, ...]:
        """The service objects as they stand now, after their Node was read; one by one where they are few."""
        older = [one for one in members if one.ref not in told]
        if len(older) > FEW:
            kinds = sorted({(one.api_version, one.ref.kind, one.ref.namespace) for one in older})
            listed = [
                self._client.map_all(standing, self._client.resource(api_version, kind), namespace)
                for api_version, kind, namespace in kinds
            ]
            found = {one.ref: one for some in listed for one in some if one is not None}
        else:
            found = {one.ref: one for one in map(self._read, older) if one is not None}
        now = {**found, **told}
        return tuple(now[one.ref] for one in members if one.ref in now)

    def _read(self, stands: Standing) -> Standing | None:
        """How it stands now; as it was listed where it is a partner's that may not be got by itself."""
        resource = self._client.resource(stands.api_version, stands.ref.kind)
        try:
            found = self._client.get(resource, stands.ref.name, stands.ref.namespace)
        except NotAllowedError:
            if not is_partners(stands.api_version, stands.ref.kind):
                raise
            return stands
        return None if found is None else standing(found)

    def _write(self, stands: Standing, body: Mapping[str, Any], subresource: str, outcome: Outcome) -> Outcome:
        key = (stands.ref.namespace, stands.api_version, stands.ref.kind)
        try:
            if key in self._forbidden:
                return _failure(stands, self._forbidden[key])
            resource = self._client.resource(stands.api_version, stands.ref.kind)
            self._client.apply(resource, body, force=True, manager=STATUS_MANAGER, subresource=subresource)
        except ConflictError:
            raise
        except OF_ONE_OBJECT as error:
            return _failed(stands, error)
        except NotAllowedError as error:
            if not is_partners(stands.api_version, stands.ref.kind):
                raise NotAllowedError(lacking(error, stands.api_version, stands.ref)) from error
            self._forbidden[key] = lacking(error, stands.api_version, stands.ref)
            return _failure(stands, self._forbidden[key])
        return outcome


def _assigned(world: World, results: Iterable[Told]) -> tuple[dict[Reference, dict[str, Told]], list[str]]:
    """Results by service object and service; and a sentence for each that no object stands for."""
    objects: defaultdict[tuple[str, str], list[Reference]] = defaultdict(list)
    for one in world.service_objects():
        for definition in services_of(world.definitions(one.ref.namespace), one):
            objects[one.node, _named(definition.name, one.instance)].append(one.ref)
    found: defaultdict[Reference, dict[str, Told]] = defaultdict(dict)
    unknown: list[str] = []
    for result in results:
        refs = [ref for ref in objects[result.node, result.service] if result.namespace in ("", ref.namespace)]
        if len(refs) == 1:
            found[refs[0]][result.service] = result
        elif refs:
            places = " and ".join(map(str, refs))
            unknown.append(f"{result.service} on {result.node} may be of {places}; name the namespace.")
        elif sentence := _unseen(world, result):
            unknown.append(f"What became of {result.service} on {result.node} cannot be told: {sentence}")
        else:
            unknown.append(
                f"{result.service} on {result.node} has no service object; run edpm.services.reconcile to get one."
            )
    return found, unknown


def _unseen(world: World, result: Told) -> str | None:
    """Why the service object of a result cannot be seen."""
    places = [one.partner.namespace for one in world.snapshot.definitions if one.partner is not None]
    service = result.service.partition("@")[0]
    named = (place for place in places if result.namespace in ("", place))
    return next((found for place in named if (found := world.unseen(place).get(service))), None)


def services_in(world: World) -> Services:
    """The services of every service object: the plan's, and those that it stood for and that are on the node still."""
    found: defaultdict[Reference, list[Service]] = defaultdict(list)
    faults: dict[Reference, tuple[str, ...]] = {}
    for node in world.plan.nodes:
        for service in node.services:
            if service.service_object is not None and service.service_object.exists:
                found[service.service_object.ref].append(_planned(world, node, service))
                faults[service.service_object.ref] = node.errors
    for one in world.service_objects():
        if one.ref in found:
            staying = _unless_rolled_back(one, found[one.ref])
            found[one.ref] = [*staying, *_former(world, one, staying, faults[one.ref])]
        else:
            waits = tuple(filter(None, (unreached_sentence(world, one),))) if FINALIZER in one.finalizers else ()
            found[one.ref] = [
                Service(_named(definition.name, one.instance), definition.takes_snippet, waits=waits)
                for definition in services_of(world.definitions(one.ref.namespace), one)
            ]
    return found


def key_of(services: Iterable[Service]) -> str:
    """What the plan wants of a service object, in a few characters."""
    said = sorted(f"{one.name} {one.digest}" for one in services if not one.former)
    return hashlib.sha256("\n".join(said).encode()).hexdigest()[:16]


def _former(world: World, stands: Standing, staying: Sequence[Service], faults: tuple[str, ...]) -> Iterable[Service]:
    """What was deployed for an object that stays, and is not asked for any more. A faulty node is not judged."""
    live, known = stands.status.get("deployedDigests") or {}, {one.name for one in staying}
    for definition in services_of(world.definitions(stands.ref.namespace), stands):
        name = _named(definition.name, stands.instance)
        if name not in known and live.get(name):
            yield Service(name, definition.takes_snippet, refused=faults, former=True)


def _unless_rolled_back(stands: Standing, services: list[Service]) -> list[Service]:
    """What was rolled back stays so until something else is wanted, or nobody asks for the rollback any more."""
    if ROLLBACK not in stands.annotations or stands.annotations.get(ROLLED_BACK) != key_of(services):
        return services
    held = f"{stands.ref} was rolled back; change its configuration, or remove its annotation {ROLLBACK}."
    return [replace(one, hold=one.hold or held) for one in services]


def _planned(world: World, node: NodePlan, service: ServicePlan) -> Service:
    definition = world.definitions(node.namespace).get(service.service)
    refused, waits = (*node.errors, *service.errors), (*node.blocked, *service.blocked)
    made = bundle(service)
    whole = not (refused or service.blocked or made.errors) and service.image is not None
    return Service(
        name=service.name,
        main=definition is None or definition.takes_snippet,
        digest=made.digest if whole else "",
        settings=settings_digest(service, made) if whole else "",
        hold=service.hold or "",
        waits=waits,
        refused=(*refused, *made.errors),
    )


def _summaries(world: World, now: Mapping[Reference, Standing], chosen: Chosen) -> Iterable[_Summary]:
    """What Nodes and NodeSets are to say, where they say something else."""
    members: defaultdict[Reference, list[Standing]] = defaultdict(list)
    origins = {(node.namespace, node.name): node.meta.ref for node in reversed(world.snapshot.resources.nodes)}
    for member in world.service_objects():
        origin = origins.get((member.ref.namespace, member.node))
        if origin is not None and origin.kind in MARKED_KINDS:
            members[origin].append(now.get(member.ref, member))
    unseen = _asked_unseen(world)
    for ref, stands in sorted(world.standings.items()):
        if ref.kind not in MARKED_KINDS or ref.kind == ROLE or stands.deleting:
            continue
        hidden = unseen.get(ref, [])
        names = {ref.name, *(member.node for member in members[ref]), *(node for node, _why in hidden)}
        if not any(chosen.has_node(ref.namespace, name) for name in names):
            continue
        sentences = tuple(sentence for _node, sentence in hidden)
        one = _Summary(stands, tuple(members[ref]), sentences, next(iter(world.unseen(ref.namespace).values()), ""))
        if one.said != one.meant:
            yield one


def _asked_unseen(world: World) -> dict[Reference, list[tuple[str, str]]]:
    """By Node or NodeSet, a node and a sentence for each service object that is asked for and cannot be seen."""
    found: defaultdict[Reference, list[tuple[str, str]]] = defaultdict(list)
    for node in world.plan.nodes if world.snapshot.unseen else ():
        unseen = world.unseen(node.namespace)
        asked = {
            one.service_object.ref: unseen[one.service]
            for one in node.services
            if one.service_object is not None and one.service in unseen
        }
        found[node.origin] += [(node.name, sentence) for sentence in asked.values()]
    return found


def _sum_of(objects: Sequence[Standing], hidden: int, why: str) -> dict[str, str]:
    """Those that are hidden count as not ready, since nobody can tell."""
    if not objects and not hidden:
        return {}
    ready = [one for one in objects if one.condition(READY).get("status") == "True"]
    waiting = [one for one in objects if one not in ready]
    count = f"{len(ready)} of {len(objects) + hidden} service objects are ready"
    if not waiting and not hidden:
        return {SERVICES_READY: "True", SERVICES_MESSAGE: f"{count}."}
    if not waiting:
        return {SERVICES_READY: "False", SERVICES_MESSAGE: cut(f"{count}. {why}", LONGEST_SUMMARY)}
    first = waiting[0]
    message = f"{count}. {first.ref.kind} {first.ref.name}: {first.condition(READY).get('message', 'no status yet.')}"
    return {SERVICES_READY: "False", SERVICES_MESSAGE: cut(message, LONGEST_SUMMARY)}


def _failed(stands: Standing, error: KubernetesError) -> Outcome:
    return _failure(stands, told(error, stands.ref))


def _failure(stands: Standing, sentence: str) -> Outcome:
    return Outcome(stands.ref, stands.node, "failed", sentence, changed=False)


def _named(service: str, instance: str) -> str:
    return f"{service}@{instance}" if instance else service


def _body(
    stands: Standing, annotations: Mapping[str, str] | None = None, version: str = "", **rest: Any
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": stands.ref.name, "namespace": stands.ref.namespace, "uid": stands.uid}
    if version:
        metadata["resourceVersion"] = version
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {"apiVersion": stands.api_version, "kind": stands.ref.kind, "metadata": metadata, **rest}
