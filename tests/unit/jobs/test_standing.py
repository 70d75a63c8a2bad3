# SPDX-License-Identifier: GPL-3.0-or-later
"""How a run stands, from Jobs and pods as a cluster shows them."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.standing import (
    Pod,
    obstacle,
    of_job,
    of_pod,
    waits_for,
    warning,
)


def job(**status: Any) -> dict[str, Any]:
    return {"spec": {"completions": 6}, "status": status}


def pod(phase: str, state: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    containers = [] if state is None else [{"name": "runner", "state": state}]
    annotations = {"batch.kubernetes.io/job-completion-index": "3"}
    return {
        "metadata": {"name": "run-3-abcde", "annotations": annotations},
        "status": {"phase": phase, "containerStatuses": containers, **status},
    }


def test_a_job_that_runs_tells_which_shards_are_done() -> None:
    stands = of_job(job(active=2, completedIndexes="0,2-3", failedIndexes="5"))

    assert (sorted(stands.done), sorted(stands.failed), stands.active) == ([0, 2, 3], [5], 2)
    assert (stands.settled, stands.total, stands.finished) == (4, 6, False)


def test_a_job_without_status_has_just_begun() -> None:
    assert of_job({"spec": {"completions": 1}}).settled == 0


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ({"type": "Complete", "status": "True", "message": "Reached"}, ""),
        ({"type": "Failed", "status": "True", "message": "Job has failed indexes."}, "Job has failed indexes"),
    ],
)
def test_a_job_ends_well_or_not(condition: dict[str, str], message: str) -> None:
    stands = of_job(job(conditions=[condition]))

    assert (stands.finished, stands.message) == (True, message)


def test_a_condition_on_the_way_is_no_end() -> None:
    conditions = [{"type": "FailureTarget", "status": "True"}, {"type": "Complete", "status": "False"}]

    assert not of_job(job(conditions=conditions)).finished


def test_a_pod_that_runs() -> None:
    seen = of_pod(pod("Running", {"running": {}}))

    assert (seen.index, seen.has_started, seen.has_failed) == (3, True, False)


@pytest.mark.parametrize(
    ("status", "end"),
    [
        (pod("Failed", {"terminated": {"exitCode": 137, "reason": "Error"}}), "code 137"),
        (pod("Failed", {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}), "OOMKilled"),
        (pod("Failed", {"terminated": {"exitCode": 1, "reason": "Error", "message": "a\nb\n"}}), "code 1: b"),
        (pod("Failed", None, reason="Evicted", message="Too little memory."), "Evicted: Too little memory"),
        (pod("Failed"), "no code"),
    ],
)
def test_why_a_pod_ended(status: dict[str, Any], end: str) -> None:
    seen = of_pod(status)

    assert seen.has_failed
    assert seen.end == end


def waiting(reason: str) -> Pod:
    return of_pod(pod("Pending", {"waiting": {"reason": reason, "message": "as told."}}))


@pytest.mark.parametrize("reason", ["ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"])
def test_an_image_that_cannot_be_had_is_told_at_once(reason: str) -> None:
    assert obstacle([waiting(reason)], "openstack", "example.com/nope:1") == (
        f"Pod openstack/run-3-abcde cannot get its image example.com/nope:1 ({reason}, as told); correct image, "
        "load it where the pods run, or name its credentials with image_pull_secrets."
    )


def test_a_container_that_cannot_be_made_is_told_at_once() -> None:
    found = obstacle([waiting("CreateContainerConfigError")], "openstack", "i")

    assert found is not None
    assert "cannot start (CreateContainerConfigError, as told)" in found


def test_one_pod_that_lacks_its_image_does_not_stop_a_run_that_got_going() -> None:
    running = of_pod(pod("Running", {"running": {}}))

    assert obstacle([waiting("ErrImagePull"), running], "openstack", "i") is None


def test_a_pod_that_is_being_made_is_no_obstacle_but_is_waited_for() -> None:
    made = waiting("ContainerCreating")

    assert obstacle([made], "openstack", "i") is None
    assert waits_for([made]) == made


def test_a_pod_that_no_machine_takes_says_so() -> None:
    condition = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available."}

    assert of_pod(pod("Pending", conditions=[condition])).unscheduled == "0/3 nodes are available"


def failure(reason: str, message: str, when: str) -> dict[str, str]:
    return {"type": "Warning", "reason": reason, "message": message, "lastTimestamp": when}


def test_the_newest_failure_among_events_counts() -> None:
    events = [
        failure("FailedMount", 'secret "gone" not found', "2026-01-02T00:00:00Z"),
        failure("FailedScheduling", "no room", "2026-01-01T00:00:00Z"),
        {"type": "Normal", "reason": "Scheduled", "message": "fine", "lastTimestamp": "2026-01-03T00:00:00Z"},
        failure("MissingClusterDNS", "as always", "2026-01-04T00:00:00Z"),
    ]

    assert warning(events) == ('FailedMount, secret "gone" not found', True)
    assert warning(events[1:]) == ("FailedScheduling, no room", False)
    assert warning([]) == ("", False)


@pytest.mark.parametrize("reason", ["Pulling", "Pulled", "Created", "Started"])
@pytest.mark.parametrize("when", ["2026-01-01T00:00:05Z", "2026-01-01T00:00:06Z"])
def test_a_mount_after_which_the_pod_went_on_has_healed(reason: str, when: str) -> None:
    missing = failure("FailedMount", 'configmap "settings" not found', "2026-01-01T00:00:05Z")
    after = {"type": "Normal", "reason": reason, "message": "fine", "lastTimestamp": when}

    assert warning([missing])[1] is True
    assert warning([missing, after]) == ("", False)
    assert warning([missing, {**after, "lastTimestamp": None, "eventTime": f"{when[:-1]}.000001Z"}]) == ("", False)


def test_a_mount_that_fails_after_the_pod_went_on_has_not_healed() -> None:
    missing = failure("FailedMount", 'configmap "settings" not found', "2026-01-01T00:00:05Z")
    before = {"type": "Normal", "reason": "Pulling", "message": "fine", "lastTimestamp": "2026-01-01T00:00:04Z"}

    assert warning([missing, before])[1] is True


def test_an_image_that_was_not_found_is_told_though_it_was_being_pulled() -> None:
    pulling = {"type": "Normal", "reason": "Pulling", "message": "fine", "lastTimestamp": "2026-01-01T00:00:05Z"}

    assert warning([pulling, failure("Failed", "no such image", "2026-01-01T00:00:05Z")])[0] == "Failed, no such image"


def test_a_mount_that_may_still_come_is_waited_for() -> None:
    assert warning([failure("FailedMount", "timed out waiting for the condition", "1")])[1] is False
