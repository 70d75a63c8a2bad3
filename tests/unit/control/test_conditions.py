# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of a service object from what the plan says, what was known, and what a run tells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._control.conditions import (
    Run,
    Service,
    Told,
    cut,
    status_of,
)
from ansible_collections.edpm.services.plugins.plugin_utils._control.standing import Standing, standing
from hypothesis import given
from hypothesis import strategies as st

from .worlds import Body, compute

OLD, NEW = "a" * 64, "b" * 64
EARLIER = Run("earlier", "2026-11-01T07:00:00Z", "2026-11-01T07:01:00Z")
NOW = Run("now", "2026-11-01T08:00:00Z", "2026-11-01T08:01:00Z")


def stands(status: Body | None = None, generation: int = 1) -> Standing:
    body = compute(status=status)
    body["metadata"]["generation"] = generation
    found = standing(body)
    assert found is not None
    return found


def service(digest: str = NEW, **rest: Any) -> Service:
    return Service("nova_compute", digest=digest, **rest)


def told(digest: str = NEW, **rest: Any) -> dict[str, Told]:
    return {"nova_compute": Told("node-0", "nova_compute", digest=digest, **rest)}


def after(
    planned: Service, results: Mapping[str, Told], before: Body | None = None, generation: int = 1, run: Run = NOW
) -> Body:
    status = status_of(stands(before, generation), [planned], results, run)
    assert status is not None
    return status


def conditions(status: Body) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one["reason"]) for one in status["conditions"]}


DEPLOYED = after(service(), told(changed=True), run=EARLIER)
READY = {"Ready": ("True", "Ready"), "ConfigReady": ("True", "Resolved"), "DeploymentReady": ("True", "Deployed")}


@pytest.mark.parametrize(
    ("planned", "results", "before", "expected"),
    [
        (service(), {}, None, ("False", "NotDeployed")),
        (service(), told(), None, ("True", "Ready")),
        (service(), told(OLD), None, ("False", "Outdated")),
        (service(OLD), {}, DEPLOYED, ("False", "Outdated")),
        (service(""), {}, DEPLOYED, ("True", "Ready")),
        (service(), told(failed=True, msg="no"), DEPLOYED, ("False", "Failed")),
        (service(hold="It is held."), {}, None, ("False", "Held")),
        (service(hold="It is held."), {}, DEPLOYED, ("True", "Ready")),
        (service(OLD, hold="It is held."), {}, DEPLOYED, ("False", "Held")),
        (service("", waits=("It waits.",)), {}, DEPLOYED, ("False", "Waiting")),
        (service("", waits=("It waits.",)), {}, None, ("False", "Waiting")),
        (service("", refused=("It is wrong.",), waits=("It waits.",)), {}, None, ("False", "Refused")),
        (service("", waits=("It waits.",)), told("", failed=True, msg="no"), None, ("False", "Failed")),
    ],
)
def test_ready_has_the_reason_that_matters_most(
    planned: Service, results: Mapping[str, Told], before: Body | None, expected: tuple[str, str]
) -> None:
    found = status_of(stands(before), [planned], results, NOW) or before
    assert found is not None
    assert conditions(found)["Ready"] == expected


def test_what_is_known_already_is_not_written_again() -> None:
    assert status_of(stands(DEPLOYED), [service()], {}, NOW) is None
    assert status_of(stands(DEPLOYED), [service()], told(), NOW) is None


def test_a_run_that_changed_or_failed_is_recorded_each_time() -> None:
    again = after(service(), told(changed=True), DEPLOYED)
    assert again["lastRun"]["name"] == "now"
    failed = after(service(), told(failed=True, msg="no"), DEPLOYED)
    assert failed["lastRun"] == {
        "name": "now",
        "startTime": NOW.started,
        "completionTime": NOW.ended,
        "result": "Failed",
        "message": "nova_compute: no",
    }


