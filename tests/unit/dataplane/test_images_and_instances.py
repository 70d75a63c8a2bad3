# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from .conftest import Change, Json, Load, PlanOf, known

NOVA = "RELATED_IMAGE_NOVA_COMPUTE_IMAGE_URL_DEFAULT"
LIBVIRT = "RELATED_IMAGE_NOVA_LIBVIRT_IMAGE_URL_DEFAULT"
NODE = "OpenStackDataPlaneNode/compute-0"
INSTANCES = {"metadata": {"annotations": {"edpm.openstack.org/instances-nova_compute": "vmware, fake"}}}


def compute(instance: str | None = None, **spec: str) -> Json:
    name = f"compute-0-{instance}" if instance else "compute-0"
    spec = {
        "dataplaneNodeName": "compute-0",
        "cellName": "nova-cell1",
        **({"instance": instance} if instance else {}),
        **spec,
    }
    meta = {"name": name, "namespace": "openstack"}
    return {"apiVersion": "nova.openstack.org/v1beta1", "kind": "NovaExternalCompute", "metadata": meta, "spec": spec}


def test_a_service_objects_image_counts_and_else_the_environments(load: Load, plan_of: PlanOf) -> None:
    objects = [*load("base"), compute(novaComputeContainerImage="nova:by-hand")]
    planned = plan_of(objects, {NOVA: "nova:default", LIBVIRT: "libvirt:default"})
    image = known(planned.service("compute-0").image)
    assert (image.name, image.source) == (
        "nova:by-hand",
        "NovaExternalCompute openstack/compute-0, field spec.novaComputeContainerImage",
    )
    assert known(planned.service("compute-0", "libvirt").image).name == "libvirt:default"
    assert known(planned.service("compute-1").image).source == f"environment variable {NOVA}"


@pytest.mark.parametrize(
    ("service", "variable"),
    [
        ("ovn_metadata_agent", "RELATED_IMAGE_EDPM_OVN_METADATA_AGENT_IMAGE_URL_DEFAULT"),
        ("neutron_sriov_agent", "RELATED_IMAGE_EDPM_NEUTRON_SRIOV_AGENT_IMAGE_URL_DEFAULT"),
        ("cinder_volume", "RELATED_IMAGE_EDPM_CINDER_VOLUME_IMAGE_URL_DEFAULT"),
    ],
)
def test_every_service_has_its_variable_for_an_image(
    load: Load, plan_of: PlanOf, change: Change, service: str, variable: str
) -> None:
    annotation = {"metadata": {"annotations": {f"edpm.openstack.org/service-{service}": "true"}}}
    planned = plan_of(change(load("base"), NODE, annotation), {variable: "image:1"})
    assert known(planned.service("compute-0", service).image).name == "image:1"


def test_no_image_is_worth_a_note_and_blocks_nobody(load: Load, plan_of: PlanOf) -> None:
    planned = plan_of(load("base"))
    assert planned.service("compute-0").image is None
    assert planned.service("compute-0").notes == (
        "No image is named for nova_compute: set spec.novaComputeContainerImage of the NovaExternalCompute, or the "
        f"environment variable {NOVA}.",
    )
    assert planned.node("compute-0").ready


def test_the_plain_name_is_the_only_instance_unless_more_are_asked_for(
    load: Load, plan_of: PlanOf, change: Change
) -> None:
    assert plan_of(load("base")).services("compute-0") == ["libvirt", "nova_compute"]
    planned = plan_of(change(load("base"), NODE, INSTANCES))
    assert planned.services("compute-0") == ["libvirt", "nova_compute", "nova_compute@fake", "nova_compute@vmware"]


def test_everything_of_an_instance_is_its_own(load: Load, plan_of: PlanOf, change: Change) -> None:
    planned = plan_of([*change(load("base"), NODE, INSTANCES), compute("fake", customServiceConfig="[fake]\n")])
    plain, fake, vmware = (planned.service("compute-0", f"nova_compute{name}") for name in ("", "@fake", "@vmware"))
    assert [known(one.identity).host for one in (plain, fake)] == [
        "compute-0.example.com",
        "compute-0.example.com-fake",
    ]
    assert [known(one.identity).state_path for one in (plain, fake)] == ["/var/lib/nova", "/var/lib/nova-fake"]
    assert [str(known(one.service_object).ref) for one in (plain, fake)] == [
        "NovaExternalCompute openstack/compute-0",
        "NovaExternalCompute openstack/compute-0-fake",
    ]
    assert [known(one.service_object).exists for one in (plain, fake, vmware)] == [False, True, False]
    assert "/etc/nova/nova.conf.d/02-nova-override.conf" not in planned.files("compute-0")
    assert planned.files("compute-0", "nova_compute@fake")["/etc/nova/nova.conf.d/02-nova-override.conf"] == b"[fake]\n"


def test_an_instances_own_hold_leaves_the_plain_one_alone(load: Load, plan_of: PlanOf, change: Change) -> None:
    held = {"metadata": {"annotations": {"edpm.openstack.org/deploy-nova_compute.fake": "false"}}}
    planned = plan_of(change(change(load("base"), NODE, INSTANCES), NODE, held))
    assert planned.service("compute-0").hold is None
    assert planned.service("compute-0", "nova_compute@fake").hold is not None


def test_a_hand_made_service_object_with_an_instance_asks_for_it(load: Load, plan_of: PlanOf) -> None:
    planned = plan_of([*load("base"), compute("fake")])
    assert planned.services("compute-0") == ["libvirt", "nova_compute", "nova_compute@fake"]


@pytest.mark.parametrize(
    ("annotation", "sentence"),
    [
        ({"edpm.openstack.org/instances-nova_compute": "Big One"}, '"Big One" is no instance'),
        ({"edpm.openstack.org/instances-libvirt": "two"}, "libvirt runs only once on a node"),
    ],
)
def test_an_instance_that_cannot_be_is_an_error(
    load: Load, plan_of: PlanOf, change: Change, annotation: dict[str, str], sentence: str
) -> None:
    assert sentence in plan_of(change(load("base"), NODE, {"metadata": {"annotations": annotation}})).said("compute-0")
