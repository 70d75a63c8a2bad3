# SPDX-License-Identifier: GPL-3.0-or-later
"""From an action's options to an outcome: the one call of ee_job."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any

import yaml

from .._kube import snapshot
from .._kube.client import Client
from .._kube.connection import Connection, Settings
from .._kube.errors import KubernetesError
from .jobs import CONFIG_MAPS
from .manifests import INVENTORY_KEY
from .order import BadOrderError, Order
from .running import Outcome, Runs, Wishes
from .sources import Matching, hosts_in, resolved

#: What a person can do something about; their texts can be shown as they are.
REFUSALS = (KubernetesError, BadOrderError)


def carry_out(options: Mapping[str, Any], matching: Matching, say: Callable[[str], None], *, check: bool) -> Outcome:
    """Make the order, and carry it out; with `check` the server only judges it."""
    taken = snapshot.taken()
    plan = snapshot.plan() if taken is not None or snapshot.failure() else None
    found = resolved(options, taken, plan, os.environ, matching)
    if options.get("play") is not None:
        found["play"] = _text(options["play"])
    wishes = Wishes(options["engine"], options["rerun"], options["wait"], options["wait_timeout"])
    with Connection(Settings.from_options(options)) as connection:
        client = Client(connection, dry_run=check)
        if options["shard_size"] and not found["nodes"] and not options["limit"]:
            found["nodes"] = _hosts_of_inventories(client, found.get("inventory_config_maps", ()), options["namespace"])
        return Runs(client, say).carry_out(Order.from_options(options, **found), wishes)


def _hosts_of_inventories(client: Client, names: tuple[str, ...], namespace: str) -> tuple[str, ...]:
    """The hosts of the inventories that exist; that one does not is told later."""
    found: dict[str, None] = {}
    for name in names:
        body = client.get(CONFIG_MAPS, name, namespace)
        if body is not None:
            found |= dict.fromkeys(hosts_in(f"{namespace}/{name}", (body.get("data") or {}).get(INVENTORY_KEY, "")))
    return tuple(found)


def _text(play: object) -> str:
    if isinstance(play, str):
        return str(play)
    plain = json.loads(json.dumps(play))  # Ansible's values carry tags that YAML does not know
    return str(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=120))
