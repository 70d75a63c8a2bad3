# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node should run against what it says that it runs."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import LiveFile
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.bundle import bundle
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import ServicePlan
from ansible_collections.edpm.services.plugins.plugin_utils._report.overview import PlannedService
from ansible_collections.edpm.services.plugins.plugin_utils._rollout.comparing import (
    State,
    live_differences,
    read,
    standing,
    standings,
)

from .nodes import AGENT, answer, node, other, service


def planned(one: ServicePlan, **of_node: Any) -> PlannedService:
    return PlannedService(node("edpm-compute-0", one, **of_node), one, bundle(one))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"drift": [{"name": "conf.d/01.conf", "what": "changed"}]}, ("conf.d/01.conf was changed by hand",)),
        ({"drift": [{"name": "unit x.socket", "what": "left masked"}]}, ("unit x.socket was left masked",)),
        ({"unfinished": True}, ("an unfinished run",)),
        ({"restart_pending": True}, ("a restart is due",)),
        ({"healthy": False, "fault": "the unit is failed"}, ("the unit is failed",)),
        ({"settings": "0" * 64}, ("settings",)),
        ({"settings": None}, ("settings",)),
        ({"digest": "0" * 64}, ("files",)),
        ({"digest": "0" * 64, "image": "registry/old:1"}, (f"image registry/old:1 → registry/{AGENT}:1",)),
        ({"live": {"/etc/old.pem": "0"}}, ("/etc/old.pem is no longer wanted",)),
    ],
)
def test_a_service_will_change_and_it_is_said_why(change: dict[str, Any], what: tuple[str, ...]) -> None:
    found = standing(planned(service()), answer(service(), **change))
    assert (found.state, found.what) == (State.WILL_CHANGE, what)


def test_a_service_that_is_as_planned_and_healthy_is_up_to_date() -> None:
    found = standing(planned(service()), answer(service()))
    assert (found.state, found.what) == (State.UP_TO_DATE, ())
    assert found.digest == found.live


def test_another_file_makes_another_digest() -> None:
    assert standing(planned(service()), answer(other(service()))).what == ("files",)


@pytest.mark.parametrize("found", [None, {"digest": None}])
def test_a_service_that_never_was_live_is_new(found: dict[str, Any] | None) -> None:
    assert standing(planned(service()), found).state is State.NEW


def test_a_service_that_something_blocks_is_blocked_whatever_the_node_says() -> None:
    found = standing(planned(service(blocked=("The Secret x does not exist.",))), answer(service()))
    assert (found.state, found.what) == (State.BLOCKED, ("The Secret x does not exist.",))
    assert standing(planned(service(), blocked=("Not Ready.",)), None).state is State.BLOCKED


def test_a_service_on_hold_is_held() -> None:
    found = standing(planned(service(hold="held by its Role.")), None)
    assert (found.state, found.what) == (State.HELD, ("held by its Role.",))


def test_a_service_without_an_image_cannot_be_deployed() -> None:
    found = standing(planned(replace(service(), image=None)), None)
    assert found.state is State.UNDEPLOYABLE
    assert found.what[0].startswith(f"No image is named for {AGENT}")


def test_a_service_that_nothing_says_how_to_run_cannot_be_deployed() -> None:
    found = standing(planned(service("nobody")), None)
    assert found.state is State.UNDEPLOYABLE
    assert "definition" in found.what[0]


def test_libvirt_comes_first_and_what_the_plan_does_not_know_last() -> None:
    services = [planned(service()), planned(service("libvirt"))]
    gone = answer(service("cinder_volume"), instance="fast")
    found = standings(services, {"cinder_volume@fast": gone})
    assert [(one.name, one.state) for one in found] == [
        ("libvirt", State.NEW),
        (AGENT, State.NEW),
        ("cinder_volume@fast", State.LEAVING),
    ]


def test_a_standing_survives_its_way_through_a_result() -> None:
    found = standing(planned(service()), answer(service(), unfinished=True))
    assert read(found.data()) == found


def test_live_files_differ_by_content_by_absence_and_by_presence() -> None:
    wanted = [LiveFile("/a", b"one"), LiveFile("/b", b"two"), LiveFile("/c", b"three")]
    there = {"/a": sha256(b"one").hexdigest(), "/b": sha256(b"other").hexdigest(), "/d": "0", "/apart": "0"}
    assert list(live_differences(wanted, {"live": there}, "/apart")) == ["/b", "/c", "/d is no longer wanted"]
