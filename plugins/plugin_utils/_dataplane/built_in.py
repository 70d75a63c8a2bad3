# SPDX-License-Identifier: GPL-3.0-or-later
"""The services that this collection brings, as resolution sees them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .definitions import Derived, Place, ServiceDefinition, image_variable

_PKI = "/etc/pki/ca-trust/extracted/pem"
_CA_BUNDLE = Place("tls-ca-bundle.pem", _PKI, live=True)
_CEPH = (Place("ceph.client.*.keyring", "/etc/ceph"), Place("ceph.conf", "/etc/ceph"))
_CERTIFICATES = tuple(Place(name, "/etc/pki/libvirt", live=True) for name in ("tls.crt", "tls.key", "ca.crt"))

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
        Place("ssh-privatekey", "/var/lib/nova/.ssh", live=True),
        Place("ssh-publickey", "/var/lib/nova/.ssh", live=True),
        *_CEPH,
        _CA_BUNDLE,
    ),
    derived=(Derived.COMPUTE,),
    required_keys=MappingProxyType({Derived.COMPUTE: ("01-nova.conf",)}),
    asked_by_cell=True,
    needs_cell=True,
    other_profile_annotations=("nova.openstack.org/compute-profile",),
    other_hold_annotations=("nova.openstack.org/deploy",),
    options=("edpm_nova_compute_iscsid", "edpm_nova_compute_migration", "edpm_nova_compute_multipathd"),
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
        *_CERTIFICATES,
        *_CEPH,
        _CA_BUNDLE,
    ),
    asked_by_cell=True,
    takes_snippet=False,
    takes_instances=False,
    options=("edpm_libvirt_daemons", "edpm_libvirt_mode"),
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
    takes_extra_mounts=False,
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
    takes_extra_mounts=False,
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
