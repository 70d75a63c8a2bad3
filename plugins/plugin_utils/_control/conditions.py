# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of a service object, in the conventions of Kubernetes: what is there, what runs, and both together.

A condition carries the generation that it was made of, and the time at which its status last became another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...module_utils._node.names import exactly
from .._bundle.digest import short
from .leaving import REMOVED
from .standing import Standing

READY = "Ready"
CONFIG_READY = "ConfigReady"
DEPLOYMENT_READY = "DeploymentReady"
REMOVAL_FAILED = "RemovalFailed"
LONGEST = 4096
#: In deployedDigests: the service was on the node and is not any more.
OFF = ""


@dataclass(frozen=True, slots=True)
class Told:
    """What a run did to one service of one node, as `edpm.services.service` returns it."""

    node: str
    service: str
    namespace: str = ""
    absent: bool = False
    digest: str = ""
    settings: str = ""
    image: str = ""
    changed: bool = False
    failed: bool = False
    msg: str = ""
    restarted: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """Which run it was, in UTC as Kubernetes writes times."""

    name: str
    started: str
    ended: str


@dataclass(frozen=True, slots=True)
class Service:
    """One service of a service object. `digest` is what the plan makes of it, "" where that cannot be told now.

    `settings` is the digest of what that one leaves out, since a change of it needs no restart.
    A `former` one is still live, though nobody asks for it any more; others keep the object.
    """

    name: str
    main: bool = True
    digest: str = ""
    settings: str = ""
    hold: str = ""
    waits: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    former: bool = False


@dataclass(frozen=True, slots=True)
class Live:
    """What is known to be on the node, by service."""

    digests: Mapping[str, str]
    settings: Mapping[str, str]

    @classmethod
    def told_by(cls, stands: Standing) -> Live:
        """What the status of an object says."""
        return cls(stands.status.get("deployedDigests") or {}, stands.status.get("deployedSettings") or {})

    def differs(self, service: Service) -> bool:
        """Whether something else is wanted. Settings that nobody has told of are taken for the wanted ones."""
        if not service.digest or self.digests.get(service.name) != service.digest:
            return bool(service.digest)
        return self.settings.get(service.name, service.settings) != service.settings


@dataclass(frozen=True, slots=True)
class Verdict:
    """A condition without the times."""

    type: str
    status: str
    reason: str
    message: str


def status_of(
    stands: Standing, services: Sequence[Service], told: Mapping[str, Told], run: Run, *, behind: bool = False
) -> dict[str, Any] | None:
    """The status that is to be applied; None where the object has it already.

    With `behind` the services were planned of an older generation than the one that the status tells of.
    """
    live = Live(_digests(stands, services, told), _settings(stands, services, told))
    digests, images = live.digests, _images(stands, services, told)
    verdicts = (_of_older if behind else _verdicts)(stands, services, told, live)
    generation = stands.observed if behind else stands.generation
    main = next((one.name for one in services if one.main), services[0].name if services else "")
    status: dict[str, Any] = {
        "observedGeneration": generation,
        "conditions": [_condition(stands, verdict, generation, run.ended) for verdict in verdicts],
        **({"deployedDigests": dict(digests)} if digests else {}),
        **({"deployedDigest": short(digests[main])} if digests.get(main) else {}),
        **({"deployedSettings": dict(live.settings)} if live.settings else {}),
        **({"deployedImages": images} if images else {}),
    }
    known = stands.status
    same = all(known.get(name) == value for name, value in status.items() if name != "conditions")
    news = [one for one in told.values() if one.changed or one.failed]
    if same and not news and _same_conditions(stands, status["conditions"]):
        return None
    last = _last_run(told, run) if told else known.get("lastRun")
    return {**status, **({"lastRun": last} if last else {})}


def has_failed(stands: Standing) -> bool:
    """Whether the last run that told of the object failed, whatever is live, and nothing of it has changed since."""
    before = stands.condition(DEPLOYMENT_READY)
    return before.get("reason") == "Failed" and before.get("observedGeneration") == stands.generation


def _verdicts(stands: Standing, services: Sequence[Service], told: Mapping[str, Told], live: Live) -> list[Verdict]:
    config = _config(services)
    removed = _removed(stands, services, told, live)
    deployed = _deployed(stands, services, told, live)
    if removed is not None and removed.status == "True":
        deployed = Verdict(DEPLOYMENT_READY, "False", removed.reason, removed.message)
    first = next((one for one in (deployed, config) if one.status != "True"), None)
    if deployed.reason in ("NotDeployed", "Outdated", "Held") and config.status != "True":
        first = config  # what keeps it from being deployed
    ready = Verdict(READY, "True", "Ready", deployed.message)
    if first is not None:
        ready = Verdict(READY, "False", first.reason, first.message)
    return [ready, config, deployed, *([removed] if removed is not None else [])]


