# SPDX-License-Identifier: GPL-3.0-or-later
"""The resources that resolution reads, as frozen data.

Only fields that matter to phase 1 are here. A property that is absent, null or empty is None: the data plane operator
reads them so too, and inheritance needs one way to say "not set".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .definitions import ServiceDefinition
from .values import Value, Variables

CELL_ANNOTATION = "nova.openstack.org/cell"
SSH_KEY = "ssh-privatekey"


@dataclass(frozen=True, slots=True, order=True)
class Reference:
    """One object of the cluster; as text, the way that sentences name it."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one object, as a sentence that names it."""

    of: Reference
    sentence: str


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a status."""

    status: str
    message: str = ""

    @property
    def true(self) -> bool:
        """Whether the condition holds."""
        return self.status == "True"


@dataclass(frozen=True, slots=True)
class Metadata:
    """Who an object is, and what its operator says of it. `conditions` is None where there is no status.

    An object with `faults` could be read only in part: it is there so that those who use it learn why it cannot be.
    """

    ref: Reference
    annotations: Mapping[str, str] = field(default_factory=dict)
    owners: tuple[tuple[str, str], ...] = ()
    conditions: Mapping[str, Condition] | None = None
    deleting: bool = False
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class Network:
    """A network of a node; `fixed_ip` where the data plane tells the address."""

    name: str
    fixed_ip: str | None = None


@dataclass(frozen=True, slots=True)
class VariablesFrom:
    """An entry of ansibleVarsFrom."""

    source: Reference
    prefix: str = ""
    optional: bool = False


@dataclass(frozen=True, slots=True)
class NovaSection:
    """The older `nova` or `novaTemplate` section. `field` is its path in the object that holds it."""

    field: str
    cell_name: str | None = None
    nova_instance: str | None = None
    custom_service_config: str | None = None
    deploy: bool | None = None


@dataclass(frozen=True, slots=True)
class NodeSection:
    """What a Role's nodeTemplate and a Node's node have in common."""

    ansible_user: str | None = None
    ansible_port: int | None = None
    ansible_vars: Variables | None = None
    ansible_vars_from: tuple[VariablesFrom, ...] | None = None
    ssh_key_secret: str | None = None
    management_network: str | None = None
    networks: tuple[Network, ...] | None = None
    extra_mounts: Value = None
    nova: NovaSection | None = None


@dataclass(frozen=True, slots=True)
class Role:
    """An OpenStackDataPlaneRole, or the same out of a DataPlane or a NodeSet: `meta.ref` says which."""

    name: str
    meta: Metadata
    template: NodeSection = NodeSection()
    dataplane: str | None = None
    services: tuple[str, ...] = ()
    network_attachments: tuple[str, ...] | None = None
    deploy: bool | None = None
    tls_enabled: bool = True


@dataclass(frozen=True, slots=True)
class Node:
    """An OpenStackDataPlaneNode, or the same out of a DataPlane or a NodeSet: `meta.ref` says which.

    `path` is where the node's own fields lie in that object. `gate` names the condition that tells that phase 0
    is done. `addresses` are those that a NodeSet's status tells, by network.
    """

    name: str
    meta: Metadata
    role: str
    role_ref: Reference | None = None
    section: NodeSection = NodeSection()
    host_name: str | None = None
    ansible_host: str | None = None
    network_attachments: tuple[str, ...] | None = None
    deploy: bool | None = None
    path: str = "spec"
    gate: str = "Ready"
    addresses: Mapping[str, str] = field(default_factory=dict)

    @property
    def namespace(self) -> str:
        """The namespace that the node and all that it names live in."""
        return self.meta.ref.namespace

    @property
    def where(self) -> str:
        """The node as sentences name it."""
        return str(self.meta.ref) if self.path == "spec" else f"{self.meta.ref} {self.path}"


@dataclass(frozen=True, slots=True)
class DataSource:
    """A Secret or ConfigMap that an OpenStackDataPlaneService lists, and the field that lists it."""

    source: Reference
    field: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class DataPlaneService:
    """An OpenStackDataPlaneService. `type` is its edpmServiceType, else its name.

    `tls_certs` are the names of the certificates that it asks for, one of each for every node.
    """

    meta: Metadata
    type: str
    sources: tuple[DataSource, ...] = ()
    tls_certs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CellTemplate:
    """One of a Nova's cellTemplates."""

    metadata_enabled: bool = False


