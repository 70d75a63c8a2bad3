# SPDX-License-Identifier: GPL-3.0-or-later
"""The edge where API JSON comes in. A malformed object is a fault of that object; the others go on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from .fields import Fields
from .model import (
    CellTemplate,
    DataPlaneService,
    DataSource,
    Fault,
    Metadata,
    Node,
    Nova,
    NovaCell,
    Reference,
    Resources,
    Role,
    ServiceProfile,
    ServiceResource,
)
from .parse_nodes import dataplane, node, node_set, role
from .values import Variables

DEFAULT_NAMESPACE = "default"

Parsed: TypeAlias = Role | Node | DataPlaneService | Nova | NovaCell | ServiceResource | ServiceProfile
#: What one object holds, and what is wrong with it.
ParsedObject: TypeAlias = tuple[tuple[Parsed, ...], tuple[Fault, ...]]


def parse_resources(objects: Iterable[Mapping[str, Any]], *, namespace: str = DEFAULT_NAMESPACE) -> Resources:
    """All objects of kinds that matter; others, Secrets and ConfigMaps among them, are passed over.

    `namespace` is that of objects which name none, as in manifests.
    """
    return resources_of(parse_object(body, number, namespace=namespace) for number, body in enumerate(objects))


def parse_object(body: Mapping[str, Any], number: int = 0, *, namespace: str = DEFAULT_NAMESPACE) -> ParsedObject:
    """One object. `number` is what it is called when it has no name."""
    fields = _identified(body, number, namespace)
    if not isinstance(fields, Fields):
        return (), (fields,)
    parsed = tuple(_parse(fields, body))
    return parsed, tuple(fields.faults)


def resources_of(objects: Iterable[ParsedObject]) -> Resources:
    """All resources, in the order of their names."""
    read = list(objects)
    return _resources(
        [one for parsed, _faults in read for one in parsed], [one for _parsed, faults in read for one in faults]
    )


def _identified(body: Mapping[str, Any], number: int, namespace: str) -> Fields | Fault:
    """The object with its name, or what is wrong with it."""
    unknown = Fields(body if isinstance(body, Mapping) else {}, Reference("Object", namespace, f"number {number}"))
    if not isinstance(body, Mapping):
        unknown.fault("kind", "is missing, since the object is not a mapping; correct or remove it.")
    kind = unknown.needed_text("kind")
    meta = unknown.inner("metadata")
    name = meta.needed_text("name")
    home = meta.text("namespace") or namespace
    if unknown.faults:
        return unknown.faults[0]
    return Fields(body, Reference(kind, home, name))


def _parse(fields: Fields, body: Mapping[str, Any]) -> Iterable[Parsed]:
    group = str(body.get("apiVersion", "")).rpartition("/")[0]
    parser = _PARSERS.get((group, fields.ref.kind))
    if parser is not None:
        return parser(fields)
    spec = body.get("spec")
    if group and isinstance(spec, Mapping) and "dataplaneNodeName" in spec:
        return service_resource(fields)
    return ()


def service(fields: Fields) -> Iterable[DataPlaneService]:
    """An OpenStackDataPlaneService, in today's form and in the earlier one."""
    spec = fields.inner("spec")
    home = fields.ref.namespace
    sources: list[DataSource] = []
    for number, entry in enumerate(spec.items("dataSources")):
        for key, kind in (("secretRef", "Secret"), ("configMapRef", "ConfigMap")):
            if entry.has(key):
                ref = entry.inner(key)
                source = Reference(kind, home, ref.needed_text("name"))
                sources.append(DataSource(source, f"spec.dataSources[{number}].{key}", bool(ref.boolean("optional"))))
    for key, kind in (("secrets", "Secret"), ("configMaps", "ConfigMap")):
        sources.extend(DataSource(Reference(kind, home, name), f"spec.{key}") for name in spec.texts(key) or ())
    ca_certs = spec.text("caCerts")
    if ca_certs:
        sources.append(DataSource(Reference("Secret", home, ca_certs), "spec.caCerts"))
    service_type = spec.text("edpmServiceType") or fields.ref.name
    tls_certs = tuple(spec.inner("tlsCerts"))
    return (DataPlaneService(type=service_type, sources=tuple(sources), tls_certs=tls_certs, meta=fields.metadata()),)


def nova(fields: Fields) -> Iterable[Nova]:
    """A Nova; its top-level metadata service is on unless it says otherwise, its cells' are off."""
    spec = fields.inner("spec")
    cells: dict[str, CellTemplate] = {}
    for name, template in spec.members("cellTemplates"):
        cells[name] = CellTemplate(template.inner("metadataServiceTemplate").boolean("enabled") is True)
        fields.faults.extend(template.faults)
    enabled = spec.inner("metadataServiceTemplate").boolean("enabled") is not False
    return (Nova(metadata_enabled=enabled, cells=cells, meta=fields.metadata()),)


