# SPDX-License-Identifier: GPL-3.0-or-later
"""How a run stands, read off its Job and its pods: pure, so that every odd state of a pod can be shown in a test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._kube.errors import one_line
from .manifests import CONTAINER
from .shards import indexes

Body = Mapping[str, Any]

INDEX = "batch.kubernetes.io/job-completion-index"
#: Reasons for which a container waits and will wait for ever, unless somebody changes something.
_NO_IMAGE = frozenset(
    ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError")
)
_NO_START = frozenset(("CreateContainerConfigError", "CreateContainerError", "RunContainerError"))
_NEVER_THERE = ("not found", "non-existent", "forbidden")
#: What can be hopeless, and what comes after it only where it has healed: a pod pulls when all its volumes are there.
_MISSING = ("FailedMount", "FailedCreate")
_WENT_ON = frozenset(("Pulling", "Pulled", "Created", "Started", "SuccessfulCreate"))


@dataclass(frozen=True)
class Standing:
    """Which shards are done and which have failed, out of how many."""

    total: int
    done: frozenset[int] = frozenset()
    failed: frozenset[int] = frozenset()
    active: int = 0
    finished: bool = False
    message: str = ""
    reason: str = ""

    @property
    def settled(self) -> int:
        """How many shards will not change any more."""
        return len(self.done) + len(self.failed)


@dataclass(frozen=True)
class Pod:
    """What matters of a pod: its shard, and what its container did, does or waits for."""

    name: str
    index: int
    phase: str
    waiting: str = ""
    message: str = ""
    code: int | None = None
    reason: str = ""
    unscheduled: str = ""

    @property
    def has_started(self) -> bool:
        """Whether its image is there and its container has run."""
        return self.phase in ("Running", "Succeeded", "Failed") and not self.waiting

    @property
    def has_failed(self) -> bool:
        """Whether it ended, and not well."""
        return self.phase == "Failed"

    @property
    def end(self) -> str:
        """Why it ended, for a person."""
        if self.reason and self.reason not in ("Error", "Completed"):
            how = self.reason
        else:
            how = "no code" if self.code is None else f"code {self.code}"
        return f"{how}: {self.message}" if self.message else how


def of_job(job: Body) -> Standing:
    """A Job's own account."""
    status = job.get("status") or {}
    ended = {one["type"]: one for one in status.get("conditions") or () if one.get("status") == "True"}
    last = ended.get("Complete") or ended.get("Failed") or {}
    return Standing(
        total=job["spec"]["completions"],
        done=indexes(status.get("completedIndexes")),
        failed=indexes(status.get("failedIndexes")),
        active=status.get("active") or 0,
        finished=bool(last),
        message=one_line(last.get("message") or "") if "Failed" in ended else "",
        reason=str(last.get("reason") or "") if "Failed" in ended else "",
    )


def of_pod(pod: Body) -> Pod:
    """A pod as the kubelet last told of it."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    containers = [one for one in status.get("containerStatuses") or () if one.get("name") == CONTAINER]
    state: Mapping[str, Any] = containers[0].get("state") or {} if containers else {}
    waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
    conditions = {one["type"]: one for one in status.get("conditions") or ()}
    scheduled = conditions.get("PodScheduled", {})
    return Pod(
        name=metadata["name"],
        index=int((metadata.get("annotations") or {}).get(INDEX) or 0),
        phase=str(status.get("phase") or "Pending"),
        waiting=str(waiting.get("reason") or ""),
        message=one_line(waiting.get("message") or _last_line(ended.get("message")) or status.get("message") or ""),
        code=ended.get("exitCode"),
        reason=str(status.get("reason") or ended.get("reason") or ""),
        unscheduled=one_line(scheduled.get("message") or "") if scheduled.get("status") == "False" else "",
    )


def obstacle(pods: Iterable[Pod], namespace: str, image: str) -> str | None:
    """Why the run can go nowhere, as a sentence; None while any pod got as far as to run."""
    known = list(pods)
    if any(pod.has_started for pod in known):
        return None
    for pod in known:
        where, why = f"Pod {namespace}/{pod.name}", f"{pod.waiting}{f', {pod.message}' if pod.message else ''}"
        if pod.waiting in _NO_IMAGE:
            return (
                f"{where} cannot get its image {image} ({why}); "
                "correct image, load it where the pods run, or name its credentials with image_pull_secrets."
            )
        if pod.waiting in _NO_START:
            return f"{where} cannot start ({why}); correct what it names, then run again."
    return None


def waits_for(pods: Iterable[Pod]) -> Pod | None:
    """A pod that has not begun, whose events may tell why."""
    return next((pod for pod in pods if pod.phase == "Pending" and not pod.has_started), None)


def warning(events: Sequence[Body]) -> tuple[str, bool]:
    """What the newest failure among events says, and whether waiting is of no use; empty for one that has healed."""
    warnings = [one for one in events if str(one.get("reason")).startswith("Failed") and one.get("type") == "Warning"]
    if not warnings:
        return "", False
    newest = max(warnings, key=_when)
    text, reason = one_line(newest.get("message") or ""), str(newest.get("reason") or "")
    if reason in _MISSING and any(one.get("reason") in _WENT_ON and _when(one) >= _when(newest) for one in events):
        return "", False
    return f"{reason}, {text}", reason in _MISSING and any(word in text for word in _NEVER_THERE)


def _when(event: Body) -> str:
    """To the second, which is all that some events tell."""
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")[: len("2026-01-01T00:00:00")]


def _last_line(text: str | None) -> str:
    lines = (text or "").strip().splitlines()
    return lines[-1] if lines else ""
