# SPDX-License-Identifier: GPL-3.0-or-later
"""extraMounts of a node section: what of it a service on a node can have, and what cannot be."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.parse import parse_resources
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.references import references

from .conftest import Change, Json, Load, Objects, PlanOf

ROLE = "OpenStackDataPlaneRole openstack/compute"
FIRST = f"{ROLE}, field nodeTemplate.extraMounts[0].mounts[0]"
SECOND = f"{ROLE}, field nodeTemplate.extraMounts[1].mounts[0]"
CEPH: Json = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "ceph", "namespace": "openstack"},
    "stringData": {"ceph.conf": "[global]\n", "ceph.client.openstack.keyring": "planted"},
}


def entry(volume: Json, propagation: list[str] | None = None, **mount: Any) -> Json:
    mount = {"name": "v", "mountPath": "/etc/ceph", **mount}
    return {
        "extraVolType": "Ceph",
        "volumes": [{"name": "v", **volume}],
        "mounts": [mount],
        **({"propagation": propagation} if propagation is not None else {}),
    }


def mounting(load: Load, change: Change, *entries: Any, annotations: dict[str, str] | None = None) -> Objects:
    update = {
        "metadata": {"annotations": annotations or {}},
        "spec": {"nodeTemplate": {"extraMounts": list(entries)}},
    }
    return change(load("base"), "OpenStackDataPlaneRole/compute", update)


SECRET = {"secret": {"secretName": "ceph"}}
IN_A_FOLDER = {"secret": {"secretName": "ceph", "items": [{"key": "ceph.conf", "path": "a/b.conf"}]}}


def test_the_files_of_a_secret_lie_below_the_mounts_path(load: Load, plan_of: PlanOf, change: Change) -> None:
    planned = plan_of([*mounting(load, change, entry(SECRET, readOnly=True)), CEPH])
    for service in ("nova_compute", "libvirt"):
        (mount,) = planned.service("compute-0", service).extra_mounts
        assert (mount.target, mount.source, mount.options) == ("/etc/ceph", "", ("ro",))
        assert {f"{one.directory}/{one.file_name}": (one.content, one.secret) for one in mount.files} == {
            "/etc/ceph/ceph.conf": (b"[global]\n", True),
            "/etc/ceph/ceph.client.openstack.keyring": (b"planted", True),
        }
    note = f"nova_compute finds Secret openstack/ceph at /etc/ceph, as {FIRST} says."
    assert note in planned.service("compute-0").notes
    assert "planted" not in repr(planned.plan)


def test_a_path_of_the_node_is_mounted_as_it_is_said(load: Load, plan_of: PlanOf, change: Change) -> None:
    volume = {"hostPath": {"path": "/srv/shares/", "type": "Directory"}}
    written = entry(volume, mountPath="/mnt/shares", subPath="glance", mountPropagation="Bidirectional")
    (found,) = plan_of(mounting(load, change, written)).service("compute-0").extra_mounts
    assert (found.source, found.target, found.options) == ("/srv/shares/glance", "/mnt/shares", ("rshared",))


def test_a_nodes_own_mounts_replace_the_roles_whole(load: Load, plan_of: PlanOf, change: Change) -> None:
    objects = mounting(load, change, entry(SECRET))
    own = [entry({"hostPath": {"path": "/a"}}, mountPath="/b")]
    change(objects, "OpenStackDataPlaneNode/compute-0", {"spec": {"node": {"extraMounts": own}}})
    planned = plan_of([*objects, CEPH])
    assert [one.target for one in planned.service("compute-0").extra_mounts] == ["/b"]
    assert [one.target for one in planned.service("compute-1").extra_mounts] == ["/etc/ceph"]


@pytest.mark.parametrize(
    ("written", "paths"),
    [
        (entry(IN_A_FOLDER), ["a/b.conf"]),
        (entry(IN_A_FOLDER, subPath="a"), ["b.conf"]),
        (entry(SECRET, mountPath="/etc/ceph/my.conf", subPath="ceph.conf"), ["my.conf"]),
        (
            entry({"projected": {"sources": [{"secret": {"name": "ceph"}}, {"configMap": {"name": "more"}}]}}),
            ["ceph.client.openstack.keyring", "ceph.conf", "note"],
        ),
    ],
)
def test_items_sub_paths_and_projections_are_understood(
    load: Load, plan_of: PlanOf, change: Change, written: Json, paths: list[str]
) -> None:
    more = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "more", "namespace": "openstack"}}
    objects = [*mounting(load, change, written), CEPH, {**more, "data": {"note": "x"}}]
    service = plan_of(objects).service("compute-0")
    assert service.errors == ()
    found = [f"{one.directory}/{one.file_name}" for mounted in service.extra_mounts for one in mounted.files]
    assert sorted(found) == [f"/etc/ceph/{path}" for path in paths]


@pytest.mark.parametrize(
    ("propagation", "services"),
    [
        (None, ["libvirt", "nova_compute", "cinder_volume"]),
        (["All"], ["libvirt", "nova_compute", "cinder_volume"]),
        (["edpm"], ["libvirt", "nova_compute", "cinder_volume"]),
        (["Compute"], ["libvirt", "nova_compute"]),
        (["nova"], ["nova_compute"]),
        (["cinder_volume", "neutron-sriov"], ["neutron_sriov_agent", "cinder_volume"]),
        (["CinderBackup"], []),
    ],
)
def test_propagation_says_which_services_get_it(
    load: Load, plan_of: PlanOf, change: Change, propagation: list[str] | None, services: list[str]
) -> None:
    noted = {"neutron.openstack.org/sriov-agent": "true", "cinder.openstack.org/volume": "true"}
    objects = mounting(load, change, entry({"hostPath": {"path": "/a"}}, propagation), annotations=noted)
    node = plan_of(objects).node("compute-0")
    assert [one.service for one in node.services if one.extra_mounts] == services


@pytest.mark.parametrize(
    ("entries", "sentence"),
    [
        (
            [entry({"persistentVolumeClaim": {"claimName": "x"}})],
            "extraMounts[0].volumes[0].persistentVolumeClaim: cannot exist on a node outside the cluster; mount it on",
        ),
        ([entry({"nfs": {"server": "x"}})], "extraMounts[0].volumes[0].nfs: cannot exist on a node outside"),
        (
            [entry({"projected": {"sources": [{"serviceAccountToken": {}}]}})],
            "extraMounts[0].volumes[0].projected.sources[0].serviceAccountToken: cannot exist on a node",
        ),
        ([entry({})], "extraMounts[0].volumes[0].name: a volume has one of hostPath, secret, configMap and"),
        ([entry(SECRET, name="w")], "extraMounts[0].mounts[0].name: there is no volume w beside it; add it"),
        ([entry(SECRET, mountPath="etc")], "extraMounts[0].mounts[0].mountPath: is not a whole path"),
        ([entry({"hostPath": {"path": "/a/../b"}})], "extraMounts[0].volumes[0].hostPath.path: is not a whole path"),
        ([entry(SECRET, subPath="../x")], "extraMounts[0].mounts[0].subPath: leads out of its volume; correct it."),
        ([entry(SECRET, mountPropagation="Both")], "extraMounts[0].mounts[0].mountPropagation: is Both and none of"),
        (["text"], "extraMounts: must be a list of mappings, not text; correct it."),
    ],
)
def test_what_cannot_be_on_a_node_is_an_error_that_says_so(
    load: Load, plan_of: PlanOf, change: Change, entries: list[Any], sentence: str
) -> None:
    planned = plan_of([*mounting(load, change, *entries), CEPH])
    said = planned.service("compute-0").errors
    assert len(said) == 1, said
    assert said[0].startswith(f"{ROLE}, field nodeTemplate.{sentence}")


def test_a_sub_path_or_key_that_is_not_there_is_an_error(load: Load, plan_of: PlanOf, change: Change) -> None:
    items = {"secret": {"secretName": "ceph", "items": [{"key": "none", "path": "x"}]}}
    objects = [*mounting(load, change, entry(SECRET, subPath="none"), entry(items)), CEPH]
    assert plan_of(objects).service("compute-0").errors == (
        f"{FIRST}: there is no none in the volume; correct subPath.",
        f"Secret openstack/ceph has no key none, which {SECOND} names; add it.",
    )


def test_a_secret_that_is_missing_keeps_the_services_waiting_unless_it_is_optional(
    load: Load, plan_of: PlanOf, change: Change
) -> None:
    planned = plan_of(mounting(load, change, entry(SECRET)))
    assert planned.service("compute-0").blocked == (
        f"Secret openstack/ceph, which {FIRST} names, does not exist; create it.",
    )
    optional = {"secret": {"secretName": "ceph", "optional": True}}
    assert plan_of(mounting(load, change, entry(optional))).node("compute-0").ready


def test_what_extra_mounts_name_is_read_where_a_service_gets_it(load: Load, change: Change) -> None:
    def names(objects: Objects) -> set[str]:
        return {str(ref) for ref in references(parse_resources(objects, namespace="openstack"))}

    assert names(mounting(load, change, entry(SECRET))) - names(load("base")) == {"Secret openstack/ceph"}
    assert names(mounting(load, change, entry(SECRET, ["cinder_volume"]))) == names(load("base"))
