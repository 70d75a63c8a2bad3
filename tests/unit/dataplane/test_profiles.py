# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from .conftest import Change, Load, Planned, PlanOf, known

FILE = "/etc/nova/nova.conf.d/02-nova-compute-profile.conf"
BIG, SMALL = (f"[DEFAULT]\nreserved_host_memory_mb = {size}\n".encode() for size in (8192, 512))


@pytest.fixture
def planned(load: Load, plan_of: PlanOf) -> Planned:
    return plan_of(load("base", "profiles"))


@pytest.mark.parametrize(
    ("node", "text"), [("from-role", BIG), ("its-own", SMALL), ("none", None), ("blank", None), ("missing", None)]
)
def test_a_profile_is_chosen_by_the_node_else_by_the_role(planned: Planned, node: str, text: bytes | None) -> None:
    assert planned.files(node).get(FILE) == text


def test_a_profile_of_another_service_has_the_name_98(planned: Planned) -> None:
    files = planned.files("from-role", "ovn_metadata_agent")
    assert files["/etc/neutron.conf.d/98-profile.conf"] == b"[DEFAULT]\nmetadata_workers = 2\n"


@pytest.mark.parametrize(
    ("node", "sentence"),
    [
        (
            "missing",
            "annotation edpm.openstack.org/profile-nova_compute: ServiceProfile openstack/huge does not exist; "
            "create it or name another.",
        ),
        (
            "of-another-service",
            "annotation edpm.openstack.org/profile-nova_compute: ServiceProfile openstack/agents is for "
            "ovn_metadata_agent, not for nova_compute; name a profile of nova_compute.",
        ),
        (
            "two-at-once",
            "annotation edpm.openstack.org/profile-nova_compute: says otherwise than "
            "nova.openstack.org/compute-profile; keep one of the two.",
        ),
    ],
)
def test_a_profile_that_cannot_be_had_is_an_error_of_the_node(planned: Planned, node: str, sentence: str) -> None:
    assert planned.service(node).errors == (f"OpenStackDataPlaneNode openstack/{node}, {sentence}",)


def test_a_profile_needs_no_service_object(planned: Planned) -> None:
    assert known(planned.service("from-role").service_object).exists is False


def test_libvirt_takes_no_profile(load: Load, plan_of: PlanOf, change: Change) -> None:
    name = "OpenStackDataPlaneRole/profiled"
    annotation = {"metadata": {"annotations": {"edpm.openstack.org/profile-libvirt": "virt"}}}
    objects = change(load("base", "profiles"), name, annotation)
    change(objects, "ServiceProfile/small", {"metadata": {"name": "virt"}, "spec": {"service": "libvirt"}})
    assert "libvirt takes no customServiceConfig; remove the annotation." in plan_of(objects).said("from-role")
