# SPDX-License-Identifier: GPL-3.0-or-later
"""Two pages for the cluster: whether the operator is alive, and its figures."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from .metrics import Metrics


class _BothFamilies(ThreadingHTTPServer):
    """Answers over IPv6 and IPv4: a kubelet asks by the family that comes first in its cluster."""

    address_family = socket.AF_INET6

    def server_bind(self) -> None:
        """Take IPv4 as well, whatever the node's default is."""
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()


def serve(port: int, metrics: Metrics, alive: Callable[[], str]) -> ThreadingHTTPServer:
    """Begin to answer; `alive` says what is wrong, nothing where all is well."""

    class Pages(BaseHTTPRequestHandler):
        """Answers of this operator."""

        def do_GET(self) -> None:
            """One page."""
            if self.path == "/healthz":
                wrong = alive()
                self._answer(HTTPStatus.SERVICE_UNAVAILABLE if wrong else HTTPStatus.OK, wrong or "ok")
            elif self.path == "/metrics":
                self._answer(HTTPStatus.OK, metrics.text(), "text/plain; version=0.0.4; charset=utf-8")
            else:
                self._answer(HTTPStatus.NOT_FOUND, "there are /healthz and /metrics")

        def log_message(self, format: str, *args: object) -> None:
            """A probe is no news."""

        def _answer(self, status: HTTPStatus, text: str, kind: str = "text/plain; charset=utf-8") -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    listening = _BothFamilies if socket.has_dualstack_ipv6() else ThreadingHTTPServer
    server = listening(("", port), Pages)
    threading.Thread(target=server.serve_forever, name="edpm-pages", daemon=True).start()
    return server
