# SPDX-License-Identifier: GPL-3.0-or-later
"""Reconciling at full size, counted at the server: the first pass, and one that finds nothing to do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ansible_collections.edpm.services.plugins.plugin_utils._control.look import WatchfulClient, look
from ansible_collections.edpm.services.plugins.plugin_utils._control.reconcile import one_pass, pass_over
from ansible_collections.edpm.services.plugins.plugin_utils._control.results import run_of
from ansible_collections.edpm.services.plugins.plugin_utils._control.status import (
    services_in,
    status_over,
    write_status,
)
from ansible_collections.edpm.services.plugins.plugin_utils._control.wanted import Chosen
from ansible_collections.edpm.services.plugins.plugin_utils._kube.client import PAGE
from ansible_collections.edpm.services.plugins.plugin_utils._kube.connection import Connection, Settings
from edpm_lab.access import Access
from edpm_lab.api_server import api_server
from edpm_lab.labs import Lab

from .data_plane import NAMESPACE, objects
from .figures import Figure, timed
from .read_side import CRDS, SIZE, create

READS = ("GET", "LIST")
#: Lists of objects: Nodes, and one service object of each; and what a pass asks beside its pages.
LISTS, BESIDE = 2, 60
RUN = run_of({"run": "bench", "started": "", "ended": ""})


def reconciling(lab: Lab) -> Iterator[Figure]:
    """The first pass over all nodes, the first status of all, and a pass with status that changes nothing."""
    with api_server(lab, "bench-control") as server:
        install(server)
        create(server, objects(SIZE))
        with Connection(Settings(kubeconfig=str(server.kubeconfig))) as connection:
            client = WatchfulClient(connection)
            first = timed(lambda: one_pass(client, [NAMESPACE], Chosen()))
            status = timed(lambda: write_status(client, [NAMESPACE], [], RUN, Chosen()))
            before = asked(server)
            nothing = timed(lambda: _whole_pass(client))
            after = asked(server)
    reads = sum(after[verb] - before.get(verb, 0) for verb in after if verb in READS)
    writes = sum(after[verb] - before.get(verb, 0) for verb in after if verb not in READS)
    pages = LISTS * SIZE.nodes / PAGE + BESIDE
    yield Figure("control: first reconcile of 10,000 Nodes", first, "10 ms for a Node", SIZE.nodes / 100)
    yield Figure("control: first status of 10,000 Nodes", status, "10 ms for a Node", SIZE.nodes / 100)
    yield Figure("control: a pass that changes nothing", nothing, "the first one", first, 0.5)
    yield Figure("control: reads of that pass, at the server", reads, "its pages, and 60", pages, 1, "requests")
    yield Figure("control: writes of that pass, at the server", writes, "one", 1, 0, "requests")


def install(server: Access) -> None:
    """The definitions as they are, with their status."""
    server.kubectl("create", "namespace", NAMESPACE)
    server.kubectl("create", "-f", str(CRDS))
    server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s", timeout=90)


def asked(server: Access) -> Mapping[str, int]:
    """Requests for the kinds of a data plane, by verb, as the API server counts them."""
    text = server.kubectl("get", "--raw", "/metrics", timeout=60).stdout
    found: dict[str, int] = {}
    for labels, value in re.findall(r"^apiserver_request_total\{(.*)\} (\S+)$", text, re.MULTILINE):
        told = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if told["group"].endswith("openstack.org") or told["resource"] in ("secrets", "configmaps"):
            found[told["verb"]] = found.get(told["verb"], 0) + int(float(value))
    return found


def _whole_pass(client: WatchfulClient) -> None:
    """What the operator does of its own when nothing has changed."""
    world = look(client, [NAMESPACE])
    done = pass_over(client, world, Chosen())
    if any(one.changed for one in done.outcomes):
        raise AssertionError(f"something has changed: {done.outcomes[0]}")
    status_over(client, world, [], RUN, chosen=Chosen(), services=services_in(world))
