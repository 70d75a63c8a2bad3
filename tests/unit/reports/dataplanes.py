# SPDX-License-Identifier: GPL-3.0-or-later
"""A small data plane with something of everything that is shown."""

from __future__ import annotations

from typing import Any

from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.plan import resolve
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import Plan
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.stores import snapshot_of

DATAPLANE = "dataplane.openstack.org/v1beta1"
NOVA = "nova.openstack.org/v1beta1"
PASSWORD = "never-to-be-seen"
NASTY = "</script><script>alert(1)</script>"
Object = dict[str, Any]

GENERATED = f"""\
[DEFAULT]
debug = False
transport_url = rabbit://nova:{PASSWORD}@rabbit.example/
[keystone_authtoken]
password = {PASSWORD}
"""
SNIPPET = f"[DEFAULT]\ndebug = True\nlabel = {NASTY}\n[pci]\nalias = one\nalias = two\n"
IMAGES = {
    "RELATED_IMAGE_NOVA_LIBVIRT_IMAGE_URL_DEFAULT": "images.example/openstack/libvirt@sha256:" + "ab" * 32,
    "RELATED_IMAGE_NOVA_COMPUTE_IMAGE_URL_DEFAULT": "images.example/openstack/nova-compute:30",
    "RELATED_IMAGE_EDPM_CINDER_VOLUME_IMAGE_URL_DEFAULT": "cinder:30",
}


def thing(api_version: str, kind: str, name: str, annotations: dict[str, str] | None = None, **rest: Any) -> Object:
    meta = {"name": name, "namespace": "openstack", "annotations": annotations or {}}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **rest}


def node(name: str, role: str, address: int, annotations: dict[str, str] | None = None) -> Object:
    spec = {"role": role, "hostName": name, "ansibleHost": f"192.0.2.{address}"}
    return thing(DATAPLANE, "OpenStackDataPlaneNode", name, annotations, spec=spec)


def objects() -> list[Object]:
    cell = {"nova.openstack.org/cell": "nova-cell1"}
    snippet = {"dataplaneNodeName": "compute-0", "cellName": "nova-cell1", "customServiceConfig": SNIPPET}
    return [
        thing(DATAPLANE, "OpenStackDataPlaneRole", "compute", cell, spec={}),
        thing(DATAPLANE, "OpenStackDataPlaneRole", "storage", {"cinder.openstack.org/volume": "true"}, spec={}),
        thing(DATAPLANE, "OpenStackDataPlaneRole", "network", spec={"services": ["telemetry"]}),
        thing(NOVA, "NovaCell", "nova-cell1", spec={"cellName": "cell1"}),
        thing("v1", "Secret", "nova-cell1-compute-config", stringData={"01-nova.conf": GENERATED, "user": "u"}),
        thing(NOVA, "NovaExternalCompute", "compute-0", spec=snippet),
        node("compute-0", "compute", 10),
        node("compute-1", "compute", 11, {"nova.openstack.org/deploy": "false"}),
        node("compute-2", "compute", 12, {"nova.openstack.org/cell": "nova-cell2"}),
        node("network-0", "network", 13),
        node("storage-0", "storage", 14),
        node("stray-0", "nowhere", 15),
    ]


def plan_of(*more: Object) -> Plan:
    """The plan of the data plane, with more or other objects in it."""
    named = {(one["kind"], one["metadata"]["name"]): one for one in (*objects(), *more)}
    return resolve(snapshot_of(list(named.values()), IMAGES, namespace="openstack"))
