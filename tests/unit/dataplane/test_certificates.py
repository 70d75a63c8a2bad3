# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates that the data plane operator makes for each service and node."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.built_in import BUILT_IN, NOVA_COMPUTE
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.definitions import Place
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.parse import parse_resources
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.references import references

from .conftest import Json, Objects, Planned, PlanOf, read

PLACES = (
    Place("tls.crt", "/etc/pki/nova", live=True),
    Place("tls.key", "/etc/pki/nova", live=True),
    Place("ca.crt", "/etc/pki/nova", live=True),
    Place("vnc-tls.key", "/etc/pki/vnc", "server-key.pem"),
)
DEFINITIONS = {**BUILT_IN, "nova_compute": replace(NOVA_COMPUTE, places=PLACES)}
WITHOUT = {**BUILT_IN, "nova_compute": replace(NOVA_COMPUTE, places=())}


def world(tls_enabled: bool | None = True, certificates: tuple[str, ...] = ("default",)) -> Objects:
    objects = [{**one, "metadata": {**one["metadata"], "namespace": "openstack"}} for one in read("today")]
    for body in objects:
        if body["kind"] == "OpenStackDataPlaneNodeSet":
            body["spec"]["services"] = ["nova-custom"]
            body["spec"].pop("tlsEnabled")
            body["spec"].update({} if tls_enabled is None else {"tlsEnabled": tls_enabled})
            body["spec"]["nodes"]["edpm-compute-0"]["hostName"] = "zero"
        if body["metadata"]["name"] == "nova-custom":
            body["spec"]["tlsCerts"] = {name: {"contents": ["dnsnames"]} for name in certificates}
    return objects


def certificate(name: str, **more: str) -> Json:
    data = {"tls.crt": "crt", "tls.key": "planted-key", "ca.crt": "ca", **more}
    meta = {"name": name, "namespace": "openstack"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "kubernetes.io/tls", "stringData": data}


def named(objects: Objects, definitions: object = DEFINITIONS) -> list[str]:
    found = references(parse_resources(objects), definitions)  # type: ignore[arg-type]  # a mapping of definitions
    return sorted(ref.name for ref in found if ref.name.startswith("cert-"))


def files(planned: Planned, node: str) -> dict[str, bytes]:
    return {path: content for path, content in planned.files(node).items() if path.startswith("/etc/pki/")}


def test_a_node_gets_the_certificates_that_are_made_for_its_host_name(plan_of: PlanOf) -> None:
    made = certificate("cert-nova-custom-default-zero", **{"tls-combined.pem": "all"})
    planned = plan_of([*world(), made], definitions=DEFINITIONS)
    assert files(planned, "edpm-compute-0") == {
        "/etc/pki/nova/tls.crt": b"crt",
        "/etc/pki/nova/tls.key": b"planted-key",
        "/etc/pki/nova/ca.crt": b"ca",
    }
    assert files(planned, "edpm-compute-1") == {}
    service = planned.service("edpm-compute-0")
    assert not [one for one in service.left_out if "cert-" in one.sentence]
    assert not [one for one in service.blocked if "cert-" in one]


def test_another_certificate_than_the_default_has_its_name_before_the_key(plan_of: PlanOf) -> None:
    objects = world(certificates=("default", "vnc"))
    assert named(objects) == [
        "cert-nova-custom-default-edpm-compute-1",
        "cert-nova-custom-default-zero",
        "cert-nova-custom-vnc-edpm-compute-1",
        "cert-nova-custom-vnc-zero",
    ]
    planned = plan_of([*objects, certificate("cert-nova-custom-vnc-zero")], definitions=DEFINITIONS)
    assert files(planned, "edpm-compute-0") == {"/etc/pki/vnc/server-key.pem": b"planted-key"}


@pytest.mark.parametrize(
    ("tls_enabled", "definitions", "count"), [(True, DEFINITIONS, 2), (None, DEFINITIONS, 2), (False, DEFINITIONS, 0)]
)
def test_certificates_are_read_where_the_node_set_has_tls(
    tls_enabled: bool | None, definitions: object, count: int
) -> None:
    assert len(named(world(tls_enabled), definitions)) == count


def test_certificates_that_a_definition_has_no_place_for_are_not_even_read() -> None:
    assert named(world(), WITHOUT) == []


def test_the_bundle_of_authorities_is_the_secret_that_ca_certs_names(plan_of: PlanOf) -> None:
    bundle = {"tls-ca-bundle.pem": "planted"}
    meta = {"name": "combined-ca-bundle", "namespace": "openstack"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": bundle}
    places = {"nova_compute": replace(NOVA_COMPUTE, places=(Place("tls-ca-bundle.pem", "/etc/pki/ca"),))}
    planned = plan_of([*world(), secret], definitions={**BUILT_IN, **places})
    assert files(planned, "edpm-compute-0") == {"/etc/pki/ca/tls-ca-bundle.pem": b"planted"}
