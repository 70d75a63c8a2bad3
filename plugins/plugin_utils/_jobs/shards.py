# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes dealt out to pods, and the index lists in which Kubernetes tells which pods are done."""

from __future__ import annotations

from collections.abc import Sequence


def split(nodes: Sequence[str], size: int) -> tuple[tuple[str, ...], ...]:
    """Shards of at most `size` nodes, as even as they can be, in the order of the nodes; each node is in one shard."""
    unique = tuple(dict.fromkeys(nodes))
    if not unique or size <= 0:
        return (unique,)
    count = -(-len(unique) // size)
    smaller, larger = divmod(len(unique), count)
    shards = []
    begin = 0
    for number in range(count):
        end = begin + smaller + (1 if number < larger else 0)
        shards.append(unique[begin:end])
        begin = end
    return tuple(shards)


def indexes(text: str | None) -> frozenset[int]:
    """The numbers in a list such as `1,3-5,7`, as a Job's status has them."""
    found: set[int] = set()
    for part in filter(None, (text or "").split(",")):
        first, _dash, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)
