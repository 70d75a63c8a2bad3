# SPDX-License-Identifier: GPL-3.0-or-later
"""Deployments and removals whose Job ended before anybody told of them: a failure of what they were to do.

A run tells of its services by itself, unless it is killed, finds no place, cannot be played, or may not write. What it
left unsaid is told here, and the object's last run is newer than the Job from then on: so it is told once, by whichever
operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .._control.conditions import Live, Service, Told, has_failed
from .._control.look import World
from .._control.names import WRITER
from .._control.standing import Standing
from .._control.status import Services
from .._control.wanted import Chosen
from .._dataplane.model import Reference
from .._jobs import manifests
from .._jobs.jobs import CONFIG_MAPS, PODS
from .._jobs.standing import Pod, of_job, of_pod
from .._jobs.standing import Standing as JobStanding
from .._kube.client import Client, Object
from .deciding import DEPLOY, REMOVE
from .runs import TASK_LABEL, Work, work_of
from .trying import seconds

#: The reason of a Job whose time was over; its pods are taken away then.
DEADLINE = "DeadlineExceeded"
#: What to do about an end, by the reason that a pod or the Job gives for it.
_REMEDIES = {
    "OOMKilled": "give its pods more memory with resources under run in the operator's settings.",
    DEADLINE: (
        "see whether its pods find a place and its nodes answer, or give it more time with deadline under run in the "
        "operator's settings."
    ),
}
_REMEDY = "look at the log of its pods, and correct that."


@dataclass(frozen=True)
class Dead:
    """A Job that has ended, and failed unless it says that all is done. Times are the server's."""

    uid: str
    name: str
    namespace: str
    start: str
    task: str
    begun: float
    ended: float
    stands: JobStanding

    @property
    def done(self) -> bool:
        """Whether it says that all went well."""
        return len(self.stands.done) == self.stands.total


@dataclass(frozen=True)
class LastWords:
    """What a Job was to do, and of each node that it did not get done a sentence that says why."""

    work: Work
    why: Mapping[str, str]


@dataclass(frozen=True)
class Silence:
    """What a pass knows: of some of these objects nobody may have told. `leaving` are those that are to go."""

    world: World
    services: Services
    chosen: Chosen
    leaving: frozenset[Reference] = frozenset()

    def pending(self) -> list[Standing]:
        """All that a run is missing of, or was when it last failed."""
        return [one for one in self.world.service_objects() if one.ref in self.leaving or self._unmet(one)]

    def may_tell(self, one: Standing) -> bool:
        """Whether nobody has paused it."""
        return self.chosen.has(one.ref.namespace, one.node, [service.name for service in self.services[one.ref]])

    def meant(self, one: Standing, task: str) -> list[Service]:
        """The services of an object that a Job of this task can have failed at."""
        leaving, failed = one.ref in self.leaving, has_failed(one)
        if task == REMOVE:
            return [service for service in self.services[one.ref] if leaving or service.former]
        return [
            service
            for service in self.services[one.ref]
            if not leaving and service.digest and not service.hold and (failed or differs(one, service))
        ]

    def _unmet(self, one: Standing) -> bool:
        return has_failed(one) or any(service.former or differs(one, service) for service in self.services[one.ref])


@dataclass
class Obituary:
    """What is to be told now, and when the last of these Jobs ended."""

    results: list[Told] = field(default_factory=list)
    at: float = 0.0


