# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Changes of a data plane as events for ansible-rulebook.

An event tells of one object: C(what) happened (C(listed) when it was there from the beginning, C(added), C(modified) or
C(deleted)), its C(apiVersion), C(kind), C(namespace), C(name) and C(annotations). Contents are no part of it. A status
that this collection writes itself is no event.

Arguments:
    namespaces: names of the namespaces to watch; all of them where none is named
    kinds:      kinds to tell of, for example OpenStackDataPlaneNode; all kinds of a data plane where none is named
    secrets:    names of Secrets to tell of; none where none is named
    config_maps: names of ConfigMaps to tell of; none where none is named

The cluster is the one of the pod's own account, else that of KUBECONFIG. The account needs the verbs list and watch on
the kinds. Python needs the packages kopf and kubernetes.

Example:
    - edpm.services.dataplane:
        namespaces:
          - openstack
        secrets:
          - nova-cell1-compute-config

"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

ROOM = "ansible_collections.edpm.services.plugins.plugin_utils"
ARGUMENTS = frozenset(("namespaces", "kinds", "secrets", "config_maps"))


async def main(queue: asyncio.Queue[Any], args: Mapping[str, Any]) -> None:
    """Put an event into the queue for every change, until somebody cancels it."""
    if unknown := sorted(set(args) - ARGUMENTS):
        raise ValueError(f"edpm.services.dataplane has no argument {', '.join(unknown)}; it has {_listed(ARGUMENTS)}.")
    _find_collection()
    watching, live = import_module(f"{ROOM}._watch.watch"), import_module(f"{ROOM}._kube.client")
    connecting = import_module(f"{ROOM}._kube.connection")
    stores = {"Secret": set(args.get("secrets") or ()), "ConfigMap": set(args.get("config_maps") or ())}
    chosen = set(args.get("kinds") or ())

    def wanted(kind: str) -> bool:
        return bool(stores[kind]) if kind in stores else not chosen or kind in chosen

    def counts(kind: str, namespace: str, name: str, labels: Mapping[str, str]) -> bool:
        del namespace, labels
        return kind not in stores or name in stores[kind]

    with connecting.Connection(connecting.Settings()) as connection:
        kinds = [one for one in watching.KINDS if wanted(one[1])]
        kinds = await asyncio.to_thread(watching.served, live.Client(connection), kinds)
    if not kinds:
        raise ValueError(f"The cluster serves none of the kinds {_listed(chosen) or 'of a data plane'}; install them.")
    # ansible-rulebook's queue holds one event, and the watch does not wait for rules: what comes meanwhile waits here.
    heard: asyncio.Queue[Any] = asyncio.Queue()
    watch = watching.watch(kinds, args.get("namespaces") or (), heard.put_nowait, counts=counts)
    tasks = [asyncio.ensure_future(watch), asyncio.ensure_future(_forward(heard, queue))]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


async def _forward(heard: asyncio.Queue[Any], queue: asyncio.Queue[Any]) -> None:
    while True:
        await queue.put((await heard.get()).data())


def _find_collection() -> None:
    """Let Python find this collection where ansible-rulebook has found this file."""
    with suppress(ImportError):
        import_module(ROOM)
        return
    root = Path(__file__).resolve().parents[7]
    sys.path.append(str(root))


def _listed(names: Any) -> str:
    return ", ".join(sorted(names))


if __name__ == "__main__":

    class Printing(asyncio.Queue[Any]):
        """Shows what it gets."""

        def put_nowait(self, item: Any) -> None:
            """One event."""
            print(item, flush=True)

    with suppress(KeyboardInterrupt):
        asyncio.run(main(Printing(), {"namespaces": sys.argv[1:]}))
