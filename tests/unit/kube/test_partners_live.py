"""Partners' definitions out of a cluster: a few lines of HTTP in the server's place, and manifests beside them."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.plan import resolve
from ansible_collections.edpm.services.plugins.plugin_utils._kube import client
from ansible_collections.edpm.services.plugins.plugin_utils._kube.client import Retry
from ansible_collections.edpm.services.plugins.plugin_utils._kube.errors import NotAllowedError, OverloadedError

from .api import Api
from .test_snapshot_live import bare, forbidden, from_cluster, paths, serve
from .worlds import DATAPLANE, NOVA, ROLE, WORLD, Body, from_manifests, node, thing, write

PROBES = "/apis/probe.example.com/v1/namespaces/openstack/probes"
DEFINITION = {
    "version": 1,
    "service_cr": {"api_version": "probe.example.com/v1", "kind": "Probe"},
    "conf_d": "/etc/probe",
    "command": "probe",
    "user": "probe",
}
LISTED = thing(DATAPLANE, "OpenStackDataPlaneService", "probe", spec={"configMaps": ["probe"], "secrets": ["licence"]})
CONFIG_MAP = thing("v1", "ConfigMap", "probe", data={"edpm-service.yaml": yaml.safe_dump(DEFINITION)})
LICENCE = thing("v1", "Secret", "licence", stringData={"10-licence.conf": "[a]\n"})
CR = thing(
    "probe.example.com/v1",
    "Probe",
    "edpm-compute-0",
    spec={"dataplaneNodeName": "edpm-compute-0", "customServiceConfig": "[b]\n"},
)


def world(*more: Body, **role: Any) -> list[Body]:
    wanting = {**ROLE, "spec": {**ROLE["spec"], "services": ["probe"], **role}}
    rest = [body for body in WORLD if body is not ROLE]
    return [*rest, wanting, LISTED, CONFIG_MAP, LICENCE, *more]


def serve_probes(api: Api, *probes: Body) -> None:
    listed = [{"kind": "Probe", "name": "probes", "namespaced": True}]
    api.answer("GET", "/apis/probe.example.com/v1", body={"resources": listed})
    api.answer("GET", PROBES, body={"items": [bare(one) for one in probes], "metadata": {}})


def test_a_partners_service_is_the_same_from_a_cluster_and_from_manifests(api: Api, tmp_path: Path) -> None:
    serve(api, world(CR))
    serve_probes(api, CR)
    live, stored = from_cluster(api), from_manifests(write(tmp_path / "m", *world(CR)))
    assert live == stored
    plan = resolve(live)
    assert plan == resolve(stored)
    probe = next(one for one in plan.nodes[0].services if one.service == "probe")
    assert {one.file_name: one.content for one in probe.sources} == {
        "10-licence.conf": b"[a]\n",
        "99-override.conf": b"[b]\n",
    }


def test_a_partners_kind_is_listed_once_and_its_config_map_is_got_once(api: Api) -> None:
    serve(api, [*world(CR), *(node(f"edpm-compute-{number}") for number in range(1, 50))])
    serve_probes(api, CR)
    assert len(resolve(from_cluster(api)).nodes) == 50
    assert paths(api).count(PROBES) == 1
    assert sorted(path for path in paths(api) if path.startswith("/api/v1")) == [
        "/api/v1/namespaces/openstack/configmaps/probe",
        "/api/v1/namespaces/openstack/secrets/licence",
        "/api/v1/namespaces/openstack/secrets/nova-cell1-compute-config",
    ]


def test_a_partners_kind_whose_crd_is_not_installed_has_no_objects(api: Api, tmp_path: Path) -> None:
    serve(api, world())
    plan = resolve(from_cluster(api))
    assert plan == resolve(from_manifests(write(tmp_path / "m", *world())))
    assert "probe" in [one.service for one in plan.nodes[0].services]


def refuse_probes(api: Api) -> None:
    serve_probes(api)
    api._answers["GET", PROBES].clear()
    api.answer("GET", PROBES, 403, forbidden("list", "probes"))


def test_a_partners_kind_that_may_not_be_listed_blocks_its_services_alone_and_names_the_right(api: Api) -> None:
    serve(api, world())
    refuse_probes(api)
    plan = resolve(from_cluster(api))
    blocked = {one.service: one.blocked for one in plan.nodes[0].services}
    [sentence] = blocked.pop("probe")
    assert sentence == (
        f"jane may not list probes.probe.example.com on {api.url} (Probe openstack); give the account that right or "
        "use another account; what helps is a ClusterRole that may get and list probes.probe.example.com, bound to "
        "the account as edpm-services-reader is: the kind comes from a partner's definition."
    )
    assert blocked == {"libvirt": (), "nova_compute": ()}
    waits = "Until then its services wait, and objects of this kind are left as they are."
    assert plan.warnings == (f"{sentence} {waits}",)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries come without a pause."""
    monkeypatch.setattr(client, "Retry", lambda: Retry(sleep=lambda _seconds: None))


