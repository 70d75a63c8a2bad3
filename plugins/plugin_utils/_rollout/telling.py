# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run tells the cluster of its services, as edpm.services.service_status takes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from .._dataplane.built_in import BUILT_IN
from .._dataplane.definitions import ServiceDefinition
from .._dataplane.services import is_of
from .._kube import snapshot
from .comparing import Standing, State
from .course import AFTER, COMPUTE, DONE, FOUND, PULLED, TOLD, Course, Mode, planned, standing_of
from .outcome import Registered, of_run

Result = dict[str, Any]


def told(course: Course, nodes: Iterable[str], known: Mapping[str, Registered], *, check: bool) -> dict[str, Any]:
    """The options of service_status; empty where there is no cluster to tell, or nothing to tell it."""
    source = snapshot.source()
    if check or source is None or source.manifests or course.mode is Mode.STATUS:
        return {}
    results = [one for node in nodes for one in _node(course, node, known[node])]
    if not results:
        return {}
    begun = datetime.fromtimestamp(course.begun, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    concerned = sorted({one["node"] for one in results})
    return {"results": results, "nodes": concerned, "run": course.mode.value, "started": begun}


def _node(course: Course, node: str, registered: Registered) -> Iterator[Result]:
    bad = _failure(registered.get(FOUND)) or _failure(of_run(course, registered.get(PULLED)))
    if course.mode is Mode.REMOVE:
        yield from _removed(course, node, registered, bad or _failure(registered.get(TOLD)))
        return
    done = of_run(course, registered.get(DONE)).get("services") or {}
    answer = registered.get(FOUND) or {}
    there = answer.get("services") or {}
    for one in standing_of(course, node, answer):
        image = str((there.get(one.name) or {}).get("image") or "")
        result = _deployed(one, done.get(one.name), bad, image, converges=course.mode is Mode.DEPLOY)
        if result:
            yield {"node": node, "service": one.name, **result}


def _deployed(one: Standing, result: Registered | None, bad: str, image: str, *, converges: bool) -> Result:
    """A service that was asked for: what was done to it, else what the node has of it, which has run from `image`."""
    if one.state is State.LEAVING:
        return {}
    if result is None:
        ready = one.state in (State.NEW, State.WILL_CHANGE, State.UP_TO_DATE)
        if bad and ready:
            return {"failed": True, "msg": bad}
        settings = one.settings if one.state is State.UP_TO_DATE else ""
        return {"digest": one.live, "settings": settings, "image": image} if one.live and not bad else {}
    if failure := _failure(result):
        return {"failed": True, "msg": failure}
    return {
        "digest": result.get("digest") or one.digest or "",
        "settings": one.settings if converges else "",
        "image": (result.get("image") or {}).get("after") or image or one.image or "",
        "changed": bool(result.get("changed")),
        "restarted": bool(result.get("restarted")),
    }


def _removed(course: Course, node: str, registered: Registered, bad: str) -> Iterator[Result]:
    """A service is off when it is off the node, and a compute only when OpenStack has forgotten it, too."""
    run = of_run(course, registered.get(DONE))
    done = run.get("services") or {}
    bad = bad or ("" if run else _failure(registered.get(DONE)))
    # Who was not reached, or left out by tags, still runs.
    left = {*(run.get("not_begun") or ()), *(() if bad else set(course.work.get(node, ())) - set(done))}
    for name in dict.fromkeys([*_standing_for(course, node), *done]):
        if name in left:
            continue
        after = (_failure(registered.get(AFTER)) or course.untold) if name.partition("@")[0] == COMPUTE else ""
        result = done.get(name) or {}
        failure = bad or _failure(result) or after
        failed = {"failed": True, "msg": failure} if failure else {"changed": bool(result.get("changed"))}
        yield {"node": node, "service": name, "state": "absent", **failed}


def _standing_for(course: Course, node: str) -> Iterator[str]:
    """What the node's service objects stand for, also where nothing of it was ever on the node."""
    yield from (one.plan.name for one in planned(course, node))
    taken = snapshot.taken()
    if taken is None:
        return
    for one in taken.resources.service_resources:
        if one.node != node:
            continue
        partners = (each for each in taken.definitions if _counts_in(each, one.meta.ref.namespace))
        for definition in (*BUILT_IN.values(), *partners):
            name = f"{definition.name}@{one.instance}" if one.instance else definition.name
            fits = is_of(one, definition) and (definition.takes_instances or not one.instance)
            if fits and course.question.asks(name):
                yield name


def _counts_in(definition: ServiceDefinition, namespace: str) -> bool:
    return definition.partner is not None and definition.partner.namespace == namespace


def _failure(answer: Any) -> str:
    """Why a step failed, empty where it did not."""
    if not isinstance(answer, Mapping) or not (answer.get("failed") or answer.get("unreachable")):
        return ""
    return str(answer.get("msg") or "it failed")
