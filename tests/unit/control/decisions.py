# SPDX-License-Identifier: GPL-3.0-or-later
"""What an operator decides in a small cluster, and what it orders."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ansible_collections.edpm.services.plugins.plugin_utils._control.leaving import leaving_objects
from ansible_collections.edpm.services.plugins.plugin_utils._control.look import World
from ansible_collections.edpm.services.plugins.plugin_utils._control.status import services_in
from ansible_collections.edpm.services.plugins.plugin_utils._control.wanted import Chosen, wanted_objects
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.order import Order
from ansible_collections.edpm.services.plugins.plugin_utils._operator.deciding import (
    Need,
    batches,
    managed,
    needs,
    paused,
)
from ansible_collections.edpm.services.plugins.plugin_utils._operator.runs import OperatorRuns
from ansible_collections.edpm.services.plugins.plugin_utils._operator.settings import (
    OperatorSettings,
)

from .worlds import IMAGES, Body, node, role, world

WHOLE = ("libvirt", "nova_compute")
NAMESPACE = "openstack"
LIBVIRT = "edpm.openstack.org/service-libvirt"


def decided(cluster: World, kinds: Collection[str] = (), sleeping: Collection[str] = ()) -> list[Need]:
    """The needs of a world, as a pass finds them."""
    chosen = Chosen(services=managed(cluster, kinds), spared=paused(cluster, sleeping))
    wanted, _untouched = wanted_objects(cluster, chosen)
    going, _unjudged = leaving_objects(cluster, {one.ref for one in wanted}, chosen)
    return list(needs(cluster, services_in(cluster), going, chosen))


def deployed(cluster: World, name: str = "node-0") -> Body:
    """The status of a service object whose services are as the plan wants them."""
    services = next(found for ref, found in services_in(cluster).items() if ref.name == name)
    return {"deployedDigests": {one.name: one.digest for one in services}, "observedGeneration": 1}


def plain(*bodies: Body) -> World:
    return world(role(), node(), *bodies, images=IMAGES)


def ordered(cluster: World, **run: Any) -> list[Order]:
    """The orders of a pass, by an operator with these settings of runs."""
    runs = OperatorRuns(None, OperatorSettings(namespaces=(NAMESPACE,), run=run))  # type: ignore[arg-type]  # unused
    return [runs.order(batch, cluster) for batch in batches(decided(cluster))]