def test_the_time_of_a_condition_is_that_of_its_last_turn() -> None:
    failed = {one["type"]: one for one in after(service(), told(failed=True, msg="no"), DEPLOYED)["conditions"]}
    assert failed["Ready"]["lastTransitionTime"] == NOW.ended
    assert failed["ConfigReady"]["lastTransitionTime"] == EARLIER.ended


def test_a_new_generation_is_observed_even_if_all_else_stays() -> None:
    status = after(service(), {}, DEPLOYED, generation=2)
    assert conditions(status) == READY
    assert {one["observedGeneration"] for one in status["conditions"]} == {2}
    assert {one["lastTransitionTime"] for one in status["conditions"]} == {EARLIER.ended}
    assert status["lastRun"] == DEPLOYED["lastRun"]


def test_a_failure_is_forgotten_once_the_object_is_another() -> None:
    failed = after(service(OLD), told(NEW, failed=True, msg="no"))
    assert status_of(stands(failed), [service(OLD)], {}, NOW) is None
    assert conditions(after(service(OLD), {}, failed, generation=2))["DeploymentReady"] == ("False", "Outdated")


def test_what_is_live_and_failed_stays_failed_until_a_run_succeeds() -> None:
    failed = after(service(), told(failed=True, msg="it runs and has no connection"), DEPLOYED)
    assert failed["deployedDigests"] == {"nova_compute": NEW}
    assert status_of(stands(failed), [service()], {}, NOW) is None
    assert status_of(stands(failed), [service(hold="It was rolled back.")], {}, NOW) is None
    again = after(service(), told(), failed)
    assert conditions(again) == READY
    assert again["lastRun"]["result"] == "Succeeded"


def test_a_digest_is_short_for_people_and_whole_for_programs() -> None:
    assert (DEPLOYED["deployedDigest"], DEPLOYED["deployedDigests"]) == (NEW[:7], {"nova_compute": NEW})


class TestAPlanThatIsBehind:
    """Somebody changed the object, and told of it, while a run deployed what it was before."""

    def behind(self, results: Mapping[str, Told], before: Body) -> Body:
        status = status_of(stands(before), [service(OLD)], results, NOW, behind=True)
        assert status is not None
        assert status["observedGeneration"] == 2
        assert {one["observedGeneration"] for one in status["conditions"]} == {2}
        return status

    def test_the_newer_generation_keeps_its_conditions_and_gets_the_digest(self) -> None:
        waits = after(service("", waits=("It waits.",)), {}, generation=2)
        status = self.behind(told(OLD, image="i", changed=True), waits)
        assert conditions(status)["Ready"] == ("False", "Waiting")
        assert conditions(status)["DeploymentReady"] == ("False", "Outdated")
        assert status["deployedDigests"] == {"nova_compute": OLD}
        assert (status["deployedImages"], status["lastRun"]["name"]) == ({"nova_compute": "i"}, "now")

    def test_nothing_is_ready_with_what_nobody_has_compared(self) -> None:
        ready = after(service(), told(changed=True), generation=2)
        status = self.behind(told(OLD, changed=True), ready)
        assert conditions(status)["Ready"] == conditions(status)["DeploymentReady"] == ("False", "Outdated")
        again = after(service(), {}, status, generation=2)
        assert conditions(again)["Ready"] == ("False", "Outdated")
        assert "from aaaaaaa to bbbbbbb" in again["conditions"][0]["message"]

    def test_a_failure_of_what_it_was_before_is_in_the_last_run_alone(self) -> None:
        ready = after(service(), told(changed=True), generation=2)
        status = self.behind(told("", failed=True, msg="no"), ready)
        assert conditions(status) == READY
        assert status["lastRun"]["result"] == "Failed"

    def test_what_was_taken_off_is_off(self) -> None:
        ready = after(service(), told(changed=True), generation=2)
        status = self.behind(told("", absent=True, changed=True), ready)
        assert conditions(status)["Removed"] == ("True", "ServicesRemoved")
        assert conditions(status)["Ready"] == ("False", "ServicesRemoved")