@pytest.mark.usefixtures("impatient")
def test_a_partners_kind_that_the_server_cannot_list_blocks_its_services_alone(api: Api) -> None:
    serve(api, world())
    serve_probes(api)
    api._answers["GET", PROBES].clear()
    said = "conversion webhook for probe.example.com/v1, Kind=Probe failed: connection refused"
    api.answer("GET", PROBES, 500, {"kind": "Status", "message": said})
    plan = resolve(from_cluster(api))
    blocked = {one.service: one.blocked for one in plan.nodes[0].services}
    [sentence] = blocked.pop("probe")
    assert said in sentence
    assert sentence.endswith("look at its CRD probes.probe.example.com and the webhook in it first.")
    assert blocked == {"libvirt": (), "nova_compute": ()}


@pytest.mark.usefixtures("impatient")
def test_a_kind_of_ours_that_the_server_cannot_list_ends_the_run(api: Api) -> None:
    serve(api, world())
    served = next(
        one for one in api._answers if one[1].startswith("/apis/dataplane") and "/openstackdataplanenode" in one[1]
    )
    api._answers[served].clear()
    api.answer(*served, 500, {"kind": "Status", "message": "etcd is away"})
    with pytest.raises(OverloadedError, match="etcd is away"):
        from_cluster(api)


def test_a_right_that_is_given_later_is_all_that_a_service_waits_for(api: Api, tmp_path: Path) -> None:
    serve(api, world(CR))
    refuse_probes(api)
    from_cluster(api)
    api._answers["GET", PROBES].clear()
    serve_probes(api, CR)
    assert resolve(from_cluster(api)) == resolve(from_manifests(write(tmp_path / "m", *world(CR))))


def test_a_partners_kind_is_unseen_in_the_namespaces_alone_in_which_it_may_not_be_listed(api: Api) -> None:
    serve(api, world())
    refuse_probes(api)
    serve(api, [node("far-0", "elsewhere")], namespace="elsewhere")
    api.answer("GET", PROBES.replace("openstack", "elsewhere"), body={"items": [], "metadata": {}})
    found = from_cluster(api, ("openstack", "elsewhere"))
    assert [(one.group, one.kind, one.namespace) for one in found.unseen] == [
        ("probe.example.com", "Probe", "openstack")
    ]


def test_a_partner_cannot_make_a_missing_right_on_a_kind_of_ours_look_like_one_on_theirs(api: Api) -> None:
    theirs = {**DEFINITION, "service_cr": {"api_version": NOVA, "kind": "NovaExternalCompute"}}
    claimed = {**CONFIG_MAP, "data": {"edpm-service.yaml": yaml.safe_dump(theirs)}}
    serve(api, [claimed if body is CONFIG_MAP else body for body in world()])
    path = f"/apis/{NOVA}/namespaces/openstack/novaexternalcompute"
    [served] = [one for one in api._answers if one[1].startswith(path)]
    api._answers[served].clear()
    api.answer(*served, 403, forbidden("list", "novaexternalcomputes"))
    with pytest.raises(NotAllowedError, match="a RoleBinding to the ClusterRole edpm-services-reader in namespace"):
        from_cluster(api)


def test_a_definition_that_is_wrong_is_for_the_plan_to_tell(api: Api) -> None:
    broken = {**CONFIG_MAP, "data": {"edpm-service.yaml": "version: 1\nuser: probe\n"}}
    serve(api, [broken if body is CONFIG_MAP else body for body in world()])
    probe = next(one for one in resolve(from_cluster(api)).nodes[0].services if one.service == "probe")
    assert probe.errors == (
        "ConfigMap openstack/probe, key edpm-service.yaml, field command: is missing; say what is started, or name a "
        "config.json of kolla in kolla_config.",
    )


def test_a_definition_may_be_binary_data_too(api: Api) -> None:
    encoded = base64.b64encode(yaml.safe_dump(DEFINITION).encode()).decode()
    binary = {**CONFIG_MAP, "data": {}, "binaryData": {"edpm-service.yaml": encoded}}
    serve(api, [binary if body is CONFIG_MAP else body for body in world()])
    assert [one.name for one in from_cluster(api).definitions] == ["probe"]
