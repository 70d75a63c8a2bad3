# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose turn it is: the hosts of each play, from what the nodes have answered so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .._kube import snapshot
from .._openstack.credentials import settings
from .._openstack.errors import OpenStackError
from .._report.near import NotThereError, did_you_mean
from .._report.overview import Question
from .._report.overview import State as Plans
from .comparing import State, lacks
from .course import (
    COMPUTE,
    DONE,
    FOUND,
    NOBODY,
    PULLED,
    SUMMARY,
    TOLD,
    Course,
    Mode,
    begin,
    course,
    planned,
    set_work,
    standing_of,
)
from .outcome import of_run

Variables = Mapping[str, Any]
_SETTINGS = (
    *(f"edpm_deploy_{name}" for name in ("canary", "batch", "failure_budget", "prefetch")),
    *("edpm_cloud", "edpm_discover", "edpm_discover_command"),
)


def turn(term: str, mode: str, question: Question, variables: Variables) -> list[Any]:
    """The hosts of a play, or the sizes of its batches. `variables` are those that Ansible knows without a host."""
    if term == "looking":
        return _looking(begin(mode, question, _inventory(variables))) or NOBODY
    if term not in _TURNS:
        raise NotThereError(f"There is no {term} in a run; {did_you_mean(term, ['looking', *_TURNS], 'terms')}")
    run = course()
    if term in _AFTER_LOOKING and not run.settled:
        set_work(run, _answers(run, variables), _settings(run, variables))
    return list(_TURNS[term](run, variables)) or NOBODY


def _looking(run: Course) -> list[str]:
    """A deployment leaves nodes in peace on which it may not touch anything: they may not even be reachable yet."""
    if run.mode is not Mode.DEPLOY:
        return list(run.nodes)
    return [node for node in run.nodes if any(_deployable(run, node))]


def _deployable(run: Course, node: str) -> Iterable[bool]:
    return (one.state is Plans.READY and not lacks(one) for one in planned(run, node))


def _nodes(run: Course, variables: Variables) -> Iterable[str]:
    del variables
    return run.nodes


def _lacking(run: Course, variables: Variables) -> Iterable[str]:
    answers = _answers(run, variables)
    if not _is_true(_settings(run, variables).get("edpm_deploy_prefetch", True)) or variables.get("ansible_check_mode"):
        return ()
    return [node for node in run.order if _needs(run, node, answers[node])]


def _needs(run: Course, node: str, answer: Mapping[str, Any]) -> bool:
    missing = set(answer.get("missing_images") or ())
    return bool(missing) and any(
        one.bundle.image in missing for one in planned(run, node) if one.plan.name in run.work[node]
    )


def _working(run: Course, variables: Variables) -> Iterable[str]:
    """Those whose images could not be had, or whose servers have not left, are not touched: they failed already."""
    bad = {node for node in run.order if _has_failed(run, _known(variables, node))}
    run.work = {node: names for node, names in run.work.items() if node not in bad}
    run.lost += len(bad)
    return run.order


def _has_failed(run: Course, known: Mapping[str, Any]) -> bool:
    return _is_bad(of_run(run, known.get(PULLED))) or _is_bad(known.get(TOLD) or {})


def _leaving(run: Course, variables: Variables) -> Iterable[str]:
    """Nodes with computes that leave, where OpenStack can be told of it."""
    found = [node for node in run.order if any(_is_compute(name) for name in run.work[node])]
    if run.mode is not Mode.REMOVE or not found:
        return ()
    try:
        settings(str(_settings(run, variables).get("edpm_cloud") or ""), "", snapshot.source(), snapshot.taken())
    except OpenStackError as error:
        run.untold = f"Nova and Placement are not told that the compute leaves. {error}"
        return ()
    return found


def _left(run: Course, variables: Variables) -> Iterable[str]:
    """Those of them whose services are gone."""
    done = {node: of_run(run, _known(variables, node).get(DONE)) for node in run.order}
    return [node for node in _leaving(run, variables) if done[node] and not _is_bad(done[node])]


