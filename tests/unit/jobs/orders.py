# SPDX-License-Identifier: GPL-3.0-or-later
"""Orders for the tests: small ones, with what a test asks for in place of the default."""

from __future__ import annotations

from typing import Any

from ansible_collections.edpm.services.plugins.plugin_utils._jobs.order import Order


def order(**fields: Any) -> Order:
    usual: dict[str, Any] = {"namespace": "openstack", "image": "example.com/ee:1", "playbook": "edpm.services.deploy"}
    return Order(**usual | fields)


def names(count: int) -> tuple[str, ...]:
    return tuple(f"edpm-compute-{number}" for number in range(count))
