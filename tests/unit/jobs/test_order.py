# SPDX-License-Identifier: GPL-3.0-or-later
"""What makes a run: its name, its shards, and the sentences for orders that make none."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.order import LONGEST_NAME, BadOrderError, Mount, Order
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.shards import indexes, split
from hypothesis import given
from hypothesis import strategies as st

from .orders import names, order


@given(st.lists(st.text("abc-", min_size=1), max_size=300), st.integers(0, 60))
def test_every_node_is_in_exactly_one_shard_and_shards_are_even(nodes: list[str], size: int) -> None:
    shards = split(nodes, size)

    assert [node for shard in shards for node in shard] == list(dict.fromkeys(nodes))
    sizes = [len(shard) for shard in shards]
    if size:
        assert max(sizes) <= max(size, 0)
        assert max(sizes) - min(sizes) <= 1
    else:
        assert len(shards) == 1


def test_2000_nodes_in_shards_of_50_are_40_pods() -> None:
    assert len(order(nodes=names(2000)).shards) == 40


def test_without_nodes_there_is_one_shard_for_whatever_the_limit_says() -> None:
    assert order(limit="role_compute").shards == ((),)


@given(st.sets(st.integers(0, 200)))
def test_the_index_lists_of_a_job_are_read(numbers: set[int]) -> None:
    text, run = [], sorted(numbers)
    while run:
        last = run[0]
        while last + 1 in numbers:
            last += 1
        text.append(str(run[0]) if last == run[0] else f"{run[0]}-{last}")
        run = [number for number in run if number > last]

    assert indexes(",".join(text)) == numbers


def test_an_absent_index_list_is_empty() -> None:
    assert indexes(None) == indexes("") == frozenset()


def test_the_same_order_has_the_same_name_and_any_other_another() -> None:
    first = order(nodes=names(3), extra_vars={"a": 1, "b": 2})

    assert first.run_name == order(nodes=names(3), extra_vars={"b": 2, "a": 1}).run_name
    others = [
        order(nodes=names(2), extra_vars={"a": 1, "b": 2}),
        order(nodes=names(3), extra_vars={"a": 1, "b": 3}),
        order(nodes=names(3), extra_vars={"a": 1, "b": 2}, run="second"),
        order(nodes=names(3), extra_vars={"a": 1, "b": 2}, mounts=(Mount("Secret", "s", "/etc/s"),)),
    ]
    assert len({first.run_name, *(other.run_name for other in others)}) == 5


@pytest.mark.parametrize(
    ("fields", "begins"),
    [
        ({"playbook": "edpm.services.deploy"}, "edpm-services-deploy-"),
        ({"playbook": "/plays/Site_All.yml"}, "site-all-"),
        ({"playbook": "", "play": "- hosts: all"}, "play-"),
        ({"name": "Nightly"}, "nightly-"),
        ({"name": "…"}, "run-"),
        ({"name": "x" * 200}, "x" * 41 + "-"),
    ],
)
def test_a_name_is_readable_and_fits_a_pods_host_name(fields: dict[str, Any], begins: str) -> None:
    name = order(**fields).run_name

    assert name.startswith(begins)
    assert len(name) <= LONGEST_NAME


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"play": "- hosts: all"}, "Name a playbook or write a play"),
        ({"playbook": ""}, "Name a playbook or write a play"),
        ({"image": ""}, "No image is named for the run; set image"),
        ({"shard_size": 2001}, "shard_size is 2001, and a pod takes 1 to 2000 nodes"),
        ({"shard_size": -1}, "shard_size is -1"),
        ({"parallel": 0}, "parallel is 0"),
        ({"forks": 0}, "forks is 0"),
        ({"backoff_limit": -1}, "backoff_limit is -1"),
        ({"inventory_config_maps": names(51)}, "51 inventory ConfigMaps are named, and a pod takes 50"),
        ({"nodes": ("all:!edpm-compute-0",)}, "'all:!edpm-compute-0' cannot name a node"),
        ({"mounts": (Mount("Secret", "s", "/run/edpm/x"),)}, "The mount at /run/edpm/x would cover"),
        ({"mounts": (Mount("Secret", "s", "etc"),)}, "The mount at etc would cover"),
        ({"mounts": (Mount("Secret", "s", "/x"), Mount("Secret", "t", "/x/"))}, "The mount at /x would cover"),
    ],
)
def test_an_order_that_makes_no_run_is_refused_with_a_sentence(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(BadOrderError) as refused:
        order(**fields)

    assert says in str(refused.value)
    assert str(refused.value).endswith((".", "both."))


def test_options_become_an_order_and_what_was_found_out_wins() -> None:
    options = {
        "namespace": "openstack",
        "image": "",
        "playbook": "edpm.services.deploy",
        "tags": ["a"],
        "deadline": None,
        "mounts": [{"config_map": "clouds", "secret": None, "path": "/etc/openstack", "optional": True}],
        "wait": True,
    }

    made = Order.from_options(options, image="example.com/ee:1", nodes=("one",))

    assert (made.image, made.nodes, made.tags, made.deadline) == ("example.com/ee:1", ("one",), ("a",), None)
    assert made.mounts == (Mount("ConfigMap", "clouds", "/etc/openstack", True),)


def test_a_mount_needs_one_source() -> None:
    with pytest.raises(BadOrderError, match="The mount at /x needs one of secret and config_map"):
        Order.from_options({"mounts": [{"path": "/x"}]}, namespace="n", image="i", playbook="p")