def _arrived(run: Course, variables: Variables) -> Iterable[str]:
    """Nodes with a compute that is new, where somebody says how Nova discovers it."""
    said = _settings(run, variables)
    wanted = said.get("edpm_discover_command") or _is_true(said.get("edpm_discover", False))
    if run.mode is not Mode.DEPLOY or not wanted or variables.get("ansible_check_mode"):
        return ()
    return [node for node in run.order if _is_new(run, node, _known(variables, node))]


def _is_new(run: Course, node: str, known: Mapping[str, Any]) -> bool:
    done = of_run(run, known.get(DONE)).get("services") or {}
    stands = standing_of(run, node, known.get(FOUND) or {})
    new = {one.name for one in stands if one.state is State.NEW and _is_compute(one.name)}
    return any(name in new and not _is_bad(one) for name, one in done.items())


def _computes(run: Course, variables: Variables) -> Iterable[str]:
    """What Nova calls the computes of the task's node: by what it remembers, else by the plan."""
    node = str(variables["inventory_hostname"])
    found: Mapping[str, Any] = (variables.get(FOUND) or {}).get("services") or {}
    told = {one.plan.name: one.plan.identity.host for one in planned(run, node) if one.plan.identity}
    names = [name for name in run.work.get(node, ()) if _is_compute(name)]
    return [((found.get(name) or {}).get("identity") or {}).get("host") or told.get(name, node) for name in names]


def _is_compute(name: str) -> bool:
    return name.partition("@")[0] == COMPUTE


def _batches(run: Course, variables: Variables) -> Iterable[int]:
    del variables
    return run.sizes or [1]


def _telling(run: Course, variables: Variables) -> Iterable[str]:
    """All of them, where there is a cluster that should know; one speaks for all."""
    return run.nodes if _summed_up(run, variables, "told") else ()


def _failing(run: Course, variables: Variables) -> Iterable[str]:
    failing = _summed_up(run, variables, "failing")
    return [node for node in run.nodes if node in failing]


def _summed_up(run: Course, variables: Variables, name: str) -> Mapping[str, Any]:
    """A part of the summary, which any of the nodes may have."""
    found = (_known(variables, node).get(SUMMARY) for node in run.nodes)
    part: Mapping[str, Any] = next((one[name] for one in found if one and name in one), {})
    return part


def _answers(run: Course, variables: Variables) -> dict[str, Mapping[str, Any]]:
    found = {node: _known(variables, node).get(FOUND) for node in run.nodes}
    return {node: one for node, one in found.items() if one and not _is_bad(one)}


def _settings(run: Course, variables: Variables) -> dict[str, Any]:
    """Variables that say how a run goes: from the command line, else those of the inventory."""
    of_first = _known(variables, run.nodes[0]) if run.nodes else {}
    return {
        name: variables[name] if name in variables else of_first[name]
        for name in _SETTINGS
        if name in variables or name in of_first
    }


def _known(variables: Variables, node: str) -> Mapping[str, Any]:
    """What Ansible knows of a host; before the first task of a run it knows nothing of any."""
    hosts = variables.get("hostvars")
    found: Mapping[str, Any] = hosts[node] if hosts is not None and node in hosts else {}
    return found


def _inventory(variables: Variables) -> list[str]:
    groups: Mapping[str, Any] = variables.get("groups") or {}
    return list(groups.get("all") or ())


def _is_bad(one: Mapping[str, Any]) -> bool:
    return bool(one.get("failed") or one.get("unreachable"))


def _is_true(value: Any) -> bool:
    return str(value).lower() not in ("false", "no", "off", "0")


_TURNS: Mapping[str, Callable[[Course, Variables], Iterable[Any]]] = {
    "nodes": _nodes,
    "lacking": _lacking,
    "leaving": _leaving,
    "working": _working,
    "batches": _batches,
    "arrived": _arrived,
    "left": _left,
    "computes": _computes,
    "telling": _telling,
    "failing": _failing,
}
_AFTER_LOOKING = ("lacking", "leaving", "working")
