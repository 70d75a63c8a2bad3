# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects are found under every name that kubectl knows, made as kubectl makes them, and a refusal is told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from edpm_lab.access import Access
from edpm_lab.api import Api
from edpm_lab.errors import LabError


def resource(plural: str, kind: str, *short: str, scope: str = "Namespaced") -> dict[str, Any]:
    names = {"resource": plural, "singularResource": kind.lower(), "shortNames": list(short)}
    return {**names, "responseKind": {"kind": kind}, "scope": scope}


def group(name: str, version: str, *resources: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name} if name else {}, "versions": [{"version": version, "resources": resources}]}


CORE = group("", "v1", resource("configmaps", "ConfigMap", "cm"), resource("namespaces", "Namespace", scope="Cluster"))
NOVA = group("nova.openstack.org", "v1beta1", resource("novaexternalcomputes", "NovaExternalCompute", "nec"))


@dataclass(frozen=True)
class Server(Access):
    """Answers from a table, and keeps what it was asked."""

    answers: dict[str, Any] = field(default_factory=dict)
    asked: list[tuple[str, str, Any]] = field(default_factory=list)

    def ask(self, method: str, path: str, body: Any = None, accept: str = "application/json") -> tuple[int, str]:
        assert accept
        self.asked.append((method, path, body))
        status, answer = self.answers.get(f"{method} {path.partition('?')[0]}", (404, {"message": "not found"}))
        return status, json.dumps(answer)

    def client_certificate(self, user: str, groups: Sequence[str] = ()) -> Path:
        raise NotImplementedError


@pytest.fixture
def server(tmp_path: Path) -> Server:
    found = {"GET /api": (200, {"items": [CORE]}), "GET /apis": (200, {"items": [NOVA]})}
    return Server(tmp_path, "https://server", tmp_path, found)


@pytest.mark.parametrize("name", ["nec", "NovaExternalCompute", "novaexternalcomputes.nova.openstack.org"])
def test_a_kind_has_the_names_that_kubectl_knows(server: Server, name: str) -> None:
    path = "/apis/nova.openstack.org/v1beta1/namespaces/one/novaexternalcomputes/two"
    server.answers[f"GET {path}"] = (200, {"metadata": {"name": "two"}})
    assert Api(server).get(name, "two", "one") == {"metadata": {"name": "two"}}


def test_a_list_is_told_as_kubectl_tells_it(server: Server) -> None:
    items = [{"metadata": {"name": "one", "managedFields": [{}]}}]
    server.answers["GET /api/v1/namespaces/here/configmaps"] = (200, {"items": items})
    assert Api(server).all("cm", "here") == [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}]


def test_an_object_is_made_where_it_belongs_in_kubectls_name(server: Server) -> None:
    server.answers["POST /api/v1/namespaces"] = server.answers["POST /api/v1/namespaces/here/configmaps"] = (201, {})
    api = Api(server)
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "here"}})
    api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "namespace": "here"}})
    made = [path for method, path, _body in server.asked if method == "POST"]
    assert [path.partition("?")[0] for path in made] == ["/api/v1/namespaces", "/api/v1/namespaces/here/configmaps"]
    assert all("fieldManager=kubectl-create" in path for path in made)


def test_a_kind_that_comes_later_is_found(server: Server) -> None:
    server.answers["GET /apis"] = (200, {"items": []})
    api = Api(server)
    with pytest.raises(LabError, match="https://server has no kind nec"):
        api.all("nec", "here")
    server.answers["GET /apis"] = (200, {"items": [NOVA]})
    server.answers["GET /apis/nova.openstack.org/v1beta1/namespaces/here/novaexternalcomputes"] = (200, {"items": []})
    assert api.all("nec", "here") == []


def test_a_server_that_has_too_much_to_do_is_asked_again(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    path = "GET /api/v1/namespaces/here/configmaps"
    server.answers[path] = (429, {"message": "storage is (re)initializing"})
    monkeypatch.setattr("time.sleep", lambda _seconds: server.answers.update({path: (200, {"items": []})}))
    assert Api(server).all("cm", "here") == []


def test_a_refusal_is_told_in_the_servers_words(server: Server) -> None:
    with pytest.raises(LabError, match=r"^GET /api/v1/namespaces/here/configmaps/one: 404: not found$"):
        Api(server).get("configmap", "one", "here")
