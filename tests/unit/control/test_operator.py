# SPDX-License-Identifier: GPL-3.0-or-later
"""What changed → which step: the operator's decisions, without a cluster."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._control.look import World
from ansible_collections.edpm.services.plugins.plugin_utils._control.names import (
    PAUSED,
    RESTART,
    ROLLBACK,
    ROLLED_BACK,
    ROLLED_BACK_BY,
)
from ansible_collections.edpm.services.plugins.plugin_utils._control.status import key_of, services_in
from ansible_collections.edpm.services.plugins.plugin_utils._operator.deciding import (
    batches,
    paused,
)

from .decisions import NAMESPACE, WHOLE, decided, deployed, plain
from .worlds import CELL, DATAPLANE, IMAGES, Body, compute, node, role, thing, world


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
