# SPDX-License-Identifier: GPL-3.0-or-later
"""Which cluster an action writes to: the one that its options name, else the one that this run has read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from .._kube import snapshot
from .._kube.connection import ARGUMENT_SPEC
from .._kube.errors import BadSettingsError

#: Options of an action that name a cluster and what of it is meant.
CLUSTER_SPEC: dict[str, dict[str, object]] = {
    "namespaces": {"type": "list", "elements": "str"},
    "nodes": {"type": "list", "elements": "str", "default": []},
    "services": {"type": "list", "elements": "str", "default": []},
    "required": {"type": "bool", "default": True},
    **ARGUMENT_SPEC,
}


def cluster_of(options: Mapping[str, Any], given: Collection[str]) -> snapshot.Source:
    """Manifests cannot be written to: a run that has read some must name its cluster."""
    named = [name for name in (*ARGUMENT_SPEC, "namespaces") if name in given and options.get(name)]
    read = snapshot.source()
    if named or read is None:
        return snapshot.Source.from_options({**options, "manifests": None})
    if read.manifests:
        raise BadSettingsError(
            "This run has read its data plane from manifests, and service objects are written to a cluster; "
            "name it with kubeconfig, context or host, or leave the inventory out."
        )
    return read
