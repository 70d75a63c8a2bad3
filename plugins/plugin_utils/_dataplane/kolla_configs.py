# SPDX-License-Identifier: GPL-3.0-or-later
"""A kolla config.json of a user's or partner's own, in place of the one that a definition makes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .definitions import ServiceDefinition
from .model import Reference, Store
from .options import KOLLA_CONFIG
from .secrets import Use
from .values import Value


@dataclass(frozen=True, slots=True)
class Given:
    """The text, the key that holds it, and what stands against it or is worth knowing."""

    text: bytes | None = field(default=None, repr=False)
    key: str = ""
    notes: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()


NO_KOLLA_CONFIG = Given()


def kolla_config(
    definition: ServiceDefinition, options: Mapping[str, Value], uses: Iterable[Use], stores: Mapping[Reference, Store]
) -> Given:
    """What the node's variable asks for, else what the definition does; the first of the sources that has it counts."""
    variable = definition.variable_prefix + KOLLA_CONFIG
    asked = options.get(variable, definition.kolla_config)
    if not asked:
        return NO_KOLLA_CONFIG
    says = variable if variable in options else "its definition"
    if not isinstance(asked, str):
        return Given(errors=(f"{definition.name}: {variable} names no key of a Secret or ConfigMap; correct it.",))
    for use in uses:
        store = next((stores[ref] for ref in use.refs if ref in stores), None)
        if store is not None and asked in store.data:
            where = f"{store.ref}, key {asked}"
            if not _is_kolla_config(store.data[asked]):
                return Given(key=asked, errors=(f'{where}: is no kolla config, JSON with a "command"; correct it.',))
            return Given(store.data[asked], asked, (f"{definition.name} is started by {where}.",))
    return Given(
        key=asked,
        blocked=(
            f"{definition.name}: {says} names the kolla config {asked}, but no Secret or ConfigMap that the service "
            "uses has such a key; add it to one that its OpenStackDataPlaneService lists.",
        ),
    )


def _is_kolla_config(content: bytes) -> bool:
    try:
        read = json.loads(content)
    except (ValueError, RecursionError):
        return False
    return isinstance(read, dict) and isinstance(read.get("command"), str) and bool(read["command"].strip())
