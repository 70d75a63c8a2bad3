# SPDX-License-Identifier: GPL-3.0-or-later
"""What resolution gives: for every node what it should run, from which bytes, and what stands against it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from .model import Reference
from .values import Value, Variables


class Layer(StrEnum):
    """Where a file comes from in the order of importance: the override wins over all others."""

    GENERATED = "generated"
    DEPLOYER = "deployer"
    PROFILE = "profile"
    HOST = "host"
    OVERRIDE = "override"


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """The object and the field or key that bytes come from."""

    ref: Reference
    field: str

    def __str__(self) -> str:
        return f"{self.ref}, {self.field}"


@dataclass(frozen=True, slots=True)
class ConfigSource:
    """One file for a service: its bytes as they are, the folder and name that they get, and who says so.

    `directory` is the folder as the service sees it; the files of the definition's conf.d folder are the layers. A
    `live` one may change without a restart of the service.
    """

    origin: Origin
    directory: str
    file_name: str
    layer: Layer
    secret: bool
    content: bytes = field(repr=False)
    live: bool = False


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A key that became no file, and why."""

    origin: Origin
    sentence: str


@dataclass(frozen=True, slots=True)
class Image:
    """An image, and the field or environment variable that names it."""

    name: str
    source: str


@dataclass(frozen=True, slots=True)
class Registry:
    """What a node shows to the registry that it pulls from, and when it pulls. Out of a Secret, so it never shows.

    `auth` is a Docker configuration as JSON, `certificates` are files by name (`ca.crt`, `client.cert`, `client.key`),
    `registries` is the text of a registries.conf, `pull` is `missing`, `always` or `never`.
    """

    auth: str = field(default="", repr=False)
    certificates: Mapping[str, str] = field(default_factory=dict, repr=False)
    registries: str = field(default="", repr=False)
    pull: str = "missing"


@dataclass(frozen=True, slots=True)
class ExtraMount:
    """A path of the node, or files out of a Secret or ConfigMap, that a deployer wants at `target` in the container.

    Either `source`, the path on the node, is set or `files`, which lie below `target` already. `options` are those of a
    mount: `ro`, `rshared` and so on.
    """

    target: str
    source: str = ""
    files: tuple[ConfigSource, ...] = ()
    options: tuple[str, ...] = ()
    origin: str = ""


@dataclass(frozen=True, slots=True)
class ServiceObject:
    """The service CR of a service on a node; where it does not exist, the one that reconcile would create."""

    api_version: str
    ref: Reference
    exists: bool
    deploy: bool


@dataclass(frozen=True, slots=True)
class Identity:
    """How nova-compute calls itself; `my_ip` is None where nothing tells an address.

    `peer_name` is what other computes call its node where they need a name that a certificate has.
    """

    host: str
    my_ip: str | None
    state_path: str
    peer_name: str = ""


@dataclass(frozen=True, slots=True)
class ServicePlan:
    """One service on one node. `hold` is the sentence that says why the node is not touched, else None.

    `conf_d` is the folder whose files are layers; what `sources` has for other folders is carried as it is.
    `definition` is a partner's, as it is written. `user_kolla` is a kolla config.json that a user brings in place of
    the one that the definition makes. `options` are the node's variables that the service's definition may read.
    """

    service: str
    instance: str = ""
    cell: str | None = None
    image: Image | None = None
    hold: str | None = None
    service_object: ServiceObject | None = None
    identity: Identity | None = None
    conf_d: str | None = None
    sources: tuple[ConfigSource, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    definition: Mapping[str, Value] | None = None
    registry: Registry | None = None
    extra_mounts: tuple[ExtraMount, ...] = ()
    user_kolla: bytes | None = field(default=None, repr=False)
    options: Mapping[str, Value] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """`<service>` or `<service>@<instance>`."""
        return f"{self.service}@{self.instance}" if self.instance else self.service


@dataclass(frozen=True, slots=True)
class SSHKey:
    """The Secret and the key in it that open a node; `exists` is False where it could not be found."""

    secret: Reference
    key: str
    exists: bool


@dataclass(frozen=True, slots=True)
class Connection:
    """How Ansible reaches a node. `variables` are the merged ansibleVars with their types, Jinja and all."""

    ansible_host: str | None = None
    ansible_user: str | None = None
    ansible_port: int | None = None
    variables: Variables = field(default_factory=dict)
    ssh_key: SSHKey | None = None


@dataclass(frozen=True, slots=True)
class NodePlan:
    """One node. `errors` are rules that are broken, `blocked` is what is not there yet; either keeps it waiting.

    `origin` is the object that describes the node, `role_origin` the one that describes its role.
    """

    name: str
    namespace: str
    host_name: str
    origin: Reference
    role: str | None = None
    role_origin: Reference | None = None
    dataplane: str | None = None
    cell: str | None = None
    deploy: bool = True
    connection: Connection = Connection()
    network_attachments: tuple[str, ...] = ()
    inventory_config_map: str | None = None
    extra_mounts: Value = None
    services: tuple[ServicePlan, ...] = ()
    notes: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """Everything that keeps the node from phase 1, its services' reasons too, each once."""
        theirs = [reason for service in self.services for reason in (*service.errors, *service.blocked)]
        return tuple(dict.fromkeys([*self.errors, *self.blocked, *theirs]))

    @property
    def ready(self) -> bool:
        """Whether nothing stands against phase 1."""
        return not self.sentences


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """A node that runs nothing of ours, and why."""

    name: str
    namespace: str
    origin: Reference
    sentence: str


@dataclass(frozen=True, slots=True)
class LeftToOperator:
    """A service of a Role or NodeSet that no definition of ours describes."""

    service: str
    role: Reference
    sentence: str


@dataclass(frozen=True, slots=True)
class Leaving:
    """A service CR whose node no longer asks for the service: `reconcile` and `remove` deal with it."""

    service_object: Reference
    node: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What every node should run, in the order of namespaces and names.

    `errors` are those of objects that could not be read; what a node has of them is in the node's own errors too.
    """

    nodes: tuple[NodePlan, ...] = ()
    left_alone: tuple[LeftAlone, ...] = ()
    left_to_operator: tuple[LeftToOperator, ...] = ()
    leaving: tuple[Leaving, ...] = ()
    warnings: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()

    def by_name(self) -> Mapping[str, NodePlan]:
        """The nodes by name; of two that share one (an error on both) the first counts."""
        found: dict[str, NodePlan] = {}
        for node in self.nodes:
            found.setdefault(node.name, node)
        return found
