# SPDX-License-Identifier: GPL-3.0-or-later
"""The API server with its etcd alone: a real Kubernetes API in seconds, without root, several at once.

Most tests need the API and nobody who acts on it. Everything listens on the loopback address, speaks
TLS, and starts with empty data.
"""

from __future__ import annotations

import http.client
import json
import re
import shutil
import ssl
import time
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from .access import Access, OwnAccess, given_cluster
from .binaries import API, binaries
from .control_plane import ENVIRONMENT, ControlPlane, last_lines
from .errors import LabError
from .labs import Lab
from .ports import LOOPBACK, hold, hold_any
from .progress import say

HOST = LOOPBACK

#: Seconds until a server that does not get ready is given up; it takes five on an idle machine.
READY_WITHIN = 90.0


@dataclass(frozen=True)
class ApiServer(OwnAccess):
    """An API server of a lab; as a context manager it stops at the end, else it ends with its lab."""

    lab: Lab
    name: str
    port: int
    etcd_port: int

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def logs(self) -> dict[str, Path]:
        """What the processes print, by process."""
        return {self._server: self.folder / "kube-apiserver.log", self._etcd: self.folder / "etcd.log"}

    def stop(self) -> None:
        """End the API server and its etcd."""
        self.lab.end(self._server)
        self.lab.end(self._etcd)

    def kill(self) -> None:
        """End the API server the hard way and leave its etcd alone: watches break, nothing is said to clients."""
        self.lab.end(self._server, at_once=True)

    def start(self) -> None:
        """Start what does not run, at the same address and with the same data, and wait until it is ready."""
        if not self.lab.runs(self._etcd):
            self.lab.start(self._etcd, self._etcd_command(), log=self.logs[self._etcd], env=ENVIRONMENT)
        if not self.lab.runs(self._server):
            log = self.logs[self._server]
            self.lab.start(self._server, self._server_command(), log=log, env=ENVIRONMENT)
        self._wait()

    def is_ready(self) -> bool:
        """Whether the API server, known by its certificate, is ready and has made the first namespace."""
        try:
            context = ssl.create_default_context(cafile=str(self.authority.certificate))
            context.load_cert_chain(self.authority.folder / "admin.crt", self.authority.folder / "admin.key")
            connection = http.client.HTTPSConnection(HOST, self.port, timeout=5, context=context)
            with closing(connection):
                return all(_is_there(connection, path) for path in ("/readyz", "/api/v1/namespaces/default"))
        except (OSError, http.client.HTTPException):
            return False

    @property
    def _server(self) -> str:
        return f"{self.name}-apiserver"

    @property
    def _etcd(self) -> str:
        return f"{self.name}-etcd"

    def _wait(self) -> None:
        limit = time.monotonic() + READY_WITHIN
        while not self.is_ready():
            for what, log in self.logs.items():
                if not self.lab.runs(what):
                    raise LabError(f"{what} ended before it was ready: {last_lines(log)}")
            if time.monotonic() > limit:
                log = self.logs[self._server]
                raise LabError(f"{self._server} was not ready within {READY_WITHIN:.0f} s: {last_lines(log)}")
            time.sleep(0.1)

    @property
    def _plane(self) -> ControlPlane:
        return ControlPlane(self.folder, HOST, self.port, self.etcd_port)

    def _etcd_command(self) -> list[str]:
        return self._plane.etcd_command(binaries(*API.names)["etcd"], self.folder / "etcd")

    def _server_command(self) -> list[str]:
        program = binaries(*API.names)["kube-apiserver"]
        # Nobody is there to call the service of the API itself, or to make the accounts that the plugin asks for.
        alone = ["--endpoint-reconciler-type=none", "--disable-admission-plugins=ServiceAccount"]
        return self._plane.server_command(program, [f"--bind-address={HOST}", *alone])


def api_server(lab: Lab, name: str = "api", port: int | None = None) -> ApiServer:
    """Start an API server with empty data in `lab`; `port` is any free one unless it is given.

    The start is tried again once: a port that was free can be taken before the server has it.
    """
    if (running := found_api_server(lab, name)) is not None:
        raise LabError(f"the lab {lab.name} already runs an API server {name} at {running.url}; stop it first")
    server = _prepared(lab, name, port)
    try:
        return _started(server)
    except LabError as error:
        say(f"{error}; trying once more")
    return _started(_prepared(lab, name, port))


def found_api_server(lab: Lab, name: str = "api") -> ApiServer | None:
    """The API server `name` of a lab, if one runs: for a later process than the one that started it."""
    try:
        ports = json.loads((_folder(lab, name) / "ports.json").read_text())
    except FileNotFoundError:
        return None
    server = _at(lab, name, ports["server"], ports["etcd"])
    return server if lab.runs(server._server) else None


def access(lab: Lab, name: str = "api") -> Access:
    """The user's own cluster where LAB_KUBECONFIG names one, else a new API server in `lab`."""
    return given_cluster(lab.folder / "given") or api_server(lab, name)


def _prepared(lab: Lab, name: str, port: int | None) -> ApiServer:
    """An API server that only has to be started: ports, certificates, a folder with nothing else in it."""
    server = _at(lab, name, *_ports(port))
    shutil.rmtree(server.folder, ignore_errors=True)
    server.folder.mkdir(parents=True, mode=0o700)
    (server.folder / "ports.json").write_text(json.dumps({"server": server.port, "etcd": server.etcd_port}))
    server._plane.create_certificates()
    return server


def _started(server: ApiServer) -> ApiServer:
    try:
        server.start()
    except BaseException:
        server.kill()
        server.stop()
        raise
    return server


def _folder(lab: Lab, name: str) -> Path:
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,30}", name):
        raise LabError(f"{name!r} cannot name an API server; use up to 31 small letters, digits and dashes")
    return lab.folder / "api-servers" / name


def _at(lab: Lab, name: str, port: int, etcd_port: int) -> ApiServer:
    plane = ControlPlane(_folder(lab, name), HOST, port, etcd_port)
    return ApiServer(plane.kubeconfig, plane.url, plane.folder, plane.authority, lab, name, port, etcd_port)


def _is_there(connection: http.client.HTTPSConnection, path: str) -> bool:
    connection.request("GET", path)
    answer = connection.getresponse()
    answer.read()
    return answer.status == http.client.OK


def _ports(chosen: int | None) -> tuple[int, int]:
    """A port for the server and one for its etcd, both free just now and not the same."""
    with ExitStack() as held:
        return hold(held, chosen) if chosen else hold_any(held), hold_any(held)
