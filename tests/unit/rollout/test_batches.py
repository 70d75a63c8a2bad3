# SPDX-License-Identifier: GPL-3.0-or-later
"""Who comes when, and when no one comes any more."""

from __future__ import annotations

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._rollout.batches import BadNumberError, Pace, pace
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("variables", "nodes", "expected"),
    [
        ({}, 3, Pace(0, 5, 1)),
        ({}, 4, Pace(0, 5, 1)),
        ({}, 5, Pace(1, 5, 1)),
        ({}, 100, Pace(1, 25, 20)),
        ({"edpm_deploy_batch": 2, "edpm_deploy_canary": "3", "edpm_deploy_failure_budget": 0}, 100, Pace(3, 2, 0)),
        ({"edpm_deploy_batch": "10%", "edpm_deploy_failure_budget": "1 %"}, 15, Pace(1, 2, 1)),
        ({"edpm_deploy_batch": 0, "edpm_deploy_canary": ""}, 2, Pace(0, 1, 1)),
        ({}, 0, Pace(0, 5, 0)),
    ],
)
def test_the_pace_comes_from_variables_and_the_number_of_nodes(
    variables: dict[str, object], nodes: int, expected: Pace
) -> None:
    assert pace(variables, nodes) == expected


@pytest.mark.parametrize("value", ["many", "-1", "5.5", "20 per cent", True])
def test_what_is_no_number_is_refused_by_its_name(value: object) -> None:
    with pytest.raises(BadNumberError, match=r"edpm_deploy_batch is .* write a number of nodes such as 5"):
        pace({"edpm_deploy_batch": value}, 10)


@given(st.integers(0, 20), st.integers(1, 50), st.integers(0, 400))
def test_the_batches_hold_every_node_once(canary: int, batch: int, nodes: int) -> None:
    sizes = Pace(canary, batch, 0).sizes(nodes)
    assert sum(sizes) == nodes
    assert all(0 < size <= max(batch, canary) for size in sizes)
    assert not canary or not nodes or sizes[0] == min(canary, nodes)


@pytest.mark.parametrize(
    ("touched", "failed", "why"),
    [
        (2, 0, ""),
        (2, 1, "1 node of the canaries failed"),
        (7, 1, ""),
        (7, 3, ""),
        (7, 4, "4 nodes failed and the failure budget is 3"),
    ],
)
def test_a_run_stops_when_a_canary_fails_or_the_budget_is_used_up(touched: int, failed: int, why: str) -> None:
    assert Pace(2, 5, 3).stops(touched, failed) == why
