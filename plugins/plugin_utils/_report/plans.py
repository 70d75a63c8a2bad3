# SPDX-License-Identifier: GPL-3.0-or-later
"""Which plan a lookup or an action speaks of: the run's own, or that of a source which its options name."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from .._dataplane.plan import resolve
from .._dataplane.planned import Plan
from .._kube import snapshot
from .._kube.connection import ARGUMENT_SPEC

#: Options of an action that name a source, over those of the connection.
SOURCE_SPEC: dict[str, dict[str, object]] = {
    "manifests": {"type": "list", "elements": "str"},
    "namespaces": {"type": "list", "elements": "str"},
    **ARGUMENT_SPEC,
}


def plan_of(options: Mapping[str, Any], given: Collection[str], folder: str = ".") -> Plan:
    """The run's plan, unless one of the `given` options names a source: environment variables alone do not.

    What is read here stays with this process and those that it forks from now on: of a lookup in a play's own keyword
    the whole run profits, of one in a task that task alone. The first source of a run is the run's own from then on.
    """
    if not any(name in SOURCE_SPEC and options.get(name) not in (None, "", [], {}) for name in given):
        return snapshot.plan()
    source = snapshot.Source.from_options(options, folder)
    for known, plan in _read:
        if known == source:
            return plan
    if snapshot.taken() is None and snapshot.failure() is None:
        snapshot.take(source)
        plan = snapshot.plan()
    else:
        plan = resolve(snapshot.read(source))
    _read.append((source, plan))
    return plan


def forget() -> None:
    """Start over, as a new process would."""
    _read.clear()


# Settings may hold mappings, which no dictionary takes as a key; and a run has one or two sources.
_read: list[tuple[snapshot.Source, Plan]] = []
