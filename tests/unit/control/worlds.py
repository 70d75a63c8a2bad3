# SPDX-License-Identifier: GPL-3.0-or-later
"""Small clusters: objects as an API server hands them out, and the world that is made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import yaml
from ansible_collections.edpm.services.plugins.plugin_utils._control.chains import Chain, chains
from ansible_collections.edpm.services.plugins.plugin_utils._control.leaving import leaving_objects
from ansible_collections.edpm.services.plugins.plugin_utils._control.look import World
from ansible_collections.edpm.services.plugins.plugin_utils._control.names import FINALIZER, INVENTORY, KEPT
from ansible_collections.edpm.services.plugins.plugin_utils._control.standing import standing
from ansible_collections.edpm.services.plugins.plugin_utils._control.wanted import Chosen, Untouched, wanted_objects
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.model import UnseenKind
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.plan import resolve
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.stores import snapshot_of

DATAPLANE = "dataplane.openstack.org/v1beta1"
NOVA = "nova.openstack.org/v1beta1"
CELL = "nova.openstack.org/cell"
MARK = "edpm.openstack.org/deployed-cell"

Body = dict[str, Any]
IMAGES = {
    "RELATED_IMAGE_NOVA_COMPUTE_IMAGE_URL_DEFAULT": "compute:1",
    "RELATED_IMAGE_NOVA_LIBVIRT_IMAGE_URL_DEFAULT": "libvirt:1",
}


def thing(api_version: str, kind: str, name: str, annotations: Mapping[str, str] | None = None, **rest: Any) -> Body:
    metadata = {
        "name": name,
        "namespace": "openstack",
        "uid": f"{kind}-{name}",
        "generation": 1,
        "annotations": dict(annotations or {}),
        **rest.pop("metadata", {}),
    }
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


def role(cell: str | None = "nova-cell1", name: str = "edpm", mark: str | None = None, **spec: Any) -> Body:
    said = {**({CELL: cell} if cell is not None else {}), **({MARK: mark} if mark is not None else {})}
    return thing(DATAPLANE, "OpenStackDataPlaneRole", name, said, spec={"nodeTemplate": {}, **spec})


def node(name: str = "node-0", cell: str | None = None, mark: str | None = None, **spec: Any) -> Body:
    said = {**({CELL: cell} if cell is not None else {}), **({MARK: mark} if mark is not None else {})}
    spec = {"role": "edpm", "hostName": name, "ansibleHost": f"{name}.example.com", **spec}
    return thing(DATAPLANE, "OpenStackDataPlaneNode", name, said, spec=spec)


def compute(
    name: str = "node-0",
    *,
    owned: bool = True,
    ours: Iterable[str] = (),
    theirs: Mapping[str, Iterable[str]] | None = None,
    annotations: Mapping[str, str] | None = None,
    deleting: bool = False,
    status: Body | None = None,
    **spec: Any,
) -> Body:
    """A NovaExternalCompute as reconcile has left it, but for what is given."""
    fields = {"dataplaneNodeName": name, "cellName": "nova-cell1", "deploy": True} | spec
    fields.setdefault("inventoryConfigMapName", f"dataplanenode-{name}")
    held = {"edpm.services": tuple(ours) or tuple(fields), **(theirs or {})}
    metadata: Body = {
        "finalizers": [FINALIZER] if owned else [],
        "managedFields": [
            {
                "manager": manager,
                "operation": "Apply" if manager == "edpm.services" else "Update",
                "fieldsV1": {"f:spec": {f"f:{field}": {} for field in names}},
            }
            for manager, names in held.items()
            if owned or manager != "edpm.services"
        ],
    }
    if owned:
        owner = {"apiVersion": DATAPLANE, "kind": "OpenStackDataPlaneNode", "name": name}
        metadata["ownerReferences"] = [{**owner, "uid": f"OpenStackDataPlaneNode-{name}"}]
    if deleting:
        metadata["deletionTimestamp"] = "2026-11-01T08:00:00Z"
    said = {INVENTORY: KEPT, **(annotations or {})} if owned else dict(annotations or {})
    rest = {"status": status} if status else {}
    return thing(NOVA, "NovaExternalCompute", name, said, metadata=metadata, spec=fields, **rest)


CELLS = [thing(NOVA, "NovaCell", f"nova-cell{number}", spec={"cellName": f"cell{number}"}) for number in (1, 2)]
REST = [
    *CELLS,
    thing("v1", "Secret", "nova-cell1-compute-config", stringData={"01-nova.conf": "[DEFAULT]\n"}),
    thing("v1", "Secret", "nova-cell2-compute-config", stringData={"01-nova.conf": "[DEFAULT]\n"}),
]


UNSEEN = UnseenKind("probe.example.com", "Probe", "openstack", "jane may not list probes; give her that right.")


def partner(**says: Any) -> list[Body]:
    """A partner's service `probe` with a kind of its own, as a cluster defines it."""
    cr = {"api_version": "probe.example.com/v1", "kind": "Probe"}
    definition = {"version": 1, "command": "probe", "user": "probe", "image": "probe:1", "service_cr": cr, **says}
    listed = thing(DATAPLANE, "OpenStackDataPlaneService", "probe", spec={"configMaps": ["probe"]})
    return [listed, thing("v1", "ConfigMap", "probe", data={"edpm-service.yaml": yaml.safe_dump(definition)})]


def world(
    *bodies: Body,
    images: Mapping[str, str] | None = None,
    kinds: Iterable[str] = (),
    unseen: Iterable[UnseenKind] = (),
    lost: Iterable[str] = (),
) -> World:
    """What a read of a cluster with these objects gives. `kinds` are those that it serves; all, if none is given.

    Of kinds that are unseen no object may be among the bodies. Inventories that objects name are there, but the `lost`.
    """
    named = {str(body.get("spec", {}).get("inventoryConfigMapName") or "") for body in bodies} - {"", *lost}
    texts = {name: yaml.safe_dump({"all": {"hosts": {name.removeprefix("dataplanenode-"): {}}}}) for name in named}
    written = [thing("v1", "ConfigMap", name, data={"inventory": text}) for name, text in sorted(texts.items())]
    every = [*REST, *written, *bodies]
    snapshot = replace(snapshot_of(every, images), unseen=tuple(unseen))
    found = [one for body in every if (one := standing(body)) is not None]
    served = frozenset(kinds) or frozenset({"OpenStackDataPlaneNode", "OpenStackDataPlaneNodeSet"})
    return World(snapshot, resolve(snapshot), {one.ref: one for one in found}, served)


def judged(cluster: World, chosen: Chosen | None = None) -> tuple[list[Chain], list[Untouched]]:
    """What a pass would do, and what it would not touch."""
    meant = chosen or Chosen()
    wanted, untouched = wanted_objects(cluster, meant)
    going, unjudged = leaving_objects(cluster, {one.ref for one in wanted}, meant)
    return chains(cluster, wanted, going, meant), [*untouched, *unjudged]


def steps(*bodies: Body, **rest: Any) -> list[str]:
    """The steps of a pass, as `<step> <kind>/<name>`."""
    found, _untouched = judged(world(*bodies, **rest))
    return [f"{type(step).__name__} {step.ref.kind}/{step.ref.name}" for chain in found for step in chain.steps]
