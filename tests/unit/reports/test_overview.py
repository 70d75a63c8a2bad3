# SPDX-License-Identifier: GPL-3.0-or-later
"""Which services a question means, and what is said where none of them is there."""

from __future__ import annotations

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.model import Reference
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import NodePlan, Plan, ServicePlan
from ansible_collections.edpm.services.plugins.plugin_utils._report.near import NotThereError
from ansible_collections.edpm.services.plugins.plugin_utils._report.overview import Question, overview

SERVICES = ("libvirt", "nova_compute", "nova_compute@fast", "nova_compute@slow")


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("", SERVICES),
        ("nova_compute", ("nova_compute", "nova_compute@fast", "nova_compute@slow")),
        ("nova_compute@", ("nova_compute",)),
        ("nova_compute@fast", ("nova_compute@fast",)),
        ("nova_compute@fast@", ()),
        ("libvirt@, nova_compute@", ("libvirt", "nova_compute")),
        ("nova_compute@,nova_compute@slow", ("nova_compute", "nova_compute@slow")),
        ("nova_compute@,nova_compute", ("nova_compute", "nova_compute@fast", "nova_compute@slow")),
        ("nova@", ()),
        ("@", ()),
    ],
)
def test_a_name_with_an_empty_instance_means_the_plain_one_alone(asked: str, meant: tuple[str, ...]) -> None:
    assert tuple(name for name in SERVICES if Question(service=asked).asks(name)) == meant


def plan(*services: ServicePlan) -> Plan:
    return Plan(
        (NodePlan("n0", "openstack", "n0", Reference("OpenStackDataPlaneNode", "openstack", "n0"), services=services),)
    )


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (Question("", "nova_comput@"), "No node runs nova_comput@; did you mean nova_compute@ or nova_compute@fast?"),
        (Question("", "nova_comput"), "No node runs nova_comput; did you mean nova_compute or nova_compute@fast?"),
        (Question("n0", "ovs@"), "The node n0 does not run ovs@; its services are nova_compute@, nova_compute@fast."),
    ],
)
def test_who_means_one_service_alone_is_not_led_to_all_of_its_instances(question: Question, said: str) -> None:
    with pytest.raises(NotThereError) as caught:
        overview(plan(ServicePlan("nova_compute"), ServicePlan("nova_compute", instance="fast")), question)
    assert str(caught.value) == said


def test_a_node_with_instances_alone_has_no_plain_one() -> None:
    with pytest.raises(NotThereError, match=r"^No node runs nova_compute@; did you mean nova_compute@fast\?$"):
        overview(plan(ServicePlan("nova_compute", instance="fast")), Question("", "nova_compute@"))
