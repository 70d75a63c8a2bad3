# SPDX-License-Identifier: GPL-3.0-or-later
"""Conditions, digests and the last run back onto service objects, and a summary of them onto their Node or NodeSet."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .._bundle.bundle import bundle
from .._dataplane.model import Reference
from .._dataplane.planned import NodePlan, ServicePlan
from .._kube.connection import Connection, Settings
from .._kube.errors import NotAllowedError
from .applying import OF_ONE_OBJECT, Outcome, at_once, told
from .conditions import READY, Run, Service, Told, cut, status_of
from .events import news_of, post
from .look import WatchfulClient, World, look
from .names import (
    MARKED_KINDS,
    ROLE,
    ROLLBACK,
    ROLLED_BACK,
    SERVICES_MESSAGE,
    SERVICES_READY,
    STATUS_MANAGER,
    WRITER,
)
from .standing import Standing
from .wanted import Chosen, services_of

LONGEST_SUMMARY = 500

#: The services of every service object.
Services = Mapping[Reference, Sequence[Service]]


@dataclass(frozen=True)
class Reported:
    """What was written, what was told of nodes and services that no service object stands for, and the rest."""

    outcomes: tuple[Outcome, ...]
    unknown: tuple[str, ...]
    unchanged: int


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
    news = {one.ref: status_of(one, services[one.ref], by_object.get(one.ref, {}), run) for one in meant}
    writing = _Writing(client)
    written = at_once(writing.status, [(one, status) for one in meant if (status := news[one.ref]) is not None])
    now = {one.ref: replace(one, status=status) for one in meant if (status := news[one.ref]) is not None}
    summaries = at_once(writing.summary, list(_summaries(world, now, chosen)))
    stored = {outcome.ref for outcome in written if outcome.changed}
    post(client, [event for one in meant if one.ref in stored for event in news_of(one, now[one.ref])])
    return Reported((*written, *summaries), tuple(unknown), len(meant) - len(written))


class _Writing:
    """Writes one object; what fails there does not stop the others."""

    def __init__(self, client: WatchfulClient) -> None:
        self._client = client

    def status(self, one: tuple[Standing, Mapping[str, Any]]) -> Outcome:
        stands, status = one
        body = _body(stands, status=status)
        conditions = {condition["type"]: condition for condition in status["conditions"]}
        sentence = f"{conditions[READY]['reason']}: {conditions[READY]['message']}"
        before, after = {"status": dict(stands.status)}, {"status": dict(status)}
        outcome = Outcome(stands.ref, stands.node, "updated", sentence, before=before, after=after)
        return self._write(stands, body, "status", outcome)

    def summary(self, one: tuple[Standing, Mapping[str, str]]) -> Outcome:
        stands, annotations = one
        body = _body(stands, annotations=annotations)
        known = {name: stands.annotations.get(name) for name in (SERVICES_READY, SERVICES_MESSAGE)}
        sentence = annotations.get(SERVICES_MESSAGE, "it has no service objects any more")
        outcome = Outcome(stands.ref, stands.ref.name, "marked", sentence, before=known, after=annotations)
        return self._write(stands, body, "", outcome)

    def _write(self, stands: Standing, body: Mapping[str, Any], subresource: str, outcome: Outcome) -> Outcome:
        try:
            resource = self._client.resource(stands.api_version, stands.ref.kind)
            self._client.apply(resource, body, force=True, manager=STATUS_MANAGER, subresource=subresource)
        except OF_ONE_OBJECT as error:
            return Outcome(stands.ref, outcome.node, "failed", told(error, stands.ref), changed=False)
        except NotAllowedError as error:
            raise NotAllowedError(
                f"{str(error).rstrip('.')}; what helps is a RoleBinding to the ClusterRole {WRITER} "
                f"in namespace {stands.ref.namespace}."
            ) from error
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
        else:
            unknown.append(
                f"{result.service} on {result.node} has no service object; run edpm.services.reconcile to get one."
            )
    return found, unknown


def services_in(world: World) -> Services:
    """The services of every service object: the plan's, and for one that is leaving those that it stood for."""
    found: defaultdict[Reference, list[Service]] = defaultdict(list)
    for node in world.plan.nodes:
        for service in node.services:
            if service.service_object is not None and service.service_object.exists:
                found[service.service_object.ref].append(_planned(world, node, service))
    for one in world.service_objects():
        if one.ref in found:
            found[one.ref] = _unless_rolled_back(one, found[one.ref])
        else:
            found[one.ref] = [
                Service(_named(definition.name, one.instance), definition.takes_snippet)
                for definition in services_of(world.definitions(one.ref.namespace), one)
            ]
    return found


def key_of(services: Iterable[Service]) -> str:
    """What the plan wants of a service object, in a few characters."""
    said = sorted(f"{one.name} {one.digest}" for one in services)
    return hashlib.sha256("\n".join(said).encode()).hexdigest()[:16]


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
        hold=service.hold or "",
        waits=waits,
        refused=(*refused, *made.errors),
    )


def _summaries(
    world: World, now: Mapping[Reference, Standing], chosen: Chosen
) -> Iterable[tuple[Standing, Mapping[str, str]]]:
    """What Nodes and NodeSets are to say, where they say something else."""
    members: defaultdict[Reference, list[Standing]] = defaultdict(list)
    origins = {(node.namespace, node.name): node.meta.ref for node in reversed(world.snapshot.resources.nodes)}
    for one in world.service_objects():
        origin = origins.get((one.ref.namespace, one.node))
        if origin is not None and origin.kind in MARKED_KINDS:
            members[origin].append(now.get(one.ref, one))
    for ref, stands in sorted(world.standings.items()):
        if ref.kind not in MARKED_KINDS or ref.kind == ROLE or stands.deleting:
            continue
        if not any(chosen.has_node(ref.namespace, name) for name in {ref.name, *(one.node for one in members[ref])}):
            continue
        said = {
            name: stands.annotations[name] for name in (SERVICES_READY, SERVICES_MESSAGE) if name in stands.annotations
        }
        meant = _summary(members[ref])
        if said != meant:
            yield stands, meant


def _summary(objects: Sequence[Standing]) -> dict[str, str]:
    if not objects:
        return {}
    ready = [one for one in objects if one.condition(READY).get("status") == "True"]
    waiting = [one for one in objects if one not in ready]
    count = f"{len(ready)} of {len(objects)} service objects are ready"
    if not waiting:
        return {SERVICES_READY: "True", SERVICES_MESSAGE: f"{count}."}
    first = waiting[0]
    message = f"{count}. {first.ref.kind} {first.ref.name}: {first.condition(READY).get('message', 'no status yet.')}"
    return {SERVICES_READY: "False", SERVICES_MESSAGE: cut(message, LONGEST_SUMMARY)}


def _named(service: str, instance: str) -> str:
    return f"{service}@{instance}" if instance else service


def _body(stands: Standing, annotations: Mapping[str, str] | None = None, **rest: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": stands.ref.name, "namespace": stands.ref.namespace, "uid": stands.uid}
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {"apiVersion": stands.api_version, "kind": stands.ref.kind, "metadata": metadata, **rest}