def nova_cell(fields: Fields) -> Iterable[NovaCell]:
    """A NovaCell."""
    spec = fields.inner("spec")
    short = spec.text("cellName")
    enabled = spec.inner("metadataServiceTemplate").boolean("enabled") is True
    meta = fields.metadata()
    owner = next((name for kind, name in meta.owners if kind == "Nova"), None)
    return (NovaCell(cell_name=short, nova=owner, metadata_enabled=enabled, meta=meta),)


def service_resource(fields: Fields) -> Iterable[ServiceResource]:
    """A service CR of whatever kind. Every …ContainerImage field is an image."""
    spec = fields.inner("spec")
    images = {
        key: image for key in spec if key.lower().endswith("containerimage") and (image := spec.text(key)) is not None
    }
    return (
        ServiceResource(
            api_version=fields.text("apiVersion") or "",
            node=spec.needed_text("dataplaneNodeName") or fields.ref.name,
            instance=spec.text("instance") or "",
            cell=spec.text("cellName"),
            custom_service_config=spec.text("customServiceConfig"),
            files=spec.text_map("defaultConfigOverwrite"),
            ssh_key_secret=spec.text("sshKeySecretName"),
            inventory_config_map=spec.text("inventoryConfigMapName"),
            network_attachments=spec.texts("networkAttachments"),
            deploy=spec.boolean("deploy") is not False,
            images=images,
            dns_config=_dns(spec.inner("dnsConfig")) if spec.has("dnsConfig") else {},
            meta=fields.metadata(),
        ),
    )


def _dns(fields: Fields) -> Variables:
    """A PodDNSConfig."""
    options = [
        {"name": one.needed_text("name"), **({"value": value} if (value := one.text("value")) is not None else {})}
        for one in fields.items("options")
    ]
    found: Variables = {
        "nameservers": fields.texts("nameservers"),
        "searches": fields.texts("searches"),
        "options": options,
    }
    return {name: value for name, value in found.items() if value}


def profile(fields: Fields) -> Iterable[ServiceProfile]:
    """A ServiceProfile."""
    spec = fields.inner("spec")
    name = spec.needed_text("service")
    return (
        ServiceProfile(service=name, custom_service_config=spec.text("customServiceConfig"), meta=fields.metadata()),
    )


_DATAPLANE = "dataplane.openstack.org"
_NOVA = "nova.openstack.org"
_PARSERS: Mapping[tuple[str, str], Callable[[Fields], Iterable[Parsed]]] = {
    (_DATAPLANE, "OpenStackDataPlane"): dataplane,
    (_DATAPLANE, "OpenStackDataPlaneRole"): role,
    (_DATAPLANE, "OpenStackDataPlaneNode"): node,
    (_DATAPLANE, "OpenStackDataPlaneNodeSet"): node_set,
    (_DATAPLANE, "OpenStackDataPlaneService"): service,
    (_NOVA, "Nova"): nova,
    (_NOVA, "NovaCell"): nova_cell,
    (_NOVA, "NovaExternalCompute"): service_resource,
    ("neutron.openstack.org", "OVNMetadataAgent"): service_resource,
    ("neutron.openstack.org", "NeutronSriovAgent"): service_resource,
    ("cinder.openstack.org", "CinderExternalVolume"): service_resource,
    ("edpm.openstack.org", "ServiceProfile"): profile,
}

#: The kinds, with their groups, that have a meaning here.
OUR_KINDS = frozenset(_PARSERS)


def _resources(parsed: list[Parsed], faults: list[Fault]) -> Resources:
    def of(kind: type[Any]) -> tuple[Any, ...]:
        return tuple(sorted((one for one in parsed if isinstance(one, kind)), key=_order))

    every = [*faults, *(fault for one in parsed for fault in one.meta.faults)]
    return Resources(
        roles=_standalone_first(of(Role)),
        nodes=_standalone_first(of(Node)),
        services=of(DataPlaneService),
        novas=of(Nova),
        cells=of(NovaCell),
        service_resources=of(ServiceResource),
        profiles=of(ServiceProfile),
        faults=tuple(sorted(set(every), key=lambda fault: fault.sentence)),
    )


def _order(one: Parsed) -> tuple[str, str, str, str]:
    meta: Metadata = one.meta
    return (meta.ref.namespace, getattr(one, "name", meta.ref.name), meta.ref.kind, meta.ref.name)


def _standalone_first(found: tuple[Any, ...]) -> tuple[Any, ...]:
    """Leave out what a DataPlane embeds when an object of its own has the same name.

    The data plane operator makes that object from what is embedded; annotations and status are on it alone.
    """
    own = {
        (one.meta.ref.namespace, one.name) for one in found
        if one.meta.ref.kind in ("OpenStackDataPlaneRole", "OpenStackDataPlaneNode")
    }  # fmt: skip
    return tuple(
        one for one in found
        if one.meta.ref.kind != "OpenStackDataPlane" or (one.meta.ref.namespace, one.name) not in own
    )  # fmt: skip