class TestSettings:
    """What changes on a node without a restart: certificates, keys, ports, checks."""

    BEFORE = after(service(settings="old"), told(settings="old", changed=True), run=EARLIER)

    def test_they_are_kept_beside_the_digest(self) -> None:
        assert self.BEFORE["deployedSettings"] == {"nova_compute": "old"}
        assert status_of(stands(self.BEFORE), [service(settings="old")], {}, NOW) is None

    def test_others_are_to_be_deployed(self) -> None:
        status = after(service(settings="new"), {}, self.BEFORE)
        assert conditions(status)["Ready"] == ("False", "Outdated")
        assert status["conditions"][0]["message"] == (
            "To be deployed: nova_compute (certificates, keys, ports, checks or folders, without a restart)."
        )
        assert status["deployedSettings"] == {"nova_compute": "old"}
        assert conditions(after(service(settings="new"), told(settings="new", changed=True), status)) == READY

    def test_where_nobody_told_of_them_they_are_not_compared(self) -> None:
        assert status_of(stands(DEPLOYED), [service(settings="new")], {}, NOW) is None

    def test_a_failure_leaves_them_as_they_were(self) -> None:
        status = after(service(settings="new"), told("", failed=True, msg="no"), self.BEFORE)
        assert status["deployedSettings"] == {"nova_compute": "old"}

    @pytest.mark.parametrize("result", [told(OLD, changed=True), told("", absent=True, changed=True)])
    def test_they_are_not_known_of_another_generation_and_of_none(self, result: Mapping[str, Told]) -> None:
        assert "deployedSettings" not in after(service(settings="old"), result, self.BEFORE)


class TestTwoServicesInOneObject:
    SERVICES = (Service("libvirt", main=False, digest=OLD), service())

    def status(self, *results: Told, before: Body | None = None) -> Body:
        found = status_of(stands(before), self.SERVICES, {one.service: one for one in results}, NOW)
        assert found is not None
        return found

    def test_both_count_and_the_main_one_is_shown(self) -> None:
        one = self.status(Told("n", "nova_compute", digest=NEW))
        assert conditions(one)["DeploymentReady"] == ("False", "NotDeployed")
        both = self.status(Told("n", "libvirt", digest=OLD), before=one)
        assert conditions(both)["Ready"] == ("True", "Ready")
        assert both["deployedDigest"] == NEW[:7]
        assert both["deployedDigests"] == {"libvirt": OLD, "nova_compute": NEW}

    def test_both_must_be_off_before_it_is_removed(self) -> None:
        both = self.status(Told("n", "nova_compute", digest=NEW), Told("n", "libvirt", digest=OLD))
        one = self.status(Told("n", "nova_compute", absent=True), before=both)
        assert conditions(one)["Removed"] == ("False", "Removing")
        none = self.status(Told("n", "libvirt", absent=True), before=one)
        assert conditions(none)["Removed"] == ("True", "ServicesRemoved")
        assert conditions(none)["Ready"] == ("False", "ServicesRemoved")
        assert "deployedImages" not in none
        assert status_of(stands(none), self.SERVICES, {}, NOW) is None

    def test_one_that_fails_to_leave_is_still_there(self) -> None:
        both = self.status(Told("n", "nova_compute", digest=NEW), Told("n", "libvirt", digest=OLD))
        failed = self.status(Told("n", "nova_compute", absent=True, failed=True, msg="busy"), before=both)
        assert conditions(failed)["Removed"] == ("False", "RemovalFailed")
        assert failed["deployedDigests"] == both["deployedDigests"]
        assert conditions(failed)["DeploymentReady"] == ("True", "Deployed")

    @pytest.mark.parametrize("name", ["libvirt", "nova_compute"])
    def test_a_failure_to_come_back_is_told_and_is_no_removal(self, name: str) -> None:
        off = self.status(*(Told("n", one, absent=True) for one in ("libvirt", "nova_compute")))
        failed = self.status(Told("n", name, failed=True, msg="no route to host"), before=off)
        assert conditions(failed)["Ready"] == ("False", "Failed")
        assert "Removed" not in conditions(failed)
        assert name not in failed["deployedDigests"], "nobody knows what it has left on the node"
        assert status_of(stands(failed), self.SERVICES, {}, NOW) is None

    def test_one_that_failed_to_come_back_has_to_leave_again(self) -> None:
        both = ("libvirt", "nova_compute")
        off = self.status(*(Told("n", one, absent=True) for one in both))
        failed = self.status(Told("n", "libvirt", failed=True, msg="no route to host"), before=off)
        one = self.status(Told("n", "nova_compute", absent=True, changed=True), before=failed)
        assert conditions(one)["Removed"] == ("False", "Removing")
        none = self.status(Told("n", "libvirt", absent=True), before=one)
        assert conditions(none)["Removed"] == ("True", "ServicesRemoved")

    def test_removal_that_was_told_of_once_stays_told(self) -> None:
        failed = self.status(Told("n", "nova_compute", absent=True, failed=True, msg="busy"))
        assert status_of(stands(failed), self.SERVICES, {}, NOW) is None


