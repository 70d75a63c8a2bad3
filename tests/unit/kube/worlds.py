"""Small data planes to take snapshots of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.model import Reference, Snapshot
from ansible_collections.edpm.services.plugins.plugin_utils._kube import snapshot
from ansible_collections.edpm.services.plugins.plugin_utils._kube.snapshot import Source

DATAPLANE = "dataplane.openstack.org/v1beta1"
NOVA = "nova.openstack.org/v1beta1"
COMPUTE_CONFIG = Reference("Secret", "openstack", "nova-cell1-compute-config")

Body = dict[str, Any]


def thing(api_version: str, kind: str, name: str, namespace: str | None = "openstack", **rest: Any) -> Body:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **rest.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


CELL = {"annotations": {"nova.openstack.org/cell": "nova-cell1"}}


def node(name: str = "edpm-compute-0", namespace: str | None = "openstack", **spec: Any) -> Body:
    spec = {"hostName": name, "ansibleHost": f"{name}.example.com", "role": "edpm-compute", **spec}
    return thing(DATAPLANE, "OpenStackDataPlaneNode", name, namespace, spec=spec)


ROLE = thing(DATAPLANE, "OpenStackDataPlaneRole", "edpm-compute", metadata=CELL, spec={"nodeTemplate": {}})
SECRET = thing("v1", "Secret", COMPUTE_CONFIG.name, stringData={"01-nova.conf": "[DEFAULT]\n"})
STRAY = thing("v1", "Secret", "nobody-names-it", stringData={"password": "hidden"})
WORLD = [node(), ROLE, SECRET, STRAY, thing(NOVA, "NovaCell", "nova-cell1")]


def write(folder: Path, *bodies: Body, name: str = "all.yaml") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(yaml.safe_dump_all(bodies))
    return folder


def from_manifests(*paths: Path, namespaces: tuple[str, ...] = ()) -> Snapshot:
    return snapshot.read(Source(manifests=tuple(map(str, paths)), namespaces=namespaces))
