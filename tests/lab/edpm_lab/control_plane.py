# SPDX-License-Identifier: GPL-3.0-or-later
"""What an API server alone and a whole cluster have in common: certificates and command lines.

Both keep a folder with the authority of the API server, another authority for etcd, and the
administrator's kubeconfig. No certificate for the API server opens the database behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import pki
from .ports import LOOPBACK

#: Services have addresses of this network; the first is the API server's own, for pods.
SERVICES = "10.96.0.0/16"
API_SERVICE = "10.96.0.1"

#: How the servers are started: memory is there, and a tenth of the processor time would go into collecting it.
ENVIRONMENT = {"GOGC": "400"}


@dataclass(frozen=True)
class ControlPlane:
    """The files of an API server and its etcd, and where both listen; etcd stays on the loopback address."""

    folder: Path
    address: str
    port: int
    etcd_port: int

    @property
    def url(self) -> str:
        """Where clients reach the API server."""
        return f"https://{self.address}:{self.port}"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.folder / "admin.kubeconfig"

    @property
    def authority(self) -> pki.Authority:
        """Who issues certificates for the API server and its clients."""
        return pki.Authority(self.folder / "pki")

    @property
    def _etcd_authority(self) -> pki.Authority:
        return pki.Authority(self.folder / "etcd-pki")

    def create_certificates(self) -> None:
        """Make both authorities, what the two servers need, and the administrator's kubeconfig."""
        etcd = pki.create_authority(self._etcd_authority.folder, "edpm lab etcd")
        etcd.server("server", ["localhost", LOOPBACK])
        etcd.client("client", "kube-apiserver")
        authority = pki.create_authority(self.authority.folder, "edpm lab")
        names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"]
        authority.server("server", list(dict.fromkeys(["localhost", LOOPBACK, self.address, API_SERVICE, *names])))
        pki.create_key_pair(authority.folder, "service-accounts")
        admin = authority.client("admin", "admin", ["system:masters"])
        pki.write_kubeconfig(self.kubeconfig, self.url, authority, admin)

    def etcd_command(self, program: Path, data: Path) -> list[str]:
        """A single member that trusts the disk no more than a test needs."""
        url, trusted = f"https://{LOOPBACK}:{self.etcd_port}", self._etcd_authority.folder
        # The peers' port is the kernel's choice: the member is alone and nobody calls it.
        peers = f"https://{LOOPBACK}:0"
        return [
            str(program),
            f"--data-dir={data}",
            "--unsafe-no-fsync",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            "--client-cert-auth",
            "--peer-client-cert-auth",
            *(
                f"--{prefix}{option}-file={trusted / file}"
                for prefix in ("", "peer-")
                for option, file in (("cert", "server.crt"), ("key", "server.key"), ("trusted-ca", "ca.crt"))
            ),
            "--log-level=warn",
        ]

    def server_command(self, program: Path, more: Sequence[str]) -> list[str]:
        """The API server with RBAC; `more` are the options in which the two sizes differ."""
        trusted, etcd = self.authority.folder, self._etcd_authority.folder
        return [
            str(program),
            f"--etcd-servers=https://{LOOPBACK}:{self.etcd_port}",
            f"--etcd-cafile={etcd / 'ca.crt'}",
            f"--etcd-certfile={etcd / 'client.crt'}",
            f"--etcd-keyfile={etcd / 'client.key'}",
            f"--secure-port={self.port}",
            f"--advertise-address={self.address}",
            f"--cert-dir={trusted}",
            f"--tls-cert-file={trusted / 'server.crt'}",
            f"--tls-private-key-file={trusted / 'server.key'}",
            f"--client-ca-file={trusted / 'ca.crt'}",
            "--authorization-mode=Node,RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-signing-key-file={trusted / 'service-accounts.key'}",
            f"--service-account-key-file={trusted / 'service-accounts.pub'}",
            f"--service-cluster-ip-range={SERVICES}",
            *more,
        ]


def last_lines(log: Path) -> str:
    """How a log ends, and where the rest of it is."""
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return f"{' / '.join(line.strip()[:300] for line in lines[-3:]) or 'it printed nothing'} (all of it is in {log})"
