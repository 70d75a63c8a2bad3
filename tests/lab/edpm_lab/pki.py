# SPDX-License-Identifier: GPL-3.0-or-later
"""A small PKI: the lab's servers talk TLS to each other and to tests as they do in a real cluster.

An authority is a folder with a CA in it, so that a later process can issue further certificates from
it. Keys are EC P-256 except for the service accounts' pair, which is RSA because every reader of
their tokens knows RS256. Private keys, and kubeconfigs with a key inside, are readable to their owner only.
"""

from __future__ import annotations

import base64
import datetime
import ipaddress
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID_FOR = datetime.timedelta(days=365)

#: A clock that is a little behind must not refuse a certificate that was made just now.
VALID_BEFORE = datetime.timedelta(minutes=10)

_USAGES = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]


@dataclass(frozen=True)
class Identity:
    """A certificate and its private key, as PEM files."""

    certificate: Path
    key: Path


@dataclass(frozen=True)
class Authority:
    """A CA in a folder of its own, with what it has issued beside it."""

    folder: Path

    @property
    def certificate(self) -> Path:
        """What others need to trust this authority."""
        return self.folder / "ca.crt"

    @property
    def _key(self) -> Path:
        return self.folder / "ca.key"

    def server(self, name: str, hosts: Sequence[str], *, user: str | None = None) -> Identity:
        """An identity for a server at `hosts`, names or addresses; it may act as a client, too."""
        return self._issue(name, _name(user or name, ()), _USAGES, hosts)

    def client(self, name: str, user: str, groups: Iterable[str] = ()) -> Identity:
        """An identity for a Kubernetes user in `groups`."""
        return self._issue(name, _name(user, groups), [ExtendedKeyUsageOID.CLIENT_AUTH], ())

    def _issue(
        self, name: str, subject: x509.Name, usages: Sequence[x509.ObjectIdentifier], hosts: Sequence[str]
    ) -> Identity:
        issuer = x509.load_pem_x509_certificate(self.certificate.read_bytes())
        signer = serialization.load_pem_private_key(self._key.read_bytes(), None)
        assert isinstance(signer, ec.EllipticCurvePrivateKey)
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _begin(subject, issuer.subject, key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        )
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), False)
        return _write(self.folder, name, key, builder.sign(signer, hashes.SHA256()))


def create_authority(folder: Path, name: str) -> Authority:
    """Make a new CA in `folder`."""
    folder.mkdir(parents=True, mode=0o700)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(name, ())
    builder = (
        _begin(subject, subject, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    _write(folder, "ca", key, builder.sign(key, hashes.SHA256()))
    return Authority(folder)


def create_key_pair(folder: Path, name: str) -> tuple[Path, Path]:
    """Make the RSA pair that signs and checks service accounts' tokens: `name`.key and `name`.pub."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private, public = folder / f"{name}.key", folder / f"{name}.pub"
    write_private(private, _private_pem(key))
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    public.write_bytes(key.public_key().public_bytes(serialization.Encoding.PEM, form))
    return private, public


def create_request(folder: Path, name: str, user: str, groups: Iterable[str]) -> tuple[bytes, Path]:
    """A signing request for another cluster's CA, and the file with its private key."""
    key = ec.generate_private_key(ec.SECP256R1())
    request = x509.CertificateSigningRequestBuilder().subject_name(_name(user, groups)).sign(key, hashes.SHA256())
    write_private(folder / f"{name}.key", _private_pem(key))
    return request.public_bytes(serialization.Encoding.PEM), folder / f"{name}.key"


def kubeconfig(url: str, authority: bytes, certificate: bytes, key: bytes) -> str:
    """The text of a kubeconfig that needs no other file; the arguments are PEM."""
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "lab", "cluster": {"server": url, "certificate-authority-data": _text(authority)}}],
            "users": [
                {"name": "lab", "user": {"client-certificate-data": _text(certificate), "client-key-data": _text(key)}}
            ],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "lab"}}],
            "current-context": "lab",
        },
        sort_keys=False,
    )


def write_kubeconfig(path: Path, url: str, authority: Authority, identity: Identity) -> Path:
    """A kubeconfig file for an identity that `authority` has issued."""
    pems = (authority.certificate, identity.certificate, identity.key)
    write_private(path, kubeconfig(url, *(pem.read_bytes() for pem in pems)).encode())
    return path


def write_private(path: Path, content: bytes) -> None:
    """Write a file that at no time anybody else can read."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)


def _begin(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - VALID_BEFORE)
        .not_valid_after(now + VALID_FOR)
    )


def _name(user: str, groups: Iterable[str]) -> x509.Name:
    """Kubernetes reads a certificate's organizations as groups and its common name as the user."""
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, user)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _write(folder: Path, name: str, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> Identity:
    identity = Identity(folder / f"{name}.crt", folder / f"{name}.key")
    write_private(identity.key, _private_pem(key))
    identity.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return identity


def _private_pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _text(pem: bytes) -> str:
    return base64.b64encode(pem).decode()
