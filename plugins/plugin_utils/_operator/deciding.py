# SPDX-License-Identifier: GPL-3.0-or-later
"""What changed → which step: from a world that was read to the runs that are missing. Pure."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .._control.conditions import Live, Service, has_failed
from .._control.leaving import Going, unreached_sentence
from .._control.look import World
from .._control.names import (
    PAUSED,
    RESTART,
    RESTARTED,
    RESTARTS,
    ROLLBACK,
    ROLLBACKS,
    ROLLED_BACK,
    ROLLED_BACK_BY,
)
from .._control.standing import Standing
from .._control.status import Services, key_of
from .._control.wanted import EE_FIELD, Chosen, services_of
from .._dataplane.model import Reference
from .._jobs.dns import DNS_FIELD, as_text, distinct

DEPLOY, REMOVE, RESTART_TASK, ROLLBACK_TASK = "deploy", "remove", "restart", "rollback"
REQUESTS = (RESTART_TASK, ROLLBACK_TASK)
#: Which annotation asks for a task, which says that it was dealt with, and which counts how many were.
ASKED_BY = ((RESTART_TASK, RESTART, RESTARTED, RESTARTS), (ROLLBACK_TASK, ROLLBACK, ROLLED_BACK_BY, ROLLBACKS))
#: Annotations that say what was dealt with.
DEALT = (RESTARTED, RESTARTS, ROLLED_BACK_BY, ROLLBACKS, ROLLED_BACK)
#: A count has fewer; anything longer was never one of ours.
_DIGITS = 10
PLAYBOOKS = {task: f"edpm.services.{task}" for task in (DEPLOY, REMOVE, RESTART_TASK, ROLLBACK_TASK)}


@dataclass(frozen=True)
class Need:
    """A run that is missing: a task for services of one node. `key` changes with what is wanted, never with time.

    `beside` are all service objects of the node: what those that the run is for leave unsaid, others may say.
    """

    task: str
    namespace: str
    node: str
    services: tuple[str, ...]
    key: str
    objects: tuple[Standing, ...] = ()
    inventory: str = ""
    ssh_key: str = ""
    value: str = ""
    beside: tuple[Standing, ...] = ()

    @property
    def network_attachments(self) -> tuple[str, ...]:
        """The networks that lead to the node, as its service objects name them."""
        return tuple(dict.fromkeys(name for one in self.objects for name in one.spec.get("networkAttachments") or ()))

    @property
    def images(self) -> tuple[str, ...]:
        """The images that runs are to come from, as its service objects name them."""
        return _images(self.objects) or _images(self.beside)

    @property
    def dns_configs(self) -> tuple[dict[str, Any], ...]:
        """The DNS settings by which the node's name is found, as its service objects name them."""
        return _dns_configs(self.objects) or _dns_configs(self.beside)

    @property
    def place(self) -> tuple[str, str, str]:
        """What its failures are counted by."""
        return (self.task, self.namespace, self.node)


