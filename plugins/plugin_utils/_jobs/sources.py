# SPDX-License-Identifier: GPL-3.0-or-later
"""What an order leaves unsaid, taken from the plan: nodes, their networks, DNS, keys and inventories, and the image."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import yaml

from .._dataplane.model import ServiceResource, Snapshot
from .._dataplane.planned import NodePlan, Plan
from .dns import as_text, pod_dns
from .order import BadOrderError

IMAGE_FIELD = "ansibleEEContainerImage"
IMAGES = "RELATED_IMAGE_"
IMAGE_VARIABLE = "RELATED_IMAGE_NOVA_ANSIBLE_EE_IMAGE_URL_DEFAULT"

Options = Mapping[str, Any]
#: The hosts of the run's own inventory that a pattern chooses.
Matching = Callable[[str], Sequence[str]]


def resolved(
    options: Options, snapshot: Snapshot | None, plan: Plan | None, environment: Mapping[str, str], matching: Matching
) -> dict[str, Any]:
    """The fields of an order that its options alone do not tell."""
    chosen = _nodes(options, plan, matching)
    planned = [plan.by_name()[name] for name in chosen] if plan is not None else []
    objects = _objects(snapshot, options["namespace"], {node.name for node in planned})
    found: dict[str, Any] = {"nodes": tuple(options.get("nodes") or chosen)}
    if found["nodes"]:
        found["limit"] = ""
    if options.get("network_attachments") is None:
        found["network_attachments"] = _unique(one for node in planned for one in node.network_attachments)
    if options.get("dns_config") is None:
        found["dns_config"] = _dns(objects)
    images = snapshot.images if snapshot is not None else _images(environment)
    found["environment"] = {**images, **{name: str(value) for name, value in options["environment"].items()}}
    found["image"] = options.get("image") or _image(objects) or environment.get(IMAGE_VARIABLE, "")
    if options["inventory"] == "config_maps":
        found["inventory_config_maps"] = tuple(options.get("inventory_config_maps") or _inventories(planned))
        found["ssh_key_secret"] = options.get("ssh_key_secret") or _key(planned)
        if not found["inventory_config_maps"]:
            raise BadOrderError("No inventory ConfigMap is named for the run; set inventory_config_maps.")
    elif options.get("inventory_config_maps"):
        raise BadOrderError(
            "inventory_config_maps count with inventory: config_maps only; set that, or leave them out."
        )
    return found


def hosts_in(name: str, text: str) -> tuple[str, ...]:
    """The hosts of an inventory in YAML, as an inventory ConfigMap holds it."""
    try:
        groups = yaml.safe_load(text)
    except yaml.YAMLError:
        groups = None
    if not isinstance(groups, Mapping):
        raise BadOrderError(f"ConfigMap {name}, key inventory: is no inventory in YAML; correct it, or name the nodes.")
    return _unique(_in_groups(groups))


def _nodes(options: Options, plan: Plan | None, matching: Matching) -> tuple[str, ...]:
    """The names of the planned nodes that the run is over; named inventories tell their hosts themselves."""
    if plan is None or (options.get("inventory_config_maps") and not options.get("nodes")):
        return ()
    here = {node.name: node for node in plan.by_name().values() if node.namespace == options["namespace"]}
    if options.get("nodes"):
        if options["inventory"] == "dataplane":
            _refuse_unknown(options["nodes"], here, options["namespace"])
        return tuple(name for name in options["nodes"] if name in here)
    if not options["shard_size"]:
        return ()
    if not options.get("limit"):
        return tuple(here)
    if not (chosen := tuple(name for name in matching(options["limit"]) if name in here)):
        raise BadOrderError(
            f"The limit {options['limit']} chooses no node of the data plane in namespace {options['namespace']}; "
            "correct limit or namespace."
        )
    return chosen


def _refuse_unknown(names: Iterable[str], here: Mapping[str, NodePlan], namespace: str) -> None:
    for name in names:
        if name not in here:
            near = get_close_matches(name, here, 1)
            hint = f"; did you mean {near[0]}?" if near else "; look at edpm.services.plan for those that do."
            raise BadOrderError(f"No node {name} in namespace {namespace} should run a service{hint}")


def _objects(snapshot: Snapshot | None, namespace: str, nodes: set[str]) -> list[ServiceResource]:
    """The service CRs of these nodes; where none is known, all of the namespace."""
    every = snapshot.resources.service_resources if snapshot is not None else ()
    return [one for one in every if one.meta.ref.namespace == namespace and (one.node in nodes or not nodes)]


def _image(objects: Iterable[ServiceResource]) -> str:
    """The image that they agree on."""
    named = {one.images[IMAGE_FIELD]: str(one.meta.ref) for one in objects if IMAGE_FIELD in one.images}
    if len(named) > 1:
        (first, of_first), (second, of_second), *_rest = sorted(named.items())
        raise BadOrderError(
            f"{of_first} names the image {first} and {of_second} names {second}, and a run has one; set image."
        )
    return next(iter(named), "")


def _dns(objects: Iterable[ServiceResource]) -> dict[str, Any]:
    """The DNS settings that they agree on."""
    named = {as_text(dns): (dns, str(one.meta.ref)) for one in objects if (dns := pod_dns(one.dns_config))}
    if len(named) > 1:
        (first, (_one, of_first)), (second, (_other, of_second)), *_rest = sorted(named.items())
        raise BadOrderError(
            f"{of_first} has the dnsConfig {first} and {of_second} has {second}, and a run has one; set dns_config, "
            "or run once for each."
        )
    return next((dns for dns, _ref in named.values()), {})


def _images(environment: Mapping[str, str]) -> dict[str, str]:
    """The services' images, which the pods must know as their starter does, or their plan would be another one."""
    return {name: image for name, image in environment.items() if name.startswith(IMAGES) and image}


def _inventories(nodes: Iterable[NodePlan]) -> tuple[str, ...]:
    return _unique(node.inventory_config_map for node in nodes if node.inventory_config_map)


def _key(nodes: Iterable[NodePlan]) -> str:
    secrets = _unique(node.connection.ssh_key.secret.name for node in nodes if node.connection.ssh_key is not None)
    if len(secrets) > 1:
        raise BadOrderError(
            f"The nodes' SSH keys are in the Secrets {', '.join(secrets)}, and with inventory ConfigMaps a run takes "
            "one; run once for each, or let inventory be dataplane."
        )
    return next(iter(secrets), "")


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _in_groups(groups: Mapping[str, Any]) -> Iterable[str]:
    for group in groups.values():
        if isinstance(group, Mapping):
            yield from group.get("hosts") or ()
            yield from _in_groups(group.get("children") or {})