class TestOneThatIsNotAskedForAnyMore:
    """An object stays for libvirt, and nova_compute is still on the node."""

    SERVICES = (Service("libvirt", main=False, digest=OLD), Service("nova_compute", former=True))
    BEFORE = TestTwoServicesInOneObject().status(
        Told("n", "nova_compute", digest=NEW, image="i"), Told("n", "libvirt", digest=OLD, image="j")
    )

    def status(self, *results: Told, before: Body = BEFORE) -> Body:
        found = status_of(stands(before), self.SERVICES, {one.service: one for one in results}, NOW)
        assert found is not None
        return found

    def test_it_keeps_the_object_from_being_ready_and_its_digest_is_not_forgotten(self) -> None:
        status = self.status()
        assert conditions(status) == {
            "Ready": ("False", "Leaving"),
            "ConfigReady": ("True", "Resolved"),
            "DeploymentReady": ("False", "Leaving"),
        }
        assert status["conditions"][0]["message"] == (
            "nova_compute: on the node, and not asked for any more; "
            "edpm.services.remove -e node=node-0 -e service=nova_compute@ takes that off."
        )
        assert status["deployedDigests"] == {"libvirt": OLD, "nova_compute": NEW}
        assert status_of(stands(status), self.SERVICES, {}, NOW) is None

    def test_once_it_is_off_the_object_is_ready_and_stays(self) -> None:
        status = self.status(Told("n", "nova_compute", absent=True, changed=True))
        assert conditions(status) == READY
        assert status["deployedDigests"] == {"libvirt": OLD, "nova_compute": ""}
        assert status["deployedImages"] == {"libvirt": "j"}
        last = status_of(stands(status), self.SERVICES[:1], {}, NOW)
        assert last is not None
        assert (conditions(last), last["deployedDigests"]) == (READY, {"libvirt": OLD})

    def test_a_failure_is_told_until_it_is_off(self) -> None:
        failed = self.status(Told("n", "nova_compute", absent=True, failed=True, msg="it has servers"))
        assert conditions(failed)["Ready"] == ("False", "RemovalFailed")
        assert failed["conditions"][0]["message"] == "nova_compute: it has servers"
        assert "Removed" not in conditions(failed), "the object does not leave"
        assert status_of(stands(failed), self.SERVICES, {}, NOW) is None
        off = self.status(Told("n", "nova_compute", absent=True, changed=True), before=failed)
        assert conditions(off) == READY

    def test_what_is_to_be_deployed_comes_first(self) -> None:
        other = (Service("libvirt", main=False, digest=NEW), self.SERVICES[1])
        status = status_of(stands(self.BEFORE), other, {}, NOW)
        assert status is not None
        assert conditions(status)["Ready"] == ("False", "Outdated")


@given(st.text(), st.integers(min_value=1, max_value=50))
def test_a_message_is_one_line_that_fits(text: str, longest: int) -> None:
    found = cut(text, longest)
    assert len(found) <= longest
    assert "\n" not in found
