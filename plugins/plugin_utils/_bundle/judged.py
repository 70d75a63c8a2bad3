# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan that knows what is wrong with the files too."""

from __future__ import annotations

from dataclasses import replace

from .._dataplane.planned import NodePlan, Plan, ServicePlan
from .bundle import bundle


def judge(plan: Plan) -> Plan:
    """The same plan, with the faults of a service's files among its errors: such a service must not be deployed."""
    return replace(plan, nodes=tuple(_node(node) for node in plan.nodes))


def _node(node: NodePlan) -> NodePlan:
    services = tuple(_service(service) for service in node.services)
    return node if services == node.services else replace(node, services=services)


def _service(service: ServicePlan) -> ServicePlan:
    errors = tuple(dict.fromkeys((*service.errors, *bundle(service).errors)))
    return service if errors == service.errors else replace(service, errors=errors)
