# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from .conftest import Change, Json, Load, PlanOf

ROLE, NODE, CELL = "OpenStackDataPlaneRole/compute", "OpenStackDataPlaneNode/compute-0", "NovaCell/nova-cell1"


def status(name: str, value: str, message: str = "") -> Json:
    return {"status": {"conditions": [{"type": name, "status": value, "message": message}]}}


@pytest.mark.parametrize(
    ("name", "update", "sentence"),
    [
        (
            NODE,
            status("Ready", "False", "Deployment in progress."),
            "OpenStackDataPlaneNode openstack/compute-0 is not Ready (Deployment in progress); "
            "the node goes on once phase 0 is done.",
        ),
        (
            NODE,
            status("SetupReady", "True"),
            "OpenStackDataPlaneNode openstack/compute-0 is not Ready; the node goes on once phase 0 is done.",
        ),
        (
            NODE,
            {"spec": {"deployStrategy": {"deploy": False}}},
            "OpenStackDataPlaneNode openstack/compute-0, field deployStrategy.deploy: is false; set it to "
            "true to deploy.",
        ),
        (
            ROLE,
            {"spec": {"deployStrategy": {"deploy": False}}},
            "OpenStackDataPlaneRole openstack/compute, field deployStrategy.deploy: is false; set it to "
            "true to deploy.",
        ),
        (
            CELL,
            status("Ready", "Unknown", "waiting for the message bus"),
            "NovaCell openstack/nova-cell1 is not Ready (waiting for the message bus); the node goes on once it is.",
        ),
        (
            "Secret/nova-cell1-compute-config",
            {"metadata": {"name": "renamed"}},
            "Secret openstack/nova-cell1-compute-config does not exist; NovaCell nova-cell1 makes it once it is Ready.",
        ),
        (
            "Secret/nova-cell1-compute-config",
            {"data": None},
            "Secret openstack/nova-cell1-compute-config has no key 01-nova.conf; add it, or wait for its operator.",
        ),
    ],
)
def test_whatever_is_missing_is_listed_by_name(
    load: Load, plan_of: PlanOf, change: Change, *, name: str, update: Json, sentence: str
) -> None:
    node = plan_of(change(load("base"), name, update)).node("compute-0")
    assert node.sentences == (sentence,)
    assert not node.ready


def test_everything_that_is_missing_is_listed_and_other_nodes_go_on(
    load: Load, plan_of: PlanOf, change: Change
) -> None:
    objects = change(load("base"), NODE, status("Ready", "False"))
    change(objects, CELL, status("Ready", "False"))
    change(objects, "Secret/nova-cell1-compute-config", {"metadata": {"name": "renamed"}})
    planned = plan_of(objects)
    assert len(planned.node("compute-0").sentences) == 3
    assert planned.node("compute-1").ready


@pytest.mark.parametrize("absent", [None, {}])
def test_a_manifest_without_status_counts_as_ready(
    load: Load, plan_of: PlanOf, change: Change, absent: Json | None
) -> None:
    objects = change(load("base"), NODE, {"status": None})
    next(one for one in objects if one["metadata"]["name"] == "compute-0")["status"] = absent
    assert plan_of(objects).node("compute-0").ready


@pytest.mark.parametrize(
    ("conditions", "ready"), [({"SetupReady": "True", "Ready": "False"}, True), ({"Ready": "True"}, False)]
)
def test_a_nodeset_is_gated_by_setup_ready_since_its_ready_may_wait_for_us(
    load: Load, plan_of: PlanOf, change: Change, conditions: dict[str, str], ready: bool
) -> None:
    said = [{"type": name, "status": value} for name, value in conditions.items()]
    objects = change(load("base", "embedded"), "OpenStackDataPlaneNodeSet/set", {"status": {"conditions": said}})
    assert plan_of(objects).node("set-0").ready is ready


def test_a_missing_ssh_key_is_worth_a_note_since_a_person_may_bring_one(load: Load, plan_of: PlanOf) -> None:
    objects = [one for one in load("base") if one["metadata"]["name"] != "ssh-key"]
    node = plan_of(objects).node("compute-0")
    assert node.ready
    assert node.connection.ssh_key is not None
    assert node.connection.ssh_key.exists is False
    assert node.notes == ("Secret openstack/ssh-key, the node's SSH key, does not exist; bring a key of your own.",)
    assert plan_of(load("base")).node("compute-0").notes == ()


def test_an_ssh_secret_without_the_key_is_worth_a_note(load: Load, plan_of: PlanOf, change: Change) -> None:
    node = plan_of(change(load("base"), "Secret/ssh-key", {"stringData": None})).node("compute-0")
    assert node.notes == ("Secret openstack/ssh-key has no key ssh-privatekey; add it, or bring a key of your own.",)
