# SPDX-License-Identifier: GPL-3.0-or-later
"""Thousands of nodes: what changes is written once, what does not costs no request, and a killed run is finished."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._control.applying import at_once
from ansible_collections.edpm.services.plugins.plugin_utils._control.conditions import Run
from ansible_collections.edpm.services.plugins.plugin_utils._control.look import WatchfulClient
from ansible_collections.edpm.services.plugins.plugin_utils._control.reconcile import Pass, one_pass
from ansible_collections.edpm.services.plugins.plugin_utils._control.status import Reported, write_status
from ansible_collections.edpm.services.plugins.plugin_utils._control.wanted import Chosen
from ansible_collections.edpm.services.plugins.plugin_utils._kube.client import PAGE, Client
from ansible_collections.edpm.services.plugins.plugin_utils._kube.connection import Connection, Response, Settings

from .conftest import Body, Site, data_plane, finalized, node
from .operating import Operator, Pods, prepare

MANY = 5000
#: Processor seconds of this process for one pass over all of them. Wall time on a shared machine says little.
BOUND = 150.0
#: Seconds for the operator to deal with all of them.
PATIENCE = 900.0
ONE_PASS = """
import sys
from ansible_collections.edpm.services.plugins.plugin_utils._control.reconcile import reconcile
from ansible_collections.edpm.services.plugins.plugin_utils._control.wanted import Chosen
from ansible_collections.edpm.services.plugins.plugin_utils._kube.connection import Settings
reconcile(Settings(kubeconfig=sys.argv[1]), [sys.argv[2]], Chosen(), check=False)
"""


class Counting:
    """A connection that counts what is asked of it, by method."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.server = connection.server
        self.asked: Counter[str] = Counter()

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        *,
        body: bytes | None = None,
        content_type: str = "application/json",
    ) -> Response:
        self.asked[method] += 1
        return self.connection.request(method, path, query, body=body, content_type=content_type)


def counted_pass(site: Site) -> tuple[Pass, Counter[str], float]:
    with Connection(site.settings) as connection:
        transport = Counting(connection)
        begun, worked = time.monotonic(), time.process_time()
        done = one_pass(WatchfulClient(transport), [site.namespace], Chosen())
        worked = time.process_time() - worked
        print(f"{dict(transport.asked)} in {time.monotonic() - begun:.1f} s, {worked:.1f} s of them work", flush=True)
        return done, transport.asked, worked


def counted_status(site: Site) -> tuple[Reported, Counter[str]]:
    run = Run("test", "2026-11-01T08:00:00Z", "2026-11-01T08:00:00Z")
    with Connection(site.settings) as connection:
        transport = Counting(connection)
        return write_status(WatchfulClient(transport), [site.namespace], [], run, Chosen()), transport.asked


def load(site: Site, bodies: Iterable[Body]) -> None:
    """Many objects, quicker than kubectl makes them."""
    with Connection(Settings(kubeconfig=str(site.kube.kubeconfig))) as connection:
        client = Client(connection)
        nodes = client.resource("dataplane.openstack.org/v1beta1", "OpenStackDataPlaneNode")
        at_once(lambda body: client.create(nodes, site.here(body)), bodies)


def patiently(what: Callable[[], bool]) -> None:
    limit = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < limit, f"not within {PATIENCE:.0f} s"
        time.sleep(1)


def test_five_thousand_nodes_in_one_go(site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RELATED_IMAGE_NOVA_COMPUTE_IMAGE_URL_DEFAULT", "compute:1")
    site.create(*data_plane(0))
    load(site, (node(number) for number in range(MANY)))

    first, asked, seconds = counted_pass(site)
    told = Counter(one.result for one in first.outcomes)
    assert told == {"created": MANY, "written": MANY, "marked": MANY + 1}
    assert asked["PATCH"] == 4 * MANY + 1, "the object, its images, its inventory, its Node's mark"
    assert seconds < BOUND

    again, asked, seconds = counted_pass(site)
    assert (again.outcomes, again.unchanged) == ((), MANY)
    assert set(asked) == {"GET"}
    assert asked["GET"] <= 2 * (MANY // PAGE) + 40, "pages, kinds and the Secrets that all share"

    prepare(site)
    with Operator(site, tmp_path, {"lease_duration": 30}) as operator:
        patiently(lambda: operator.passes() >= 1)
        [job] = Pods(site).jobs().values()
        assert job["spec"]["completions"] == MANY // 50, "all of them in the shards of one Job"
        assert operator.figure('edpm_operator_writes_total{result="updated"}') == 0
        patiently(lambda: operator.passes() >= 2)
        before = operator.passes()
        site.patch("osdprole", "edpm", {"spec": {"networkAttachments": ["ctlplane"]}})
        patiently(lambda: operator.figure('edpm_operator_writes_total{result="updated"}') == MANY)
        patiently(lambda: operator.passes() >= before + 2)
        idle = operator.passes()
        time.sleep(5)
        assert operator.passes() - before <= 6, "thousands of events are a few passes"
        assert operator.passes() - idle <= 1, "its own writes do not keep it awake"
        assert len(Pods(site).jobs()) == 1
    objects = site.all("nec").values()
    assert all(one["spec"]["networkAttachments"] == ["ctlplane"] for one in objects)
    assert all(one["status"]["observedGeneration"] == one["metadata"]["generation"] for one in objects)


def test_a_reconciler_that_is_killed_half_way_is_finished_by_the_next(site: Site) -> None:
    site.create(*data_plane(0))
    load(site, (node(number) for number in range(300)))
    killed = subprocess.Popen([sys.executable, "-c", ONE_PASS, str(site.account), site.namespace])
    while killed.poll() is None and len(site.there("nec")) < 20:
        time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait(30) == -signal.SIGKILL, "it was to be cut short"
    left = len(site.there("nec"))
    assert 0 < left < 300
    done, _asked, _seconds = counted_pass(site)
    assert [one for one in done.outcomes if one.result == "failed"] == []
    objects = site.all("nec")
    assert len(objects) == 300
    assert all(finalized(one) and one["spec"]["inventoryConfigMapName"] for one in objects.values())
    assert len(site.there("configmap")) == 300
    assert counted_pass(site)[0].outcomes == ()


def test_a_status_that_is_known_costs_no_write(site: Site) -> None:
    site.create(*data_plane(0))
    load(site, (node(number) for number in range(100)))
    counted_pass(site)
    reported, asked = counted_status(site)
    assert len(reported.outcomes) == asked["PATCH"] == 200, "each object and its Node"
    reported, asked = counted_status(site)
    assert (reported.outcomes, reported.unchanged) == ((), 100)
    assert set(asked) == {"GET"}
