# SPDX-License-Identifier: GPL-3.0-or-later
"""The services that this collection brings, and what each of them needs of a node."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from . import libvirt, nova_compute
from .fitting import Fit
from .guests import DEV
from .libvirt import LIBVIRT
from .nova_compute import NOVA_COMPUTE
from .running import Account, Folder, Health, Mount, Running

_NEUTRON = Account("neutron", 42435, "/var/lib/neutron")
_CINDER = Account("cinder", 42407, "/var/lib/cinder")

# AppArmor's profile for containers forbids mounts, whatever the capabilities say.
_MAY_MOUNT = "--security-opt=apparmor=unconfined"

OVN_METADATA_AGENT = Running(
    service="ovn_metadata_agent",
    title="Neutron OVN metadata agent",
    command="neutron-ovn-metadata-agent --config-dir /etc/neutron.conf.d",
    user="neutron",
    # It makes network namespaces, joins them, sets their kernel settings and starts haproxy there.
    capabilities=("DAC_READ_SEARCH", "NET_ADMIN", "NET_RAW", "SYS_ADMIN", "SYS_PTRACE"),
    podman_options=(_MAY_MOUNT, "--security-opt=unmask=/proc/sys"),
    mounts=(
        Mount("/var/lib/neutron", options=("shared",), own=True),
        Mount("/run/netns", options=("shared",)),
        Mount("/run/openvswitch"),
    ),
    log_folder="/var/log/kolla/neutron",
    after=("ovn-controller.service", "openvswitch-switch.service", "openvswitch.service"),
    accounts=(_NEUTRON,),
    folders=(Folder("/var/lib/neutron", "neutron", 0o755),),
    tmpfiles=("d /run/netns 0755 root root -", "d /run/openvswitch 0755 - - -"),
    health=Health(connected="neutron-ovn-metadata-agent", timeout=90),
    validates=True,
)

NEUTRON_SRIOV_AGENT = Running(
    service="neutron_sriov_agent",
    title="Neutron SR-IOV agent",
    command="neutron-sriov-nic-agent --config-dir /etc/neutron.conf.d",
    user="neutron",
    confined=True,
    # It sets up virtual functions of network cards; its privileged half asks for all three or does not start.
    capabilities=("DAC_READ_SEARCH", "NET_ADMIN", "SYS_ADMIN"),
    mounts=(Mount("/var/lib/neutron", own=True),),
    log_folder="/var/log/kolla/neutron",
    accounts=(_NEUTRON,),
    folders=(Folder("/var/lib/neutron", "neutron", 0o755),),
    health=Health(connected="neutron-sriov-nic-agent", timeout=90),
    validates=True,
)

CINDER_VOLUME = Running(
    service="cinder_volume",
    title="Cinder volume",
    command="cinder-volume --config-dir /etc/cinder/cinder.conf.d",
    user="cinder",
    # Back ends mount shares and attach block devices of the node.
    capabilities=("DAC_READ_SEARCH", "SYS_ADMIN"),
    podman_options=(_MAY_MOUNT, "--device-cgroup-rule=b *:* rwm", "--device-cgroup-rule=c 10:236 rwm"),
    mounts=(Mount("/var/lib/cinder{suffix}", "/var/lib/cinder", ("shared",), own=True), DEV),
    log_folder="/var/log/kolla/cinder",
    stop_seconds=30,
    accounts=(_CINDER,),
    folders=(Folder("/var/lib/cinder{suffix}", "cinder", 0o755),),
    data=("/var/lib/cinder{suffix}",),
    health=Health(connected="cinder-volume", timeout=90),
    validates=True,
)

RUNNING: Mapping[str, Running] = MappingProxyType(
    {one.service: one for one in (LIBVIRT, NOVA_COMPUTE, OVN_METADATA_AGENT, NEUTRON_SRIOV_AGENT, CINDER_VOLUME)}
)

#: What makes a definition fit a node, for those that depend on its variables and files.
FITS: Mapping[str, Fit] = MappingProxyType({"libvirt": libvirt.fit, "nova_compute": nova_compute.fit})
