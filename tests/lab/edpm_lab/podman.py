# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's own podman: its storage, networks and settings lie apart, so the host's podman is never touched.

Everything that a lab makes with it carries the label `edpm.lab=<lab>`, and that label is all that the
remover at the end of this file needs. Settings are written for the host that is found: hybrid cgroups,
no systemd, or no right to raise limits each need a line that a plain host does not.
"""

from __future__ import annotations

import fcntl
import functools
import io
import ipaddress
import json
import os
import resource
import shlex
import shutil
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from . import command, labs, places
from .cache import digest, translated
from .command import Result
from .errors import LabError, NotOnThisHost
from .prerequisites import Tool, require, require_root

#: The address range of all labs; each lab takes a /24 of it that nothing on the host uses.
RANGE = ipaddress.IPv4Network("10.213.0.0/16")

#: Turns a privileged container into a machine: a cgroup tree of its own and mounts that are passed on.
BECOME_A_MACHINE = "umount -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup && mount --make-rshared /"

#: Before a command: it dies with the process that started it, however that ends.
MORTAL = ("setpriv", "--pdeathsig", "KILL", "--")

_NAMESPACES = "--mount --uts --ipc --net --pid --cgroup"
_ENVIRONMENT = "HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: The id and the first process of each container that this process has run something in.
_first_processes: dict[str, tuple[str, str]] = {}

#: How many files the kernel lets root's programs watch; each systemd needs a few of them, and dies without.
_WATCHERS = Path("/proc/sys/fs/inotify/max_user_instances")
_ENOUGH_WATCHERS = 1024

_TOOLS = (
    Tool("podman", "podman"),
    Tool("runc", "runc"),
    Tool("netavark", "netavark"),
    Tool("aardvark-dns", "aardvark-dns"),
    Tool("iptables", "iptables"),
    Tool("nft", "nftables"),
    Tool("ip", "iproute2"),
    Tool("nsenter", "util-linux"),
)
#: Numbers of capabilities, as the kernel counts them.
_CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21, "CAP_SYS_RESOURCE": 24}


@dataclass(frozen=True)
class Network:
    """The network of one lab: its podman name and a /24 whose addresses are given out by number."""

    name: str
    subnet: ipaddress.IPv4Network

    def address(self, number: int) -> str:
        """The address with this number: 1 is the host, 2 to 9 are for control planes, nodes begin at 10."""
        if not 1 <= number <= 254:
            raise LabError(f"the network {self.name} has no address {number}; it holds 1 to 254")
        return str(self.subnet[number])

    def at(self, address: str) -> list[str]:
        """Arguments that put a container at an address, with the same MAC at each start: neighbours remember it."""
        mac = ":".join(f"{octet:02x}" for octet in (0x02, 0xED, *ipaddress.IPv4Address(address).packed))
        return ["--network", self.name, "--ip", address, "--mac-address", mac]


def run(
    *words: str | Path, timeout: float = 60, check: bool = True, stdin: str | None = None, log: Path | None = None
) -> Result:
    """Run a podman command to its end."""
    ready()
    return _podman(*words, timeout=timeout, check=check, stdin=stdin, log=log)


def execute(
    container: str, *words: str | Path, timeout: float = 60, check: bool = True, stdin: str | None = None
) -> Result:
    """Run a program in a container as its root, as `podman exec` does, for a thirtieth of the processor's time."""
    ready()
    if way := _way_into(container):
        named = [f"{container}:", *words]
        return command.run([*way, *words], timeout=timeout, check=check, stdin=stdin, called=named)
    # Podman tells what hinders.
    given = () if stdin is None else ("--interactive",)
    return _podman("exec", *given, container, *words, timeout=timeout, check=check, stdin=stdin)


def build(*words: str | Path, scratch: Path, log: Path, timeout: float = 1800) -> None:
    """Run `podman build`; it ends when this process is killed, and what it leaves then is below `scratch`."""
    ready()
    scratch.mkdir(parents=True, exist_ok=True)
    env = {**environment(), "TMPDIR": str(scratch)}
    command.run([*MORTAL, "podman", "build", *words], timeout=timeout, log=log, env=env, cwd=Path("/"))


