# SPDX-License-Identifier: GPL-3.0-or-later
"""A way into a Kubernetes API server as its administrator, whoever runs that server.

Tests take an `Access` and do not ask whether the server behind it is the lab's API server, the lab's
whole cluster, or a cluster of the user's own.
"""

from __future__ import annotations

import base64
import functools
import http.client
import json
import os
import ssl
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import yaml

from . import cache, pki
from .binaries import API, binaries
from .command import Result, run
from .errors import LabError

#: The variable in which a user hands a cluster of theirs to the lab.
GIVEN = "LAB_KUBECONFIG"


@dataclass(frozen=True)
class Access(ABC):
    """An API server: the administrator's kubeconfig, its address, a folder for files about it."""

    kubeconfig: Path
    url: str
    folder: Path

    def kubectl(self, *args: str | Path, stdin: str | None = None, check: bool = True, timeout: float = 60) -> Result:
        """Run kubectl as the cluster's administrator; with a `--kubeconfig` among `args`, as somebody else."""
        return run([self._kubectl(), *args], stdin=stdin, check=check, timeout=timeout, env=self.environment())

    @abstractmethod
    def ask(self, method: str, path: str, body: Any = None, accept: str = "application/json") -> tuple[int, str]:
        """One request as the cluster's administrator: the status and the text of the answer."""

    def environment(self) -> dict[str, str]:
        """What a program that talks to this server as its administrator needs in its environment."""
        return {
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": str(self.folder / "kubectl"),
            "KUBERC": "off",
            "NO_PROXY": ",".join(filter(None, [os.environ.get("NO_PROXY"), urlsplit(self.url).hostname])),
        }

    @abstractmethod
    def client_certificate(self, user: str, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig for a user that has no rights except those that RBAC gives it."""

    def _kubectl(self) -> Path:
        return binaries("kubectl")["kubectl"]

    def _client_name(self, user: str, groups: Sequence[str]) -> str:
        """A file name for a user; users may be called `system:serviceaccount:one:two`."""
        (self.folder / "clients").mkdir(exist_ok=True, mode=0o700)
        return f"{quote(user, safe='')}-{cache.digest({'groups': json.dumps(sorted(groups))})[:6]}"


@dataclass(frozen=True)
class OwnAccess(Access):
    """A server of the lab's own, whose authority can issue certificates."""

    authority: pki.Authority

    def _kubectl(self) -> Path:
        """The one that came with the server, not an older one that happens to be on PATH."""
        return binaries(*API.names)["kubectl"]

    def ask(self, method: str, path: str, body: Any = None, accept: str = "application/json") -> tuple[int, str]:
        """One request over a connection of its own: the server may just have been started again."""
        where = urlsplit(self.url)
        connection = http.client.HTTPSConnection(
            where.hostname or "", where.port, timeout=60, context=_administrator(*self._trusted())
        )
        with closing(connection):
            headers = {"Accept": accept, "Content-Type": "application/json"}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def _trusted(self) -> tuple[Path, int]:
        """The folder of the authority, and since when it is what it is: a server of the same name gets a new one."""
        return self.authority.folder, self.authority.certificate.stat().st_mtime_ns

    def client_certificate(self, user: str, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig for a user that has no rights except those that RBAC gives it."""
        name = self._client_name(user, groups)
        identity = self.authority.client(name, user, groups)
        return pki.write_kubeconfig(self.folder / "clients" / f"{name}.kubeconfig", self.url, self.authority, identity)


@dataclass(frozen=True)
class GivenCluster(Access):
    """A cluster that the user handed to the lab: it is used, and neither started nor stopped."""

    def ask(self, method: str, path: str, body: Any = None, accept: str = "application/json") -> tuple[int, str]:
        """One request by the kubernetes package, which knows every way to log in."""
        client = import_module("kubernetes.config").new_client_from_config(str(self.kubeconfig))
        with closing(client):
            headers = {"Accept": accept, "Content-Type": "application/json"}
            settings = client.configuration.auth_settings().values()
            headers |= {one["key"]: one["value"] for one in settings if one["value"]}
            answer = client.rest_client.pool_manager.request(
                method,
                self.url + path,
                body=None if body is None else json.dumps(body),
                headers=headers,
                timeout=60,
                retries=False,
            )
            return int(answer.status), answer.data.decode()

    def client_certificate(self, user: str, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig for a user, with a certificate that the cluster itself signs."""
        name = self._client_name(user, groups)
        request, key = pki.create_request(self.folder / "clients", name, user, groups)
        certificate = self._signed(f"edpm-lab-{os.getpid()}-{cache.digest({'name': name})}", request)
        cluster = _clusters(self.kubeconfig.read_text())[0]
        authority = base64.b64decode(cluster.get("certificate-authority-data", ""))
        path = self.folder / "clients" / f"{name}.kubeconfig"
        pki.write_private(path, pki.kubeconfig(self.url, authority, certificate, key.read_bytes()).encode())
        return path

    def _signed(self, name: str, request: bytes) -> bytes:
        spec = {
            "request": base64.b64encode(request).decode(),
            "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": ["client auth"],
        }
        kind = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
        self.kubectl("create", "-f", "-", stdin=json.dumps({**kind, "metadata": {"name": name}, "spec": spec}))
        try:
            self.kubectl("certificate", "approve", name)
            self.kubectl("wait", f"csr/{name}", "--for=jsonpath={.status.certificate}", "--timeout=30s")
            signed = self.kubectl("get", "csr", name, "-o", "jsonpath={.status.certificate}").stdout
        finally:
            self.kubectl("delete", "csr", name, "--ignore-not-found", check=False)
        return base64.b64decode(signed)


def given_cluster(folder: Path) -> GivenCluster | None:
    """The cluster that LAB_KUBECONFIG names, if it names one; `folder` takes files about it."""
    chosen = os.environ.get(GIVEN)
    if not chosen:
        return None
    if not Path(chosen).is_file():
        raise LabError(f"{GIVEN} names {chosen}, which is no file; let it name a kubeconfig")
    folder.mkdir(exist_ok=True, mode=0o700)
    kubectl = binaries("kubectl")["kubectl"]
    view = ["config", "view", "--raw", "--flatten", "--minify", "--kubeconfig", chosen]
    text = run([kubectl, *view], env={"KUBERC": "off"}).stdout
    clusters = _clusters(text)
    if not clusters:
        raise LabError(f"{GIVEN} names {chosen}, whose current context has no cluster")
    pki.write_private(folder / "admin.kubeconfig", text.encode())
    return GivenCluster(folder / "admin.kubeconfig", str(clusters[0]["server"]), folder)


@functools.cache
def _administrator(folder: Path, _since: int) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    context.load_cert_chain(folder / "admin.crt", folder / "admin.key")
    return context


def _clusters(kubeconfig: str) -> list[dict[str, Any]]:
    """The cluster entries of a kubeconfig; one that was minified has one."""
    document = yaml.safe_load(kubeconfig) or {}
    return [entry["cluster"] for entry in document.get("clusters") or []]
