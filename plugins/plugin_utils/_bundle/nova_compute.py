# SPDX-License-Identifier: GPL-3.0-or-later
"""nova-compute: what it needs of a node, and what it becomes by the node's variables and the files it is given."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from .._config.options import DEFAULT, parse
from .._config.sources import Layer
from .._dataplane.instances import state_path
from .._dataplane.model import Reference
from .._dataplane.planned import ConfigSource, Origin, ServicePlan
from .._dataplane.planned import Layer as PlannedLayer
from . import migration
from .files import File, Live, conf_d
from .fitting import Fitted, choice, switch
from .guests import DEV, LIBVIRT_AT_BOOT, NOVA, RUN_LIBVIRT, VAR_LIB_LIBVIRT, WITH_GUESTS
from .in_image import program, text
from .quadlet import GENERATION
from .running import Account, Folder, Health, Mount, OwnFile, Running, Seed

_HOST_FILE = "02-nova-host-specific.conf"
_ISCSID, _MULTIPATHD = "edpm_nova_compute_iscsid", "edpm_nova_compute_multipathd"
_STATE = "/var/lib/nova"
_SSH = f"{_STATE}/.ssh"
_KEY_FILE = f"{_SSH}/{migration.PRIVATE_KEY}"
_LIBEXEC = "/usr/local/libexec/edpm"
_PROGRAM = "ceph_secret"

NOVA_COMPUTE = Running(
    service="nova_compute",
    title="Nova compute",
    command="nova-compute",
    user="nova",
    privileged=True,
    podman_options=WITH_GUESTS,
    mounts=(
        RUN_LIBVIRT,
        VAR_LIB_LIBVIRT,
        Mount("/var/lib/nova{suffix}", options=("shared",)),
        DEV,
    ),
    log_folder="/var/log/kolla/nova",
    after=("edpm_libvirt.service", "libvirtd.service", "virtqemud.service", "ovn-controller.service"),
    # Nova finishes what it has begun: its own limit is 60 seconds.
    stop_seconds=65,
    accounts=(NOVA,),
    folders=(
        Folder("/var/lib/libvirt"),
        Folder("/var/lib/nova{suffix}", "nova", 0o755),
        Folder("/var/lib/nova{suffix}/instances", "nova", 0o755),
    ),
    tmpfiles=(LIBVIRT_AT_BOOT,),
    # Placement knows the node's inventory by it: another one would be another compute.
    seeds=(Seed("/var/lib/nova{suffix}/compute_id", "nova"),),
    health=Health(connected="nova-compute", timeout=120),
    validates=True,
    busy=program("guests"),
    data=("/var/lib/nova{suffix}",),
)

_WITH_SHELL = Account(NOVA.name, NOVA.number, NOVA.home, "/bin/sh")
#: What the other end of a live migration over SSH runs to reach its libvirt, whose image has it and whose node may not.
_NETCAT = (("apt", ("netcat-openbsd",)), ("dnf", ("nmap-ncat",)))
_SSH_CONFIG = f"""\
Host *
    User nova
    IdentityFile {_KEY_FILE}
    IdentitiesOnly yes
    UserKnownHostsFile {_SSH}/known_hosts
    StrictHostKeyChecking yes
    BatchMode yes
"""
_MULTIPATH_CONF = r"defaults {\n\tuser_friendly_names no\n\tfind_multipaths yes\n}\n"


def fit(fitted: Fitted) -> Fitted:
    """nova-compute of one node."""
    for step in (_guests, _migration, _iscsid, _multipathd, _ceph):
        fitted = step(fitted)
    return fitted


# --- guests -----------------------------------------------------------------------------------------------------------
def _guests(fitted: Fitted) -> Fitted:
    """Its own guests alone keep it on the node, where they can be told from those of other instances."""
    service = fitted.service
    if not _keeps_to_its_folder(service):
        return fitted
    asked = program("guests", _STATE, *([service.instance] if service.instance else []))
    return replace(fitted, running=replace(fitted.running, busy=asked))


def _keeps_to_its_folder(service: ServicePlan) -> bool:
    """Whether guests lie below the instance's own state path, for all that its files say."""
    files = (*service.sources, *(file for one in service.extra_mounts for file in one.files))
    if service.user_kolla is not None or any(b"instances_path" in one.content.replace(b"-", b"_") for one in files):
        return False
    said = [
        setting.value
        for file in conf_d(service).files
        for setting in parse(file.content).settings
        if (setting.group, setting.name.replace("-", "_")) == (DEFAULT, "state_path")
    ]
    return said[-1:] == [state_path(_STATE, service.instance)]


