# SPDX-License-Identifier: GPL-3.0-or-later
"""Credentials, certificates and mirrors of a registry, from the Secret that an annotation names."""

from __future__ import annotations

import json

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.parse import parse_resources
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.references import references

from .conftest import Change, Json, Load, Objects, PlanOf, known

ANNOTATION = "edpm.openstack.org/registry-secret"
AUTH = json.dumps({"auths": {"registry.example.com": {"auth": "cGxhbnRlZA=="}}})
MIRRORS = '[[registry]]\nlocation = "planted.example.com"\n'
SECRET = "Secret openstack/registry"


def secret(name: str = "registry", **keys: str) -> Json:
    data = {key.replace("__", "."): text for key, text in keys.items()}
    meta = {"name": name, "namespace": "openstack"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": data}


def named(load: Load, change: Change, owner: str = "Role/compute", name: str = "registry") -> Objects:
    return change(load("base"), f"OpenStackDataPlane{owner}", {"metadata": {"annotations": {ANNOTATION: name}}})


def test_the_secret_of_the_nodes_annotation_counts_else_the_roles(load: Load, plan_of: PlanOf, change: Change) -> None:
    objects = named(load, change)
    change(objects, "OpenStackDataPlaneNode/compute-0", {"metadata": {"annotations": {ANNOTATION: "own"}}})
    objects += [secret(auth__json=AUTH), secret("own", registries__conf=MIRRORS)]
    planned = plan_of(objects)
    first, second = (known(planned.service(node).registry) for node in ("compute-0", "compute-1"))
    assert (first.auth, first.registries, first.pull) == ("", MIRRORS, "missing")
    assert (second.auth, second.registries) == (AUTH, "")
    assert known(planned.service("compute-1", "libvirt").registry) == second
    assert "Images are pulled with the credentials of Secret openstack/registry." in planned.service("compute-1").notes


def test_all_that_a_registry_may_want_is_taken(load: Load, plan_of: PlanOf, change: Change) -> None:
    data = {
        ".dockerconfigjson": AUTH,
        "ca.crt": "CA",
        "client.cert": "C",
        "client.key": "K",
        "registries.conf": MIRRORS,
    }
    body = {**secret(), "stringData": data}
    found = known(plan_of([*named(load, change), body]).service("compute-0").registry)
    assert found.auth == AUTH
    assert found.certificates == {"ca.crt": "CA", "client.cert": "C", "client.key": "K"}
    assert found.registries == MIRRORS
    assert "planted" not in repr(found)
    assert "cGxhbnRlZA" not in repr(found)


def test_a_registry_secret_that_is_missing_keeps_the_services_waiting(
    load: Load, plan_of: PlanOf, change: Change
) -> None:
    planned = plan_of(named(load, change, "Node/compute-0"))
    assert planned.service("compute-0").blocked == (
        f"{SECRET}, which OpenStackDataPlaneNode openstack/compute-0, annotation {ANNOTATION} names, does not exist; "
        "create it or remove the annotation.",
    )
    assert planned.node("compute-1").ready


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"other": "x"}, f"{SECRET} has none of the keys .dockerconfigjson, auth.json, ca.crt, client.cert,"),
        ({"auth__json": "planted"}, f"{SECRET}, key auth.json: is no Docker configuration, JSON with a mapping"),
        ({"auth__json": '{"auths": []}'}, f"{SECRET}, key auth.json: is no Docker configuration"),
        ({"auth__json": AUTH, "__dockerconfigjson": AUTH}, f"{SECRET} has the keys .dockerconfigjson and auth.json;"),
        ({"client__key": "planted"}, f"{SECRET} has one of the keys client.cert and client.key, which belong together"),
        ({"registries__conf": "= planted"}, f"{SECRET}, key registries.conf: is not TOML, as a registries.conf is;"),
    ],
)
def test_a_registry_secret_that_cannot_be_used_is_an_error_without_showing_it(
    load: Load, plan_of: PlanOf, change: Change, keys: dict[str, str], sentence: str
) -> None:
    said = plan_of([*named(load, change), secret(**keys)]).service("compute-0").errors
    assert len(said) == 1
    assert said[0].startswith(sentence)
    assert "planted" not in said[0]


def test_the_registry_secret_is_read_and_only_where_it_is_named(load: Load, change: Change) -> None:
    def names(objects: Objects) -> set[str]:
        return {ref.name for ref in references(parse_resources(objects, namespace="openstack"))}

    assert "registry" in names(named(load, change))
    assert "registry" not in names(load("base"))
    assert names(named(load, change)) - names(load("base")) == {"registry"}
