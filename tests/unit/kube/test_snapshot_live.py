"""A snapshot out of a cluster: a server of a few lines answers what a real one would."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.model import Snapshot
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.plan import resolve
from ansible_collections.edpm.services.plugins.plugin_utils._kube import snapshot
from ansible_collections.edpm.services.plugins.plugin_utils._kube.connection import Settings
from ansible_collections.edpm.services.plugins.plugin_utils._kube.errors import (
    KindNotServedError,
    NotAllowedError,
    NotAuthenticatedError,
)
from ansible_collections.edpm.services.plugins.plugin_utils._kube.live import NODE_KINDS, OTHER_KINDS
from ansible_collections.edpm.services.plugins.plugin_utils._kube.snapshot import Source

from .api import Api
from .worlds import COMPUTE_CONFIG, NOVA, ROLE, WORLD, Body, from_manifests, node, thing, write


def serve(api: Api, objects: list[Body], namespace: str | None = "openstack", without: tuple[str, ...] = ()) -> None:
    """Let the server know all kinds except some, list the objects, and hand out Secrets by name."""
    groups: dict[str, list[str]] = {}
    for api_version, kind in (*NODE_KINDS, *OTHER_KINDS):
        if kind not in without:
            groups.setdefault(api_version, []).append(kind)
    for api_version, kinds in groups.items():
        listed = [{"kind": kind, "name": kind.lower(), "namespaced": True} for kind in kinds]
        api.answer("GET", f"/apis/{api_version}", body={"resources": listed})
        for kind in kinds:
            where = f"/namespaces/{namespace}" if namespace else ""
            items = [bare(body) for body in objects if body["kind"] == kind]
            api.answer("GET", f"/apis/{api_version}{where}/{kind.lower()}", body={"items": items, "metadata": {}})
    for body in objects:
        if body["kind"] in ("Secret", "ConfigMap"):
            meta = body["metadata"]
            path = f"/api/v1/namespaces/{meta['namespace']}/{body['kind'].lower()}s/{meta['name']}"
            api.answer("GET", path, body=stored(body))


def bare(body: Body) -> Body:
    return {key: value for key, value in body.items() if key not in ("apiVersion", "kind")}


def stored(body: Body) -> Body:
    """As a server hands a Secret out: all under data."""
    if body["kind"] != "Secret":
        return body
    data = {key: base64.b64encode(text.encode()).decode() for key, text in body.get("stringData", {}).items()}
    return {**{key: value for key, value in body.items() if key != "stringData"}, "data": data}


def from_cluster(api: Api, namespaces: tuple[str, ...] = ("openstack",)) -> Snapshot:
    return snapshot.read(Source(settings=Settings(host=api.url, api_key="abc"), namespaces=namespaces))


def paths(api: Api) -> list[str]:
    return [seen.path for seen in api.requests]


def test_a_cluster_and_manifests_with_the_same_objects_give_the_same_snapshot(api: Api, tmp_path: Path) -> None:
    serve(api, WORLD)
    assert from_cluster(api) == from_manifests(write(tmp_path / "m", *WORLD))


def test_only_named_secrets_are_asked_for_and_none_is_listed(api: Api) -> None:
    serve(api, WORLD)
    from_cluster(api)
    core = [path for path in paths(api) if path.startswith("/api/v1")]
    assert core == ["/api/v1/namespaces/openstack/secrets/nova-cell1-compute-config"]


def test_the_number_of_requests_does_not_grow_with_the_hosts(api: Api) -> None:
    serve(api, WORLD)
    from_cluster(api)
    few = len(api.requests)
    many = Api()
    serve(many, [*WORLD, *(node(f"edpm-compute-{number}") for number in range(1, 300))])
    assert len(from_cluster(many).resources.nodes) == 300
    assert len(many.requests) == few
    many.close()


def test_without_namespaces_all_are_listed_at_once(api: Api) -> None:
    serve(api, [*WORLD, node("far-0", "elsewhere")], namespace=None)
    assert {one.namespace for one in from_cluster(api, ()).resources.nodes} == {"openstack", "elsewhere"}


def test_a_kind_whose_crd_is_not_installed_has_no_objects(api: Api) -> None:
    serve(api, WORLD, without=("NovaCell", "CinderExternalVolume", "ServiceProfile", "OVNMetadataAgent"))
    found = from_cluster(api)
    assert found.resources.cells == ()
    assert [one.name for one in found.resources.nodes] == ["edpm-compute-0"]


def test_a_cluster_without_any_data_plane_kind_is_told_of_with_the_remedy(api: Api) -> None:
    serve(api, [], without=tuple(kind for _version, kind in NODE_KINDS))
    with pytest.raises(KindNotServedError) as caught:
        from_cluster(api)
    assert str(caught.value).startswith(f"{api.url} serves no kind of a data plane")
    assert str(caught.value).endswith("install the CRDs: ansible-playbook edpm.services.install_cluster.")


def test_a_missing_secret_is_for_the_plan_to_tell(api: Api) -> None:
    serve(api, [node(), ROLE, thing(NOVA, "NovaCell", "nova-cell1")])
    plan = resolve(from_cluster(api))
    assert plan.nodes[0].sentences == (
        f"{COMPUTE_CONFIG} does not exist; NovaCell nova-cell1 makes it once it is Ready.",
    )


def forbidden(verb: str, resource: str) -> Mapping[str, object]:
    return {"kind": "Status", "message": f'{resource} is forbidden: User "jane" cannot {verb} resource "{resource}"'}


def test_a_secret_that_may_not_be_read_names_the_right_and_the_role_that_has_it(api: Api) -> None:
    serve(api, [node(), ROLE])
    path = f"/api/v1/namespaces/openstack/secrets/{COMPUTE_CONFIG.name}"
    api.answer("GET", path, 403, forbidden("get", "secrets"))
    with pytest.raises(NotAllowedError) as caught:
        from_cluster(api)
    assert str(caught.value) == (
        f"jane may not get secrets on {api.url} ({COMPUTE_CONFIG}); give the account that right or use another "
        "account; what helps is a RoleBinding to the ClusterRole edpm-services-reader in namespace openstack."
    )


def test_a_list_that_is_not_allowed_names_the_namespace_or_the_option() -> None:
    cells = thing(NOVA, "NovaCell", "nova-cell1")
    for namespace, remedy in (
        ("openstack", "a RoleBinding to the ClusterRole edpm-services-reader in namespace openstack."),
        (None, "or namespaces that it has a RoleBinding in."),
    ):
        server = Api()
        serve(server, [cells], namespace=namespace, without=("NovaCell",))
        listed = [{"kind": kind, "name": kind.lower(), "namespaced": True} for _v, kind in OTHER_KINDS[1:3]]
        server._answers["GET", f"/apis/{NOVA}"].clear()
        server.answer("GET", f"/apis/{NOVA}", body={"resources": listed})
        where = f"/namespaces/{namespace}" if namespace else ""
        server.answer("GET", f"/apis/{NOVA}{where}/novacell", 403, forbidden("list", "novacells.nova.openstack.org"))
        with pytest.raises(NotAllowedError) as caught:
            from_cluster(server, (namespace,) if namespace else ())
        assert "jane may not list novacell.nova.openstack.org" in str(caught.value)
        assert str(caught.value).endswith(remedy)
        server.close()


def test_credentials_that_are_not_accepted_are_told_of(api: Api) -> None:
    for api_version, _kind in (*NODE_KINDS, *OTHER_KINDS):
        api.answer("GET", f"/apis/{api_version}", 401, {"kind": "Status", "message": "Unauthorized"})
    with pytest.raises(NotAuthenticatedError, match="does not accept the credentials; log in again"):
        from_cluster(api)


def test_a_source_never_shows_its_credentials() -> None:
    shown = repr(Source(settings=Settings(host="https://a", api_key="topsecret", kubeconfig={"token": "topsecret"})))
    assert "topsecret" not in shown
