# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates for nodes, as a Secret of cert-manager has them."""

from __future__ import annotations

import hashlib
import ssl
from pathlib import Path

from edpm_lab.pki import Authority, create_authority

_PORT = 16514


def authority(folder: Path) -> Authority:
    """A new CA."""
    return create_authority(folder / "ca", "migration")


def secret(ca: Authority, name: str, address: str) -> dict[str, bytes]:
    """The keys of a Secret with a new certificate for a node."""
    made = ca.server(name, [name, address])
    return {
        "tls.crt": made.certificate.read_bytes(),
        "tls.key": made.key.read_bytes(),
        "ca.crt": ca.certificate.read_bytes(),
    }


def shown_by(address: str) -> str:
    """The fingerprint of the certificate that a node's libvirt shows."""
    return fingerprint(ssl.get_server_certificate((address, _PORT), timeout=10).encode())


def fingerprint(pem: bytes) -> str:
    """The fingerprint of a certificate."""
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem.decode())).hexdigest()
