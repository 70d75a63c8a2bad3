# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The call of the module service_facts: from its options to return values.

It has a file of its own, since it is what a node is asked most often, and all that it imports travels with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .call import Call
from .errors import NodeError
from .facts import facts, host_keys, public_contents


def service_facts(call: Call) -> dict[str, Any]:
    """Tell of all services of the node."""
    options = call.options
    try:
        node = call.node()
        named = {one.strip() for one in options["services"]} - {""}
        services = facts(node, ask=options["health_checks"], named=named)
        return {
            "changed": False,
            "services": services,
            "missing_images": node.podman.missing(_unproven(options["images"], services)),
            "ssh_host_keys": host_keys(node),
            "contents": public_contents(node, options["read"]),
        }
    except NodeError as error:
        return {"failed": True, "msg": str(error)}


def _unproven(images: Sequence[str], services: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Those that must be looked for: one that a service runs from is there."""
    used = {one["image"] for one in services.values() if one["unit"]["active"] == "active"}
    return [image for image in images if image not in used]
