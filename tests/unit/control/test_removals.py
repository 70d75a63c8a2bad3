# SPDX-License-Identifier: GPL-3.0-or-later
"""What is to leave a node, and what persons ask for by annotations."""

from __future__ import annotations

import pytest
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
from ansible_collections.edpm.services.plugins.plugin_utils._operator.deciding import (
    batches,
    dealt_with,
)
from ansible_collections.edpm.services.plugins.plugin_utils._operator.runs import OperatorRuns
from ansible_collections.edpm.services.plugins.plugin_utils._operator.settings import (
    OperatorSettings,
)

from .decisions import LIBVIRT, NAMESPACE, WHOLE, decided, deployed, ordered, plain
from .worlds import IMAGES, Body, compute, node, role, world


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
