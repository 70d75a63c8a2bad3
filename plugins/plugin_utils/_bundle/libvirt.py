# SPDX-License-Identifier: GPL-3.0-or-later
"""libvirt: in a container of its own, or from the node's packages; with TLS where it is given certificates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath

from .._config.sources import Layer
from .._dataplane.planned import ConfigSource
from .files import File
from .fitting import Fitted, choice, with_live
from .guests import DEV, LIBVIRT_AT_BOOT, NOVA, RUN_LIBVIRT, VAR_LIB_LIBVIRT, WITH_GUESTS
from .in_image import program
from .running import Account, Companion, Folder, Group, Health, Mount, OwnFile, Running

MODE, DAEMONS = "edpm_libvirt_mode", "edpm_libvirt_daemons"
CONTAINER, HOST = "container", "host"
MODULAR, MONOLITHIC = "modular", "monolithic"
_PKI, _QEMU_PKI = "/etc/pki/libvirt", "/etc/pki/qemu"
_CERTIFICATE, _KEY, _AUTHORITY = "tls.crt", "tls.key", "ca.crt"
_TLS_PORT = "tcp 16514"
#: The number that the group has in the images: it owns the socket which a migration over SSH opens on the node.
_LIBVIRT_GROUP = 42473
_IN_GROUP = Account(NOVA.name, NOVA.number, NOVA.home, groups=("libvirt",))

LIBVIRTD_CONF = """\
# The container has no polkit to ask; who may open the socket may use it.
unix_sock_group = "libvirt"
unix_sock_rw_perms = "0770"
auth_unix_ro = "none"
auth_unix_rw = "none"
"""
_LISTEN_TLS = """\
listen_tls = 1
listen_tcp = 0
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
# nova-compute writes the hosts' keys there; libvirt itself, which is root, opens the connection of a live migration.
_MIGRATION = """\
Match user nova
    GlobalKnownHostsFile /etc/ssh/ssh_known_hosts /var/lib/nova/.ssh/known_hosts
"""
_MIGRATION_FILE = OwnFile("/etc/ssh/ssh_config.d", "20-edpm-migration.conf", _MIGRATION, mode=0o644)
_ASK = ("virsh", "--connect=qemu:///system", "list", "--all")

LIBVIRT = Running(
    service="libvirt",
    title="libvirt",
    command="/usr/sbin/libvirtd",
    user="root",
    privileged=True,
    podman_options=WITH_GUESTS,
    environment=(("KOLLA_SKIP_EXTEND_START", "1"),),
    mounts=(
        RUN_LIBVIRT,
        # Through it systemd-machined takes the guests out of the container's control group.
        Mount("/run/dbus/system_bus_socket"),
        Mount("/sys/fs/cgroup"),
        VAR_LIB_LIBVIRT,
        Mount("/var/log/libvirt"),
        Mount("/etc/libvirt/qemu"),
        Mount("/etc/libvirt/secrets"),
        Mount("/var/lib/nova", options=("shared",)),
        DEV,
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
        _MIGRATION_FILE,
    ),
    # QEMU, which is another user, looks into it.
    public=("/etc/ceph/ceph.conf",),
    accounts=(_IN_GROUP,),
    groups=(Group("libvirt", _LIBVIRT_GROUP),),
    folders=(
        Folder("/var/lib/libvirt"),
        Folder("/var/log/libvirt"),
        Folder("/etc/libvirt/qemu", mode=0o700),
        Folder("/etc/libvirt/secrets", mode=0o700),
        Folder("/var/lib/nova", "nova", 0o755),
    ),
    tmpfiles=(LIBVIRT_AT_BOOT,),
    # It holds the ends of the guests' consoles, which would fall silent with a restart.
    companions=(Companion("virtlogd", "log of libvirt's guests", "/usr/sbin/virtlogd"),),
    health=Health(_ASK),
    # Consoles, and the memory of guests that move here.
    ports=("tcp 5900-6923", "tcp 49152-49215"),
    busy=program("guests"),
    data=("/var/lib/libvirt", "/etc/libvirt/qemu", "/etc/libvirt/secrets", "/var/log/libvirt"),
)

