"""The REST client: paths, pages, patience, check mode, and one sentence for each answer that is not a success."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._kube.client import Client, Resource, Retry
from ansible_collections.edpm.services.plugins.plugin_utils._kube.connection import Connection, Settings
from ansible_collections.edpm.services.plugins.plugin_utils._kube.errors import (
    ConflictError,
    ExpiredError,
    KindNotServedError,
    KubernetesError,
    NotAllowedError,
    NotAuthenticatedError,
    NotFoundError,
    OverloadedError,
    RefusedError,
    UnreachableError,
)

from .api import Api

NOVA = "nova.openstack.org/v1beta1"
CELL = Resource(NOVA, "NovaCell", "novacells", namespaced=True)
CELLS = f"/apis/{NOVA}/namespaces/openstack/novacells"
CELL1 = f"{CELLS}/cell1"


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def connection(api: Api) -> Iterator[Connection]:
    with Connection(Settings(host=api.url, api_key="abc")) as opened:
        yield opened


@pytest.fixture
def client(connection: Connection, pauses: list[float]) -> Client:
    return Client(connection, retry=Retry(attempts=4, sleep=pauses.append))


@pytest.mark.parametrize(
    ("resource", "name", "namespace", "path"),
    [
        (CELL, "cell1", "openstack", CELL1),
        (CELL, None, "openstack", CELLS),
        (CELL, None, None, f"/apis/{NOVA}/novacells"),
        (Resource("v1", "Secret", "secrets", namespaced=True), "a", "b", "/api/v1/namespaces/b/secrets/a"),
        (Resource("v1", "Namespace", "namespaces", namespaced=False), "a", None, "/api/v1/namespaces/a"),
    ],
)
def test_a_path_follows_from_the_kind(resource: Resource, name: str | None, namespace: str | None, path: str) -> None:
    assert resource.path(name, namespace) == path


def test_a_kind_is_looked_up_once_per_api_version(api: Api, client: Client) -> None:
    entries = [
        {"name": "novacells", "kind": "NovaCell", "namespaced": True},
        {"name": "novacells/status", "kind": "NovaCell", "namespaced": True},
        {"name": "nova", "kind": "Nova", "namespaced": True},
    ]
    api.answer("GET", f"/apis/{NOVA}", body={"resources": entries})
    assert client.resource(NOVA, "NovaCell") == CELL
    assert client.resource(NOVA, "Nova").plural == "nova"
    assert len(api.requests) == 1


def test_a_kind_that_is_not_served_is_told_and_found_once_it_is_there(api: Api, client: Client) -> None:
    api.answer("GET", f"/apis/{NOVA}", status=404)
    api.answer("GET", f"/apis/{NOVA}", body={"resources": [{"name": "nova", "kind": "Nova", "namespaced": True}]})
    with pytest.raises(KindNotServedError) as caught:
        client.resource(NOVA, "Nova")
    assert str(caught.value).startswith(f"{api.url} does not serve Nova ({NOVA}); install its CRD ")
    assert client.resource(NOVA, "Nova").plural == "nova"


def test_a_list_is_read_page_by_page_and_its_items_know_their_kind(api: Api, client: Client) -> None:
    api.answer("GET", CELLS, body={"metadata": {"continue": "next"}, "items": [{"metadata": {"name": "a"}}]})
    api.answer("GET", CELLS, body={"metadata": {}, "items": [{"metadata": {"name": "b"}}]})
    found = client.get_all(CELL, "openstack", labels="a=b")
    assert [(item["kind"], item["apiVersion"], item["metadata"]["name"]) for item in found] == [
        ("NovaCell", NOVA, "a"),
        ("NovaCell", NOVA, "b"),
    ]
    assert [request.query.get("continue") for request in api.requests] == [None, "next"]
    assert {request.query["labelSelector"] for request in api.requests} == {"a=b"}


def test_a_list_that_the_server_has_forgotten_starts_over(api: Api, client: Client) -> None:
    api.answer("GET", CELLS, body={"metadata": {"continue": "old"}, "items": [{"metadata": {"name": "a"}}]})
    api.answer("GET", CELLS, status=410, body={"message": "too old"})
    api.answer("GET", CELLS, body={"items": [{"metadata": {"name": "b"}}]})
    assert [item["metadata"]["name"] for item in client.get_all(CELL, "openstack")] == ["b"]


def test_a_list_that_is_forgotten_again_and_again_is_given_up(api: Api, client: Client) -> None:
    api.answer("GET", CELLS, status=410, body={"message": "too old"})
    with pytest.raises(ExpiredError, match="changed while they were read; run again"):
        client.get_all(CELL, "openstack")


def test_an_object_that_is_not_there_is_none(client: Client) -> None:
    assert client.get(CELL, "cell1", "openstack") is None


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_busy_server_is_asked_again_with_longer_and_longer_pauses(
    api: Api, client: Client, pauses: list[float], status: int
) -> None:
    for _ in range(3):
        api.answer("GET", CELL1, status=status)
    api.answer("GET", CELL1, body={"kind": "NovaCell"})
    assert client.get(CELL, "cell1", "openstack") == {"kind": "NovaCell"}
    assert len(pauses) == 3
    assert 0.3 < pauses[0] < pauses[1] < pauses[2] < 3


def test_the_servers_own_wish_for_a_pause_counts_within_reason(api: Api, client: Client, pauses: list[float]) -> None:
    api.answer("GET", CELL1, status=429, Retry_After="7")
    api.answer("GET", CELL1, status=429, Retry_After="9999")
    api.answer("GET", CELL1)
    client.get(CELL, "cell1", "openstack")
    assert pauses == [7.0, 30.0]


def test_a_write_is_sent_again_when_the_server_hangs_up(api: Api, client: Client, pauses: list[float]) -> None:
    api.answer("PATCH", CELL1, status=0)
    api.answer("PATCH", CELL1, body={"kind": "NovaCell"})
    body = {"apiVersion": NOVA, "kind": "NovaCell", "metadata": {"name": "cell1", "namespace": "openstack"}}
    assert client.apply(CELL, body, force=True) == {"kind": "NovaCell"}
    assert len(pauses) == 1
    assert [request.body for request in api.requests] == [body, body]


def test_patience_ends(api: Api, client: Client, pauses: list[float]) -> None:
    api.answer("GET", CELL1, status=503, body={"message": "etcd is\naway."})
    with pytest.raises(OverloadedError) as caught:
        client.get(CELL, "cell1", "openstack")
    assert str(caught.value).startswith(
        f"{api.url} failed to get NovaCell openstack/cell1, and every retry too: etcd is away;"
    )
    assert len(api.requests) == 4
    assert len(pauses) == 3


@pytest.mark.parametrize(("dry_run", "sent"), [(True, "All"), (False, None)])
def test_check_mode_makes_every_write_a_dry_run_and_no_read(
    api: Api, connection: Connection, dry_run: bool, sent: str | None
) -> None:
    for method in ("GET", "PATCH", "DELETE"):
        api.answer(method, CELL1)
    client = Client(connection, dry_run=dry_run)
    client.apply(CELL, {"metadata": {"name": "cell1", "namespace": "openstack"}}, force=False)
    client.delete(CELL, "cell1", "openstack")
    client.get(CELL, "cell1", "openstack")
    assert [request.query.get("dryRun") for request in api.requests] == [sent, sent, None]
    patch = api.requests[0]
    assert patch.headers["content-type"] == ["application/apply-patch+yaml"]
    assert (patch.query["fieldManager"], patch.query["force"]) == ("edpm.services", "false")


FORBIDDEN = (
    'novacells.nova.openstack.org "cell1" is forbidden: User "ann" cannot patch resource "novacells" in API group'
)


@pytest.mark.parametrize(
    ("status", "said", "expected"),
    [
        (401, "Unauthorized", (NotAuthenticatedError, "does not accept the credentials; log in again, or hand over ")),
        (403, FORBIDDEN, (NotAllowedError, "ann may not patch novacells.nova.openstack.org on ")),
        (403, "", (NotAllowedError, "The account in use may not patch novacells.nova.openstack.org on ")),
        (
            403,
            "admission webhook says no",
            (RefusedError, "refuses to patch NovaCell openstack/cell1: admission webhook"),
        ),
        (404, "namespaces openstack not found", (NotFoundError, "NovaCell openstack/cell1 cannot be found on ")),
        (409, "conflict with kubectl", (ConflictError, "is held by somebody else: conflict with kubectl; run again")),
        (422, "spec.cellName: Required value", (RefusedError, ": spec.cellName: Required value; correct the object")),
        (400, "unknown field", (RefusedError, "refuses to patch NovaCell openstack/cell1: unknown field; correct")),
    ],
)
def test_an_answer_that_is_no_success_becomes_one_sentence(
    api: Api, client: Client, status: int, said: str, expected: tuple[type[KubernetesError], str]
) -> None:
    api.answer("PATCH", CELL1, status=status, body={"kind": "Status", "message": said})
    with pytest.raises(KubernetesError) as caught:
        client.apply(CELL, {"metadata": {"name": "cell1", "namespace": "openstack"}}, force=True)
    kind, words = expected
    assert type(caught.value) is kind
    assert words in str(caught.value)
    assert str(caught.value).endswith(".")
    assert api.url in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_server_that_is_no_kubernetes_is_told(api: Api, client: Client) -> None:
    api.answer("GET", CELL1, body=b"<html>welcome</html>")
    with pytest.raises(UnreachableError, match="does not answer like a Kubernetes API; check the address"):
        client.get(CELL, "cell1", "openstack")
