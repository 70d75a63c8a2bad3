# SPDX-License-Identifier: GPL-3.0-or-later
"""The runs that an operator orders: for which services, from which image, with which DNS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._control.look import World
from ansible_collections.edpm.services.plugins.plugin_utils._control.names import (
    RESTART,
    ROLLBACK,
    ROLLED_BACK,
    ROLLED_BACK_BY,
)
from ansible_collections.edpm.services.plugins.plugin_utils._control.status import key_of, services_in
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.order import BadOrderError
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.sources import IMAGE_VARIABLE

from .decisions import decided, deployed, ordered, plain
from .worlds import IMAGES, Body, compute, node, role, world


class TestAnInstanceBesideThePlainOne:
    """Objects node-0 and node-0-fast on one node: what is asked of one of them is not done to the other."""

    def fast(self, **fields: Any) -> Body:
        body = compute(instance="fast", **fields)
        body["metadata"] |= {"name": "node-0-fast", "uid": "fast"}
        return body

    def both(self, plain: Body, fast: Body) -> World:
        body = node()
        body["metadata"]["annotations"]["edpm.openstack.org/instances-nova_compute"] = "fast"
        return world(role(), body, plain, fast, images=IMAGES)

    def live(self) -> tuple[Body, Body]:
        """The status of both where all is as it should be."""
        cluster = self.both(compute(), self.fast())
        return deployed(cluster), deployed(cluster, "node-0-fast")

    def orders(self, plain: Body, fast: Body) -> list[tuple[str, str]]:
        found = ordered(self.both(plain, fast), image="ee:1")
        return [(order.playbook.rpartition(".")[2], order.extra_vars["service"]) for order in found]

    def test_a_deployment_leaves_an_instance_alone_that_was_rolled_back(self) -> None:
        _plain, of_fast = self.live()
        wanted = services_in(self.both(compute(), self.fast()))
        [key] = [key_of(services) for ref, services in wanted.items() if ref.name == "node-0-fast"]
        back = {ROLLBACK: "1", ROLLED_BACK_BY: "1", ROLLED_BACK: key}
        held = self.fast(status={**of_fast, "deployedDigests": {}}, annotations=back)
        assert self.orders(compute(), held) == [("deploy", "libvirt@,nova_compute@")]

    def test_a_deployment_names_those_that_differ(self) -> None:
        of_plain, of_fast = self.live()
        assert self.orders(compute(), self.fast()) == [("deploy", "libvirt@,nova_compute@,nova_compute@fast")]
        assert self.orders(compute(status=of_plain), self.fast()) == [("deploy", "nova_compute@fast")]
        assert self.orders(compute(), self.fast(status=of_fast)) == [("deploy", "libvirt@,nova_compute@")]

    def test_a_removal_takes_off_what_the_deleted_object_stands_for(self) -> None:
        of_plain, of_fast = self.live()
        plain, fast = compute(status=of_plain), self.fast(status=of_fast)
        assert self.orders(compute(deleting=True, status=of_plain), fast) == [("remove", "nova_compute@")]
        assert self.orders(plain, self.fast(deleting=True, status=of_fast)) == [("remove", "nova_compute@fast")]

    @pytest.mark.parametrize(("task", "asked"), [("restart", RESTART), ("rollback", ROLLBACK)])
    def test_a_request_is_met_for_the_object_that_asks(self, task: str, asked: str) -> None:
        of_plain, of_fast = self.live()
        plain, fast = compute(status=of_plain), self.fast(status=of_fast)
        asking = compute(status=of_plain, annotations={asked: "1"})
        assert self.orders(asking, fast) == [(task, "libvirt@,nova_compute@")]
        asking = self.fast(status=of_fast, annotations={asked: "1"})
        assert self.orders(plain, asking) == [(task, "nova_compute@fast")]


@pytest.mark.parametrize(
    ("task", "more"), [("remove", {"deleting": True}), ("restart", {"annotations": {RESTART: "1"}})]
)
def test_an_object_of_a_kind_without_a_definition_is_not_taken_for_the_whole_node(task: str, more: Body) -> None:
    stray = {**compute(**more), "apiVersion": "partner.example.com/v1", "kind": "PartnerThing"}
    cluster = plain(stray)
    assert [(need.task, need.services) for need in decided(cluster) if need.task == task] == [(task, ())]
    sentence = (
        f"PartnerThing openstack/node-0 stands for no known service, and a {task} that names none is of the whole"
    )
    with pytest.raises(BadOrderError, match=sentence):
        ordered(cluster, image="ee:1")


class TestTheImageOfARun:
    """Where the settings name none."""

    @pytest.fixture(autouse=True)
    def _nothing_in_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv(IMAGE_VARIABLE, raising=False)

    def pair(self, **fields: Any) -> World:
        """Two nodes whose objects name different images."""
        first = compute(ansibleEEContainerImage="ee:1", **fields)
        return plain(first, node("node-1"), compute("node-1", ansibleEEContainerImage="ee:2"))

    def test_nodes_with_different_images_do_not_share_a_deployment(self) -> None:
        assert [(order.nodes, order.image) for order in ordered(self.pair())] == [
            (("node-0",), "ee:1"),
            (("node-1",), "ee:2"),
        ]

    def test_nodes_with_one_image_do(self) -> None:
        others = [node("node-1"), compute("node-1", ansibleEEContainerImage="ee:1")]
        [order] = ordered(plain(compute(ansibleEEContainerImage="ee:1"), *others))
        assert (order.nodes, order.image) == (("node-0", "node-1"), "ee:1")

    def test_a_removal_takes_that_of_its_own_objects(self) -> None:
        orders = {order.playbook: order for order in ordered(self.pair(deleting=True))}
        assert orders["edpm.services.remove"].image == "ee:1"

    def test_a_removal_whose_objects_name_none_takes_that_of_the_environment(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(IMAGE_VARIABLE, "ee:3")
        others = [compute(f"node-{number}", ansibleEEContainerImage=f"ee:{number}") for number in (1, 2)]
        cluster = world(compute(deleting=True), node("node-1"), node("node-2"), role(), *others, images=IMAGES)
        orders = {order.playbook: order for order in ordered(cluster)}
        assert orders["edpm.services.remove"].image == "ee:3"

    def test_a_removal_of_objects_that_disagree_is_not_held_up(self) -> None:
        second = compute(instance="fast", deleting=True, ansibleEEContainerImage="ee:2")
        second["metadata"] |= {"name": "node-0-fast", "uid": "fast"}
        first = compute(deleting=True, ansibleEEContainerImage="ee:1")
        [order] = ordered(world(first, second, images=IMAGES))
        assert (order.extra_vars["service"], order.image) == ("libvirt@,nova_compute@,nova_compute@fast", "ee:1")

    def test_a_request_takes_that_of_the_object_which_asks(self) -> None:
        other = compute(owned=False, instance="fast", ansibleEEContainerImage="ee:2", deploy=False)
        other["metadata"] |= {"name": "node-0-fast", "uid": "fast"}
        asking = compute(ansibleEEContainerImage="ee:1", annotations={RESTART: "1"})
        [order] = ordered(plain(asking, other))
        assert (order.playbook, order.image) == ("edpm.services.restart", "ee:1")

    def test_objects_of_one_node_that_disagree_are_told(self) -> None:
        other = compute(owned=False, instance="fast", ansibleEEContainerImage="ee:2")
        other["metadata"] |= {"name": "node-0-fast", "uid": "fast"}
        with pytest.raises(BadOrderError, match=r"node-0 names the image ee:1 and .*node-0-fast names ee:2"):
            ordered(plain(compute(ansibleEEContainerImage="ee:1"), other))

    def test_the_settings_come_first(self) -> None:
        assert {order.image for order in ordered(self.pair(deleting=True), image="ee:9")} == {"ee:9"}


class TestTheDNSOfARun:
    """The pods find nodes by it; service objects of other kinds than computes may have none to name."""

    FIRST: ClassVar[Body] = {"nameservers": ["192.0.2.53"]}
    SECOND: ClassVar[Body] = {"nameservers": ["192.0.2.54"], "searches": ["example.com"]}

    def pair(self, **fields: Any) -> World:
        """Two nodes with different DNS."""
        return plain(compute(dnsConfig=self.FIRST, **fields), node("node-1"), compute("node-1", dnsConfig=self.SECOND))

    def found(self, cluster: World, **run: Any) -> list[tuple[tuple[str, ...], Mapping[str, Any]]]:
        return [(order.nodes, order.dns_config) for order in ordered(cluster, image="ee", **run)]

    def test_nodes_with_different_dns_do_not_share_a_deployment(self) -> None:
        assert self.found(self.pair()) == [(("node-0",), self.FIRST), (("node-1",), self.SECOND)]

    def test_nodes_with_the_same_do(self) -> None:
        same = compute("node-1", dnsConfig={**self.FIRST, "searches": []})
        cluster = plain(compute(dnsConfig=self.FIRST), node("node-1"), same)
        assert self.found(cluster) == [(("node-0", "node-1"), self.FIRST)]

    @pytest.mark.parametrize("task", ["deploy", "restart"])
    def test_what_an_object_leaves_unsaid_another_of_its_node_says(self, task: str) -> None:
        """What is missing on both nodes is another instance, whose objects name no DNS."""
        asking = {RESTART: "1"} if task == "restart" else {}
        objects: list[Body] = []
        for name, dns in (("node-0", self.FIRST), ("node-1", self.SECOND)):
            fast = compute(name, owned=False, instance="fast", annotations=asking)
            fast["metadata"] |= {"name": f"{name}-fast", "uid": f"{name}-fast"}
            objects += [node(name), compute(name, dnsConfig=dns, deploy=False), fast]
        cluster = world(role(), *objects, images=IMAGES)
        assert self.found(cluster) == [(("node-0",), self.FIRST), (("node-1",), self.SECOND)]

    def test_a_removal_takes_that_of_its_own_objects(self) -> None:
        orders = {order.playbook: order for order in ordered(self.pair(deleting=True), image="ee")}
        assert orders["edpm.services.remove"].dns_config == self.FIRST

    def test_a_removal_takes_that_of_what_stays_on_the_node(self) -> None:
        leaving = compute(instance="fast", deleting=True)
        leaving["metadata"] |= {"name": "node-0-fast", "uid": "fast"}
        stays = compute(dnsConfig=self.FIRST)
        others = [node("node-1"), compute("node-1", dnsConfig=self.SECOND)]
        orders = {order.playbook: order for order in ordered(plain(stays, leaving, *others), image="ee")}
        assert orders["edpm.services.remove"].dns_config == self.FIRST

    def test_objects_of_one_node_that_disagree_are_told(self) -> None:
        other = compute(owned=False, instance="fast", dnsConfig=self.SECOND)
        other["metadata"] |= {"name": "node-0-fast", "uid": "fast"}
        with pytest.raises(BadOrderError, match=r"node-0 has the dnsConfig .*node-0-fast has .*set dns_config"):
            ordered(plain(compute(dnsConfig=self.FIRST), other), image="ee")

    @pytest.mark.parametrize("mine", [{"nameservers": ["192.0.2.1"]}, {}])
    def test_the_settings_come_first(self, mine: Body) -> None:
        assert {str(dns) for _nodes, dns in self.found(self.pair(), dns_config=mine)} == {str(mine)}
