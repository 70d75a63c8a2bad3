# SPDX-License-Identifier: GPL-3.0-or-later
"""What resolution must know of each service, as data.

A partner's definition is one more entry of the same type in the mapping that `resolve` takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from types import MappingProxyType

SERVICE_ANNOTATION = "edpm.openstack.org/service-"
PROFILE_ANNOTATION = "edpm.openstack.org/profile-"
HOLD_ANNOTATION = "edpm.openstack.org/deploy-"
INSTANCES_ANNOTATION = "edpm.openstack.org/instances-"
DEFINITION_KEY = "edpm-service.yaml"

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
    """Keys that match `pattern` become files in `directory`, under `file_name` where it is given."""

    pattern: str
    directory: str
    file_name: str = ""

    def takes(self, key: str) -> bool:
        """Whether this place is the key's."""
        return fnmatchcase(key, self.pattern)


@dataclass(frozen=True, slots=True)
class ServiceDefinition:
    """One service. Annotations that every service has by its name are not listed: see the properties below."""

    name: str
    image_variable: str
    asked_by: tuple[str, ...] = ()
    dataplane_names: tuple[str, ...] = ()
    api_version: str = ""
    kind: str = ""
    image_field: str = "containerImage"
    config_directory: str | None = None
    conf_d: str | None = None
    profile_file: str = "98-profile.conf"
    override_file: str = "99-override.conf"
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
    def instances_annotation(self) -> str:
        """The annotation that asks for more instances than the plain one."""
        return INSTANCES_ANNOTATION + self.name

    def place_of(self, key: str) -> Place | None:
        """Where a key goes that is no file of conf.d by its name alone."""
        return next((place for place in self.places if place.takes(key)), None)


def image_variable(service: str) -> str:
    """The environment variable with the default image of a service that has no older name for it."""
    return f"RELATED_IMAGE_EDPM_{service.upper().replace('-', '_')}_IMAGE_URL_DEFAULT"


_PKI = "/etc/pki/ca-trust/extracted/pem"
_CA_BUNDLE = Place("tls-ca-bundle.pem", _PKI)
_CEPH = (Place("ceph.client.*.keyring", "/etc/ceph"), Place("ceph.conf", "/etc/ceph"))

NOVA_COMPUTE = ServiceDefinition(
    name="nova_compute",
    image_variable="RELATED_IMAGE_NOVA_COMPUTE_IMAGE_URL_DEFAULT",
    dataplane_names=("nova",),
    api_version="nova.openstack.org/v1beta1",
    kind="NovaExternalCompute",
    image_field="novaComputeContainerImage",
    config_directory="/etc/nova",
    conf_d="/etc/nova/nova.conf.d",
    profile_file="02-nova-compute-profile.conf",
    override_file="02-nova-override.conf",
    host_specific_file="02-nova-host-specific.conf",
    state_path="/var/lib/nova",
    places=(
        Place("nova-blank.conf", "/etc/nova", "nova.conf"),
        Place("provider*.yaml", "/etc/nova/provider_config"),
        Place("ssh-privatekey", "/var/lib/nova/.ssh"),
        Place("ssh-publickey", "/var/lib/nova/.ssh"),
        *_CEPH,
        _CA_BUNDLE,
    ),
    derived=(Derived.COMPUTE,),
    required_keys=MappingProxyType({Derived.COMPUTE: ("01-nova.conf",)}),
    asked_by_cell=True,
    needs_cell=True,
    other_profile_annotations=("nova.openstack.org/compute-profile",),
    other_hold_annotations=("nova.openstack.org/deploy",),
)

# libvirt shares the service CR of nova-compute: its image is a field there, and it has no oslo.config of its own.
LIBVIRT = ServiceDefinition(
    name="libvirt",
    image_variable="RELATED_IMAGE_NOVA_LIBVIRT_IMAGE_URL_DEFAULT",
    dataplane_names=("libvirt",),
    api_version=NOVA_COMPUTE.api_version,
    kind=NOVA_COMPUTE.kind,
    image_field="novaLibvirtContainerImage",
    config_directory="/etc/libvirt",
    places=(
        Place("qemu.conf", "/etc/libvirt"),
        Place("libvirt*.conf", "/etc/libvirt"),
        Place("virt*d.conf", "/etc/libvirt"),
        *_CEPH,
        _CA_BUNDLE,
    ),
    asked_by_cell=True,
    takes_snippet=False,
    takes_instances=False,
)

OVN_METADATA_AGENT = ServiceDefinition(
    name="ovn_metadata_agent",
    image_variable=image_variable("ovn_metadata_agent"),
    asked_by=("neutron.openstack.org/ovn-metadata-agent",),
    dataplane_names=("neutron-metadata",),
    api_version="neutron.openstack.org/v1beta1",
    kind="OVNMetadataAgent",
    config_directory="/etc/neutron",
    conf_d="/etc/neutron.conf.d",
    places=(_CA_BUNDLE,),
    derived=(Derived.METADATA,),
    required_keys=MappingProxyType({Derived.METADATA: ("05-nova-metadata.conf",)}),
)

NEUTRON_SRIOV_AGENT = ServiceDefinition(
    name="neutron_sriov_agent",
    image_variable=image_variable("neutron_sriov_agent"),
    asked_by=("neutron.openstack.org/sriov-agent",),
    dataplane_names=("neutron-sriov",),
    api_version="neutron.openstack.org/v1beta1",
    kind="NeutronSriovAgent",
    config_directory="/etc/neutron",
    conf_d="/etc/neutron.conf.d",
    places=(_CA_BUNDLE,),
)

CINDER_VOLUME = ServiceDefinition(
    name="cinder_volume",
    image_variable=image_variable("cinder_volume"),
    asked_by=("cinder.openstack.org/volume",),
    dataplane_names=("cinder-volume",),
    api_version="cinder.openstack.org/v1beta1",
    kind="CinderExternalVolume",
    config_directory="/etc/cinder",
    conf_d="/etc/cinder/cinder.conf.d",
    places=(*_CEPH, _CA_BUNDLE),
)

# In the order in which they are deployed: nova-compute needs a libvirt that answers.
BUILT_IN: Mapping[str, ServiceDefinition] = MappingProxyType(
    {
        definition.name: definition
        for definition in (LIBVIRT, NOVA_COMPUTE, OVN_METADATA_AGENT, NEUTRON_SRIOV_AGENT, CINDER_VOLUME)
    }
)
