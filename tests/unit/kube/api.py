"""A few lines of HTTP that answer like an API server, for what a real one cannot be made to do on demand."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Seen:
    method: str
    path: str
    query: Mapping[str, str]
    headers: dict[str, list[str]]
    body: Any


@dataclass(frozen=True)
class Answer:
    status: int = 200
    body: object = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


class Api:
    """Answers from a queue per method and path; the last one stays. Status 0 hangs up."""

    def __init__(self) -> None:
        self.requests: list[Seen] = []
        self._answers: dict[tuple[str, str], deque[Answer]] = defaultdict(deque)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def answer(self, method: str, path: str, status: int = 200, body: object = None, **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._answers[method, path].append(Answer(status, {} if body is None else body, named))

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _next(self, seen: Seen) -> Answer:
        self.requests.append(seen)
        queue = self._answers[seen.method, seen.path]
        if not queue:
            return Answer(404, {"kind": "Status", "message": f"no {seen.path} here"})
        return queue.popleft() if len(queue) > 1 else queue[0]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                parts = urlsplit(self.path)
                sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers: dict[str, list[str]] = defaultdict(list)
                for name, value in self.headers.items():
                    headers[name.lower()].append(value)
                body = json.loads(sent) if sent else None
                answer = api._next(Seen(self.command, parts.path, dict(parse_qsl(parts.query)), headers, body))
                if answer.status == 0:
                    self.close_connection = True
                    return
                text = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_PATCH = do_DELETE = _serve  # noqa: N815 - the names that http.server calls

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler
