# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes with a kernel of their own: virtual machines whose security module is AppArmor or SELinux.

The lab's other nodes are containers and share the host's kernel, which may have neither. A machine boots Debian's
kernel from a disk that is built once; what it writes is lost when it stops. It is reached at the loopback address
alone and reaches nothing itself.
"""

from __future__ import annotations

import os
import shlex
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self, get_args

import yaml

from . import cache, command, images, podman
from .command import CommandFailed, Result
from .control_plane import last_lines
from .errors import LabError
from .labs import Lab
from .ports import LOOPBACK, free_port
from .prerequisites import Tool, architecture, require

Security = Literal["apparmor", "selinux"]

#: What chooses the kernel's security module; SELinux enforces from the first process on.
_CHOSEN = {"apparmor": "security=apparmor apparmor=1", "selinux": "security=selinux selinux=1 enforcing=1"}
#: Seconds until a machine that does not answer is given up; without hardware to help it takes one to three minutes.
_UP_WITHIN = 600.0


@dataclass(frozen=True)
class _Emulator:
    """How a machine of the host's own architecture is put together."""

    program: Tool
    kind: str
    console: str


_EMULATORS = {
    "amd64": _Emulator(Tool("qemu-system-x86_64", "qemu-system-x86"), "q35", "ttyS0"),
    "arm64": _Emulator(Tool("qemu-system-aarch64", "qemu-system-arm"), "virt", "ttyAMA0"),
}


