# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds for all plans: order, isolation, several namespaces, claims that collide."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any, overload

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.model import Reference, Store
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.plan import resolve
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import Plan
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.stores import snapshot_of
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.values import Value
from hypothesis import given, settings
from hypothesis import strategies as st

from .conftest import Change, Json, Load, Objects, PlanOf, read

Keys = tuple[str | int, ...]

FILES = ["base", "inheritance", "services", "metadata", "profiles", "embedded", "alone"]


def heap() -> Objects:
    """Every fixture at once: nodes of one name in several files come from the last of them."""
    found = {}
    for name in FILES:
        for body in read(f"dataplane/{name}.yaml"):
            found[body["kind"], body["metadata"]["name"]] = body
    return list(found.values())


def plan_of_heap(objects: Objects) -> Plan:
    return resolve(snapshot_of(objects, {"RELATED_IMAGE_NOVA_COMPUTE_IMAGE_URL_DEFAULT": "nova:1"}))


@overload
def reordered(value: Json, chooser: random.Random) -> Json: ...
@overload
def reordered(value: Value, chooser: random.Random) -> Value: ...
def reordered(value: Value, chooser: random.Random) -> Value:
    """The same JSON with its keys in another order."""
    if isinstance(value, dict):
        keys = list(value)
        chooser.shuffle(keys)
        return {key: reordered(value[key], chooser) for key in keys}
    return [reordered(one, chooser) for one in value] if isinstance(value, list) else value


@settings(deadline=None, max_examples=25)
@given(seed=st.integers())
def test_the_same_objects_in_any_order_give_the_same_plan(seed: int) -> None:
    chooser = random.Random(seed)
    objects = [reordered(one, chooser) for one in heap()]
    chooser.shuffle(objects)
    assert plan_of_heap(objects) == plan_of_heap(heap())


ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
)
PATHS = st.sampled_from(
    [
        ("spec",),
        ("spec", "role"),
        ("spec", "node"),
        ("spec", "node", "ansibleVars"),
        ("spec", "node", "networks"),
        ("spec", "node", "nova"),
        ("spec", "ansibleHost"),
        ("spec", "hostName"),
        ("spec", "networkAttachments"),
        ("spec", "deployStrategy"),
        ("metadata", "annotations"),
        ("metadata", "ownerReferences"),
        ("status",),
        ("status", "conditions"),
    ]
)


@settings(deadline=None, max_examples=150)
@given(path=PATHS, value=ODD)
def test_an_error_of_one_node_never_changes_the_others_plans(path: tuple[str, ...], value: Value) -> None:
    objects = read("dataplane/base.yaml")
    node = next(one for one in objects if one["metadata"]["name"] == "compute-0")
    inner = node
    for key in path[:-1]:
        inner = inner.setdefault(key, {})
    inner[path[-1]] = value
    before = resolve(snapshot_of(read("dataplane/base.yaml"))).by_name()["compute-1"]
    assert resolve(snapshot_of(objects)).by_name()["compute-1"] == before


def places(value: Value, path: Keys = ()) -> Iterator[Keys]:
    """Every place inside a JSON value."""
    yield path
    items: Iterable[tuple[str | int, Value]]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


PLACES = [(number, place) for number, one in enumerate(heap()) for place in places(one) if place]


@settings(deadline=None, max_examples=300)
@given(where=st.sampled_from(PLACES), value=ODD)
def test_whatever_an_object_holds_is_told_and_never_raised(where: tuple[int, Keys], value: Value) -> None:
    objects = heap()
    number, place = where
    inner: Any = objects[number]
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    plan = plan_of_heap(objects)
    sentences = [*plan.errors, *plan.warnings, *(one for node in plan.nodes for one in node.sentences)]
    assert all("\n" not in one and one.endswith(".") for one in sentences)


def test_nodes_come_in_the_order_of_namespaces_and_names(load: Load, plan_of: PlanOf) -> None:
    other = load("services")
    for one in other:
        one["metadata"]["namespace"] = "a-namespace"
    found = [(node.namespace, node.name) for node in plan_of([*load("base"), *other]).plan.nodes]
    assert found == sorted(found)
    assert {namespace for namespace, _ in found} == {"a-namespace", "openstack"}