def _of_older(stands: Standing, services: Sequence[Service], told: Mapping[str, Told], live: Live) -> list[Verdict]:
    """What a run may say of an object that was changed since it was read: what it wants now is not known here.

    So the conditions stay as they are. But what the run has put onto the node, or taken off it, counts as outdated
    until somebody compares it.
    """
    removed = _removed(stands, services, told, live)
    ready, config, deployed = (_as_it_is(stands, name) for name in (READY, CONFIG_READY, DEPLOYMENT_READY))
    now: tuple[str, str] | None = None
    if removed is not None and removed.status == "True":
        now = removed.reason, removed.message
    elif live.digests != (stands.status.get("deployedDigests") or {}):
        names = " and ".join(told)
        now = "Outdated", f"{stands.ref} was changed while a run was at {names}; the next pass compares what is live."
    if now is not None:
        deployed = Verdict(DEPLOYMENT_READY, "False", *now)
        ready = ready if ready is not None and ready.status == "False" else Verdict(READY, "False", *now)
    return [one for one in (ready, config, deployed, removed) if one is not None]


def _as_it_is(stands: Standing, name: str) -> Verdict | None:
    known = stands.condition(name)
    return Verdict(name, *(str(known.get(part, "")) for part in ("status", "reason", "message"))) if known else None


def _config(services: Sequence[Service]) -> Verdict:
    refused = dict.fromkeys(sentence for one in services for sentence in one.refused)
    waits = dict.fromkeys(sentence for one in services for sentence in one.waits)
    if refused:
        return Verdict(CONFIG_READY, "False", "Refused", " ".join(refused))
    if waits:
        return Verdict(CONFIG_READY, "False", "Waiting", " ".join(waits))
    return Verdict(CONFIG_READY, "True", "Resolved", "All that the services are made of is there.")


def _deployed(stands: Standing, services: Sequence[Service], told: Mapping[str, Told], live: Live) -> Verdict:
    failed = [f"{name}: {one.msg or 'it failed'}" for name, one in told.items() if one.failed and not one.absent]
    if failed:
        return Verdict(DEPLOYMENT_READY, "False", "Failed", " ".join(failed))
    if not told and has_failed(stands):
        message = str(stands.condition(DEPLOYMENT_READY).get("message", ""))
        return Verdict(DEPLOYMENT_READY, "False", "Failed", message)
    digests = live.digests
    staying = [one for one in services if not one.former]
    missing = [one for one in staying if not digests.get(one.name)]
    outdated = [one for one in staying if one not in missing and live.differs(one)]
    held = [one.hold for one in (*missing, *outdated) if one.hold]
    if held:
        return Verdict(DEPLOYMENT_READY, "False", "Held", " ".join(dict.fromkeys(held)))
    if not missing and not outdated:
        names = ", ".join(f"{one.name} {short(digests[one.name])}" for one in staying)
        deployed = Verdict(DEPLOYMENT_READY, "True", "Deployed", f"Deployed: {names}.")
        return _leaving(stands, services, told, live) or deployed
    if missing:
        names = " and ".join(one.name for one in missing)
        return Verdict(
            DEPLOYMENT_READY, "False", "NotDeployed", f"{names} {'are' if len(missing) > 1 else 'is'} not deployed yet."
        )
    changes = ", ".join(_change(one, digests[one.name]) for one in outdated)
    return Verdict(DEPLOYMENT_READY, "False", "Outdated", f"To be deployed: {changes}.")


def _change(one: Service, live: str) -> str:
    if live == one.digest:
        return f"{one.name} (certificates, keys, ports, checks or folders, without a restart)"
    return f"{one.name} from {short(live)} to {short(one.digest)}"


def _leaving(stands: Standing, services: Sequence[Service], told: Mapping[str, Told], live: Live) -> Verdict | None:
    """That something is on the node which nobody asks for any more; None where nothing is."""
    left = [one.name for one in services if one.former and live.digests.get(one.name)]
    if not left:
        return None
    failed = [f"{name}: {told[name].msg or 'it failed'}" for name in left if name in told and told[name].failed]
    if failed:
        return Verdict(DEPLOYMENT_READY, "False", REMOVAL_FAILED, " ".join(failed))
    before = _as_it_is(stands, DEPLOYMENT_READY)
    if before is not None and before.reason == REMOVAL_FAILED:
        return before
    remedy = f"edpm.services.remove -e node={stands.node} -e service={','.join(map(exactly, left))}"
    said = f"{' and '.join(left)}: on the node, and not asked for any more; {remedy} takes that off."
    return Verdict(DEPLOYMENT_READY, "False", "Leaving", said)


