# SPDX-License-Identifier: GPL-3.0-or-later
"""What an order leaves unsaid comes from the plan, or from the environment, or is asked for."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.model import (
    Metadata,
    Reference,
    Resources,
    ServiceResource,
    Snapshot,
)
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import Connection, NodePlan, Plan, SSHKey
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.values import Variables
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.order import BadOrderError, Order
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.sources import IMAGE_VARIABLE, hosts_in, resolved

OPTIONS: dict[str, Any] = {"namespace": "openstack", "inventory": "dataplane", "shard_size": 50, "environment": {}}


def node(name: str, namespace: str = "openstack", *, secret: str = "key", networks: tuple[str, ...] = ()) -> NodePlan:
    origin = Reference("OpenStackDataPlaneNode", namespace, name)
    key = SSHKey(Reference("Secret", namespace, secret), "ssh-privatekey", True)
    return NodePlan(
        name,
        namespace,
        name,
        origin,
        connection=Connection(ssh_key=key),
        network_attachments=networks,
        inventory_config_map=f"dataplanenode-{name}",
    )


PLAN = Plan((node("a", networks=("ctlplane",)), node("b", networks=("ctlplane", "tenant")), node("x", "other")))


def service(name: str, image: str = "", dns: Variables | None = None, namespace: str = "openstack") -> ServiceResource:
    meta = Metadata(Reference("NovaExternalCompute", namespace, name))
    images = {"ansibleEEContainerImage": image} if image else {}
    return ServiceResource(meta, "nova.openstack.org/v1beta1", name, images=images, dns_config=dns or {})


def found(
    plan: Plan | None = PLAN,
    snapshot: Snapshot | None = None,
    environment: dict[str, str] | None = None,
    **options: Any,
) -> dict[str, Any]:
    return resolved(OPTIONS | options, snapshot, plan, environment or {}, lambda pattern: [pattern, "x"])


def test_the_nodes_are_those_of_the_plan_in_the_namespace() -> None:
    assert found()["nodes"] == ("a", "b")


def test_a_limit_chooses_among_them_and_is_done_with_then() -> None:
    assert (found(limit="b")["nodes"], found(limit="b")["limit"]) == (("b",), "")


def test_a_limit_that_chooses_none_of_them_is_refused() -> None:
    with pytest.raises(BadOrderError, match="The limit y chooses no node of the data plane in namespace openstack"):
        found(limit="y")


def test_without_a_plan_the_limit_is_the_pods_to_understand() -> None:
    made = found(None, limit="y")

    assert made["nodes"] == ()
    assert "limit" not in made


def test_shard_size_0_runs_once_and_not_over_nodes() -> None:
    assert found(shard_size=0)["nodes"] == ()


def test_a_node_that_nobody_knows_is_refused_with_the_nearest_name() -> None:
    plan = Plan((node("edpm-compute-0"),))

    with pytest.raises(BadOrderError, match=r"No node edpm-comptue-0 in namespace openstack .* did you mean edpm-comp"):
        found(plan, nodes=["edpm-comptue-0"])


def test_pods_are_attached_to_the_networks_of_all_their_nodes() -> None:
    assert found()["network_attachments"] == ("ctlplane", "tenant")
    assert found(nodes=["a"])["network_attachments"] == ("ctlplane",)
    assert "network_attachments" not in found(network_attachments=["mine"])


def test_the_image_is_the_option_then_the_service_resources_then_the_environments() -> None:
    snapshot = Snapshot(Resources(service_resources=(service("a", "of-a"), service("x", "of-x"))))

    assert found(snapshot=snapshot, image="mine", environment={IMAGE_VARIABLE: "env"})["image"] == "mine"
    assert found(snapshot=snapshot, environment={IMAGE_VARIABLE: "env"})["image"] == "of-a"
    assert found(environment={IMAGE_VARIABLE: "env"})["image"] == "env"


def test_two_images_for_one_run_are_refused() -> None:
    snapshot = Snapshot(Resources(service_resources=(service("a", "one"), service("b", "two"))))

    with pytest.raises(BadOrderError, match=r"openstack/a names the image one and .*openstack/b names two"):
        found(snapshot=snapshot)


def test_another_namespaces_image_is_none_of_a_run() -> None:
    other = service("a", "two", namespace="other")
    snapshot = Snapshot(Resources(service_resources=(service("a", "one"), other)))

    assert found(snapshot=snapshot)["image"] == "one"
    assert found(snapshot=snapshot, shard_size=0)["image"] == "one"


class TestDNS:
    FIRST: ClassVar[Variables] = {"nameservers": ["192.0.2.53"], "options": [{"name": "ndots", "value": "2"}]}
    SECOND: ClassVar[Variables] = {"nameservers": ["192.0.2.54"]}

    def snapshot(self, *dns: Variables | None) -> Snapshot:
        objects = (service(name, dns=one) for name, one in zip("ab", dns, strict=True))
        return Snapshot(Resources(service_resources=tuple(objects)))

    def test_it_is_that_of_the_nodes_service_resources(self) -> None:
        assert found(snapshot=self.snapshot(self.FIRST, None))["dns_config"] == self.FIRST
        assert found(snapshot=self.snapshot(self.FIRST, self.SECOND), nodes=["b"])["dns_config"] == self.SECOND
        assert found(snapshot=self.snapshot(None, None))["dns_config"] == {}
        assert found()["dns_config"] == {}

    @pytest.mark.parametrize("mine", [{}, {"searches": ["example.com"]}])
    def test_what_is_asked_for_comes_first(self, mine: Variables) -> None:
        snapshot = self.snapshot(self.FIRST, self.SECOND)

        assert (
            Order.from_options(
                {"playbook": "p", "image": "i", "namespace": "openstack", "dns_config": mine},
                **found(snapshot=snapshot, image="i", dns_config=mine),
            ).dns_config
            == mine
        )

    def test_what_means_the_same_is_the_same(self) -> None:
        wordy: Variables = {"searches": [], "nameservers": ("192.0.2.54",), "options": None}

        assert found(snapshot=self.snapshot(wordy, self.SECOND))["dns_config"] == self.SECOND

    def test_two_for_one_run_are_refused(self) -> None:
        said = r"openstack/a has the dnsConfig .*2\.53.* and .*openstack/b has .*2\.54.*; set dns_config"

        with pytest.raises(BadOrderError, match=said):
            found(snapshot=self.snapshot(self.FIRST, self.SECOND))


def test_pods_know_the_services_images_as_their_starter_does() -> None:
    environment = {"RELATED_IMAGE_NOVA_COMPUTE_IMAGE_URL_DEFAULT": "compute", "HOME": "/root"}

    assert found(None, environment=environment)["environment"] == {
        "RELATED_IMAGE_NOVA_COMPUTE_IMAGE_URL_DEFAULT": "compute"
    }
    snapshot = Snapshot(Resources(), images={"RELATED_IMAGE_X": "x"})
    assert found(snapshot=snapshot)["environment"] == {"RELATED_IMAGE_X": "x"}


def test_inventory_config_maps_and_the_key_are_those_that_the_nodes_name() -> None:
    made = found(inventory="config_maps")

    assert made["inventory_config_maps"] == ("dataplanenode-a", "dataplanenode-b")
    assert made["ssh_key_secret"] == "key"


def test_named_inventories_tell_their_hosts_themselves() -> None:
    assert found(inventory="config_maps", inventory_config_maps=["mine"], ssh_key_secret="k")["nodes"] == ()
    assert found(inventory="config_maps", inventory_config_maps=["mine"], nodes=["a"])["nodes"] == ("a",)


def test_two_keys_with_inventory_config_maps_are_refused() -> None:
    plan = Plan((node("a"), node("b", secret="other")))

    with pytest.raises(BadOrderError, match="in the Secrets key, other, and with inventory ConfigMaps a run takes one"):
        found(plan, inventory="config_maps")


def test_inventory_config_maps_that_would_not_count_are_refused() -> None:
    with pytest.raises(BadOrderError, match="count with inventory: config_maps"):
        found(inventory_config_maps=["mine"])


def test_without_an_inventory_config_map_there_is_no_such_run() -> None:
    with pytest.raises(BadOrderError, match="No inventory ConfigMap is named"):
        found(None, inventory="config_maps")


def test_the_hosts_of_an_inventory_are_found_in_all_groups() -> None:
    text = "all: {hosts: {a: {}}, children: {web: {hosts: {b: {}, a: {}}}}}\nother: {hosts: {c: null}}\n"

    assert hosts_in("openstack/inv", text) == ("a", "b", "c")


@pytest.mark.parametrize("text", ["[web]\nhost", "- a", ""])
def test_an_inventory_that_is_no_yaml_mapping_is_told(text: str) -> None:
    with pytest.raises(BadOrderError, match="ConfigMap openstack/inv, key inventory: is no inventory in YAML"):
        hosts_in("openstack/inv", text)