# --- migration --------------------------------------------------------------------------------------------------------
def _migration(fitted: Fitted) -> Fitted:
    words = (migration.SSH, migration.TLS, migration.NONE)
    _said, fitted = choice(fitted, migration.VARIABLE, words)
    over, keys = migration.migrates_over(fitted.service), _keys(fitted.service)
    with_ssh = migration.uses_ssh(fitted.service)
    rest = tuple(one for one in fitted.service.sources if one.directory != _SSH)
    fitted = replace(fitted, service=replace(fitted.service, sources=rest))
    if with_ssh:
        fitted = _with_ssh(fitted, keys)
    elif keys:
        why = "guests migrate not at all" if over == migration.NONE else f"it has no {_missing(keys)}"
        told = f"{fitted.service.name}: the key for migration over SSH is left out, since {why}"
        fitted = replace(fitted, notes=(*fitted.notes, told))
    if over == migration.SSH:
        fitted = replace(fitted, running=replace(fitted.running, packages=(*fitted.running.packages, *_NETCAT)))
    settings = tuple(_settings(fitted.service, over))
    return _with_settings(fitted, settings)


def _keys(service: ServicePlan) -> dict[str, ConfigSource]:
    return {one.file_name: one for one in service.sources if one.directory == _SSH}


def _missing(keys: dict[str, ConfigSource]) -> str:
    return " and ".join(name for name in (migration.PRIVATE_KEY, migration.PUBLIC_KEY) if name not in keys)


def _with_ssh(fitted: Fitted, keys: dict[str, ConfigSource]) -> Fitted:
    missing = _missing(keys)
    if missing:
        fault = (
            f"{fitted.service.name}: guests shall migrate over SSH, and no Secret has the key {missing}; "
            f"list nova-migration-ssh-key among its data sources, or set {migration.VARIABLE} to tls or none"
        )
        return replace(fitted, errors=(*fitted.errors, fault))
    private, public = keys[migration.PRIVATE_KEY], keys[migration.PUBLIC_KEY]
    folder = migration.ssh_folder(fitted.service.instance)
    live = [
        _live(folder, migration.PRIVATE_KEY, private, private.content.rstrip() + b"\n"),
        _live(folder, "config", None, _SSH_CONFIG.encode()),
    ]
    # The node's sshd looks for it in the home of nova, whatever the instance.
    if not fitted.service.instance:
        live.append(_live(folder, "authorized_keys", public, b"restrict " + public.content.strip() + b"\n"))
    if len(public.content.strip().splitlines()) != 1:
        fault = f"{public.origin}: is no public key; put the one line of the key's .pub file there"
        fitted = replace(fitted, errors=(*fitted.errors, fault))
    mount = (Mount(folder, _SSH, ("ro",)),) if fitted.service.instance else ()
    running = fitted.running
    running = replace(
        running,
        accounts=(_WITH_SHELL,),
        folders=(*running.folders, Folder(folder, "nova", 0o700, "ssh_home_t")),
        mounts=(*running.mounts, *mount),
    )
    return replace(fitted, running=running, live=(*fitted.live, *live))


def _live(folder: str, name: str, source: ConfigSource | None, content: bytes) -> Live:
    origin = (str(source.origin.ref), source.origin.field) if source else ("definition of nova_compute", f"file {name}")
    file = File(_SSH, name, content, *origin, Layer.GENERATED, secret=bool(source and source.secret))
    return Live(f"{folder}/{name}", file, "nova", "nova")


def _settings(service: ServicePlan, over: str) -> Iterator[tuple[str, str]]:
    """Options of the group libvirt that follow from how guests migrate."""
    if over == migration.SSH:
        if service.identity and service.identity.my_ip:
            yield "live_migration_inbound_addr", service.identity.my_ip
        yield "live_migration_uri", f"qemu+ssh://nova@%s/system?keyfile={_KEY_FILE}&proxy=netcat&no_tty=1"
    elif over == migration.TLS:
        # Also for the guest's memory and disks: libvirt would say the node's own name, which need not be certified.
        if service.identity and service.identity.peer_name:
            yield "live_migration_inbound_addr", service.identity.peer_name
        yield "live_migration_uri", "qemu+tls://%s/system"
        yield "live_migration_with_native_tls", "True"


