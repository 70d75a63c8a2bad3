# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node's variables say about the deployment of any service on it."""

from __future__ import annotations

from collections.abc import Iterator

from ...module_utils._node import bundle as node
from .._dataplane.planned import ServicePlan

POLICY, KEEP, PULL = "edpm_validation", "edpm_keep_generations", "edpm_image_pull"


def policy(service: ServicePlan) -> str:
    """What an option that the image does not know means."""
    said = service.options.get(POLICY)
    # YAML takes a bare `off` for false.
    return "off" if said is False else str(said) if said in node.POLICIES else node.Validation.policy


def keep(service: ServicePlan) -> int:
    """How many generations stay."""
    said = service.options.get(KEEP)
    return said if isinstance(said, int) and _is_number(said) else node.Bundle.keep


def pull(service: ServicePlan) -> str:
    """When the image is pulled."""
    said = service.options.get(PULL)
    return service.registry.pull if service.registry else str(said) if said in node.PULLS else node.Image.pull


def faults(service: ServicePlan) -> Iterator[str]:
    """A sentence for each that says nothing sensible."""
    said = {name: service.options.get(name) for name in (POLICY, KEEP, PULL)}
    for name, words in ((POLICY, node.POLICIES), (PULL, node.PULLS)):
        if said[name] not in (None, *words) and not (name == POLICY and said[name] is False):
            yield f"{service.name}: {name} is {said[name]!r}; write {', '.join(words[:-1])} or {words[-1]}"
    if said[KEEP] is not None and not _is_number(said[KEEP]):
        yield f"{service.name}: {KEEP} is {said[KEEP]!r}; write a number from 1 on"


def _is_number(said: object) -> bool:
    return isinstance(said, int) and not isinstance(said, bool) and said >= 1