@dataclass(frozen=True, slots=True)
class Nova:
    """A Nova control plane."""

    meta: Metadata
    metadata_enabled: bool = True
    cells: Mapping[str, CellTemplate] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NovaCell:
    """A NovaCell; `cell_name` is the short name, `nova` the owner where there is an owner reference."""

    meta: Metadata
    cell_name: str | None = None
    nova: str | None = None
    metadata_enabled: bool = False


@dataclass(frozen=True, slots=True)
class ServiceResource:
    """A service CR: NovaExternalCompute, OVNMetadataAgent, … or a partner's kind.

    Any object with a spec.dataplaneNodeName is one, so that a partner's kind needs no code here.
    """

    meta: Metadata
    api_version: str
    node: str
    instance: str = ""
    cell: str | None = None
    custom_service_config: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    ssh_key_secret: str | None = None
    inventory_config_map: str | None = None
    network_attachments: tuple[str, ...] | None = None
    deploy: bool = True
    images: Mapping[str, str] = field(default_factory=dict)
    dns_config: Variables = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServiceProfile:
    """One snippet for many nodes."""

    meta: Metadata
    service: str
    custom_service_config: str | None = None


@dataclass(frozen=True, slots=True)
class Resources:
    """All resources of one read, in the order of their names. `faults` are those of every object."""

    roles: tuple[Role, ...] = ()
    nodes: tuple[Node, ...] = ()
    services: tuple[DataPlaneService, ...] = ()
    novas: tuple[Nova, ...] = ()
    cells: tuple[NovaCell, ...] = ()
    service_resources: tuple[ServiceResource, ...] = ()
    profiles: tuple[ServiceProfile, ...] = ()
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class Store:
    """A Secret's or ConfigMap's contents; they never show when it is printed."""

    ref: Reference
    data: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    faults: tuple[Fault, ...] = ()

    @property
    def secret(self) -> bool:
        """Whether the contents must not be shown."""
        return self.ref.kind == "Secret"


@dataclass(frozen=True, slots=True)
class UnseenKind:
    """A partner's kind that cannot be listed, in one namespace or, where it is "", in all of them.

    That no object of it was read says nothing about those that are there. `sentence` names the right that is missing,
    or the fault of the server, such as that of a conversion webhook.
    """

    group: str
    kind: str
    namespace: str
    sentence: str

    def hides(self, definition: ServiceDefinition, namespace: str) -> bool:
        """Whether the service objects of a definition are among those that cannot be seen."""
        same = definition.kind == self.kind and definition.api_version.rpartition("/")[0] == self.group
        return same and self.namespace in ("", namespace)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that one run needs of the cluster: resources, the contents that they name, and the images' defaults.

    `images` are the environment's: RELATED_IMAGE_…_URL_DEFAULT to image. `definitions` are the partners', each of which
    counts in its own namespace. `unseen` are kinds of theirs of which nothing could be read.
    """

    resources: Resources
    stores: Mapping[Reference, Store] = field(default_factory=dict)
    images: Mapping[str, str] = field(default_factory=dict)
    definitions: tuple[ServiceDefinition, ...] = ()
    unseen: tuple[UnseenKind, ...] = ()

    def why_unseen(self, definition: ServiceDefinition, namespace: str) -> str | None:
        """The sentence that says why the service objects of a definition cannot be seen; None where they can."""
        return next((one.sentence for one in self.unseen if one.hides(definition, namespace)), None)
