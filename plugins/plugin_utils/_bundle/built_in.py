# SPDX-License-Identifier: GPL-3.0-or-later
"""The services that this collection brings, and what each of them needs of a node."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .in_image import program
from .running import Account, Companion, Folder, Health, Mount, OwnFile, Running

_NOVA = Account("nova", 42436, "/var/lib/nova")
_NEUTRON = Account("neutron", 42435, "/var/lib/neutron")
_CINDER = Account("cinder", 42407, "/var/lib/cinder")

_RUN_LIBVIRT = Mount("/run/libvirt", options=("shared",))
_VAR_LIB_LIBVIRT = Mount("/var/lib/libvirt")
_DEV = Mount("/dev")
_LIBVIRT_AT_BOOT = "d /run/libvirt 0755 root root -"
# Guests are processes of the node: who starts and watches them sees its processes and control groups.
_WITH_GUESTS = ("--pid=host", "--cgroupns=host", "--cgroups=no-conmon")
# AppArmor's profile for containers forbids mounts, whatever the capabilities say.
_MAY_MOUNT = "--security-opt=apparmor=unconfined"

NOVA_COMPUTE = Running(
    service="nova_compute",
    title="Nova compute",
    command="nova-compute",
    user="nova",
    privileged=True,
    podman_options=_WITH_GUESTS,
    mounts=(
        _RUN_LIBVIRT,
        _VAR_LIB_LIBVIRT,
        Mount("/var/lib/nova{suffix}", options=("shared",)),
        _DEV,
    ),
    log_folder="/var/log/kolla/nova",
    after=("edpm_libvirt.service", "libvirtd.service", "virtqemud.service", "ovn-controller.service"),
    # Nova finishes what it has begun: its own limit is 60 seconds.
    stop_seconds=65,
    accounts=(_NOVA,),
    folders=(
        Folder("/var/lib/libvirt"),
        Folder("/var/lib/nova{suffix}", "nova", 0o755),
        Folder("/var/lib/nova{suffix}/instances", "nova", 0o755),
    ),
    tmpfiles=(_LIBVIRT_AT_BOOT,),
    health=Health(program("connected", "nova-compute"), timeout=120),
    validates=True,
)

LIBVIRTD_CONF = """\
# The container has no polkit to ask; who may open the socket may use it.
unix_sock_group = "libvirt"
unix_sock_rw_perms = "0770"
auth_unix_ro = "none"
auth_unix_rw = "none"
"""
QEMU_HOOK = """\
#!/bin/sh
# A guest that stays in this container's control group ends with it. Where libvirt can ask systemd-machined, the guest
# has one of its own already; where it cannot, it gets one here.
[ "$2" = started ] || exit 0
guest=$(cat "/run/libvirt/qemu/$1.pid") || exit 0
[ "$(cat "/proc/$guest/cgroup")" = "$(cat /proc/self/cgroup)" ] || exit 0
[ -f /sys/fs/cgroup/cgroup.procs ] || exit 0
own="/sys/fs/cgroup/machine.slice/edpm-$1"
mkdir -p "$own" && echo "$guest" > "$own/cgroup.procs"
exit 0
"""

LIBVIRT = Running(
    service="libvirt",
    title="libvirt",
    command="/usr/sbin/libvirtd",
    user="root",
    privileged=True,
    podman_options=_WITH_GUESTS,
    environment=(("KOLLA_SKIP_EXTEND_START", "1"),),
    mounts=(
        _RUN_LIBVIRT,
        # Through it systemd-machined takes the guests out of the container's control group.
        Mount("/run/dbus/system_bus_socket"),
        Mount("/sys/fs/cgroup"),
        _VAR_LIB_LIBVIRT,
        Mount("/var/log/libvirt"),
        Mount("/etc/libvirt/qemu"),
        Mount("/var/lib/nova", options=("shared",)),
        _DEV,
    ),
    wants=("edpm_libvirt-virtlogd.service",),
    after=("edpm_libvirt-virtlogd.service", "dbus.service"),
    stop_seconds=5,
    # conmon takes over the guests' processes and waits for all of them, so it must be killed; they live on.
    service_lines=(
        'ExecStop=-/bin/sh -c "podman stop --time=5 edpm_libvirt; kill -KILL $$MAINPID"',
        "SuccessExitStatus=SIGKILL",
    ),
    files=(
        OwnFile("/etc/libvirt", "libvirtd.conf", LIBVIRTD_CONF),
        OwnFile("/etc/libvirt/hooks", "qemu", QEMU_HOOK, mode=0o700),
    ),
    accounts=(_NOVA,),
    folders=(
        Folder("/var/lib/libvirt"),
        Folder("/var/log/libvirt"),
        Folder("/etc/libvirt/qemu", mode=0o700),
        Folder("/var/lib/nova", "nova", 0o755),
    ),
    tmpfiles=(_LIBVIRT_AT_BOOT,),
    # It holds the ends of the guests' consoles, which would fall silent with a restart.
    companions=(Companion("virtlogd", "log of libvirt's guests", "/usr/sbin/virtlogd"),),
    health=Health(("virsh", "--connect=qemu:///system", "list", "--all")),
)

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
    health=Health(program("connected", "neutron-ovn-metadata-agent"), timeout=90),
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
    health=Health(program("connected", "neutron-sriov-nic-agent"), timeout=90),
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
    mounts=(Mount("/var/lib/cinder{suffix}", "/var/lib/cinder", ("shared",), own=True), _DEV),
    log_folder="/var/log/kolla/cinder",
    stop_seconds=30,
    accounts=(_CINDER,),
    folders=(Folder("/var/lib/cinder{suffix}", "cinder", 0o755),),
    health=Health(program("connected", "cinder-volume"), timeout=90),
    validates=True,
)

RUNNING: Mapping[str, Running] = MappingProxyType(
    {one.service: one for one in (LIBVIRT, NOVA_COMPUTE, OVN_METADATA_AGENT, NEUTRON_SRIOV_AGENT, CINDER_VOLUME)}
)
