"""What is written to a cluster, what is left to its owner, and how it is told. Server-side apply itself is the real
API server's work: tests/integration/cluster."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.edpm.services.plugins.plugin_utils._kube import report
from ansible_collections.edpm.services.plugins.plugin_utils._kube.client import Client
from ansible_collections.edpm.services.plugins.plugin_utils._kube.connection import Response
from ansible_collections.edpm.services.plugins.plugin_utils._kube.definitions import Installation, Outcome
from ansible_collections.edpm.services.plugins.plugin_utils._kube.errors import BadManifestError, NotEstablishedError
from ansible_collections.edpm.services.plugins.plugin_utils._kube.manifests import Manifest

ROLE = Path(__file__).parents[3] / "roles" / "cluster"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAME = "widgets.example.org"
OURS = {"app.kubernetes.io/managed-by": "edpm.services"}


def crd(**metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME, **metadata},
        "spec": {
            "group": "example.org",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{"name": "v1", "served": True}],
        },
    }


def manifest(body: Mapping[str, Any]) -> Manifest:
    metadata = body["metadata"]
    return Manifest(body["apiVersion"], body["kind"], metadata["name"], metadata.get("namespace"), body, "a.yaml:1")


class Cluster:
    """Just enough of an API server: it stores what is applied, and makes a CRD Established when told to."""

    server = "https://lab"

    def __init__(self, *objects: dict[str, Any], established: bool = True) -> None:
        self.stored = {item["metadata"]["name"]: item for item in objects}
        self.established = established
        self.requests: list[tuple[str, str, Mapping[str, str]]] = []

    def request(
        self, method: str, path: str, query: Mapping[str, str], *, body: bytes | None = None, content_type: str = ""
    ) -> Response:
        assert body is None or content_type == "application/apply-patch+yaml"
        self.requests.append((method, path, dict(query)))
        if path == CRDS.rpartition("/")[0]:
            entry = {"name": "customresourcedefinitions", "kind": "CustomResourceDefinition", "namespaced": False}
            return self._ok({"resources": [entry]})
        if path == "/api/v1":
            return self._ok({"resources": [{"name": "secrets", "kind": "Secret", "namespaced": True}]})
        if path == CRDS:
            return self._ok({"items": list(self.stored.values())})
        if method == "PATCH":
            applied = json.loads(body or b"")
            applied["status"] = {"conditions": [{"type": "Established", "status": str(self.established)}]}
            if "dryRun" not in query:
                self.stored[applied["metadata"]["name"]] = applied
            return self._ok(applied)
        return Response(404, {}, b'{"message": "not here"}')

    def writes(self) -> list[str]:
        return [path for method, path, query in self.requests if method == "PATCH" and "dryRun" not in query]

    def _ok(self, body: object) -> Response:
        return Response(200, {}, json.dumps(body).encode())


def install(cluster: Cluster, *bodies: Mapping[str, Any], check: bool = False) -> tuple[Outcome, ...]:
    return Installation(Client(cluster, dry_run=check), [manifest(body) for body in bodies], 5).run()


def test_a_new_definition_gets_our_label_and_is_not_forced() -> None:
    cluster = Cluster()
    (outcome,) = install(cluster, crd())
    assert outcome.result == "created"
    assert cluster.stored[NAME]["metadata"]["labels"] == OURS
    assert [query["force"] for method, _path, query in cluster.requests if method == "PATCH"] == ["false"]


def test_a_definition_of_ours_is_forced_back_to_what_the_file_says() -> None:
    drifted = crd(labels=OURS, resourceVersion="7", managedFields=[{"manager": "edpm.services", "operation": "Apply"}])
    drifted["spec"]["names"]["singular"] = "drift"
    cluster = Cluster(drifted)
    (outcome,) = install(cluster, crd())
    assert outcome.result == "updated"
    assert [query["force"] for method, _path, query in cluster.requests if method == "PATCH"] == ["true"]


def test_what_only_the_server_writes_is_no_change() -> None:
    live = crd(labels=OURS, resourceVersion="7", uid="u", generation=3, creationTimestamp="now")
    live["status"] = {"conditions": [{"type": "Established", "status": "True"}]}
    (outcome,) = install(Cluster(live), crd())
    assert outcome.result == "unchanged"


TAKEN = {
    "without our label": {},
    "with another owner's label": {"labels": {"app.kubernetes.io/managed-by": "Helm"}},
    "generated for an operator": {
        "labels": OURS,
        "annotations": {"controller-gen.kubebuilder.io/version": "v0.19.0"},
    },
    "applied by kubectl from another file": {
        "labels": OURS,
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": '{"kind": "CustomResourceDefinition"}'},
    },
    "applied by another manager": {
        "labels": OURS,
        "managedFields": [{"manager": "argocd", "operation": "Apply", "fieldsV1": {"f:spec": {}}}],
    },
}


@pytest.mark.parametrize("metadata", TAKEN.values(), ids=TAKEN)
@pytest.mark.parametrize("check", [True, False])
def test_somebody_elses_definition_is_kept_and_never_written_to(metadata: dict[str, Any], check: bool) -> None:
    live = crd(**metadata)
    cluster = Cluster(copy.deepcopy(live))
    (outcome,) = install(cluster, crd(), check=check)
    assert outcome.result == "kept"
    assert outcome.reason.endswith("stays as it is")
    assert outcome.warning is None
    assert cluster.stored == {NAME: live}
    assert not any(method == "PATCH" for method, _path, _query in cluster.requests)


OWN = {
    "edited by hand": {
        "managedFields": [{"manager": "kubectl-edit", "operation": "Update", "fieldsV1": {"f:spec": {}}}]
    },
    "applied by kubectl from our file": {
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"labels": OURS})}
    },
}


@pytest.mark.parametrize("metadata", OWN.values(), ids=OWN)
def test_a_definition_of_ours_stays_ours_when_a_person_touches_it(metadata: dict[str, Any]) -> None:
    (outcome,) = install(Cluster(crd(labels=OURS, **metadata)), crd())
    assert outcome.result in ("updated", "unchanged")


def test_a_kept_definition_that_lacks_our_version_is_a_warning() -> None:
    live = crd()
    live["spec"]["versions"] = [{"name": "v1", "served": False}, {"name": "v2", "served": True}]
    (outcome,) = install(Cluster(live), crd())
    assert outcome.warning == (
        f"CustomResourceDefinition {NAME} on https://lab came from somebody else and does not serve v1, "
        "which edpm.services reads; upgrade the operator that it belongs to."
    )


def test_one_list_serves_all_definitions_of_a_kind() -> None:
    cluster = Cluster()
    others = [crd(name=f"{name}.example.org") for name in "abc"]
    install(cluster, *others)
    assert [path for method, path, _query in cluster.requests if method == "GET"].count(CRDS) == 1


def test_check_mode_announces_objects_of_a_kind_that_only_a_real_run_would_make() -> None:
    cluster = Cluster()
    widget = {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "one", "namespace": "x"}}
    outcomes = install(cluster, widget, crd(), check=True)
    assert [(str(outcome.manifest), outcome.result) for outcome in outcomes] == [
        (f"CustomResourceDefinition {NAME}", "created"),
        ("Widget x/one", "created"),
    ]
    assert cluster.stored == {}
    assert cluster.writes() == []


def test_an_object_of_a_namespace_must_name_it() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    with pytest.raises(BadManifestError, match=r"^Secret s at a\.yaml:1 has no metadata\.namespace; add it\.$"):
        install(Cluster(), secret)


def test_a_definition_that_the_cluster_does_not_serve_in_time_is_told() -> None:
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    cluster = Cluster(established=False)
    installation = Installation(Client(cluster), [manifest(crd())], 5, clock=lambda: now[0], sleep=sleep)
    with pytest.raises(NotEstablishedError) as caught:
        installation.run()
    assert str(caught.value) == (
        f"CustomResourceDefinition {NAME} is not served by https://lab after 5 s; "
        "resolve that, or give it more time with wait_timeout."
    )
    assert 5 <= now[0] < 6


def test_the_report_counts_by_kind_and_names_what_was_kept() -> None:
    outcomes = install(Cluster(crd()), crd(), crd(name="new.example.org"))
    assert report.table(outcomes, check=False).splitlines() == [
        "CustomResourceDefinition  1 created, 1 kept",
        f"CustomResourceDefinition {NAME}: kept, {outcomes[0].reason}",
        "2 definitions: 1 created, 1 kept.",
    ]
    assert "1 would be created, 1 kept" in report.table(outcomes, check=True)


def test_the_diff_shows_only_what_changed_and_no_value_of_a_secret() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"key": "aHVudGVyMg=="}}
    outcomes = [
        Outcome(manifest(secret), "created", "", after=secret),
        Outcome(manifest(crd()), "unchanged", "", before=crd(), after=crd()),
    ]
    result = report.as_result(outcomes, check=False, diff=True)
    assert [entry["before"] for entry in result["diff"]] == [""]
    assert yaml.safe_load(result["diff"][0]["after"])["data"] == {"key": "(hidden)"}
    assert "aHVudGVyMg==" not in json.dumps(result)
    assert "diff" not in report.as_result(outcomes, check=False, diff=False)


def test_the_role_installs_every_file_that_it_has() -> None:
    variables = yaml.safe_load((ROLE / "vars" / "main.yml").read_text())
    named = variables["cluster__own_crds"] + variables["cluster__data_plane_crds"]
    assert sorted(named) == sorted(f"crds/{file.name}" for file in (ROLE / "files" / "crds").iterdir())
    folders = {folder.name for folder in (ROLE / "files").iterdir()}
    assert folders == {"crds", "policies", "rbac"}


def test_the_roles_defaults_are_those_of_its_argument_specification() -> None:
    specification = yaml.safe_load((ROLE / "meta" / "argument_specs.yml").read_text())
    options = specification["argument_specs"]["main"]["options"]
    assert yaml.safe_load((ROLE / "defaults" / "main.yml").read_text()) == {
        name: option["default"] for name, option in options.items()
    }