#: The daemon that has guests, the one that remote hosts talk to, and their units besides the first.
_UNITS = {
    MODULAR: (
        *("virtqemud.service", "virtqemud.socket", "virtqemud-ro.socket", "virtqemud-admin.socket"),
        *("virtproxyd.socket", "virtnodedevd.socket", "virtstoraged.socket", "virtsecretd.socket"),
        *("virtlogd.socket", "virtlockd.socket"),
    ),
    MONOLITHIC: (
        *("libvirtd.service", "libvirtd.socket", "libvirtd-ro.socket", "libvirtd-admin.socket"),
        *("virtlogd.socket", "virtlockd.socket"),
    ),
}
_REMOTE = {MODULAR: "virtproxyd", MONOLITHIC: "libvirtd"}
#: Nothing starts the second before somebody talks to the first; renewed certificates are told to it.
_PROXY_SOCKETS = ("virtproxyd-tls.socket", "virtproxyd-admin.socket")
#: They would answer on the modular daemons' sockets.
_MASKED = ("libvirtd.service", *(f"libvirtd{one}.socket" for one in ("", "-ro", "-admin", "-tls", "-tcp")))
#: A daemon that ends when nobody talks to it is not one that can be watched.
_STAYS = {
    MODULAR: OwnFile(
        "/etc/systemd/system/virtqemud.service.d", "edpm.conf", "[Service]\nEnvironment=VIRTQEMUD_ARGS=\n"
    ),
    MONOLITHIC: OwnFile(
        "/etc/systemd/system/libvirtd.service.d", "edpm.conf", "[Service]\nEnvironment=LIBVIRTD_ARGS=\n"
    ),
}
#: A socket of a service that is up cannot be started; this one comes with the service's own restart.
_TLS_SOCKET = """
[Unit]
Wants=libvirtd-tls.socket
After=libvirtd-tls.socket
"""
_PACKAGES = (
    ("apt", ("libvirt-clients", "libvirt-daemon-lock", "libvirt-daemon-system", "qemu-utils")),
    ("dnf", ("libvirt-client", "libvirt-daemon-kvm", "qemu-img", "qemu-kvm")),
)


def fit(fitted: Fitted) -> Fitted:
    """libvirt of one node."""
    mode, fitted = choice(fitted, MODE, (CONTAINER, HOST))
    if mode == HOST:
        daemons, fitted = choice(fitted, DAEMONS, (MODULAR, MONOLITHIC))
        return _with_tls(replace(fitted, running=_on_node(fitted.running, daemons)), daemons)
    return _with_tls(_with_room_for_certificates(fitted), "")


def _on_node(running: Running, daemons: str) -> Running:
    """The node's own libvirt, with its own settings where nothing else is asked for."""
    return Running(
        service=running.service,
        title=running.title,
        command="",
        user=running.user,
        on_node=True,
        files=(_STAYS[daemons], _MIGRATION_FILE),
        public=("/etc/ceph/ceph.conf", "/etc/libvirt/libvirt.conf"),
        accounts=running.accounts,
        # The package numbers it where it is not there yet.
        groups=(Group("libvirt"),),
        folders=(Folder("/var/lib/nova", "nova", 0o755),),
        health=Health(_ASK),
        ports=running.ports,
        packages=_PACKAGES,
        node_units=_UNITS[daemons],
        masked=_MASKED if daemons == MODULAR else (),
        busy=running.busy,
        data=running.data,
    )


