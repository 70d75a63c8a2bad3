# SPDX-License-Identifier: GPL-3.0-or-later
"""What resolution must know of each service, as data.

A partner's definition is one more entry of the same type in the mapping that `resolve` takes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import lru_cache

from .values import Value

SERVICE_ANNOTATION = "edpm.openstack.org/service-"
PROFILE_ANNOTATION = "edpm.openstack.org/profile-"
HOLD_ANNOTATION = "edpm.openstack.org/deploy-"
INSTANCES_ANNOTATION = "edpm.openstack.org/instances-"
DEFINITION_KEY = "edpm-service.yaml"
IMAGE_FIELD = "containerImage"
PROFILE_FILE = "98-profile.conf"
OVERRIDE_FILE = "99-override.conf"

# Phase 0 of the data plane: neither ours nor worth a word in the plan.
PHASE_0 = frozenset(
    {
        "bootstrap", "ceph-client", "ceph-hci-pre", "configure-network", "configure-os", "download-cache",
        "fips-status", "frr", "install-certs", "install-os", "nftables", "reboot-os", "repo-setup", "run-os",
        "ssh-known-hosts", "tuned", "validate-network",
    }
)  # fmt: skip


class Derived(StrEnum):
    """Secrets whose names follow from the node's cell."""

    COMPUTE = "compute"
    METADATA = "metadata"


@dataclass(frozen=True, slots=True)
class Place:
    """Keys that match `pattern` become files in `directory`, under `file_name` where it is given.

    A `live` one may change without a restart of the service: certificates, keys.
    """

    pattern: str
    directory: str
    file_name: str = ""
    live: bool = False

    def takes(self, key: str) -> bool:
        """Whether this place is the key's."""
        return fnmatchcase(key, self.pattern)


@dataclass(frozen=True, slots=True)
class Partner:
    """A partner's own definition: the namespace that it counts in, where it is written, what it says, its faults."""

    namespace: str
    origin: str
    says: Mapping[str, Value]
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServiceDefinition:
    """One service. Annotations that every service has by its name are not listed: see the properties below.

    `image` is the one where neither a service CR nor the environment names another. Of `needed_keys` each must be in
    some Secret or ConfigMap that the service uses. `kolla_config` is the key of a kolla config.json that the definition
    asks for. `options` are the variables of a node that it reads, without the ones that every service has.
    """

    name: str
    image_variable: str
    asked_by: tuple[str, ...] = ()
    dataplane_names: tuple[str, ...] = ()
    api_version: str = ""
    kind: str = ""
    image_field: str = IMAGE_FIELD
    image: str = ""
    config_directory: str | None = None
    conf_d: str | None = None
    profile_file: str = PROFILE_FILE
    override_file: str = OVERRIDE_FILE
    host_specific_file: str | None = None
    state_path: str | None = None
    places: tuple[Place, ...] = ()
    derived: tuple[Derived, ...] = ()
    asked_by_cell: bool = False
    needs_cell: bool = False
    takes_snippet: bool = True
    takes_instances: bool = True
    other_profile_annotations: tuple[str, ...] = ()
    other_hold_annotations: tuple[str, ...] = ()
    required_keys: Mapping[Derived, tuple[str, ...]] = field(default_factory=dict)
    needed_keys: tuple[str, ...] = ()
    kolla_config: str = ""
    takes_extra_mounts: bool = True
    options: tuple[str, ...] = ()
    partner: Partner | None = None

    @property
    def asking_annotations(self) -> tuple[str, ...]:
        """Annotations whose "true" or "false" decides whether the service runs."""
        return (*self.asked_by, SERVICE_ANNOTATION + self.name)

    @property
    def profile_annotations(self) -> tuple[str, ...]:
        """Annotations that choose its ServiceProfile."""
        return (PROFILE_ANNOTATION + self.name, *self.other_profile_annotations)

    @property
    def hold_annotations(self) -> tuple[str, ...]:
        """Annotations whose "false" keeps it off the node."""
        return (HOLD_ANNOTATION + self.name, *self.other_hold_annotations)

    @property
    def variable_prefix(self) -> str:
        """What the node's variables that are for this service begin with."""
        return f"edpm_{plain_name(self.name)}_"

    @property
    def instances_annotation(self) -> str:
        """The annotation that asks for more instances than the plain one."""
        return INSTANCES_ANNOTATION + self.name

    def place_of(self, key: str) -> Place | None:
        """Where a key goes that is no file of conf.d by its name alone."""
        return next((place for place in self.places if place.takes(key)), None)


def image_variable(service: str) -> str:
    """The environment variable with the default image of a service that has no older name for it."""
    return f"RELATED_IMAGE_EDPM_{plain_name(service).upper()}_IMAGE_URL_DEFAULT"


@lru_cache
def plain_name(service: str) -> str:
    """The name of a service as a part of a variable's."""
    return re.sub(r"[^A-Za-z0-9_]", "_", service)
