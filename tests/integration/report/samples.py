# SPDX-License-Identifier: GPL-3.0-or-later
"""A data plane with something of everything that a page must show, and text that would like to be markup."""

from __future__ import annotations

from typing import Any

DATAPLANE = "dataplane.openstack.org/v1beta1"
NOVA = "nova.openstack.org/v1beta1"
NASTY = "</script><script>document.title = 'owned'</script><img src=x onerror=\"document.title='owned'\">"
PASSWORD = "never-to-be-seen"
Object = dict[str, Any]


def thing(api_version: str, kind: str, name: str, annotations: dict[str, str] | None = None, **rest: Any) -> Object:
    meta = {"name": name, "namespace": "openstack", "annotations": annotations or {}}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **rest}


def role(name: str, **annotations: str) -> Object:
    return thing(DATAPLANE, "OpenStackDataPlaneRole", name, annotations, spec={})


def node(name: str, role_name: str, address: int, annotations: dict[str, str] | None = None) -> Object:
    spec = {"role": role_name, "hostName": name, "ansibleHost": f"192.0.2.{address}"}
    return thing(DATAPLANE, "OpenStackDataPlaneNode", name, annotations, spec=spec)


def secret(name: str, **data: str) -> Object:
    return thing("v1", "Secret", name, stringData=data)


def data_plane() -> list[Object]:
    cell, agent = {"nova.openstack.org/cell": "nova-cell1"}, {"neutron.openstack.org/sriov-agent": "true"}
    generated = (
        "[DEFAULT]\ndebug = False\n"
        f"transport_url = rabbit://nova:{PASSWORD}@rabbitmq-cell1.openstack.svc:5671/?ssl=1\n"
        f"\n[keystone_authtoken]\npassword = {PASSWORD}\n"
    )
    snippet = f"# {NASTY}\n[DEFAULT]\ndebug = True\nmy_label = {NASTY}\n[libvirt]\ncpu_mode = host-model\n"
    compute = {"dataplaneNodeName": "edpm-compute-0", "cellName": "nova-cell1", "customServiceConfig": snippet}
    images = {"novaComputeContainerImage": "images.example/openstack/nova-compute:30"}
    return [
        role("edpm-compute", **cell, **agent),
        role("edpm-storage", **{"cinder.openstack.org/volume": "true"}),
        role("edpm-network"),
        thing(NOVA, "NovaCell", "nova-cell1", spec={"cellName": "cell1"}),
        secret("nova-cell1-compute-config", **{"01-nova.conf": generated, "rabbitmq_user_name": "nova"}),
        thing(NOVA, "NovaExternalCompute", "edpm-compute-0", spec={**compute, **images}),
        node("edpm-compute-0", "edpm-compute", 10),
        node("edpm-compute-1", "edpm-compute", 11, {"nova.openstack.org/deploy": "false"}),
        node("edpm-compute-2", "edpm-compute", 12, {"nova.openstack.org/cell": "nova-cell2"}),
        node("edpm-network-0", "edpm-network", 13),
        node("edpm-storage-0", "edpm-storage", 14),
    ]
