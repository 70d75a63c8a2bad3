# SPDX-License-Identifier: GPL-3.0-or-later
"""One more number for a service on a node: of all that can change there without a restart."""

from __future__ import annotations

import hashlib
import json

from ...module_utils._node.record import settings
from .._dataplane.planned import ServicePlan
from .bundle import Bundle
from .parcel import parcel


def settings_digest(service: ServicePlan, made: Bundle) -> str:
    """SHA-256 over what the bundle's own digest leaves out; empty where there is nothing to deploy.

    That is its certificates and keys, ports, checks, folders and accounts. Whom a compute knows is no part of it: that
    depends on all other nodes.
    """
    wanted = parcel(service, made)
    if wanted is None:
        return ""
    live = [(one.path, one.mode, one.owner, one.group, _sha256(one.content)) for one in wanted.live]
    return _sha256(json.dumps([settings(wanted), live]).encode())


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
