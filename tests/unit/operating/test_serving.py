# SPDX-License-Identifier: GPL-3.0-or-later
"""The operator's pages, as a kubelet and a Prometheus ask for them."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import ThreadingHTTPServer

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._operator.metrics import Metrics
from ansible_collections.edpm.services.plugins.plugin_utils._operator.serving import serve


@contextmanager
def pages(alive: Callable[[], str] = str) -> Iterator[ThreadingHTTPServer]:
    """A server that answers."""
    server = serve(0, Metrics(), alive)
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def asked(host: str, server: ThreadingHTTPServer, path: str = "/healthz") -> tuple[int, str]:
    connection = HTTPConnection(host, server.server_port, timeout=5)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def has_ipv6() -> bool:
    """Whether this machine has the loopback address of IPv6."""
    try:
        with socket.socket(socket.AF_INET6) as found:
            found.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        pytest.param("::1", marks=pytest.mark.skipif(not has_ipv6(), reason="this machine has no ::1")),
    ],
)
def test_a_probe_is_answered_by_whichever_family_it_comes(host: str) -> None:
    with pages() as server:
        assert asked(host, server) == (200, "ok")
    with pages(lambda: "no pass has ended for long") as server:
        assert asked(host, server) == (503, "no pass has ended for long")


def test_a_machine_without_both_families_is_served_over_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    with pages() as server:
        assert server.address_family == socket.AF_INET
        assert asked("127.0.0.1", server) == (200, "ok")
        assert asked("127.0.0.1", server, "/nowhere")[0] == 404