class Deaths:
    """Finds what nobody has told. What a Job was to do is asked for once, and only where it matters."""

    def __init__(self) -> None:
        self._known: dict[str, LastWords | None] = {}
        #: By the Jobs that have ended, the objects of which nobody had told then; None before the first look.
        self._open: dict[str, frozenset[Reference]] | None = None

    def told(self, client: Client, ended: Sequence[Object], silence: Silence) -> Obituary:
        """The failures that nobody has told of; `ended` are all Jobs that have ended and are still there.

        Whom it may concern is seen when a Job ends: a run that has changed nothing leaves an object's last run as it
        is, and something else may be wanted later. So of those that went well before the first look none counts.
        """
        dead = sorted(_dead(ended), key=lambda job: job.begun)
        names = {job.uid for job in dead}
        known = {job.uid: frozenset[Reference]() for job in dead if job.done} if self._open is None else self._open
        self._open = {uid: refs for uid, refs in known.items() if uid in names}
        self._known = {uid: words for uid, words in self._known.items() if uid in names}
        found = Obituary()
        pending = silence.pending() if dead else []
        for job in dead:
            silent = [one for one in pending if one.ref.namespace == job.namespace and _is_silent(one, job.begun)]
            still = self._open.setdefault(job.uid, frozenset(one.ref for one in silent))
            results = list(self._of(client, job, (one for one in silent if one.ref in still), silence))
            if results:
                found.results += results
                found.at = max(found.at, job.begun, job.ended)
        return found

    def _of(self, client: Client, job: Dead, silent: Iterable[Standing], silence: Silence) -> Iterator[Told]:
        for one in silent:
            services = silence.meant(one, job.task) if silence.may_tell(one) else []
            words = self._words(client, job) if services else None
            if words is None or one.node not in words.why:
                continue
            for service in services:
                if words.work.concerns(service.name):
                    absent, why = job.task == REMOVE, words.why[one.node]
                    yield Told(one.node, service.name, job.namespace, absent=absent, failed=True, msg=why)

    def _words(self, client: Client, job: Dead) -> LastWords | None:
        if job.uid not in self._known:
            self._known[job.uid] = _asked(client, job)
        return self._known[job.uid]


def differs(one: Standing, service: Service) -> bool:
    """Whether something else is wanted of a service than what is known to be live."""
    return Live.told_by(one).differs(service)


def _is_silent(one: Standing, begun: float) -> bool:
    """Whether the object is older than a Job, and what was last told of it, too."""
    last = (one.status.get("lastRun") or {}).get("completionTime")
    return (seconds(one.created) or 0.0) <= begun and (seconds(last) or 0.0) < begun


def _dead(ended: Iterable[Object]) -> Iterator[Dead]:
    for job in ended:
        meta, stands = job["metadata"], of_job(job)
        labels = meta.get("labels") or {}
        task, begun = labels.get(TASK_LABEL, DEPLOY), seconds(meta.get("creationTimestamp"))
        if task not in (DEPLOY, REMOVE) or begun is None:
            continue
        place = (str(meta["uid"]), str(meta["name"]), str(meta["namespace"]), labels.get(manifests.START_LABEL, ""))
        yield Dead(*place, task, begun, _ended(job) or begun, stands)


def _ended(job: Object) -> float | None:
    conditions = (job.get("status") or {}).get("conditions") or ()
    return max((at for one in conditions if (at := seconds(one.get("lastTransitionTime"))) is not None), default=None)


def _asked(client: Client, job: Dead) -> LastWords | None:
    """None where nobody can say any more what it was to do."""
    body = client.get(CONFIG_MAPS, f"{job.name}-{job.start}", job.namespace)
    work = work_of(body) if body is not None else None
    if work is None:
        return None
    chosen = f"{manifests.RUN_LABEL}={job.name},{manifests.START_LABEL}={job.start}"
    pods = client.get_all(PODS, job.namespace, chosen)
    pods.sort(key=lambda pod: str(pod["metadata"].get("creationTimestamp")))
    failed = {pod.index: pod for pod in map(of_pod, pods) if pod.has_failed}
    left = work.left_by(() if job.done else job.stands.done)
    sentences = {index: _sentence(job, failed.get(index)) for index in set(left.values())}
    return LastWords(work, {node: sentences[index] for node, index in left.items()})


def _sentence(job: Dead, pod: Pod | None) -> str:
    if job.done:
        return (
            f"Job {job.namespace}/{job.name} is done, yet nothing new was told of what is still to do; see whether the "
            f"account of its pods is bound to the ClusterRole {WRITER}, and look at their log."
        )
    if pod is not None and job.stands.reason != DEADLINE:
        said, reason = f"pod {pod.name} ended with {pod.end}", pod.reason
    else:
        said, reason = job.stands.message or "its pods left no word", job.stands.reason
    return f"Job {job.namespace}/{job.name} failed ({said}); {_REMEDIES.get(reason, _REMEDY)}"