# --- TLS --------------------------------------------------------------------------------------------------------------
def _with_room_for_certificates(fitted: Fitted) -> Fitted:
    """The folder of QEMU's certificates before there are any, unless the deployer has something else in its place.

    A guest sees for all its life what the container had when it started. Without the folder, guests that run when
    certificates come could not move.
    """
    service, folder = fitted.service, PurePosixPath(_QEMU_PKI)
    theirs = [*(one.target for one in service.extra_mounts), *(one.directory for one in service.sources)]
    if any(folder.is_relative_to(one) or PurePosixPath(one).is_relative_to(folder) for one in theirs):
        return fitted
    running, place = fitted.running, f"{fitted.who.live}{_QEMU_PKI}"
    mounts = (*running.mounts, Mount(place, _QEMU_PKI, ("ro",), own=True))
    folders = (*running.folders, Folder(fitted.who.home, mode=0o700), Folder(place, mode=0o755))
    return replace(fitted, running=replace(running, mounts=mounts, folders=folders))


def _with_tls(fitted: Fitted, daemons: str) -> Fitted:
    """Certificates make libvirt listen, for guests that move here."""
    given = [one for one in fitted.service.sources if one.directory == _PKI]
    if not given:
        return fitted
    rest = tuple(one for one in fitted.service.sources if one.directory != _PKI)
    fitted = replace(fitted, service=replace(fitted.service, sources=rest))
    found = {one.file_name: one for one in given}
    missing = " and ".join(name for name in (_CERTIFICATE, _KEY, _AUTHORITY) if name not in found)
    if missing:
        fault = f"{given[0].origin.ref}: libvirt needs {missing} too for TLS; add it, or do not list the others"
        return replace(fitted, errors=(*fitted.errors, fault))
    fitted = with_live(fitted, _certificates(found))
    # QEMU is another user than libvirt: on a node its group is kvm, in an image nobody knows its number.
    mode, group = (0o640, "kvm") if daemons else (0o644, "")
    fitted = with_live(fitted, _certificates_of_qemu(found), mode=mode, group=group)
    return replace(fitted, running=_listening(fitted.running, daemons))


def _certificates(found: dict[str, ConfigSource]) -> Iterator[File]:
    yield _pem(found[_AUTHORITY], "/etc/pki/CA", "cacert.pem")
    for side in ("server", "client"):
        yield _pem(found[_CERTIFICATE], _PKI, f"{side}cert.pem")
        yield _pem(found[_KEY], f"{_PKI}/private", f"{side}key.pem")


def _certificates_of_qemu(found: dict[str, ConfigSource]) -> Iterator[File]:
    yield _pem(found[_AUTHORITY], _QEMU_PKI, "ca-cert.pem")
    for side in ("server", "client"):
        yield _pem(found[_CERTIFICATE], _QEMU_PKI, f"{side}-cert.pem")
        yield _pem(found[_KEY], _QEMU_PKI, f"{side}-key.pem")


def _pem(source: ConfigSource, directory: str, name: str) -> File:
    return File(
        directory,
        name,
        source.content,
        str(source.origin.ref),
        source.origin.field,
        Layer(source.layer.value),
        secret=source.secret,
    )


def _listening(running: Running, daemons: str) -> Running:
    remote = _REMOTE.get(daemons, "libvirtd")
    ports = (*running.ports, _TLS_PORT)
    # virtproxyd has the sockets of libvirtd, whose place it takes; by a name of its own it is not found.
    renew = ("virt-admin", "--connect=libvirtd:///system", "server-update-tls", remote)
    if daemons == MODULAR:
        return replace(running, node_units=(*running.node_units, *_PROXY_SOCKETS), ports=ports, reload=renew)
    if daemons == MONOLITHIC:
        units, files = (*running.node_units, "libvirtd-tls.socket"), _longer(running.files, "edpm.conf", _TLS_SOCKET)
        return replace(running, node_units=units, files=files, ports=ports, reload=renew)
    files = _longer(running.files, "libvirtd.conf", _LISTEN_TLS)
    return replace(running, command=f"{running.command} --listen", files=files, ports=ports, reload=renew)


def _longer(files: tuple[OwnFile, ...], name: str, text: str) -> tuple[OwnFile, ...]:
    return tuple(replace(one, text=one.text + text) if one.name == name else one for one in files)
