# SPDX-License-Identifier: GPL-3.0-or-later
"""What somebody wants to be run in the cluster, checked; and the run that follows from it, with its name and digest."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Self

from .dns import pod_dns
from .shards import split

Engine = Literal["job", "openstackansibleee"]

#: A Job's name, and the index of a shard behind it, must fit the 63 characters of a pod's host name.
LONGEST_NAME = 52
DIGEST_LENGTH = 10
#: A shard's results must fit a ConfigMap even when every node has the longest name and fails.
LARGEST_SHARD = 2000
#: More ConfigMaps than this in every pod would be read by every kubelet for every shard.
MOST_INVENTORIES = 50
#: What a ConfigMap may hold, less what its metadata takes.
LARGEST_CONFIG_MAP = 1_000_000

#: What Ansible takes for a host and for nothing else in a limit.
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class BadOrderError(Exception):
    """The options do not make a run; the text is a sentence for a person."""


@dataclass(frozen=True)
class Mount:
    """A Secret or ConfigMap that every pod sees as files below `path`."""

    kind: Literal["Secret", "ConfigMap"]
    name: str
    path: str
    optional: bool = False


@dataclass(frozen=True)
class Order:
    """One run as it was asked for. Names of Secrets and ConfigMaps are those of `namespace`.

    With `reads_data_plane` the pods read the data plane also where inventory ConfigMaps tell how the nodes are reached:
    nodes that have left it are still spoken of there. `labels` are those of its objects beside the usual ones.
    """

    namespace: str
    image: str
    playbook: str = ""
    play: str = ""
    nodes: tuple[str, ...] = ()
    limit: str = ""
    tags: tuple[str, ...] = ()
    skip_tags: tuple[str, ...] = ()
    extra_vars: Mapping[str, Any] = field(default_factory=dict)
    extra_vars_secrets: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    image_pull_policy: str = "IfNotPresent"
    image_pull_secrets: tuple[str, ...] = ()
    service_account: str = "edpm-services-runner"
    inventory_config_maps: tuple[str, ...] = ()
    reads_data_plane: bool = False
    ssh_key_secret: str = ""
    known_hosts: str = ""
    ca_secret: str = ""
    mounts: tuple[Mount, ...] = ()
    network_attachments: tuple[str, ...] = ()
    dns_config: Mapping[str, Any] = field(default_factory=dict)
    shard_size: int = 50
    parallel: int = 10
    forks: int = 10
    backoff_limit: int = 2
    ttl: int = 3600
    deadline: int | None = None
    run_as_user: int | None = None
    resources: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    run: str = ""

    def __post_init__(self) -> None:
        for fault in _faults(self):
            raise BadOrderError(fault)

    @classmethod
    def from_options(cls, options: Mapping[str, Any], **resolved: Any) -> Self:
        """Take what belongs here out of an action's options; `resolved` is what was found out meanwhile."""
        given = {name: _frozen(options[name]) for name in cls.__dataclass_fields__ if options.get(name) is not None}
        given["mounts"] = tuple(_mount(one) for one in options.get("mounts") or ())
        given["dns_config"] = pod_dns(options.get("dns_config"))
        return cls(**given | resolved)

    @cached_property
    def shards(self) -> tuple[tuple[str, ...], ...]:
        """The nodes of each pod; one shard without nodes where the playbook runs over whatever its limit says."""
        return split(self.nodes, self.shard_size)

    @cached_property
    def run_name(self) -> str:
        """The same order has the same name, so that nobody starts twice what is running."""
        said = json.dumps(
            {name: getattr(self, name) for name in self.__dataclass_fields__}, sort_keys=True, default=vars
        )
        digest = hashlib.sha256(said.encode()).hexdigest()[:DIGEST_LENGTH]
        readable = self.name or self.playbook.rpartition("/")[2].removesuffix(".yml").removesuffix(".yaml") or "play"
        cut = _as_name(readable)[: LONGEST_NAME - DIGEST_LENGTH - 1].strip("-")
        return f"{cut or 'run'}-{digest}"


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _mount(given: Mapping[str, Any]) -> Mount:
    secret, config_map = given.get("secret"), given.get("config_map")
    if bool(secret) == bool(config_map):
        raise BadOrderError(f"The mount at {given.get('path')} needs one of secret and config_map; correct mounts.")
    path, optional = given["path"], bool(given.get("optional"))
    return Mount("Secret", secret, path, optional) if secret else Mount("ConfigMap", str(config_map), path, optional)


def _as_name(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _faults(order: Order) -> Sequence[str]:
    """What is wrong with an order, the first of them in a sentence of its own."""
    checks = (
        (bool(order.playbook) == bool(order.play), "Name a playbook or write a play: one of the two, not both."),
        (
            not order.image,
            "No image is named for the run; set image, or ansibleEEContainerImage in the nodes' service resources, "
            "or RELATED_IMAGE_NOVA_ANSIBLE_EE_IMAGE_URL_DEFAULT in the environment.",
        ),
        (
            not 0 <= order.shard_size <= LARGEST_SHARD,
            f"shard_size is {order.shard_size}, and a pod takes 1 to {LARGEST_SHARD} nodes (0 for no shards); "
            "choose one of these.",
        ),
        (order.parallel < 1, f"parallel is {order.parallel}, and at least one pod must run; choose 1 or more."),
        (order.forks < 1, f"forks is {order.forks}, and Ansible needs at least one; choose 1 or more."),
        (order.backoff_limit < 0, f"backoff_limit is {order.backoff_limit}; choose 0 or more."),
        (
            len(order.inventory_config_maps) > MOST_INVENTORIES,
            f"{len(order.inventory_config_maps)} inventory ConfigMaps are named, and a pod takes {MOST_INVENTORIES}; "
            "let inventory be dataplane, or name those of roles instead of those of nodes.",
        ),
        (
            bool(odd := [node for node in order.nodes if not _HOST.fullmatch(node)]),
            f"{', '.join(map(repr, odd[:3]))} cannot name a node; correct nodes.",
        ),
        (
            bool(clash := sorted(_clashing(order.mounts))),
            f"The mount at {', '.join(clash)} would cover another one or a folder of the run's; choose another path.",
        ),
    )
    return [sentence for wrong, sentence in checks if wrong]


def _clashing(mounts: Sequence[Mount]) -> set[str]:
    paths = [mount.path.rstrip("/") for mount in mounts]
    taken = {path for path in paths if paths.count(path) > 1 or not path.startswith("/")}
    return taken | {path for path in paths if path in ("/etc/edpm", "/run/edpm", "") or path.startswith("/run/edpm/")}
