# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's PKI: what it issues is trusted, says who it is for, and keeps its keys to itself."""

from __future__ import annotations

import base64
import ipaddress
import stat
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from edpm_lab import pki


@pytest.fixture
def authority(tmp_path: Path) -> pki.Authority:
    return pki.create_authority(tmp_path / "pki", "a lab")


def certificate(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_a_servers_certificate_is_issued_by_its_authority(authority: pki.Authority) -> None:
    server = authority.server("server", ["localhost"])

    certificate(server.certificate).verify_directly_issued_by(certificate(authority.certificate))


def test_a_servers_certificate_is_not_issued_by_another_authority(authority: pki.Authority, tmp_path: Path) -> None:
    other = pki.create_authority(tmp_path / "other", "another lab")
    server = authority.server("server", ["localhost"])

    with pytest.raises(ValueError, match="issuer"):
        certificate(server.certificate).verify_directly_issued_by(certificate(other.certificate))


def test_hosts_are_names_or_addresses(authority: pki.Authority) -> None:
    server = authority.server("server", ["localhost", "127.0.0.1"])

    names = certificate(server.certificate).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert names.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address("127.0.0.1")]


def test_a_clients_certificate_names_the_user_and_all_groups(authority: pki.Authority) -> None:
    client = authority.client("jane", "jane@example.com", ["readers", "system:nodes"])

    subject = certificate(client.certificate).subject
    assert [part.value for part in subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == ["jane@example.com"]
    organizations = subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    assert [part.value for part in organizations] == ["readers", "system:nodes"]


def test_a_clients_certificate_is_no_servers(authority: pki.Authority) -> None:
    client = authority.client("jane", "jane")

    usages = certificate(client.certificate).extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usages) == [ExtendedKeyUsageOID.CLIENT_AUTH]


def test_an_authority_can_be_used_by_a_later_process(authority: pki.Authority) -> None:
    later = pki.Authority(authority.folder).client("late", "late")

    certificate(later.certificate).verify_directly_issued_by(certificate(authority.certificate))


def test_private_keys_are_readable_to_their_owner_only(authority: pki.Authority) -> None:
    authority.server("server", ["localhost"])
    pki.create_key_pair(authority.folder, "accounts")
    pki.create_request(authority.folder, "request", "jane", [])

    keys = list(authority.folder.glob("*.key"))
    assert {key.name for key in keys} == {"ca.key", "server.key", "accounts.key", "request.key"}
    assert {stat.S_IMODE(key.stat().st_mode) for key in keys} == {0o600}


def test_a_private_file_that_others_could_read_is_replaced_by_one_that_they_cannot(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.touch(0o644)

    pki.write_private(file, b"secret")

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_bytes() == b"secret"


def test_a_kubeconfig_needs_no_other_file(authority: pki.Authority, tmp_path: Path) -> None:
    jane = authority.client("jane", "jane")

    path = pki.write_kubeconfig(tmp_path / "jane.kubeconfig", "https://127.0.0.1:1", authority, jane)

    document = yaml.safe_load(path.read_text())
    cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
    assert document["current-context"] == document["contexts"][0]["name"]
    assert cluster["server"] == "https://127.0.0.1:1"
    assert base64.b64decode(cluster["certificate-authority-data"]) == authority.certificate.read_bytes()
    assert base64.b64decode(user["client-certificate-data"]) == jane.certificate.read_bytes()
    assert base64.b64decode(user["client-key-data"]) == jane.key.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