@dataclass(frozen=True)
class Machine:
    """A machine of a lab; as a context manager it stops at the end, else it ends with its lab."""

    lab: Lab
    name: str
    security: Security
    port: int
    disk: Path
    images: Path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def console(self) -> Path:
        """What the machine's kernel and systemd print."""
        return self._folder / "console.log"

    def ssh(self, *words: str, timeout: float = 120, check: bool = True, stdin: str | None = None) -> Result:
        """Run a command on the machine as root; the words arrive as they are, without a shell's reading."""
        return command.run(
            ["ssh", *self._ssh_options(), "-o", "BatchMode=yes", *self._as_root(), shlex.join(words)],
            timeout=timeout,
            check=check,
            stdin=stdin,
        )

    def inventory(self) -> str:
        """An Ansible inventory of the machine, as YAML."""
        settings = {
            "ansible_host": LOOPBACK,
            "ansible_port": self.port,
            "ansible_user": "root",
            "ansible_python_interpreter": "/usr/bin/python3",
            "ansible_ssh_private_key_file": str(self.disk / "key"),
            "ansible_ssh_common_args": shlex.join(self._ssh_options()),
        }
        text: str = yaml.safe_dump({"all": {"hosts": {self.name: settings}}}, sort_keys=False)
        return text

    def stop(self) -> None:
        """Cut the machine's power; its disk is as it was before it started."""
        self.lab.end(self._process, at_once=True)

    def start(self) -> None:
        """Switch the machine on and wait until it has booted and answers."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True, mode=0o700)
        host_key = (self.disk / "host-key").read_text()
        self._known_hosts.write_text(f"[{LOOPBACK}]:{self.port} {host_key}")
        self.lab.start(self._process, self._argv(), log=self.console, env={"TMPDIR": str(self._folder)})
        self._await()
        label = ""
        if self.security == "selinux":
            # What the policy lets containers do is then up to podman: it keeps all capabilities from them otherwise.
            self.ssh("setsebool", "container_use_host_all_caps", "on")
            # Files without a label have the one that podman gives its images.
            label = ",defcontext=system_u:object_r:container_ro_file_t:s0"
        self.ssh("mount", "-o", f"ro,noload{label}", "/dev/vdb", "/srv/images")

    @property
    def _folder(self) -> Path:
        return self.lab.folder / "machines" / self.name

    @property
    def _known_hosts(self) -> Path:
        return self._folder / "known_hosts"

    @property
    def _process(self) -> str:
        return f"machine-{self.name}"

    def _argv(self) -> list[str]:
        emulator = _EMULATORS[architecture()]
        boot = f"root=/dev/vda rw console={emulator.console} quiet net.ifnames=0 {_CHOSEN[self.security]}"
        # Nothing that the machine sends leaves it, except answers to who calls.
        network = f"user,id=net,restrict=on,ipv6=off,hostfwd=tcp:{LOOPBACK}:{self.port}-:22"
        return [
            *("nice", "-n", "10", emulator.program.command, "-nodefaults", "-no-user-config", "-display", "none"),
            *("-machine", f"{emulator.kind},accel=tcg", "-cpu", "max", "-smp", "1", "-m", "2048"),
            *("-kernel", str(self.disk / "kernel"), "-initrd", str(self.disk / "initrd"), "-append", boot),
            *("-drive", f"if=none,id=disk,format=raw,snapshot=on,file={self.disk / 'disk'}"),
            *("-drive", f"if=none,id=images,format=raw,readonly=on,file={self.images / 'disk'}"),
            *("-device", "virtio-blk-pci,drive=disk", "-device", "virtio-blk-pci,drive=images"),
            *("-device", "virtio-rng-pci", "-serial", "stdio"),
            *("-netdev", network, "-device", "virtio-net-pci,netdev=net,romfile="),
        ]

    def _ssh_options(self) -> list[str]:
        options = {
            "UserKnownHostsFile": str(self._known_hosts),
            "GlobalKnownHostsFile": "/dev/null",
            "StrictHostKeyChecking": "yes",
            "IdentitiesOnly": "yes",
            "ConnectTimeout": "60",
        }
        return ["-F", "/dev/null", *(word for name, value in options.items() for word in ("-o", f"{name}={value}"))]

    def _as_root(self) -> list[str]:
        return ["-i", str(self.disk / "key"), "-p", str(self.port), f"root@{LOOPBACK}"]

    def _await(self) -> None:
        limit = time.monotonic() + _UP_WITHIN
        while not self._is_up():
            if not self.lab.runs(self._process):
                raise LabError(f"machine {self.name} ended while it booted: {last_lines(self.console)}")
            if time.monotonic() > limit:
                raise LabError(f"machine {self.name} did not answer in {_UP_WITHIN:.0f} s: {last_lines(self.console)}")
            time.sleep(1)

    def _is_up(self) -> bool:
        try:
            self.ssh("systemctl", "is-system-running", "--wait", timeout=_UP_WITHIN)
        except CommandFailed as failure:
            # A unit that failed is for whoever uses the machine to judge.
            return failure.result.stdout.strip() == "degraded"
        return True


def machine(lab: Lab, security: Security, *names: str) -> Machine:
    """Boot a machine with this security module and the named images in `lab`, and wait until it answers."""
    if security not in get_args(Security):
        raise LabError(f"there is no machine with {security!r}; there are {', '.join(get_args(Security))}")
    require("a virtual machine", _EMULATORS[architecture()].program)
    made = Machine(lab, security, security, free_port(), system_disk(), image_disk(*names))
    try:
        made.start()
    except BaseException:
        made.stop()
        raise
    return made


def system_disk() -> Path:
    """The folder with a machine's disk, its kernel and the key that opens it; built once."""
    reference = images.image("machine")

    def build(place: Path) -> None:
        podman.run(
            *("run", "--rm", "--privileged", "--network=none", "--volume", f"{place}:/srv/disk"),
            *(reference, "make-disk", "/srv/disk"),
            timeout=900,
        )

    return cache.folder("machine", {"image": reference}, build)


def image_disk(*names: str) -> Path:
    """The folder with a disk of images, as a machine's podman finds them without unpacking; built once."""
    references = images.build_all(names)

    def build(place: Path) -> None:
        require("a disk of images", Tool("mkfs.ext4", "e2fsprogs"))
        store, scratch = place / "store", place / "scratch"
        try:
            for one in references.values():
                podman.run("push", "--quiet", one, f"containers-storage:[overlay@{store}+{scratch}]{one}", timeout=600)
        finally:
            podman.unmount_below(place)
        size = command.run(["du", "--summarize", "--block-size=1M", store]).stdout.split()[0]
        (place / "disk").touch()
        os.truncate(place / "disk", (int(size) * 5 // 4 + 64) << 20)
        command.run(["mkfs.ext4", "-q", "-d", store, place / "disk"], timeout=600)
        shutil.rmtree(store)
        shutil.rmtree(scratch, ignore_errors=True)

    return cache.folder("machine-images", references, build)
