# SPDX-License-Identifier: GPL-3.0-or-later
"""A compute that the operator deploys since its Node belongs to a cell: Nova says that it is up."""

from __future__ import annotations

import pytest
from edpm_lab.cloud import Cloud, Compute
from edpm_lab.labs import Lab

from .site import COMPUTE, LIBVIRT, NAMESPACE, Site, compute

CELL = "nova.openstack.org/cell"


@pytest.fixture(scope="module")
def cloud(lab: Lab, site: Site) -> Cloud:
    """All of the control plane that a compute needs, and in the cluster what its operators write."""
    made = Cloud(lab).up(["compute"])
    made.apply(site.cluster, namespace=NAMESPACE)
    return made


def test_the_operator_deploys_a_compute_that_nova_says_is_up(site: Site, cloud: Cloud) -> None:
    site.apply(*compute(site.nodes))
    site.annotate("osdpnode", COMPUTE, f"{CELL}=nova-cell1")

    site.until(lambda: bool(site.get("novaexternalcompute", COMPUTE)), "its service object is there")
    site.kubectl("wait", "--for=condition=Ready", f"novaexternalcompute/{COMPUTE}", "--timeout=300s", timeout=320)
    assert cloud.await_compute(COMPUTE).cell == "-", "it reports itself, and no cell lists it yet"
    cloud.discover(COMPUTE)
    found = cloud.await_compute(COMPUTE)
    print(found)
    assert found == Compute(COMPUTE, "cell1", "up", "enabled", "QEMU")


def test_one_that_opts_out_leaves_its_node_and_openstack_and_libvirt_stays_where_it_is_asked_for(
    site: Site, cloud: Cloud
) -> None:
    site.annotate("osdpnode", COMPUTE, f"{CELL}=")

    def is_off() -> bool:
        status = site.get("novaexternalcompute", COMPUTE)["status"]
        return "nova_compute" not in status["deployedDigests"]

    site.until(is_off, "nova_compute is off the node")
    site.kubectl("wait", "--for=condition=Ready", f"novaexternalcompute/{COMPUTE}", "--timeout=60s", timeout=80)
    assert site.nodes.execute(COMPUTE, "ls", "/var/lib/openstack").stdout == "libvirt\n"
    services, providers = cloud.ask([("compute.services", [], {}), ("placement.resource_providers", [], {})])
    print([one["host"] for one in services], [one["name"] for one in providers])
    assert COMPUTE not in {one["host"] for one in services}
    assert COMPUTE not in {one["name"] for one in providers}


def test_the_object_goes_when_nothing_of_it_is_asked_for(site: Site) -> None:
    site.annotate("osdpnode", COMPUTE, f"{LIBVIRT}-")

    site.until(lambda: not site.get("novaexternalcompute", COMPUTE), "its service object is gone")
    assert site.nodes.execute(COMPUTE, "ls", "/var/lib/openstack").stdout == ""
