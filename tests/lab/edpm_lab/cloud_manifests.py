# SPDX-License-Identifier: GPL-3.0-or-later
"""What the operators of a control plane write to its cluster, as manifests: the lab's cloud seen from the data plane.

Nova and its cells with their status, the Secrets that computes and agents are configured from, the data plane's
services that list them, and the administrator's credentials.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from . import cloud_settings
from .access import Access
from .cloud_settings import CELLS, Site
from .errors import LabError

NAMESPACE = "openstack"
NOVA = "nova"

#: Where Nova's metadata service runs: once for all cells, or in each of them.
METADATA = ("global", "cells")

Manifest = dict[str, Any]


def write(folder: Path, site: Site, *, metadata: str = "global", namespace: str = NAMESPACE) -> list[Path]:
    """Write the manifests, one file for each object, readable to their owner alone since they hold passwords."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for number, manifest in enumerate(manifests(site, metadata=metadata, namespace=namespace)):
        kind, name = manifest["kind"].lower(), manifest["metadata"]["name"]
        path = folder / f"{10 + number}-{kind}-{name}.yaml"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            yaml.safe_dump(manifest, file, sort_keys=False, width=1000)
        written.append(path)
    return written


def manifests(site: Site, *, metadata: str = "global", namespace: str = NAMESPACE) -> list[Manifest]:
    """All of them; objects come after those that they name."""
    if metadata not in METADATA:
        raise LabError(f"metadata cannot be {metadata!r}; it is one of {', '.join(METADATA)}")
    in_cells = metadata == "cells"
    found = [_nova(in_cells), *(_cell(cell) for cell in CELLS)]
    found += [secret(f"{NOVA}-{cell}-compute-config", _compute(site, cell)) for cell in CELLS]
    if in_cells:
        found += [
            secret(f"{NOVA}-{cell}-metadata-compute-config", _metadata(cloud_settings.nova_metadata(site, cell)))
            for cell in CELLS
        ]
    else:
        found.append(secret(f"{NOVA}-metadata-compute-config", _metadata(cloud_settings.nova_metadata(site))))
    found += [
        secret(
            "neutron-ovn-metadata-agent-neutron-config",
            {"10-neutron-metadata.conf": cloud_settings.metadata_agent(site)},
        ),
        secret("neutron-sriov-agent-neutron-config", {"10-neutron-sriov.conf": cloud_settings.sriov_agent(site)}),
        secret("cinder-volume-config", {"10-cinder.conf": cloud_settings.cinder_volume(site)}),
        service("neutron-metadata", ["neutron-ovn-metadata-agent-neutron-config"]),
        service("neutron-sriov", ["neutron-sriov-agent-neutron-config"]),
        service("cinder-volume", ["cinder-volume-config"], maybe=["ceph-client"]),
        resource("v1", "ConfigMap", "openstack-config", data={"clouds.yaml": site.clouds()}),
        secret("openstack-config-secret", {"secure.yaml": site.secure()}),
    ]
    return [in_namespace(manifest, namespace) for manifest in found]


def apply(server: Access, found: Sequence[Manifest]) -> None:
    """Write objects into a cluster that has their definitions, and then their status, as a controller does."""
    namespaces = {one["metadata"]["namespace"] for one in found}
    first = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in sorted(namespaces)]
    plain = [{key: value for key, value in one.items() if key != "status"} for one in found]
    text = yaml.safe_dump_all([*first, *plain])
    server.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text, timeout=120)
    for one in found:
        if "status" in one:
            where = ("--namespace", one["metadata"]["namespace"], one["kind"].lower(), one["metadata"]["name"])
            status = json.dumps({"status": one["status"]})
            server.kubectl("patch", *where, "--subresource=status", "--type=merge", "-p", status)


def resource(
    version: str, kind: str, name: str, annotations: Mapping[str, str] | None = None, **fields: object
) -> Manifest:
    """An object of the cluster."""
    metadata = {"name": name, **({"annotations": dict(annotations)} if annotations else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


def secret(name: str, data: Mapping[str, str]) -> Manifest:
    """A Secret with text in it."""
    return resource("v1", "Secret", name, type="Opaque", stringData=dict(data))


def service(name: str, secrets: Sequence[str], config_maps: Sequence[str] = (), maybe: Sequence[str] = ()) -> Manifest:
    """A service of the data plane with what it is configured from; Secrets that there may be come last."""
    sources: list[Manifest] = [{"secretRef": {"name": one}} for one in secrets]
    sources += [{"configMapRef": {"name": one}} for one in config_maps]
    sources += [{"secretRef": {"name": one, "optional": True}} for one in maybe]
    spec = {"edpmServiceType": name, "dataSources": sources}
    return resource("dataplane.openstack.org/v1beta1", "OpenStackDataPlaneService", name, spec=spec)


def in_namespace(manifest: Manifest, namespace: str = NAMESPACE) -> Manifest:
    """The object in a namespace."""
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}


def _nova(metadata_in_cells: bool) -> Manifest:
    cells = {
        cell: {"hasAPIAccess": True, "metadataServiceTemplate": {"enabled": metadata_in_cells and cell != "cell0"}}
        for cell in ("cell0", *CELLS)
    }
    spec = {"metadataServiceTemplate": {"enabled": not metadata_in_cells}, "cellTemplates": cells}
    return resource("nova.openstack.org/v1beta1", "Nova", NOVA, spec=spec, status=_ready())


def _cell(cell: str) -> Manifest:
    return resource(
        "nova.openstack.org/v1beta1", "NovaCell", f"{NOVA}-{cell}", spec={"cellName": cell}, status=_ready()
    )


def _compute(site: Site, cell: str) -> dict[str, str]:
    """With the keys that are no files, as they come in the field."""
    return {
        "01-nova.conf": cloud_settings.compute(site, cell),
        "nova-blank.conf": "",
        "rabbitmq_user_name": cloud_settings.bus_user(cell),
    }


def _metadata(text: str) -> dict[str, str]:
    return {"05-nova-metadata.conf": text}


def _ready() -> Manifest:
    condition = {"type": "Ready", "status": "True", "reason": "Ready", "message": "Setup complete"}
    return {"conditions": [{**condition, "lastTransitionTime": "2026-11-01T08:00:00Z"}]}
