# SPDX-License-Identifier: GPL-3.0-or-later
"""The API server with its etcd alone, with real requests: alone, beside another, lost, and orphaned."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from edpm_lab import access, labs, places
from edpm_lab.api import Api
from edpm_lab.api_server import HOST, ApiServer, api_server, found_api_server
from edpm_lab.errors import LabError

ORPHAN = """
import sys, time
from edpm_lab import labs
from edpm_lab.api_server import api_server

with labs.opened("orphan") as lab:
    api_server(lab)
    print("ready", flush=True)
    time.sleep(600)
"""


@pytest.fixture(scope="module")
def server(lab: labs.Lab) -> Iterator[ApiServer]:
    with api_server(lab, "first") as started:
        yield started


def within(seconds: float, condition: Callable[[], bool]) -> bool:
    limit = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > limit:
            return False
        time.sleep(0.1)
    return True


def status_of(connection: http.client.HTTPSConnection, path: str) -> int:
    connection.request("GET", path)
    return connection.getresponse().status


def test_two_at_once_know_nothing_of_each_other(lab: labs.Lab, server: ApiServer) -> None:
    with api_server(lab, "second") as second:
        server.kubectl("create", "namespace", "only-in-the-first")

        assert "only-in-the-first" in server.kubectl("get", "namespaces").stdout
        assert "only-in-the-first" not in second.kubectl("get", "namespaces").stdout
        assert server.port != second.port
        refused = second.kubectl(
            "get", "--raw", "/version", "--kubeconfig", server.kubeconfig, "-s", second.url, check=False
        )
        assert "certificate signed by unknown authority" in refused.stderr


def test_a_name_that_is_taken_is_refused_and_a_second_start_has_fresh_data(lab: labs.Lab) -> None:
    with api_server(lab, "again") as before:
        before.kubectl("create", "namespace", "old")
        with pytest.raises(LabError, match="already runs an API server again"):
            api_server(lab, "again")
        assert found_api_server(lab, "again") == before
    assert found_api_server(lab, "again") is None

    with api_server(lab, "again") as after:
        assert "old" not in after.kubectl("get", "namespaces").stdout


def test_a_user_that_nobody_knows_may_do_nothing(server: ApiServer) -> None:
    jane = server.client_certificate("jane", ["readers"])

    who = server.kubectl("auth", "whoami", "-o", "json", "--kubeconfig", jane)
    refused = server.kubectl("get", "secrets", "--kubeconfig", jane, check=False)

    assert json.loads(who.stdout)["status"]["userInfo"]["username"] == "jane"
    assert refused.returncode != 0
    assert 'User "jane" cannot list resource "secrets"' in refused.stderr


def test_a_group_gives_its_members_what_rbac_gives_the_group(server: ApiServer) -> None:
    server.kubectl("create", "clusterrole", "viewer", "--verb=list", "--resource=configmaps")
    server.kubectl("create", "clusterrolebinding", "viewers", "--clusterrole=viewer", "--group=viewers")

    john = server.client_certificate("john", ["viewers"])

    assert "kube-root-ca" not in server.kubectl("get", "configmaps", "--kubeconfig", john).stdout
    assert server.kubectl("get", "secrets", "--kubeconfig", john, check=False).returncode != 0


def test_who_has_no_certificate_is_anonymous(server: ApiServer) -> None:
    context = ssl.create_default_context(cafile=str(server.authority.certificate))
    connection = http.client.HTTPSConnection(HOST, server.port, timeout=10, context=context)

    assert status_of(connection, "/api/v1/secrets") == http.client.FORBIDDEN
    connection.close()


def test_the_server_is_known_by_its_certificate(server: ApiServer) -> None:
    stranger = ssl.create_default_context()
    with (
        socket.create_connection((HOST, server.port), timeout=10) as plain,
        pytest.raises(ssl.SSLCertVerificationError),
    ):
        stranger.wrap_socket(plain, server_hostname=HOST)


def test_a_certificate_for_the_api_server_does_not_open_its_database(server: ApiServer) -> None:
    context = ssl.create_default_context(cafile=str(server.folder / "etcd-pki" / "ca.crt"))
    context.load_cert_chain(server.authority.folder / "admin.crt", server.authority.folder / "admin.key")
    connection = http.client.HTTPSConnection(HOST, server.etcd_port, timeout=10, context=context)

    with pytest.raises((ssl.SSLError, ConnectionError)):
        status_of(connection, "/version")
    connection.close()


def test_a_port_that_is_taken_is_named(lab: labs.Lab) -> None:
    with socket.socket() as other:
        other.bind((HOST, 0))
        other.listen()
        taken = other.getsockname()[1]

        with pytest.raises(LabError, match=rf"port {taken} of {HOST} cannot be used \(Address already in use\)"):
            api_server(lab, "unlucky", port=taken)


@pytest.mark.parametrize(
    ("name", "port", "sentence"), [("refused", 99999, "no such port"), ("../api", None, "cannot name")]
)
def test_what_cannot_be_is_refused(lab: labs.Lab, name: str, port: int | None, sentence: str) -> None:
    with pytest.raises(LabError, match=sentence):
        api_server(lab, name, port=port)


def test_a_server_that_dies_early_shows_its_last_words(
    lab: labs.Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("etcd", "kube-apiserver", "kubectl"):
        (tmp_path / name).write_text("#!/bin/sh\necho out of luck; exit 3\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))

    with pytest.raises(LabError, match=r"ended before it was ready: out of luck \(all of it is in .*\.log\)"):
        api_server(lab, "doomed")


def test_a_killed_server_is_lost_at_once_and_comes_back_with_its_data(lab: labs.Lab) -> None:
    with api_server(lab, "mortal") as mortal:
        mortal.kubectl("create", "namespace", "kept")

        mortal.kill()
        lost = mortal.kubectl("get", "namespaces", check=False)
        mortal.start()

        assert "refused" in lost.stderr
        assert "kept" in mortal.kubectl("get", "namespaces").stdout


def test_a_cluster_of_the_users_own_is_used_and_not_started(
    lab: labs.Lab, server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_KUBECONFIG", str(server.kubeconfig))

    given = access.given_cluster(tmp_path / "given")

    assert isinstance(given, access.GivenCluster)
    assert given.url == server.url
    assert "default" in given.kubectl("get", "namespaces").stdout
    assert "default" in [one["metadata"]["name"] for one in Api(given).all("namespaces")]
    assert not list((lab.folder / "processes").glob("given*"))


def test_a_kubeconfig_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_KUBECONFIG", str(tmp_path / "nothing"))

    with pytest.raises(LabError, match=r"LAB_KUBECONFIG names .*/nothing, which is no file"):
        access.given_cluster(tmp_path / "given")


def test_a_killed_owner_leaves_no_process_and_the_next_sweep_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDPM_LAB_STATE", str(tmp_path))
    environment = {**os.environ, "PYTHONPATH": str(places.SOURCE)}
    owner = subprocess.Popen([sys.executable, "-c", ORPHAN], stdout=subprocess.PIPE, text=True, env=environment)
    assert owner.stdout is not None
    with owner.stdout:
        assert owner.stdout.readline() == "ready\n"
    orphan = labs.Lab("orphan", places.labs() / "orphan", kept=False)
    assert orphan.runs("api-apiserver")
    assert orphan.runs("api-etcd")

    owner.send_signal(signal.SIGKILL)
    owner.wait(10)

    assert within(10, lambda: not orphan.runs("api-apiserver") and not orphan.runs("api-etcd"))
    labs.sweep()
    assert labs.names() == []
