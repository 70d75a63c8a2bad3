# SPDX-License-Identifier: GPL-3.0-or-later
"""DNS settings of a run's pods, in the form that a pod has them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

DNS_FIELD = "dnsConfig"


def pod_dns(given: object) -> dict[str, Any]:
    """A PodDNSConfig without what is empty, so that two which mean the same are equal."""
    if not isinstance(given, Mapping):
        return {}
    found = {name: list(given.get(name) or ()) for name in ("nameservers", "searches")}
    options = [{name: value for name, value in one.items() if value is not None} for one in given.get("options") or ()]
    return {name: value for name, value in {**found, "options": options}.items() if value}


def distinct(given: Iterable[object]) -> tuple[dict[str, Any], ...]:
    """Those that say something, each once, in their order."""
    found = {as_text(dns): dns for one in given if (dns := pod_dns(one))}
    return tuple(found.values())


def as_text(dns: Mapping[str, Any]) -> str:
    """One text for one setting."""
    return json.dumps(dns, sort_keys=True)
