# SPDX-License-Identifier: GPL-3.0-or-later
"""One way of reading a data plane, measured in a process of its own: nothing is kept from before, and the memory is
its alone. Imports come first and are not measured.

Run as `python reader.py <way> <inventory file or manifests>`; it prints what it measured as JSON.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import kubernetes.client
import kubernetes.config  # noqa: F401 - so that its import is not measured
import yaml
from ansible.inventory.data import InventoryData
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader, inventory_loader

init_plugin_loader()  # from here on collections are imported in Ansible's own way, without which there is no plugin

from ansible_collections.edpm.services.plugins.plugin_utils._dataplane import plan as resolving  # noqa: E402
from ansible_collections.edpm.services.plugins.plugin_utils._kube import live  # noqa: E402
from ansible_collections.edpm.services.plugins.plugin_utils._kube.client import PAGE, Client, Resource  # noqa: E402
from ansible_collections.edpm.services.plugins.plugin_utils._kube.connection import Connection, Settings  # noqa: E402

Result = dict[str, float]


def bare_pages(file: str) -> Result:
    """GET the pages that the plugin reads, one after the other over one connection, and json.loads each."""
    options = yaml.safe_load(Path(file).read_text())
    with Connection(Settings(kubeconfig=options["kubeconfig"])) as connection:
        client = Client(connection)
        kinds = [client.resource(*kind) for kind in (*live.NODE_KINDS, *live.OTHER_KINDS)]
        with measured() as found:
            sizes = [size for kind in kinds for size in _pages(connection, kind, options["namespaces"][0])]
    return found | {"bytes": sum(sizes), "pages": len(sizes)}


def bare_yaml(file: str) -> Result:
    """Parse every document with the C loader, and keep it."""
    content = Path(file).read_bytes()
    with measured() as found:
        kept = list(yaml.load_all(content, Loader=yaml.CSafeLoader))  # a safe loader
    return found | {"bytes": len(content), "objects": len(kept)}


def inventory(file: str) -> Result:
    """All that the inventory plugin does with one file: read, plan, make hosts, groups and variables.

    The plan is what `resolve` makes of the snapshot and what `judge` says of its files.
    """
    plugin = inventory_loader.get("edpm.services.dataplane")
    data, loader = InventoryData(), DataLoader()
    planning = ((resolving, "resolve"), (sys.modules[type(plugin).__module__], "judge"))
    with apart(planning) as plan, measured() as whole:
        plugin.parse(data, loader, file)
        data.reconcile_inventory()
    return {
        **whole,
        "plan cpu": plan["cpu"],
        "cpu without plan": whole["cpu"] - plan["cpu"],
        "wall without plan": whole["wall"] - plan["wall"],
        "hosts": len(data.hosts),
        "ready": len(data.groups["ready"].hosts),
    }


WAYS: Mapping[str, Callable[[str], Result]] = {way.__name__: way for way in (bare_pages, bare_yaml, inventory)}


@contextmanager
def measured() -> Iterator[Result]:
    """Seconds on the clock, seconds of CPU, and bytes by which the peak of the process's memory grew."""
    found: Result = {}
    before, clock, cpu = _peak(), time.monotonic(), time.process_time()
    yield found
    found |= {"wall": time.monotonic() - clock, "cpu": time.process_time() - cpu, "memory": _peak() - before}


@contextmanager
def apart(functions: Iterable[tuple[Any, str]]) -> Iterator[Counter[str]]:
    """What some functions, by module and name, take of all that happens meanwhile."""
    found: Counter[str] = Counter()
    with ExitStack() as patched:
        for module, name in functions:
            patched.enter_context(patch.object(module, name, _watched(getattr(module, name), found)))
        yield found


def _watched(function: Callable[..., Any], found: Counter[str]) -> Callable[..., Any]:
    def watched(*args: object) -> object:
        with measured() as one:
            answer = function(*args)
        found.update(one)
        return answer

    return watched


def _peak() -> int:
    """Of this program alone: what getrusage tells goes back to the process that started it."""
    found = re.search(r"^VmHWM:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


def _pages(connection: Connection, kind: Resource, namespace: str) -> Iterator[int]:
    query = {"limit": str(PAGE)}
    while True:
        body = connection.request("GET", kind.path(namespace=namespace), query).body
        following = json.loads(body)["metadata"].get("continue")
        yield len(body)
        if not following:
            return
        query["continue"] = following


if __name__ == "__main__":
    print(json.dumps(WAYS[sys.argv[1]](sys.argv[2])))
