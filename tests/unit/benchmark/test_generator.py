# SPDX-License-Identifier: GPL-3.0-or-later
"""The benchmark measures what it says: so many nodes, roles and cells, every node of them ready to be deployed."""

from __future__ import annotations

from collections import Counter

from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.plan import resolve
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.stores import snapshot_of

from tests.benchmark.data_plane import Size, objects
from tests.benchmark.figures import Figure

SMALL = Size(nodes=60, roles=6, cells=3)


def test_there_are_as_many_of_each_kind_as_it_says() -> None:
    kinds = Counter(body["kind"] for body in objects(SMALL))
    assert kinds["OpenStackDataPlaneNode"] == 60
    assert kinds["OpenStackDataPlaneRole"] == 6
    assert kinds["NovaCell"] == 3
    assert kinds["NovaExternalCompute"] == 6


def test_the_full_size_is_the_one_that_was_asked_for() -> None:
    assert Size() == Size(nodes=10_000, roles=100, cells=10)


def test_every_node_is_ready_and_runs_what_its_role_and_its_own_words_ask_for() -> None:
    plan = resolve(snapshot_of(objects(SMALL)))
    assert (plan.errors, plan.warnings, plan.left_alone, plan.leaving) == ((), (), (), ())
    assert [node.sentences for node in plan.nodes] == [()] * 60
    assert Counter(node.cell for node in plan.nodes) == {"nova-cell1": 20, "nova-cell2": 20, "nova-cell3": 20}
    usual = ("libvirt", "nova_compute", "ovn_metadata_agent")
    asked = Counter(tuple(service.name for service in node.services) for node in plan.nodes)
    assert asked == {usual: 54, (*usual, "neutron_sriov_agent"): 6}


def test_the_same_sizes_give_the_same_objects_except_for_the_key() -> None:
    def without_key() -> list[object]:
        return [
            body for body in objects(SMALL) if body["metadata"]["name"] != "dataplane-ansible-ssh-private-key-secret"
        ]

    assert without_key() == without_key()


def test_a_figure_tells_whether_its_limit_holds() -> None:
    assert Figure("a", 3.0, "b", 1.0, 3).holds
    assert not Figure("a", 3.1, "b", 1.0, 3).holds
    assert Figure("a", 99.0, "b", 1.0).holds
