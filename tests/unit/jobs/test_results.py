# SPDX-License-Identifier: GPL-3.0-or-later
"""From ansible-runner's events to a ConfigMap and back, and what fits into one."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.pod.events import Listener
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.results import (
    BUDGET,
    NodeResult,
    ShardResult,
    State,
    counted,
    decode,
    encode,
)
from hypothesis import given
from hypothesis import strategies as st

from .orders import names


def event(kind: str, **data: Any) -> dict[str, Any]:
    return {"event": kind, "event_data": data}


def stats(**counts: dict[str, int]) -> dict[str, Any]:
    return event("playbook_on_stats", **counts)


def heard(*events: dict[str, Any]) -> Listener:
    listener = Listener()
    for one in events:
        assert listener.hear(one) is False
    return listener


def test_statistics_tell_what_became_of_each_node() -> None:
    listener = heard(
        event("runner_on_failed", host="n2", task="Pull the image", res={"msg": "no such\n  image"}),
        event("runner_on_unreachable", host="n3", task="Gather", res={"msg": "Connection refused"}),
        stats(
            processed={"n0": 1, "n1": 1, "n2": 1, "n3": 1},
            ok={"n0": 2, "n1": 2, "n2": 1},
            changed={"n1": 2},
            failures={"n2": 1},
            dark={"n3": 1},
        ),
    )

    results = {result.node: result for result in listener.results(("n0", "n1", "n2", "n3", "n4"), 7, 2)}

    assert {name: result.state.value for name, result in results.items()} == {
        "n0": "ok",
        "n1": "changed",
        "n2": "failed",
        "n3": "unreachable",
        "n4": "not_run",
    }
    assert results["n1"].changed == 2
    assert (results["n2"].task, results["n2"].message) == ("Pull the image", "no such\n  image")
    assert results["n3"].message == "Connection refused"
    assert {result.shard for result in results.values()} == {7}


def test_a_failure_that_was_ignored_or_rescued_is_none() -> None:
    listener = heard(
        event("runner_on_failed", host="n0", task="Try", res={"msg": "no"}, ignore_errors=True),
        event("runner_on_failed", host="n1", task="Try", res={"msg": "no"}),
        stats(processed={"n0": 1, "n1": 1}, ok={"n0": 2, "n1": 2}, ignored={"n0": 1}, rescued={"n1": 1}),
    )

    assert [(result.state, result.message) for result in listener.results(("n0", "n1"), 0, 0)] == [(State.OK, "")] * 2


def test_of_a_loop_the_failed_items_message_is_kept() -> None:
    listener = heard(
        event("runner_item_on_failed", host="n0", task_uuid="u", res={"msg": "item b is bad"}),
        event("runner_on_failed", host="n0", task_uuid="u", task="Loop", res={"msg": "One or more items failed"}),
        stats(processed={"n0": 1}, failures={"n0": 1}),
    )

    assert listener.results(("n0",), 0, 2)[0].message == "item b is bad"


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({"msg": ["a", 1]}, '["a", 1]'),
        ({"msg": "", "stderr": "it broke"}, "it broke"),
        ({"rc": 1}, ""),
        (None, ""),
        ("text", "text"),
    ],
)
def test_whatever_a_module_says_becomes_text(result: object, message: str) -> None:
    listener = heard(
        event("runner_on_failed", host="n0", task="T", res=result), stats(processed={"n0": 1}, failures={"n0": 1})
    )

    assert listener.results(("n0",), 0, 2)[0].message == message


def test_hosts_beside_the_shards_nodes_are_told_too() -> None:
    listener = heard(stats(processed={"localhost": 1}, ok={"localhost": 1}))

    assert [(one.node, one.state) for one in listener.results((), 0, 0)] == [("localhost", State.OK)]


def test_where_nothing_was_played_ansibles_own_words_are_the_reason() -> None:
    listener = heard(
        {"event": "verbose", "stdout": "[WARNING]: old\n"},
        {"event": "verbose", "stdout": "[ERROR]: the playbook: nope.yml could not be found\n"},
    )

    assert listener.reason(1) == "[ERROR]: the playbook: nope.yml could not be found"
    assert listener.results(("n0",), 0, 2)[0].state is State.NOT_RUN
    assert "could not be found" in listener.results(("n0",), 0, 2)[0].message


def test_an_end_without_a_word_is_told_by_its_code_and_a_good_one_needs_no_reason() -> None:
    assert heard().reason(127) == "ansible-playbook ended with code 127 and said nothing of it"
    assert heard().reason(0) == ""


LINES = st.builds(
    NodeResult,
    node=st.text("abc-0", min_size=1, max_size=20),
    state=st.sampled_from(State),
    changed=st.integers(0, 9),
    task=st.text(max_size=30),
    message=st.text(max_size=60),
    shard=st.just(3),
)


@given(st.lists(LINES, max_size=20))
def test_what_is_stored_is_read_again(nodes: list[NodeResult]) -> None:
    """But for white space in texts, which becomes single blanks."""
    shard = ShardResult(3, 2, 1.5, tuple(nodes), "why")

    found = decode(encode(shard))

    assert (found.index, found.code, found.seconds, found.reason) == (3, 2, 1.5, "why")
    for had, has in zip(nodes, found.nodes, strict=True):
        assert (has.node, has.state, has.changed, has.shard) == (had.node, had.state, had.changed, 3)
        assert has.message == " ".join(had.message.split())


def test_2000_nodes_that_all_fail_with_long_messages_fit_one_config_map() -> None:
    longest = tuple(f"{name}.{'x' * 230}" for name in names(2000))
    nodes = tuple(NodeResult(name, State.FAILED, 0, "Task " * 50, "ü" * 10_000) for name in longest)

    data = encode(ShardResult(0, 2, 1.0, nodes))

    assert sum(len(text.encode()) for text in data.values()) < BUDGET + 1000
    assert [node.node for node in decode(data).nodes] == list(longest)


def test_2000_good_nodes_take_little() -> None:
    nodes = tuple(NodeResult(name, State.CHANGED, 3) for name in names(2000))

    assert len(encode(ShardResult(0, 0, 1.0, nodes))["nodes"]) < 150_000


def test_every_state_is_counted_also_with_none() -> None:
    assert counted([NodeResult("a", State.OK), NodeResult("b", State.FAILED)]) == {
        "ok": 1,
        "changed": 0,
        "not_run": 0,
        "unknown": 0,
        "unreachable": 0,
        "failed": 1,
    }
