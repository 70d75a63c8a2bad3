# SPDX-License-Identifier: GPL-3.0-or-later
"""The how-to page's partner on a real API server: its definition, its kind, and the rights that the page names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.plan import resolve
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import Plan, ServicePlan
from ansible_collections.edpm.services.plugins.plugin_utils._kube import snapshot
from ansible_collections.edpm.services.plugins.plugin_utils._kube.connection import Settings
from edpm_lab.access import Access

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "partner-service.md"
BLOCKS = [list(yaml.safe_load_all(text)) for text in re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)]
EXAMPLE, (ANNOTATED,), (RESOURCE,), (READER,) = BLOCKS
NAME = "telemetry-probe"
KIND = "telemetryprobes.probe.example.com"
DATAPLANE = "dataplane.openstack.org/v1beta1"
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": KIND},
    "spec": {
        "group": "probe.example.com",
        "scope": "Namespaced",
        "names": {"kind": "TelemetryProbe", "plural": "telemetryprobes", "singular": "telemetryprobe"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}

Body = dict[str, Any]


@pytest.fixture
def with_kind(installed: Access) -> Iterator[Access]:
    """The server with the partner's CRD and ClusterRole."""
    installed.kubectl("apply", "-f", "-", stdin=json.dumps(CRD))
    installed.kubectl("apply", "-f", "-", stdin=json.dumps(READER))
    installed.kubectl("wait", "--for=condition=Established", f"crd/{KIND}", "--timeout=60s")
    yield installed
    installed.kubectl("delete", "crd", KIND, "--ignore-not-found")
    installed.kubectl("delete", "clusterrole", READER["metadata"]["name"], "--ignore-not-found")


def thing(api_version: str, kind: str, name: str, **rest: Any) -> Body:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **rest.pop("metadata", {})}, **rest}


def world(namespace: str, *more: Body) -> list[Body]:
    """A role with two nodes that an annotation of the page asks to run the probe."""
    found = [
        thing(DATAPLANE, "OpenStackDataPlaneRole", "edpm", metadata=ANNOTATED["metadata"], spec={"nodeTemplate": {}}),
        *(
            thing(
                DATAPLANE,
                "OpenStackDataPlaneNode",
                f"edpm-compute-{number}",
                spec={"role": "edpm", "ansibleHost": f"192.0.2.{number}"},
            )
            for number in range(2)
        ),
        thing("v1", "Secret", "telemetry-probe-licence", stringData={"licence.key": "verysecret"}),
        *EXAMPLE,
        *more,
    ]
    return [{**body, "metadata": {**body["metadata"], "namespace": namespace}} for body in found]


def create(server: Access, objects: list[Body]) -> None:
    server.kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))


def from_cluster(kubeconfig: Path, namespace: str) -> Plan:
    settings = Settings(kubeconfig=str(kubeconfig))
    return resolve(snapshot.read(snapshot.Source(settings=settings, namespaces=(namespace,))))


def from_files(folder: Path, objects: list[Body]) -> Plan:
    (folder / "world.yaml").write_text(yaml.safe_dump_all(objects))
    return resolve(snapshot.read(snapshot.Source(manifests=(str(folder),))))


def probe(plan: Plan, node: str) -> ServicePlan:
    return next(one for one in plan.by_name()[node].services if one.service == NAME)


def test_the_pages_example_gives_equal_plans_from_both_sources(
    with_kind: Access, namespace: str, tmp_path: Path
) -> None:
    objects = world(namespace, RESOURCE)
    create(with_kind, objects)
    plan = from_cluster(with_kind.kubeconfig, namespace)
    assert plan == from_files(tmp_path, objects)
    first, second = probe(plan, "edpm-compute-0"), probe(plan, "edpm-compute-1")
    assert plan.by_name()["edpm-compute-0"].ready
    assert {one.file_name for one in first.sources} == {"10-probe.conf", "99-override.conf", "licence.key"}
    assert {one.file_name for one in second.sources} == {"10-probe.conf", "licence.key"}
    assert first.image is not None
    assert second.image is not None
    assert (first.image.name, second.image.name) == ("registry.example.com/probe:1.5", "registry.example.com/probe:1.4")


def test_the_two_cluster_roles_of_the_page_are_enough_and_one_is_not(with_kind: Access, namespace: str) -> None:
    create(with_kind, world(namespace, RESOURCE))
    user = f"partner-{namespace}"
    bind = ("create", "rolebinding", "-n", namespace, f"--user={user}")
    with_kind.kubectl(*bind, "--clusterrole=edpm-services-reader", "one")
    kubeconfig = with_kind.client_certificate(user)
    for blocked in (
        probe(from_cluster(kubeconfig, namespace), f"edpm-compute-{number}").blocked for number in range(2)
    ):
        [sentence] = blocked
        assert sentence.startswith(f"{user} may not list {KIND} on ")
        assert f"a ClusterRole that may get and list {KIND}" in sentence
    with_kind.kubectl(*bind, f"--clusterrole={READER['metadata']['name']}", "two")
    assert from_cluster(kubeconfig, namespace) == from_cluster(with_kind.kubeconfig, namespace)


def test_without_the_crd_the_service_runs_from_its_definition_alone(
    installed: Access, namespace: str, tmp_path: Path
) -> None:
    objects = world(namespace)
    create(installed, objects)
    plan = from_cluster(installed.kubeconfig, namespace)
    assert plan == from_files(tmp_path, objects)
    assert probe(plan, "edpm-compute-0").blocked == ()