def environment() -> dict[str, str]:
    """What a podman process needs in its environment to be the lab's own."""
    return {
        "CONTAINERS_CONF": str(_home() / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(_home() / "storage.conf"),
    }


def storage() -> Path:
    """The folder with the lab's images, which nodes see read-only as an additional image store."""
    return _home() / "storage"


def labels(lab: str) -> list[str]:
    """Arguments for whatever is created for a lab, so that it ends with the lab."""
    with translated():
        _used_by(lab).parent.mkdir(parents=True, exist_ok=True)
        _used_by(lab).touch()
    return ["--label", f"edpm.lab={lab}"]


def network(lab: str) -> Network:
    """The network of a lab, made when there is none yet; labs that start together get different subnets."""
    ready()
    name = f"edpm-{lab}"
    with _alone("network"):
        subnet = _known_subnets().get(name)
        if subnet is None:
            subnet = _free_subnet()
            _create_network(name, subnet, labels(lab))
    return Network(name, subnet)


@functools.cache
def ready() -> None:
    """Everything podman needs: root, packages, settings and a run folder of this boot."""
    require_root("podman with system containers")
    require("podman", *_TOOLS)
    with translated(), _alone("settings"):
        _home().mkdir(parents=True, exist_ok=True)
        (_home() / "networks").mkdir(exist_ok=True)
        _forget_an_earlier_boot()
        _write(_home() / "storage.conf", _storage_conf())
        _write(_home() / "containers.conf", _containers_conf())
    _allow_many_machines()


def containers_work() -> None:
    """Raise NotOnThisHost when this host cannot run a system container, which is found out by running one."""
    require_root("a system container")
    for capability in ("CAP_SYS_ADMIN", "CAP_NET_ADMIN"):
        if not _has(capability):
            raise NotOnThisHost(f"system containers need {capability}, which root lacks here, as in a plain container")
    ready()
    proof = _home() / "works-since-boot"
    if proof.exists() and proof.read_text() == _boot_id():
        return
    with _alone("probe"):
        if proof.exists() and proof.read_text() == _boot_id():
            return
        if fault := _try_a_machine():
            raise NotOnThisHost(f"this host cannot run system containers: {fault}")
        _write(proof, _boot_id())


def remove(lab: str) -> None:
    """Remove the containers, volumes and networks of a lab at once, without waiting for a clean stop."""
    if not _used_by(lab).exists() or shutil.which("podman") is None:
        return
    chosen = ("--filter", f"label=edpm.lab={lab}")
    # A container that was just being started or stopped may refuse once.
    for last_try in (False, True):
        if containers := _podman("ps", "--all", "--quiet", *chosen).stdout.split():
            _podman("rm", "--force", "--time", "0", "--volumes", *containers, timeout=120, check=last_try)
    if volumes := _podman("volume", "ls", "--quiet", *chosen).stdout.split():
        _podman("volume", "rm", "--force", *volumes)
    with _alone("network"):
        if networks := _podman("network", "ls", "--quiet", *chosen).stdout.split():
            _podman("network", "rm", "--force", *networks)
    _used_by(lab).unlink(missing_ok=True)


def remove_everything() -> None:
    """Remove the lab's podman with all its images; the packages stay."""
    if not _home().exists():
        return
    if shutil.which("podman") is not None and (_home() / "storage.conf").exists():
        _podman("rm", "--all", "--force", "--time", "0", "--volumes", timeout=300, check=False)
    for folder in (_home(), _runroot()):
        unmount_below(folder)
        shutil.rmtree(folder, ignore_errors=True)
    ready.cache_clear()


labs.REMOVERS.append(remove)


def _podman(
    *words: str | Path, timeout: float = 60, check: bool = True, stdin: str | None = None, log: Path | None = None
) -> Result:
    return command.run(
        ["podman", *words], timeout=timeout, check=check, stdin=stdin, log=log, env=environment(), cwd=Path("/")
    )


def _way_into(container: str) -> list[str]:
    """The words before a program that is to run in a container; none where that does not run."""
    found = _first_processes.get(container, ("", ""))
    group = _group_of(*found)
    if not group:
        asked = ("container", "inspect", "--format", "{{.Id}} {{.State.Pid}}", container)
        identity, _, process = _podman(*asked, check=False).stdout.strip().partition(" ")
        found = _first_processes[container] = identity, process
        group = _group_of(*found)
    if not group:
        return []
    # Where the kernel's tree of groups is depends on the host.
    there = (Path(root + group) for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"))
    join = next((f"echo $$ > {shlex.quote(str(one))}/cgroup.procs; " for one in there if one.is_dir()), "")
    enter = f"exec nsenter --target {found[1]} {_NAMESPACES} -- env -i {_ENVIRONMENT}"
    return ["sh", "-e", "-c", f'{join}{enter} "$@"', "sh"]


def _group_of(container: str, process: str) -> str:
    """The control group of a container's first process; nothing where that has ended, and its number is another's."""
    with suppress(OSError):
        lines = Path(f"/proc/{process}/cgroup").read_text().splitlines()
        if container and any(container in line for line in lines):
            return next((line.removeprefix("0::") for line in lines if line.startswith("0::")), "/")
    return ""


def _home() -> Path:
    return places.cache() / "podman"


def _runroot() -> Path:
    """Short, since sockets lie below it; its own for each cache, since podman refuses a storage with two."""
    return Path("/run/edpm-lab") / digest({"cache": str(places.cache())})[:8]


def _used_by(lab: str) -> Path:
    """The mark that a lab used podman, which spares all other labs the cost of looking."""
    return _home() / "used-by" / lab


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _forget_an_earlier_boot() -> None:
    """Where /run outlives a boot, podman would take the containers of the last one for running."""
    mark = _runroot() / "boot-id"
    if mark.exists() and mark.read_text() == _boot_id():
        return
    shutil.rmtree(_runroot(), ignore_errors=True)
    _runroot().mkdir(parents=True, mode=0o700)
    mark.write_text(_boot_id())


def _storage_conf() -> str:
    return "\n".join(
        [
            "[storage]",
            'driver = "overlay"',
            f"graphroot = {json.dumps(str(storage()))}",
            f"runroot = {json.dumps(str(_runroot() / 'storage'))}",
            "",
        ]
    )


def _containers_conf() -> str:
    whole_v2 = Path("/sys/fs/cgroup/cgroup.controllers").exists()
    containers = ["pids_limit = 0", 'log_driver = "k8s-file"']
    engine = [
        'events_logger = "file"',
        f"tmp_dir = {json.dumps(str(_runroot() / 'libpod'))}",
        # The default, shared memory, is one for all podmans of a host.
        'lock_type = "file"',
    ]
    if not whole_v2:
        engine.append('runtime = "runc"')
    if not whole_v2 or not Path("/run/systemd/system").is_dir():
        engine.append('cgroup_manager = "cgroupfs"')
    if not _has("CAP_SYS_RESOURCE"):
        containers.append(f"default_ulimits = [{_limit('nofile', 20000)}, {_limit('nproc', 30000)}]")
    networks = ['network_backend = "netavark"', f"network_config_dir = {json.dumps(str(_home() / 'networks'))}"]
    return "\n".join(["[containers]", *containers, "[engine]", *engine, "[network]", *networks, ""])


def _allow_many_machines(limit: Path = _WATCHERS) -> None:
    """Raise the kernel's limit until the next boot, where that is allowed: its default ends at twenty machines."""
    with suppress(OSError, ValueError):
        if int(limit.read_text()) < _ENOUGH_WATCHERS:
            limit.write_text(f"{_ENOUGH_WATCHERS}\n")


def _has(capability: str) -> bool:
    status = Path("/proc/self/status").read_text()
    effective = next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(effective, 16) >> _CAPABILITIES[capability] & 1)


def _limit(name: str, wanted: int) -> str:
    kind = {"nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC}[name]
    hard = resource.getrlimit(kind)[1]
    given = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    return json.dumps(f"{name}={given}:{given}")


def _write(path: Path, text: str) -> None:
    if path.exists() and path.read_text() == text:
        return
    half = path.with_name(f".{path.name}.{os.getpid()}")
    half.write_text(text)
    half.replace(path)


@contextmanager
def _alone(what: str) -> Iterator[None]:
    """One process at a time; short, so unlike a build it tells nobody."""
    with translated():
        _home().mkdir(parents=True, exist_ok=True)
        lock = os.open(_home() / f".{what}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _known_subnets() -> dict[str, ipaddress.IPv4Network]:
    found = {}
    for file in (_home() / "networks").glob("*.json"):
        known = json.loads(file.read_text())
        found[known["name"]] = ipaddress.IPv4Network(known["subnets"][0]["subnet"])
    return found


def _free_subnet() -> ipaddress.IPv4Network:
    taken = [*_known_subnets().values(), *_routed()]
    for candidate in RANGE.subnets(new_prefix=24):
        if not any(candidate.overlaps(other) for other in taken):
            return candidate
    raise LabError(f"every subnet of {RANGE} is taken; take a lab down with: edpm-lab down --name NAME")


def _routed() -> list[ipaddress.IPv4Network]:
    """What the host reaches already, by a route or by an address of its own."""
    routes = json.loads(command.run(["ip", "-json", "-4", "route", "show", "table", "all"]).stdout or "[]")
    found = [ipaddress.IPv4Network(route["dst"]) for route in routes if route["dst"] != "default"]
    return [known for known in found if known.prefixlen > 0]


def _create_network(name: str, subnet: ipaddress.IPv4Network, labelled: Sequence[str]) -> None:
    _podman("network", "create", "--disable-dns", "--subnet", str(subnet), *labelled, name)
    # A bridge name of the lab's own: podman's choice could become one that the host's podman chose as well.
    file = _home() / "networks" / f"{name}.json"
    known = json.loads(file.read_text())
    known["network_interface"] = f"edpm{subnet.network_address.packed[2]}"
    _write(file, json.dumps(known, indent=2))


def _try_a_machine() -> str:
    """Run a tiny system container on a network, with the host's programs; answer with what went wrong."""
    lab = f"probe-{os.getpid()}"
    image = f"localhost/edpm-lab/{lab}"
    script = f"{BECOME_A_MACHINE} && mkdir /sys/fs/cgroup/probe && rmdir /sys/fs/cgroup/probe && {_OVERLAY_IN_A_VOLUME}"
    try:
        mounts = _import_skeleton(image)
        _podman(
            *("run", "--rm", "--privileged", "--cgroupns=private", "--systemd=false", "--network", network(lab).name),
            *("--tmpfs", "/tmp", "--volume", "/probe", *mounts, *labels(lab)),
            *(image, "/bin/sh", "-c", script),
        )
    except command.CommandFailed as failed:
        lines = failed.result.stderr.strip().splitlines() or ["podman said nothing"]
        return lines[-1].removeprefix("Error: ")
    except LabError as error:
        return str(error)
    finally:
        remove(lab)
        _podman("rmi", "--force", image, check=False)
    return ""


_OVERLAY_IN_A_VOLUME = (
    "mkdir /probe/a /probe/b /probe/c /tmp/d && "
    "mount -t overlay -o lowerdir=/probe/a,upperdir=/probe/b,workdir=/probe/c none /tmp/d && umount /tmp/d"
)


def _import_skeleton(image: str) -> list[str]:
    """An image with folders only; the host's programs are mounted into it."""
    archive = _home() / f".{os.getpid()}.probe.tar"
    mounts = ["--volume", "/usr:/usr:ro"]
    with tarfile.open(archive, "w") as tar:
        for name in ("usr", "proc", "sys", "dev", "etc", "tmp", "probe", "run", "var"):
            _add(tar, name, tarfile.DIRTYPE, "")
        for name in ("bin", "sbin", "lib", "lib64"):
            place = Path("/") / name
            if place.is_symlink():
                _add(tar, name, tarfile.SYMTYPE, str(place.readlink()))
            elif place.is_dir():
                _add(tar, name, tarfile.DIRTYPE, "")
                mounts += ["--volume", f"{place}:{place}:ro"]
    try:
        _podman("import", "--quiet", archive, image)
    finally:
        archive.unlink()
    return mounts


def _add(tar: tarfile.TarFile, name: str, kind: bytes, target: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.linkname = kind, 0o755, target
    tar.addfile(entry, io.BytesIO())


def unmount_below(folder: Path) -> None:
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for point in sorted((point for point in points if point.startswith(f"{folder}/")), reverse=True):
        command.run(["umount", "--lazy", point], check=False)