def test_a_plan_covers_several_namespaces_and_objects_of_one_are_not_seen_in_another(
    load: Load, plan_of: PlanOf
) -> None:
    other = load("base")
    for one in other:
        one["metadata"]["namespace"] = "elsewhere"
        one["metadata"]["name"] = one["metadata"]["name"].replace("compute-", "other-")
        one.get("spec", {}).pop("ansibleHost", None)
    planned = plan_of([*load("base"), *other])
    assert planned.node("other-0").namespace == "elsewhere"
    assert str(planned.service("compute-0").sources[0].origin.ref).startswith("Secret openstack/")
    assert "Secret elsewhere/nova-cell1-compute-config does not exist" in planned.said("other-0")


def test_nodes_of_two_namespaces_with_one_name_are_an_error_on_both(load: Load, plan_of: PlanOf) -> None:
    other = load("base")
    for one in other:
        one["metadata"]["namespace"] = "elsewhere"
        one.get("spec", {}).pop("ansibleHost", None)
    plan = plan_of([*load("base"), *other]).plan
    first = [node for node in plan.nodes if node.name == "compute-0"]
    assert [node.errors for node in first] == [
        (
            f"OpenStackDataPlaneNode {one}/compute-0 and OpenStackDataPlaneNode {two}/compute-0 have one "
            "name, compute-0, "
            "and would be one host; rename one of them, or read one namespace at a time.",
        )
        for one, two in (("elsewhere", "openstack"), ("openstack", "elsewhere"))
    ]


@pytest.mark.parametrize(
    ("update", "words"),
    [
        ({"spec": {"hostName": "compute-0.example.com"}}, "has the same host name"),
        ({"spec": {"ansibleHost": "192.0.2.10"}}, "has the same address 192.0.2.10 and port"),
    ],
)
def test_two_nodes_with_one_host_name_or_address_are_an_error_on_both(
    load: Load, plan_of: PlanOf, change: Change, update: Json, words: str
) -> None:
    planned = plan_of(change(load("base"), "OpenStackDataPlaneNode/compute-1", update))
    assert (
        f"OpenStackDataPlaneNode openstack/compute-0: OpenStackDataPlaneNode openstack/compute-1 {words}"
        in planned.said("compute-0")
    )
    assert words in planned.said("compute-1")


def test_one_address_with_two_ports_is_two_nodes(load: Load, plan_of: PlanOf, change: Change) -> None:
    update = {"spec": {"ansibleHost": "192.0.2.10", "node": {"ansiblePort": 2222}}}
    assert plan_of(change(load("base"), "OpenStackDataPlaneNode/compute-1", update)).node("compute-1").ready


def test_a_nodes_sentences_are_its_own_and_its_services_each_once(load: Load, plan_of: PlanOf) -> None:
    objects = [one for one in load("base") if one["metadata"]["name"] != "nova-cell2"]
    node = plan_of(objects).node("compute-1")
    assert len(node.sentences) == len(set(node.sentences)) == 1


def test_the_work_grows_with_the_nodes_and_not_with_their_square(load: Load) -> None:
    """Counts look-ups of Secrets instead of seconds: one per node and use, whatever the number of nodes."""

    class Counting(dict[Reference, Store]):
        asked = 0

        def __contains__(self, key: object) -> bool:
            Counting.asked += 1
            return super().__contains__(key)

    def asked(count: int) -> int:
        objects = load("base")
        for number in range(count):
            meta = {"name": f"more-{number}", "namespace": "openstack"}
            kind = {"apiVersion": "dataplane.openstack.org/v1beta1", "kind": "OpenStackDataPlaneNode"}
            objects.append({**kind, "metadata": meta, "spec": {"role": "compute"}})
        taken = snapshot_of(objects)
        Counting.asked = 0
        assert len(resolve(type(taken)(taken.resources, Counting(taken.stores))).nodes) == count + 2
        return Counting.asked

    assert asked(200) - asked(100) == asked(300) - asked(200)
