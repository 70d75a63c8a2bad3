# SPDX-License-Identifier: GPL-3.0-or-later
"""What changed → which step: the operator's decisions, without a cluster."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._control.leaving import leaving_objects
from ansible_collections.edpm.services.plugins.plugin_utils._control.look import World
from ansible_collections.edpm.services.plugins.plugin_utils._control.names import (
    PAUSED,
    RESTART,
    RESTARTED,
    RESTARTS,
    ROLLBACK,
    ROLLBACKS,
    ROLLED_BACK,
    ROLLED_BACK_BY,
)
from ansible_collections.edpm.services.plugins.plugin_utils._control.status import key_of, services_in
from ansible_collections.edpm.services.plugins.plugin_utils._control.wanted import Chosen, wanted_objects
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.order import BadOrderError, Order
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.sources import IMAGE_VARIABLE
from ansible_collections.edpm.services.plugins.plugin_utils._operator.deciding import (
    Need,
    batches,
    dealt_with,
    managed,
    needs,
    paused,
)
from ansible_collections.edpm.services.plugins.plugin_utils._operator.metrics import Metrics
from ansible_collections.edpm.services.plugins.plugin_utils._operator.runs import OperatorRuns
from ansible_collections.edpm.services.plugins.plugin_utils._operator.settings import (
    BadSettingsFileError,
    OperatorSettings,
)
from ansible_collections.edpm.services.plugins.plugin_utils._operator.trying import Attempts
from ansible_collections.edpm.services.plugins.plugin_utils._watch.news import Memory

from .worlds import CELL, DATAPLANE, IMAGES, Body, compute, node, role, thing, world

WHOLE = ("libvirt", "nova_compute")
NAMESPACE = "openstack"
LIBVIRT = "edpm.openstack.org/service-libvirt"


def decided(cluster: World, kinds: Collection[str] = (), sleeping: Collection[str] = ()) -> list[Need]:
    """The needs of a world, as a pass finds them."""
    chosen = Chosen(services=managed(cluster, kinds), spared=paused(cluster, sleeping))
    wanted, _untouched = wanted_objects(cluster, chosen)
    going, _unjudged = leaving_objects(cluster, {one.ref for one in wanted}, chosen)
    return list(needs(cluster, services_in(cluster), going, chosen))


def deployed(cluster: World, name: str = "node-0") -> Body:
    """The status of a service object whose services are as the plan wants them."""
    services = next(found for ref, found in services_in(cluster).items() if ref.name == name)
    return {"deployedDigests": {one.name: one.digest for one in services}, "observedGeneration": 1}


def plain(*bodies: Body) -> World:
    return world(role(), node(), *bodies, images=IMAGES)


def test_a_node_whose_digest_is_missing_or_differs_is_deployed_and_no_other() -> None:
    live = deployed(plain(compute()))
    assert decided(plain(compute(status=live))) == []
    [new] = decided(plain(compute()))
    assert (new.task, new.node, new.services) == ("deploy", "node-0", WHOLE)
    [edited] = decided(plain(compute(status=live, customServiceConfig="[DEFAULT]\ndebug = True\n")))
    assert edited.services == ("nova_compute",), "libvirt is as it should be"
    assert edited.key != new.key


class TestWhatNeedsNoRestart:
    """A CA bundle lies outside of the generation, and no digest of one tells that it is another."""

    CONFIG = "nova-cell1-compute-config"

    def plane(self, certificate: str, status: Body | None = None) -> World:
        data = {"01-nova.conf": "[DEFAULT]\n", "tls-ca-bundle.pem": certificate}
        return plain(thing("v1", "Secret", self.CONFIG, stringData=data), compute(status=status))

    def live(self) -> Body:
        services = next(iter(services_in(self.plane("A")).values()))
        return {**deployed(self.plane("A")), "deployedSettings": {one.name: one.settings for one in services}}

    def test_a_new_certificate_is_deployed_where_it_is_used(self) -> None:
        assert decided(self.plane("A", self.live())) == []
        [need] = decided(self.plane("B", self.live()))
        assert (need.task, need.services) == ("deploy", ("nova_compute",))
        [other] = decided(self.plane("C", self.live()))
        assert need.key != other.key, "the next one is a wish of its own"

    def test_where_nobody_has_told_of_it_nothing_follows(self) -> None:
        assert decided(self.plane("B", deployed(self.plane("A")))) == []


class TestAnObjectWhoseLastRunFailed:
    def status(self, generation: int = 1, **more: Any) -> Body:
        failed = {"type": "DeploymentReady", "status": "False", "reason": "Failed", "observedGeneration": generation}
        return {**deployed(plain(compute())), "conditions": [failed], **more}

    def test_it_is_deployed_again_though_its_digests_are_live(self) -> None:
        [need] = decided(plain(compute(status=self.status())))
        assert (need.task, need.services) == ("deploy", WHOLE)

    def test_it_is_the_same_wish_as_before(self) -> None:
        [first] = decided(plain(compute()))
        half = {"libvirt": deployed(plain(compute()))["deployedDigests"]["libvirt"]}
        [second] = decided(plain(compute(status=self.status(deployedDigests=half))))
        [third] = decided(plain(compute(status=self.status())))
        assert first.key == second.key == third.key, "else it would be tried again without a pause"

    def test_what_was_rolled_back_and_failed_waits_for_a_person(self) -> None:
        wanted = key_of(next(iter(services_in(plain(compute())).values())))
        said = {ROLLBACK: "1", ROLLED_BACK_BY: "1", ROLLED_BACK: wanted}
        assert decided(plain(compute(status=self.status(), annotations=said))) == []

    def test_a_failure_of_another_generation_is_none(self) -> None:
        assert decided(plain(compute(status=self.status(generation=7)))) == []


@pytest.mark.parametrize("spec", [{"deploy": False}])
def test_what_is_held_is_not_deployed(spec: Body) -> None:
    assert decided(plain(compute(**spec))) == []


def test_what_waits_for_a_secret_or_breaks_a_rule_is_not_deployed_and_the_others_are() -> None:
    lost = node("node-1", cell="nova-cell3")
    cluster = world(role(), node(), compute(), lost, compute("node-1", cellName="nova-cell3"), images=IMAGES)
    assert [need.node for need in decided(cluster)] == ["node-0"]


@pytest.mark.parametrize("same", [{"hostName": "twin"}, {"ansibleHost": "192.0.2.1"}])
def test_two_nodes_with_one_name_or_address_wait_and_a_third_does_not(same: Body) -> None:
    twins = [one for name in ("node-1", "node-2") for one in (node(name, **same), compute(name))]
    assert [need.node for need in decided(plain(compute(), *twins))] == ["node-0"]


def test_nodes_that_want_the_same_services_share_a_run() -> None:
    others = [one for number in range(1, 4) for one in (node(f"node-{number}"), compute(f"node-{number}"))]
    live = deployed(plain(compute()))
    cluster = plain(compute(status=live, customServiceConfig="[DEFAULT]\n"), *others)
    found = batches(decided(cluster))
    assert [(batch.services, batch.nodes) for batch in found] == [
        (("nova_compute",), ("node-0",)),
        (WHOLE, ("node-1", "node-2", "node-3")),
    ]


def elsewhere(body: Body) -> Body:
    """The same in another namespace."""
    return {**body, "metadata": {**body["metadata"], "namespace": "other"}}


class TestPaused:
    @pytest.mark.parametrize("which", ["node", "role", "object", "namespace"])
    def test_a_paused_node_is_left_alone_and_the_others_are_not(self, which: str) -> None:
        def said(name: str) -> dict[str, str]:
            return {PAUSED: "true"} if name == which else {}

        nova = {CELL: "nova-cell1"}
        first = thing(DATAPLANE, "OpenStackDataPlaneRole", "edpm", {**nova, **said("role")}, spec={"nodeTemplate": {}})
        second = thing(DATAPLANE, "OpenStackDataPlaneRole", "other", nova, spec={"nodeTemplate": {}})
        spec = {"role": "edpm", "hostName": "node-0", "ansibleHost": "node-0.example.com"}
        sleeper = thing(DATAPLANE, "OpenStackDataPlaneNode", "node-0", said("node"), spec=spec)
        bodies = [first, second, sleeper, compute(annotations=said("object"))]
        cluster = world(*bodies, node("node-1", role="other"), compute("node-1"), images=IMAGES)
        sleeping = [NAMESPACE] if which == "namespace" else []
        expected = [] if which == "namespace" else ["node-1"]
        assert [need.node for need in decided(cluster, sleeping=sleeping)] == expected

    @pytest.mark.parametrize("which", ["node", "object", "namespace"])
    def test_a_node_of_that_name_in_another_namespace_is_none_of_it(self, which: str) -> None:
        def said(name: str) -> dict[str, str]:
            return {PAUSED: "true"} if name == which else {}

        bodies = [role(), node(), compute(annotations=said("object"))]
        bodies[1]["metadata"]["annotations"] |= said("node")
        asking = elsewhere(compute(owned=False, annotations={RESTART: "monday"}))
        cluster = world(*bodies, asking, images=IMAGES)
        sleeping = [NAMESPACE] if which == "namespace" else []
        assert paused(cluster, sleeping) == {(NAMESPACE, "node-0")}
        assert [(need.task, need.namespace) for need in decided(cluster, sleeping=sleeping)] == [("restart", "other")]

    def test_another_word_than_true_pauses_nothing(self) -> None:
        assert decided(plain(compute(annotations={PAUSED: "false"})))


def test_a_kind_that_is_not_managed_is_left_alone() -> None:
    assert decided(plain(compute()), kinds=["OVNMetadataAgent"]) == []
    assert [need.node for need in decided(plain(compute()), kinds=["NovaExternalCompute"])] == ["node-0"]
    assert decided(plain(compute()), kinds=["NoSuchKind"]) == []


def ordered(cluster: World, **run: Any) -> list[Order]:
    """The orders of a pass, by an operator with these settings of runs."""
    runs = OperatorRuns(None, OperatorSettings(namespaces=(NAMESPACE,), run=run))  # type: ignore[arg-type]  # unused
    return [runs.order(batch, cluster) for batch in batches(decided(cluster))]


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


class TestLeaving:
    def test_a_node_that_opted_out_gets_a_removal_with_what_its_object_names(self) -> None:
        leaving = compute(sshKeySecretName="ssh", networkAttachments=["ctlplane"])
        cluster = world(role(), node(cell=""), leaving, images=IMAGES)
        [need] = decided(cluster)
        assert (need.task, need.services) == ("remove", WHOLE)
        assert (need.inventory, need.ssh_key) == ("dataplanenode-node-0", "ssh")
        [batch] = batches([need])
        settings = OperatorSettings(namespaces=(NAMESPACE,), run={"image": "ee:1"}, extra_vars={"edpm_cloud": "site"})
        order = OperatorRuns(None, settings).order(batch, cluster)  # type: ignore[arg-type]  # nothing is asked of it
        assert order.playbook == "edpm.services.remove"
        assert order.extra_vars == {"edpm_cloud": "site", "node": "node-0", "service": "libvirt@,nova_compute@"}
        assert (order.inventory_config_maps, order.ssh_key_secret) == (("dataplanenode-node-0",), "ssh")
        assert (order.reads_data_plane, order.network_attachments) == (True, ("ctlplane",))
        assert (order.nodes, order.limit) == ((), "")

    def test_what_is_off_the_node_needs_nothing_more(self) -> None:
        removed = {"conditions": [{"type": "Removed", "status": "True"}]}
        assert decided(world(role(), node(cell=""), compute(status=removed), images=IMAGES)) == []

    def test_a_node_that_is_gone_is_removed_and_never_deployed(self) -> None:
        assert [need.task for need in decided(world(compute(deleting=True), images=IMAGES))] == ["remove"]


class TestAServiceThatLeavesAnObjectWhichStays:
    """The Role asks for libvirt by an annotation of its own, and the Node has left its cell."""

    def before(self) -> Body:
        return deployed(self.plane(compute(), cell=None))

    def plane(self, *bodies: Body, cell: str | None = "", **said: str) -> World:
        asking = role()
        asking["metadata"]["annotations"][LIBVIRT] = "true"
        leaving = node(cell=cell)
        leaving["metadata"]["annotations"] |= said
        return world(asking, leaving, *bodies, images=IMAGES)

    def test_it_is_taken_off_and_nothing_else_is(self) -> None:
        cluster = self.plane(compute(status=self.before(), sshKeySecretName="ssh"))
        [need] = decided(cluster)
        assert (need.task, need.services) == ("remove", ("nova_compute",))
        assert (need.inventory, need.ssh_key) == ("dataplanenode-node-0", "ssh")
        [order] = ordered(cluster, image="ee:1")
        assert order.extra_vars == {"node": "node-0", "service": "nova_compute@"}

    def test_once_it_is_off_nothing_is_wanted(self) -> None:
        live = self.before()
        off = {**live, "deployedDigests": {**live["deployedDigests"], "nova_compute": ""}}
        assert decided(self.plane(compute(status=off))) == []

    def test_what_is_asked_for_again_is_deployed_and_not_taken_off(self) -> None:
        assert decided(self.plane(compute(status=self.before()), cell="nova-cell1")) == []
        live = self.before()
        off = {**live, "deployedDigests": {**live["deployedDigests"], "nova_compute": ""}}
        [need] = decided(self.plane(compute(status=off), cell="nova-cell1"))
        assert (need.task, need.services) == ("deploy", ("nova_compute",))

    def test_a_node_with_a_fault_is_not_judged(self) -> None:
        faulty = {"edpm.openstack.org/service-cinder_volume": "perhaps"}
        assert decided(self.plane(compute(status=self.before()), **faulty)) == []

    def test_a_paused_one_is_left_alone(self) -> None:
        assert decided(self.plane(compute(status=self.before()), **{PAUSED: "true"})) == []

    def test_it_leaves_together_with_what_else_leaves_the_node(self) -> None:
        fast = compute(instance="fast")
        fast["metadata"] |= {"name": "node-0-fast", "uid": "fast"}
        [need] = decided(self.plane(compute(status=self.before()), fast))
        assert (need.task, need.services) == ("remove", ("nova_compute", "nova_compute@fast"))
        assert [one.ref.name for one in need.objects] == ["node-0-fast", "node-0"]

    def test_a_request_is_met_for_what_stays(self) -> None:
        cluster = self.plane(compute(status=self.before(), annotations={RESTART: "monday"}))
        assert [(need.task, need.services) for need in decided(cluster)] == [
            ("remove", ("nova_compute",)),
            ("restart", ("libvirt",)),
        ]

    def test_a_rollback_of_what_stays_is_remembered_when_it_has_left(self) -> None:
        staying = self.plane(compute(status=self.before()))
        left = self.plane(compute())
        assert key_of(*services_in(staying).values()) == key_of(*services_in(left).values())


class TestRequests:
    def test_a_new_value_asks_for_a_restart_once(self) -> None:
        live = deployed(plain(compute()))
        [need] = decided(plain(compute(status=live, annotations={RESTART: "monday"})))
        assert (need.task, need.services, need.value) == ("restart", WHOLE, "monday")
        met = {RESTART: "monday", RESTARTED: "monday"}
        assert decided(plain(compute(status=live, annotations=met))) == []
        [again] = decided(plain(compute(status=live, annotations={**met, RESTART: "tuesday"})))
        assert again.key != need.key

    @pytest.mark.parametrize(("task", "asked"), [("restart", RESTART), ("rollback", ROLLBACK)])
    def test_a_value_that_comes_back_is_a_request_of_its_own(self, task: str, asked: str) -> None:
        annotations: dict[str, str] = {}
        keys = []
        for value in ("on", "off") * 3:
            cluster = plain(compute(annotations={**annotations, asked: value}))
            [need] = [one for one in decided(cluster) if one.task == task]
            keys.append(need.key)
            annotations = dict(dealt_with(need, services_in(cluster)))
        assert len(set(keys)) == 6
        assert annotations[f"{asked}s"] == "6"

    @pytest.mark.parametrize("written", ["many", "-1", "9" * 5000])
    def test_a_count_that_somebody_has_written_over_begins_anew(self, written: str) -> None:
        cluster = plain(compute(annotations={RESTART: "b", RESTARTS: written}))
        [need] = [one for one in decided(cluster) if one.task == "restart"]
        assert dealt_with(need, services_in(cluster))[RESTARTS] == "1"

    def test_what_was_rolled_back_is_not_deployed_until_something_else_is_wanted(self) -> None:
        edited: Body = {"customServiceConfig": "[DEFAULT]\ndebug = True\n"}
        old = deployed(plain(compute()))
        [need] = decided(
            plain(compute(status=deployed(plain(compute(**edited))), annotations={ROLLBACK: "1"}, **edited))
        )
        assert need.task == "rollback"
        cluster = plain(compute(annotations={ROLLBACK: "1"}, **edited))
        said = dealt_with(need, services_in(cluster))
        wanted = key_of(next(iter(services_in(cluster).values())))
        assert said == {ROLLED_BACK_BY: "1", ROLLBACKS: "1", ROLLED_BACK: wanted}

        back = {ROLLBACK: "1", **said}
        assert decided(plain(compute(status=old, annotations=back, **edited))) == []
        other: Body = {"customServiceConfig": "[DEFAULT]\ndebug = False\n"}
        assert [one.task for one in decided(plain(compute(status=old, annotations=back, **other)))] == ["deploy"]
        forgotten = {ROLLED_BACK_BY: "1", ROLLED_BACK: said[ROLLED_BACK]}
        assert [one.task for one in decided(plain(compute(status=old, annotations=forgotten, **edited)))] == ["deploy"]

    def test_one_request_does_not_forget_the_other(self) -> None:
        cluster = plain(compute(annotations={RESTART: "b", ROLLED_BACK_BY: "1", ROLLED_BACK: "x"}))
        [need] = [one for one in decided(cluster) if one.task == "restart"]
        told = {RESTARTED: "b", RESTARTS: "1", ROLLED_BACK_BY: "1", ROLLED_BACK: "x"}
        assert dealt_with(need, services_in(cluster)) == told


class TestAttempts:
    need = Need("deploy", NAMESPACE, "node-0", WHOLE, "key")

    def test_a_pause_doubles_up_to_its_longest_and_something_new_is_tried_at_once(self) -> None:
        tries = Attempts(10, 60)
        assert tries.due(self.need) == 0
        pauses = []
        for _number in range(5):
            tries.began(self.need, 100.0)
            pauses.append(tries.due(self.need) - 100.0)
        assert pauses == [10, 20, 40, 60, 60]
        assert tries.due(replace(self.need, key="other")) == 0
        assert tries.due(replace(self.need, node="node-1")) == 0

    def test_the_pause_begins_when_the_run_ends(self) -> None:
        tries = Attempts(10, 60)
        tries.began(self.need, 100.0)
        tries.busy("deploy", NAMESPACE, ["node-0", "node-1"], 500.0)
        assert tries.due(self.need) == 510.0

    def test_what_is_not_wanted_any_more_is_forgotten(self) -> None:
        tries = Attempts(10, 60)
        tries.began(self.need, 100.0)
        tries.settled([])
        assert tries.due(self.need) == 0

    @pytest.mark.parametrize(("generation", "waits"), [(1, True), (2, False)])
    def test_a_failure_that_an_earlier_operator_saw_is_waited_for_too(self, generation: int, waits: bool) -> None:
        last = {"result": "Failed", "completionTime": "1970-01-01T00:01:40Z"}
        stands = plain(compute(status={"lastRun": last, "observedGeneration": generation})).service_objects()[0]
        due = Attempts(10, 60).due(replace(self.need, objects=(stands,)))
        assert due == (110.0 if waits else 0)


class TestNews:
    def body(self, **more: Any) -> Body:
        return {**thing("v1", "Thing", "one", {"a": "b"}), **more}

    def test_the_same_twice_is_news_once(self) -> None:
        memory = Memory()
        first = memory.change(None, self.body())
        assert first is not None
        assert (first.what, first.kind, first.namespace, first.name) == ("listed", "Thing", NAMESPACE, "one")
        assert memory.change("MODIFIED", self.body()) is None
        fresh = memory.change("ADDED", thing("v1", "Thing", "two"))
        assert fresh is not None
        assert fresh.what == "added"
        changed = memory.change("MODIFIED", thing("v1", "Thing", "one", {"a": "c"}))
        assert changed is not None
        assert changed.what == "modified"
        gone = memory.change("DELETED", self.body())
        assert gone is not None
        assert gone.what == "deleted"

    def test_a_status_of_ours_and_a_summary_are_no_news_and_that_of_others_is(self) -> None:
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        for body, news in ((self.body(), True), (self.body(spec={"dataplaneNodeName": "one"}), False)):
            memory = Memory()
            memory.change("ADDED", body)
            assert (memory.change("MODIFIED", {**body, "status": ready}) is not None) is news
        memory = Memory()
        memory.change("ADDED", self.body())
        summary = {"a": "b", "edpm.openstack.org/services-message": "1 of 1"}
        assert memory.change("MODIFIED", thing("v1", "Thing", "one", summary)) is None

    def test_no_content_is_told(self) -> None:
        change = Memory().change("ADDED", self.body(data={"password": "c2VjcmV0"}))
        assert change is not None
        assert "c2VjcmV0" not in str(change.data())


class TestSettings:
    def test_a_file_with_all_of_it(self, tmp_path: Path) -> None:
        file = tmp_path / "settings.yaml"
        file.write_text(
            "namespaces: [openstack]\nkinds: [OVNMetadataAgent]\nresync: 60\nrun: {image: 'ee:1', ttl: 60}\n"
        )
        found = OperatorSettings.read(file)
        assert (found.namespaces, found.kinds, found.resync) == (("openstack",), ("OVNMetadataAgent",), 60.0)
        assert (found.options()["ttl"], found.options()["shard_size"], found.options()["deadline"]) == (60, 50, 7200)

    def test_options_of_a_run_are_taken_as_ee_job_takes_them(self) -> None:
        run = {"shard_size": "50", "deadline": None, "image_pull_secrets": "one"}
        found = OperatorSettings(namespaces=("openstack",), run=run)
        assert found.run == {"shard_size": 50, "deadline": None, "image_pull_secrets": ["one"]}
        assert (found.options()["shard_size"], found.options()["deadline"]) == (50, None)

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("kinds: [A]", "No namespace is named"),
            ("namespaces: openstack", "namespaces is 'openstack', and a list of names is wanted"),
            ("namespaces: [a]\nresnyc: 3", "names resnyc; it may name"),
            ("namespaces: [a]\nport: true", "port is True, and a whole number is wanted"),
            ("namespaces: [a]\nrun: {playbook: x}", "run names playbook, which the operator decides by itself"),
            ("namespaces: [a]\nrun: {extra_vars: }", "run has no value for extra_vars; write one, or leave it out."),
            ("namespaces: [a]\nrun: {shard_size: many}", "run cannot be used (argument 'shard_size' is of type"),
            ("namespaces: [a]\nrun: {mounts: [{secret: a}]}", "missing required arguments: path found in mounts"),
            ("namespaces: [a]\nresync: 0", "resync is 0.0; choose more than 0."),
            ("namespaces: [a]\nresync: .nan", "resync is nan; choose more than 0."),
            ("namespaces: [a]\nsettle: -1", "settle is -1.0; choose 0 or more."),
            ("namespaces: [a]\nlease_duration: 0", "lease_duration is 0; choose more than 0."),
            ("namespaces: [a]\nfirst_pause: -3", "first_pause is -3.0; choose more than 0."),
            ("namespaces: [a]\nlongest_pause: 0", "longest_pause is 0.0; choose more than 0."),
            ("namespaces: [a]\nremovals_at_once: 0", "removals_at_once is 0; choose more than 0."),
            ("namespaces: [a]\nport: 0", "port is 0; choose more than 0."),
            ("namespaces: [a]\nport: 70000", "port is 70000; choose 1 to 65535."),
            (
                "namespaces: [a]\nextra_vars: {since: [2026-01-01]}",
                "since has a date or something else that is no text",
            ),
            (f"namespaces: [a]\nlease: {'x' * 64}", "lease has 64 characters; choose 63 or fewer."),
            ("namespaces: [a", "is not YAML"),
            ("- a", "is no mapping"),
        ],
    )
    def test_a_fault_is_a_sentence(self, tmp_path: Path, text: str, said: str) -> None:
        file = tmp_path / "settings.yaml"
        file.write_text(text)
        with pytest.raises(BadSettingsFileError) as caught:
            OperatorSettings.read(file)
        assert said in str(caught.value)

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(BadSettingsFileError, match="cannot be read"):
            OperatorSettings.read(tmp_path / "none.yaml")


def test_figures_are_written_as_prometheus_reads_them() -> None:
    figures = Metrics()
    figures.add("edpm_operator_runs_total", task="deploy")
    figures.add("edpm_operator_runs_total", 2, task="deploy")
    figures.set_all("edpm_operator_service_objects", "reason", {'odd "one"': 3})
    lines = figures.text().splitlines()
    assert 'edpm_operator_runs_total{task="deploy"} 3' in lines
    assert 'edpm_operator_service_objects{reason="odd \\"one\\""} 3' in lines
    assert lines.count("# TYPE edpm_operator_runs_total counter") == 1
