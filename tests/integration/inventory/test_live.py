# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading a real API server: with the least rights, in few requests, and with sentences when it does not work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.model import Snapshot
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.plan import resolve
from ansible_collections.edpm.services.plugins.plugin_utils._kube import client, live, snapshot
from ansible_collections.edpm.services.plugins.plugin_utils._kube.connection import Connection, Response, Settings
from ansible_collections.edpm.services.plugins.plugin_utils._kube.errors import (
    KindNotServedError,
    NotAllowedError,
    NotAuthenticatedError,
)
from edpm_lab.access import Access

BIN = Path(sys.executable).parent
TUTORIAL = Path(__file__).parents[3] / "docs" / "tutorial" / "manifests"
DATAPLANE = "dataplane.openstack.org/v1beta1"

Body = dict[str, Any]


def thing(api_version: str, kind: str, name: str, namespace: str, **rest: Any) -> Body:
    metadata = {"name": name, "namespace": namespace, **rest.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


def nodes(namespace: str, count: int) -> list[Body]:
    """A role in a cell with its Secret, and so many nodes."""
    cell = {"annotations": {"nova.openstack.org/cell": "nova-cell1"}}
    return [
        thing(DATAPLANE, "OpenStackDataPlaneRole", "edpm", namespace, metadata=cell, spec={"nodeTemplate": {}}),
        thing("nova.openstack.org/v1beta1", "NovaCell", "nova-cell1", namespace, spec={"cellName": "cell1"}),
        thing("v1", "Secret", "nova-cell1-compute-config", namespace, stringData={"01-nova.conf": "[DEFAULT]\n"}),
        thing("v1", "Secret", "nobody-names-it", namespace, stringData={"password": "verysecret"}),
        *(
            thing(
                DATAPLANE,
                "OpenStackDataPlaneNode",
                f"node-{number}",
                namespace,
                spec={"role": "edpm", "hostName": f"node-{number}", "ansibleHost": f"192.0.2.{number}"},
            )
            for number in range(count)
        ),
    ]


def create(server: Access, objects: list[Body]) -> None:
    body = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    server.kubectl("create", "-f", "-", stdin=body, timeout=120)


def bind(server: Access, namespace: str, user: str, role: str = "edpm-services-reader") -> Path:
    """A kubeconfig for a user who has that role in that namespace and nothing else."""
    server.kubectl(
        "create", "rolebinding", f"{role}-{user}", f"--clusterrole={role}", f"--user={user}", "-n", namespace
    )
    return server.client_certificate(user)


def read(kubeconfig: Path, *namespaces: str) -> Snapshot:
    return snapshot.read(snapshot.Source(settings=Settings(kubeconfig=str(kubeconfig)), namespaces=namespaces))


class Counting:
    """A connection that counts what is asked of it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.server = connection.server
        self.asked: list[tuple[str, Mapping[str, str]]] = []

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        *,
        body: bytes | None = None,
        content_type: str = "application/json",
    ) -> Response:
        self.asked.append((path, dict(query)))
        return self.connection.request(method, path, query, body=body, content_type=content_type)


@pytest.fixture
def counted() -> Callable[[Path, str], tuple[Snapshot, list[tuple[str, Mapping[str, str]]]]]:
    def run(kubeconfig: Path, namespace: str) -> tuple[Snapshot, list[tuple[str, Mapping[str, str]]]]:
        with Connection(Settings(kubeconfig=str(kubeconfig))) as connection:
            transport = Counting(connection)
            return live.read_snapshot(client.Client(transport), [namespace], {}), transport.asked

    return run


Counted = Callable[[Path, str], tuple[Snapshot, list[tuple[str, Mapping[str, str]]]]]


def test_a_reader_can_plan_everything_and_cannot_list_secrets(installed: Access, namespace: str) -> None:
    create(installed, nodes(namespace, 3))
    reader = bind(installed, namespace, f"reader-{namespace}")
    found = resolve(read(reader, namespace))
    assert [(one.name, one.ready) for one in found.nodes] == [(f"node-{number}", True) for number in range(3)]
    for verb, kind, allowed in (
        ("list", "secrets", "no"),
        ("list", "configmaps", "no"),
        ("watch", "secrets", "no"),
        ("get", "secrets", "yes"),
        ("create", "novaexternalcomputes.nova.openstack.org", "no"),
        ("patch", "openstackdataplanenodes.dataplane.openstack.org", "no"),
    ):
        asked = ["auth", "can-i", verb, kind, "-n", namespace, "--kubeconfig", str(reader)]
        assert installed.kubectl(*asked, check=False).stdout.strip() == allowed, (verb, kind)


def test_the_number_of_requests_does_not_grow_with_the_hosts(
    installed: Access, namespace: str, counted: Counted
) -> None:
    create(installed, nodes(namespace, 1))
    few, first = counted(installed.kubeconfig, namespace)
    create(installed, nodes(namespace, 120)[5:])
    many, second = counted(installed.kubeconfig, namespace)
    assert (len(few.resources.nodes), len(many.resources.nodes)) == (1, 120)
    assert sorted(path for path, _query in first) == sorted(path for path, _query in second)
    core = [path for path, _query in second if path.startswith("/api/v1/")]
    assert core == [f"/api/v1/namespaces/{namespace}/secrets/nova-cell1-compute-config"]


def test_small_pages_give_the_same_snapshot(
    installed: Access, namespace: str, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(installed, nodes(namespace, 10))
    whole, _asked = counted(installed.kubeconfig, namespace)
    monkeypatch.setattr(client, "PAGE", 3)
    paged, asked = counted(installed.kubeconfig, namespace)
    assert paged == whole
    pages = [query for path, query in asked if path.endswith("/openstackdataplanenodes")]
    assert [query["limit"] for query in pages] == ["3"] * 4
    assert ["continue" in query for query in pages] == [False, True, True, True]


def test_several_namespaces_are_read_and_others_are_not(installed: Access, namespace: str) -> None:
    other = f"{namespace}-other"
    installed.kubectl("create", "namespace", other)
    create(installed, [*nodes(namespace, 1), *nodes(other, 2)])
    assert len(read(installed.kubeconfig, namespace).resources.nodes) == 1
    assert len(read(installed.kubeconfig, namespace, other).resources.nodes) == 3
    everywhere = {one.namespace for one in read(installed.kubeconfig).resources.nodes}
    assert {namespace, other} <= everywhere
    installed.kubectl("delete", "namespace", other, "--wait=false")


def test_a_user_without_rights_is_told_which_right_is_missing(installed: Access, namespace: str) -> None:
    stranger = installed.client_certificate("stranger")
    with pytest.raises(NotAllowedError) as caught:
        read(stranger, namespace)
    assert str(caught.value).startswith("stranger may not list ")
    assert f" on {installed.url} " in str(caught.value)
    assert str(caught.value).endswith(
        f"a RoleBinding to the ClusterRole edpm-services-reader in namespace {namespace}."
    )


def test_a_reader_of_one_namespace_who_asks_for_all_is_told_of_the_option(installed: Access, namespace: str) -> None:
    reader = bind(installed, namespace, f"one-{namespace}")
    with pytest.raises(NotAllowedError, match=r"may not list .* or namespaces that it has a RoleBinding in\.$"):
        read(reader)


def test_a_reader_who_may_not_get_secrets_is_told_which_one(installed: Access, namespace: str) -> None:
    create(installed, nodes(namespace, 1))
    lists_only = thing("rbac.authorization.k8s.io/v1", "Role", "lists", namespace)
    groups = ["dataplane.openstack.org", "nova.openstack.org", "neutron.openstack.org", "cinder.openstack.org"]
    rule = {"apiGroups": [*groups, "edpm.openstack.org"], "resources": ["*"], "verbs": ["list"]}
    create(installed, [lists_only | {"rules": [rule]}])
    user = f"lists-{namespace}"
    installed.kubectl("create", "rolebinding", "lists", "--role=lists", f"--user={user}", "-n", namespace)
    with pytest.raises(NotAllowedError) as caught:
        read(installed.client_certificate(user), namespace)
    assert str(caught.value).startswith(
        f"{user} may not get secrets on {installed.url} (Secret {namespace}/nova-cell1-compute-config); "
    )


def test_a_token_that_is_no_longer_valid_is_told_of(installed: Access, namespace: str) -> None:
    installed.kubectl("create", "serviceaccount", "robot", "-n", namespace)
    whose = ["--clusterrole=edpm-services-reader", f"--serviceaccount={namespace}:robot"]
    installed.kubectl("create", "rolebinding", "robot", *whose, "-n", namespace)
    token = installed.kubectl("create", "token", "robot", "-n", namespace).stdout.strip()
    kubeconfig = yaml.safe_load(installed.kubeconfig.read_text())
    kubeconfig["users"] = [{"name": user["name"], "user": {"token": token}} for user in kubeconfig["users"]]
    source = snapshot.Source(settings=Settings(kubeconfig=kubeconfig), namespaces=(namespace,))
    assert snapshot.read(source).resources.nodes == ()
    installed.kubectl("delete", "serviceaccount", "robot", "-n", namespace)
    time.sleep(11)  # for ten seconds the server remembers that it accepted a token
    with pytest.raises(NotAuthenticatedError) as caught:
        snapshot.read(source)
    assert str(caught.value) == (
        f"{installed.url} does not accept the credentials; log in again, or hand over a fresh token or kubeconfig."
    )
    assert token not in str(caught.value)


def test_a_cluster_without_the_crds_is_told_of_and_one_with_some_of_them_is_read(fresh_api: Access) -> None:
    with pytest.raises(KindNotServedError) as caught:
        read(fresh_api.kubeconfig)
    assert str(caught.value).startswith(f"{fresh_api.url} serves no kind of a data plane")
    assert "ansible-playbook edpm.services.install_cluster" in str(caught.value)
    crds = Path(__file__).parents[3] / "roles" / "cluster" / "files" / "crds"
    name = "openstackdataplanenodes.dataplane.openstack.org"
    fresh_api.kubectl("create", "-f", crds / f"{name}.yaml")
    fresh_api.kubectl("wait", "--for=condition=Established", f"crd/{name}")
    create(fresh_api, nodes("default", 1)[4:])
    assert [one.name for one in read(fresh_api.kubeconfig).resources.nodes] == ["node-0"]


def test_the_inventory_of_the_tutorial_is_the_same_from_the_cluster_and_from_its_files(
    installed: Access, namespace: str, tmp_path: Path
) -> None:
    documents = [
        body for file in sorted(TUTORIAL.glob("*.yaml")) for body in yaml.safe_load_all(file.read_text()) if body
    ]
    moved = [body for body in documents if body["kind"] != "Namespace"]
    for body in moved:
        body["metadata"]["namespace"] = namespace
    create(installed, moved)
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(moved))
    plugin = {"plugin": "edpm.services.dataplane", "namespaces": [namespace]}
    reader = bind(installed, namespace, f"inventory-{namespace}")
    for name, more in (("files", {"manifests": "all.yaml"}), ("cluster", {"kubeconfig": str(reader)})):
        (tmp_path / f"{name}.dataplane.yml").write_text(yaml.safe_dump(plugin | more))
    shown = [_list(tmp_path / f"{name}.dataplane.yml") for name in ("files", "cluster")]
    assert shown[0] == shown[1]
    assert set(shown[0]["_meta"]["hostvars"]) == {"edpm-compute-0", "edpm-compute-1"}


def _list(inventory: Path) -> dict[str, Any]:
    quiet = {
        name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "K8S_AUTH_", "KUBE"))
    }
    run = subprocess.run(
        [BIN / "ansible-inventory", "-i", inventory, "--list"], env=quiet, capture_output=True, text=True, check=True
    )
    assert "verysecret" not in run.stdout + run.stderr
    found: dict[str, Any] = json.loads(run.stdout)
    return found
