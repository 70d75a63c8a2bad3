# SPDX-License-Identifier: GPL-3.0-or-later
"""The same for a program: plain mappings and lists, in an order that does not change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._config.provenance import Option
from .explained import Explained
from .overview import Overview, PlannedNode, PlannedService
from .table import summary

Data = dict[str, Any]


def plan_data(seen: Overview) -> Data:
    """Names, states, images, digests and sentences; no file's content."""
    return {
        "nodes": [_node(node) for node in seen.nodes],
        "left_alone": [
            {"name": one.name, "namespace": one.namespace, "reason": one.sentence} for one in seen.left_alone
        ],
        "left_to_operator": [
            {"service": one.service, "role": str(one.role), "reason": one.sentence} for one in seen.left_to_operator
        ],
        "leaving": [
            {"object": str(one.service_object), "node": one.node, "reason": one.sentence} for one in seen.leaving
        ],
        "warnings": list(seen.warnings),
        "errors": list(seen.errors),
        "summary": summary(seen),
    }


def explained_data(found: Iterable[Explained]) -> list[Data]:
    """Options with their values and places, masked already."""
    return [
        {
            "node": one.service.node.name,
            "service": one.service.plan.name,
            "options": [option_data(option) for option in one.explanation.options],
            "blocked": list(one.service.reasons),
            "notes": list(one.explanation.notes),
        }
        for one in found
    ]


def option_data(option: Option) -> Data:
    """One option; `places` has the winner last."""
    return {
        "group": option.group,
        "name": option.name,
        "value": option.value,
        "values": list(option.values),
        "accumulates": option.accumulates,
        "unresolved": list(option.unresolved),
        "places": [
            {"file": one.file, "line": one.line, "value": one.value, "object": one.object, "field": one.field}
            for one in option.places
        ],
    }


def _node(node: PlannedNode) -> Data:
    plan = node.plan
    return {
        "name": plan.name,
        "namespace": plan.namespace,
        "role": plan.role,
        "cell": plan.cell,
        "dataplane": plan.dataplane,
        "ready": not node.reasons,
        "blocked": list(node.reasons),
        "notes": list(plan.notes),
        "services": [_service(service) for service in node.services],
    }


def _service(service: PlannedService) -> Data:
    plan, made = service.plan, service.bundle
    return {
        "name": plan.name,
        "service": plan.service,
        "instance": plan.instance,
        "cell": plan.cell,
        "image": made.image,
        "image_source": plan.image.source if plan.image else None,
        "state": service.state.value,
        "digest": made.digest,
        "hold": plan.hold,
        "blocked": list(service.reasons),
        "notes": list(made.notes),
        "left_out": [one.sentence for one in plan.left_out],
        "files": [
            {"path": file.path, "mode": f"{file.mode:04o}", "source": file.origin, "secret": file.secret}
            for file in made.files
        ],
    }