def _removed(stands: Standing, services: Sequence[Service], told: Mapping[str, Told], live: Live) -> Verdict | None:
    """Whether all services are off the node; None while nobody has tried to take them off, or has put one on again.

    What leaves an object that stays says nothing about the others.
    """
    services = [one for one in services if not one.former]
    told = {name: one for name, one in told.items() if any(name == staying.name for staying in services)}
    tried = [one for one in told.values() if one.absent]
    failed = [f"{name}: {one.msg or 'it failed'}" for name, one in told.items() if one.absent and one.failed]
    if failed:
        return Verdict(REMOVED, "False", REMOVAL_FAILED, " ".join(failed))
    if len(tried) < len(told):
        return None
    off = [one.name for one in services if live.digests.get(one.name) == OFF]
    if services and len(off) == len(services):
        return Verdict(REMOVED, "True", "ServicesRemoved", f"{' and '.join(off)}: off the node.")
    if not tried:
        return _as_it_is(stands, REMOVED)
    left = " and ".join(one.name for one in services if live.digests.get(one.name) != OFF)
    return Verdict(REMOVED, "False", "Removing", f"{' and '.join(off)}: off the node; {left}: not yet.")


def _digests(stands: Standing, services: Sequence[Service], told: Mapping[str, Told]) -> dict[str, str]:
    """What is live, by service: what the run tells, else what was known.

    A service that was off the node and failed to come back may have left something there: it is off no more.
    """
    before = stands.status.get("deployedDigests") or {}
    found: dict[str, str] = {}
    for name in sorted({one.name for one in services}):
        now = told.get(name)
        if now is not None and now.absent:
            if not now.failed:
                found[name] = OFF
            elif name in before:
                found[name] = before[name]
        elif now is not None and now.digest:
            found[name] = now.digest
        elif name in before and (now is None or before[name] != OFF):
            found[name] = before[name]
    return found


def _settings(stands: Standing, services: Sequence[Service], told: Mapping[str, Told]) -> dict[str, str]:
    """The settings that are live, by service: what the run tells; else what was known, unless it told of another."""
    before = Live.told_by(stands)
    found: dict[str, str] = {}
    for name in sorted({one.name for one in services}):
        now = told.get(name) or Told(stands.node, name)
        other = now.absent or now.digest not in ("", before.digests.get(name))
        known = now.settings or ("" if other and not now.failed else before.settings.get(name, ""))
        if known:
            found[name] = known
    return found


def _images(stands: Standing, services: Sequence[Service], told: Mapping[str, Told]) -> dict[str, str]:
    before = stands.status.get("deployedImages") or {}
    found: dict[str, str] = {}
    for name in sorted({one.name for one in services}):
        now = told.get(name)
        if now is not None and now.absent and not now.failed:
            continue
        image = now.image if now is not None and now.image else before.get(name)
        if image:
            found[name] = image
    return found


def _condition(stands: Standing, verdict: Verdict, generation: int, now: str) -> dict[str, Any]:
    before = stands.condition(verdict.type)
    since = before.get("lastTransitionTime") if before.get("status") == verdict.status else None
    return {
        "type": verdict.type,
        "status": verdict.status,
        "reason": verdict.reason,
        "message": cut(verdict.message, LONGEST),
        "observedGeneration": generation,
        "lastTransitionTime": since or now,
    }


def _same_conditions(stands: Standing, conditions: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the object has exactly these of ours; conditions of others do not count."""
    meant = {one["type"]: one for one in conditions}
    ours = (READY, CONFIG_READY, DEPLOYMENT_READY, REMOVED)
    return all(dict(stands.condition(name)) == dict(meant.get(name, {})) for name in ours)


def _last_run(told: Mapping[str, Told], run: Run) -> dict[str, str]:
    failed = [f"{name}: {one.msg or 'it failed'}" for name, one in told.items() if one.failed]
    done = [f"{name}{_deed(one)}" for name, one in told.items() if not one.failed]
    return {
        "name": run.name,
        "startTime": run.started,
        "completionTime": run.ended,
        "result": "Failed" if failed else "Succeeded",
        "message": cut(" ".join(failed) if failed else f"{', '.join(done)}.", LONGEST),
    }


def _deed(one: Told) -> str:
    if one.absent:
        return " removed"
    return " restarted" if one.restarted else " changed" if one.changed else " unchanged"


def cut(text: str, longest: int) -> str:
    """The text on one line, and not longer than the field takes."""
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"
