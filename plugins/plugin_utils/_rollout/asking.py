# SPDX-License-Identifier: GPL-3.0-or-later
"""From the options of a task to what the node's half is asked: out of the run's plan, or out of the options alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from .._bundle import plain
from .._bundle.bundle import bundle
from .._bundle.migration import known_hosts_path, with_known_hosts
from .._bundle.parcel import parcel
from .._dataplane.model import Reference
from .._dataplane.planned import NodePlan, ServicePlan
from .._kube import snapshot
from .._report.near import NotThereError
from .._report.overview import PlannedService, Question, overview
from .comparing import State, standing
from .known_hosts import KnownHosts, cell_of, gather
from .questions import NotDeployableError, question
from .sending import MODULES

#: Options that are handed on to the node as they are.
ON_NODE = ("root", "unit_root", "lock_timeout", "force", "purge_data")
_SHARED = (*ON_NODE, "instance", "state", "source", "known")
SPEC: dict[str, dict[str, Any]] = {
    "service": {"type": "str", "required": True},
    **{name: one for name, one in MODULES["service"].controllers.items() if name in _SHARED},
    **plain.PLAIN_SPEC,
}
_WITHOUT_BUNDLE = ("previous", "absent")
#: The kind of what stands for a node that no plan knows.
_NO_NODE = "Host"


@dataclass(frozen=True)
class Asked:
    """What the node is asked, or an answer where it need not be."""

    options: Mapping[str, Any]
    answer: dict[str, Any] | None = None


def asked(
    given: Mapping[str, Any],
    named: Collection[str],
    variables: Mapping[str, Any],
    find: Callable[[str], str],
    content: Callable[[str], str],
) -> Asked:
    """The question to the node; NotThereError where the service cannot be deployed. `named` are options of the task.

    `find` tells where a file of the controller lies, `content` what is in a file of the node.
    """
    passed = {name: given[name] for name in ON_NODE if name in named}
    if given["state"] in _WITHOUT_BUNDLE:
        return Asked({**passed, **{name: given[name] for name in ("state", "service", "instance")}})
    one = _planned(given, named, variables, find)
    facts = given["known"] or {}
    found = facts.get("services", facts).get(one.plan.name)
    stands = standing(one, found)
    if stands.state in (State.BLOCKED, State.UNDEPLOYABLE):
        raise NotDeployableError(f"{one.plan.name} cannot be deployed on {one.node.name}: {' '.join(stands.what)}")
    if stands.state is State.HELD:
        return Asked({}, {"changed": False, "held": True, "msg": f"{one.plan.name} is held: {stands.what[0]}"})
    wanted = parcel(one.plan, one.bundle)
    known = _known_hosts(one, facts)
    if (
        found
        and stands.state is State.UP_TO_DATE
        and given["state"] == "present"
        and not known.differs(one.plan, facts)
    ):
        said = f"{one.plan.name} {(stands.digest or '')[:7]} is live and healthy, nothing to do."
        return Asked({}, {"changed": False, "service": one.plan.name, "digest": stands.digest, "msg": said})
    path = known_hosts_path(one.plan)
    if wanted and path and given["state"] == "present" and (known.text or known.unasked):
        wanted = with_known_hosts(wanted, known.beside(content(path)) if known.unasked else known.text)
    return Asked(question(wanted, given["state"], passed))


def _planned(
    given: Mapping[str, Any], named: Collection[str], variables: Mapping[str, Any], find: Callable[[str], str]
) -> PlannedService:
    host = str(variables.get("inventory_hostname", ""))
    name = "@".join(part for part in (given["service"].removesuffix("@"), given["instance"]) if part)
    if given["source"] == "plan" or (given["source"] == "auto" and _plan_knows(host, name, named)):
        found = overview(snapshot.plan(), Question(host, name)).services
        exact = next((one for one in found if one.plan.name == name), None)
        if exact is None:
            raise NotThereError(f"The node {host} runs only instances of {name}; name one with instance.")
        return exact
    return _plain(given, host, str(variables.get("ansible_host", "")), find)


def _plan_knows(host: str, name: str, named: Collection[str]) -> bool:
    """Whether the run's plan is meant: one that knows the node, and the service too where options describe one."""
    if snapshot.taken() is None and snapshot.failure() is None:
        return False
    services = {one.name for node in snapshot.plan().nodes if node.name == host for one in node.services}
    described = any(option in plain.PLAIN_SPEC for option in named)
    return name in services or (bool(services) and not described)


def _known_hosts(one: PlannedService, facts: Mapping[str, Any]) -> KnownHosts:
    """Whom the service should know; nobody where it is not out of a plan."""
    if one.node.origin.kind == _NO_NODE or known_hosts_path(one.plan) is None:
        return KnownHosts(b"")
    return gather(snapshot.plan(), {one.node.name: facts})[cell_of(one.plan)]


def _plain(given: Mapping[str, Any], host: str, address: str, find: Callable[[str], str]) -> PlannedService:
    plan: ServicePlan = plain.plan(given, find=find, node=host, address=address)
    return PlannedService(NodePlan(host, "", host, Reference(_NO_NODE, "", host)), plan, bundle(plan))