def _with_settings(fitted: Fitted, settings: tuple[tuple[str, str], ...]) -> Fitted:
    """Add options of the group libvirt to the node's own file; what the group's snippet sets stays the snippet's."""
    service = fitted.service
    taken = {
        setting.name
        for one in service.sources
        if one.layer is PlannedLayer.PROFILE
        for setting in parse(one.content).settings
        if setting.group == "libvirt"
    }
    lines = [f"{name} = {value}" for name, value in settings if name not in taken]
    if not lines or service.conf_d is None:
        return fitted
    host = next((one for one in service.sources if one.layer is PlannedLayer.HOST), None)
    if host is None:
        origin = Origin(Reference("definition", "edpm.services", service.service), f"file {_HOST_FILE}")
        host = ConfigSource(origin, service.conf_d, _HOST_FILE, PlannedLayer.HOST, False, b"")
    added = ("\n[libvirt]\n" + "\n".join(lines) + "\n").encode()
    others = tuple(one for one in service.sources if one != host)
    sources = (*others, replace(host, content=(host.content + added).lstrip(b"\n")))
    return replace(fitted, service=replace(service, sources=sources))


# --- volumes ----------------------------------------------------------------------------------------------------------
def _iscsid(fitted: Fitted) -> Fitted:
    asked, fitted = switch(fitted, _ISCSID)
    if not asked:
        return fitted
    running = fitted.running
    running = replace(
        running,
        # The initiator's name and its sessions are the node's; its daemon answers on a socket of the shared network.
        mounts=(*running.mounts, Mount("/etc/iscsi"), Mount("/var/lib/iscsi"), Mount("/run/lock/iscsi")),
        folders=(*running.folders, Folder("/etc/iscsi"), Folder("/var/lib/iscsi")),
        tmpfiles=(*running.tmpfiles, "d /run/lock/iscsi 0755 root root -"),
        modules=(*running.modules, "iscsi_tcp"),
        packages=(*running.packages, ("apt", ("open-iscsi",)), ("dnf", ("iscsi-initiator-utils",))),
        node_units=(*running.node_units, "iscsid.socket"),
        after=(*running.after, "iscsid.socket"),
    )
    return replace(fitted, running=running)


def _multipathd(fitted: Fitted) -> Fitted:
    asked, fitted = switch(fitted, _MULTIPATHD)
    if not asked:
        return fitted
    running = fitted.running
    running = replace(
        running,
        mounts=(*running.mounts, Mount("/etc/multipath"), Mount("/etc/multipath.conf", options=("ro",))),
        folders=(*running.folders, Folder("/etc/multipath")),
        # Without it multipathd does not start; one that is there stays as it is.
        tmpfiles=(*running.tmpfiles, f"f /etc/multipath.conf 0644 root root - {_MULTIPATH_CONF}"),
        modules=(*running.modules, "dm-multipath"),
        packages=(*running.packages, ("apt", ("multipath-tools",)), ("dnf", ("device-mapper-multipath",))),
        node_units=(*running.node_units, "multipathd.service"),
        after=(*running.after, "multipathd.service"),
    )
    return _with_settings(replace(fitted, running=running), (("volume_use_multipath", "True"),))


def _ceph(fitted: Fitted) -> Fitted:
    """QEMU opens a volume of Ceph with a secret of libvirt's, which is defined before nova-compute takes guests."""
    service = fitted.service
    if not any(b"rbd_secret_uuid" in one.content for one in service.sources if one.directory == service.conf_d):
        return fitted
    file = OwnFile(_LIBEXEC, f"{_PROGRAM}.py", text(_PROGRAM))
    command = f"python3 {GENERATION}/files{_LIBEXEC}/{_PROGRAM}.py {GENERATION}"
    line = f"ExecStartPost=/usr/bin/podman exec --user=root {fitted.who.container} {command}"
    running = fitted.running
    running = replace(running, files=(*running.files, file), service_lines=(*running.service_lines, line))
    return replace(fitted, running=running)