@dataclass
class Batch:
    """Needs that one run can meet."""

    task: str
    namespace: str
    services: tuple[str, ...]
    needs: list[Need] = field(default_factory=list)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Its nodes, in the order of their names."""
        return tuple(sorted(need.node for need in self.needs))

    @property
    def key(self) -> str:
        """The same batch has the same key."""
        return digest(sorted((need.node, need.key) for need in self.needs))


def digest(said: Any) -> str:
    """A short name for what was said."""
    return hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()[:16]


def paused(world: World, namespaces: Collection[str] = ()) -> frozenset[tuple[str, str]]:
    """Namespace and name of nodes that a person works on.

    Node, Role, NodeSet, DataPlane or a service object says so, or the namespace.
    """
    asleep = {ref for ref, one in world.standings.items() if one.annotations.get(PAUSED) == "true"}
    objects = (one for one in world.service_objects() if one.ref in asleep or one.ref.namespace in namespaces)
    found = {(one.ref.namespace, one.node) for one in objects}
    for node in world.snapshot.resources.nodes:
        theirs = {node.meta.ref, node.role_ref or Reference("OpenStackDataPlaneRole", node.namespace, node.role)}
        if not theirs.isdisjoint(asleep) or node.namespace in namespaces:
            found.add((node.namespace, node.name))
    planes = {(ref.namespace, ref.name) for ref in asleep if ref.kind == "OpenStackDataPlane"}
    found |= {
        (node.namespace, node.name) for node in world.plan.nodes if (node.namespace, node.dataplane or "") in planes
    }
    return frozenset(found)


def managed(world: World, kinds: Collection[str]) -> frozenset[str]:
    """The services of the kinds that are managed; empty where all are."""
    if not kinds:
        return frozenset()
    namespaces = {node.namespace for node in world.snapshot.resources.nodes}
    namespaces |= {one.ref.namespace for one in world.service_objects()}
    known = (one for namespace in namespaces for one in world.definitions(namespace).values())
    return frozenset(one.name for one in known if one.kind in kinds) or frozenset(("",))


def needs(world: World, services: Services, going: Iterable[Going], chosen: Chosen) -> Iterator[Need]:
    """All runs that are missing, each node once for each task at most."""
    beside: defaultdict[tuple[str, str], list[Standing]] = defaultdict(list)
    for one in world.service_objects():
        beside[one.ref.namespace, one.node].append(one)
    for need in _needs(world, services, going, chosen):
        yield replace(need, beside=tuple(beside[need.namespace, need.node]))


def _needs(world: World, services: Services, going: Iterable[Going], chosen: Chosen) -> Iterator[Need]:
    leaving = list(going)
    gone = {one.stands.ref for one in leaving}
    off = [*_off(leaving, chosen), *_former(world, services, gone, chosen)]
    # Nobody gets to a node whose inventory is lost: the object says so, and a run could only fail.
    yield from _removals([one for one in off if not unreached_sentence(world, one.stands)])
    asked: set[tuple[str, str]] = set()
    for one in world.service_objects():
        if one.ref in gone or one.deleting or not chosen.has(one.ref.namespace, one.node, _names(world, one)):
            continue
        for need in _requests(one, services.get(one.ref, ())):
            asked.add((need.namespace, need.node))
            yield need
    yield from (
        need for need in _deployments(world, services, gone, chosen) if (need.namespace, need.node) not in asked
    )


def batches(found: Iterable[Need]) -> list[Batch]:
    """What arrives together runs together: one run for each task, set of services, image and DNS.

    A removal runs by itself.
    """
    made: dict[tuple[str, ...], Batch] = {}
    for need in found:
        alone = () if need.task == DEPLOY else (need.node, need.key)
        pods = (*need.images, "", *map(as_text, need.dns_configs))
        key = (need.task, need.namespace, *need.services, "", *pods, "", *alone)
        made.setdefault(key, Batch(need.task, need.namespace, need.services)).needs.append(need)
    return list(made.values())


def _images(objects: Iterable[Standing]) -> tuple[str, ...]:
    named = (str(one.spec.get(EE_FIELD) or "") for one in objects)
    return tuple(dict.fromkeys(image for image in named if image))


def _dns_configs(objects: Iterable[Standing]) -> tuple[dict[str, Any], ...]:
    return distinct(one.spec.get(DNS_FIELD) for one in objects)


def _deployments(world: World, services: Services, gone: Collection[Reference], chosen: Chosen) -> Iterator[Need]:
    """What differs from what is live, and all of an object whose last run failed: that is not known to work."""
    differing: defaultdict[tuple[str, str], list[tuple[Standing, list[Service], list[Service]]]] = defaultdict(list)
    for one in world.service_objects():
        if one.ref in gone or one.deleting or not chosen.has(one.ref.namespace, one.node, _names(world, one)):
            continue
        live, failed = Live.told_by(one), has_failed(one)
        able = [service for service in services.get(one.ref, ()) if _deployable(service)]
        if found := [service for service in able if failed or live.differs(service)]:
            differing[one.ref.namespace, one.node].append((one, able, found))
    for (namespace, node), ones in differing.items():
        names = tuple(sorted(service.name for _one, _able, found in ones for service in found))
        # All that is wanted of the objects: what a run that failed half-way has done makes no new wish of the rest.
        wish = ((service.name, service.digest, service.settings) for _one, able, _found in ones for service in able)
        key = digest(sorted(wish))
        yield Need(DEPLOY, namespace, node, names, key, tuple(one for one, _able, _found in ones))


def _deployable(service: Service) -> bool:
    return bool(service.digest) and not (service.hold or service.waits or service.refused)


@dataclass(frozen=True)
class _Off:
    """Services of an object that are to leave its node; `wish` changes with what is wanted."""

    stands: Standing
    services: tuple[str, ...]
    wish: str


def _off(going: Iterable[Going], chosen: Chosen) -> Iterator[_Off]:
    """All services of an object that is to go."""
    for one in going:
        if not one.free and chosen.has(one.stands.ref.namespace, one.stands.node, one.services):
            yield _Off(one.stands, one.services, one.stands.uid)


def _former(world: World, services: Services, gone: Collection[Reference], chosen: Chosen) -> Iterator[_Off]:
    """Services that are not asked for any more, of an object that stays for others."""
    for one in world.service_objects():
        if one.ref in gone or one.deleting:
            continue
        names = tuple(each.name for each in services.get(one.ref, ()) if each.former and not each.refused)
        if names and chosen.has(one.ref.namespace, one.node, names):
            yield _Off(one, names, " ".join((one.uid, *names)))


def _removals(leaving: Iterable[_Off]) -> Iterator[Need]:
    by_node: defaultdict[tuple[str, str], list[_Off]] = defaultdict(list)
    for one in leaving:
        by_node[one.stands.ref.namespace, one.stands.node].append(one)
    for (namespace, node), ones in by_node.items():
        first = ones[0].stands
        yield Need(
            task=REMOVE,
            namespace=namespace,
            node=node,
            services=tuple(sorted({name for one in ones for name in one.services})),
            key=digest(sorted(one.wish for one in ones)),
            objects=tuple(one.stands for one in ones),
            inventory=str(first.spec.get("inventoryConfigMapName") or ""),
            ssh_key=str(first.spec.get("sshKeySecretName") or ""),
        )


def _requests(one: Standing, services: Iterable[Service]) -> Iterator[Need]:
    """What a person asks for by an annotation whose value is another than the one that was dealt with."""
    found = [service for service in services if not service.former]
    for task, asked, dealt, count in ASKED_BY:
        value = one.annotations.get(asked)
        if value and value != one.annotations.get(dealt):
            names = tuple(sorted(service.name for service in found))
            # The count makes a request of its own of a value that was used before. It is written after the run was
            # started, so that one who was killed in between finds that run again.
            key = digest([one.uid, value, one.annotations.get(count, "0")])
            yield Need(task, one.ref.namespace, one.node, names, key, (one,), value=value)


def dealt_with(need: Need, services: Services) -> Mapping[str, str]:
    """The annotations that say that a request was met. What a rollback has left is not deployed again by itself."""
    one = need.objects[0]
    known = {name: one.annotations[name] for name in DEALT if name in one.annotations}
    [(dealt, count)] = [(dealt, count) for task, _asked, dealt, count in ASKED_BY if task == need.task]
    known |= {dealt: need.value, count: _one_more(one.annotations.get(count, ""))}
    return known if need.task == RESTART_TASK else {**known, ROLLED_BACK: key_of(services.get(one.ref, ()))}


def _one_more(count: str) -> str:
    """The next number; what a person made of the last one is no number any more, and counts as none."""
    return str(int(count) + 1 if count.isdecimal() and len(count) < _DIGITS else 1)


def _names(world: World, one: Standing) -> list[str]:
    return [definition.name for definition in services_of(world.definitions(one.ref.namespace), one)]
