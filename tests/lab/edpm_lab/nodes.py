# SPDX-License-Identifier: GPL-3.0-or-later
"""EDPM nodes: system containers that an operator would take for machines.

Each has systemd as init, an address that it keeps, sshd with a host key of its own, and a podman that
runs Quadlet units with the lab's images. What tells a machine's boots apart (the boot id) is made anew
at each start, since the kernel's own is the host's.
"""

from __future__ import annotations

import json
import re
import shlex
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import yaml

from . import command, hosts, images, podman
from .command import Result
from .errors import LabError
from .labs import Lab
from .prerequisites import Tool, require
from .progress import say, step

#: Nodes have the addresses from this number of the lab's network on.
FIRST_ADDRESS = 10

#: What systemd takes as the wish to halt: SIGRTMIN+3.
_HALT = "37"
_START_LIMIT = 90.0
_HALT_LIMIT = 30.0

_FIRST_PROCESS = f"""{podman.BECOME_A_MACHINE} || exit 1
[ -s /root/.ssh/authorized_keys ] || echo "$AUTHORIZED_KEY" > /root/.ssh/authorized_keys
cat /proc/sys/kernel/random/uuid > /run/boot-id
mount --bind /run/boot-id /proc/sys/kernel/random/boot_id
unset AUTHORIZED_KEY
export container=podman
exec /sbin/init"""

_UNTIL_BOOTED = """while :; do
    state=$(systemctl is-system-running --wait 2>/dev/null)
    case $state in running|degraded|maintenance) break ;; esac
    sleep 0.1
done
echo $state $(systemctl list-units --failed --plain --no-legend | cut -d " " -f 1)
cat /etc/ssh/ssh_host_ed25519_key.pub"""


@dataclass(frozen=True)
class Node:
    """A node of a lab as it is now; `state` is podman's word, such as running or exited."""

    name: str
    address: str
    state: str
    image: str


class NodeError(LabError):
    """A node did not come up; the text ends with what it logged last."""


def default_names(count: int) -> list[str]:
    """The names of the first nodes, as deployments give them."""
    return [f"edpm-compute-{index}" for index in range(count)]


class Nodes:
    """The nodes of one lab; new ones lie in the host's control group `cgroup` where one is given."""

    def __init__(self, lab: Lab, *, cgroup: str = "") -> None:
        self._cgroup = cgroup
        self._in = lab
        self._lab = lab.name
        self._folder = lab.folder / "nodes"

    @property
    def private_key(self) -> Path:
        """The key that every node of this lab lets in as root."""
        return self._folder / "id_ed25519"

    @property
    def known_hosts(self) -> Path:
        """The host keys of this lab's nodes, read through podman and not over the network."""
        return self._folder / "known_hosts"

    def up(self, names: Sequence[str], image: str = "node") -> Sequence[Node]:
        """Bring nodes up, side by side; those that run are left alone, those that are stopped are started.

        `image` is that of new nodes: `node`, or `node-ovn` with Open vSwitch, OVN and libvirt installed.
        """
        for name in names:
            _check_name(name)
        podman.containers_work()
        require("reaching nodes", Tool("ssh", "openssh-client"), Tool("ssh-keygen", "openssh-client"))
        reference = images.image(image)
        self._make_key()
        known = {node.name: node for node in self.list()}
        addresses = self._addresses(names, known)
        hosts.remember(self._in, addresses)
        idle = [name for name in names if name not in known or known[name].state != "running"]

        def bring_up(name: str) -> None:
            begin = self._begin_again if name in known else self._begin_new
            self._come_up(name, addresses[name], lambda: begin(name, addresses[name], reference))

        if idle:
            with step(f"nodes {', '.join(idle)}"):
                _side_by_side(bring_up, idle)
        return [node for node in self.list() if node.name in names]

    def list(self) -> Sequence[Node]:
        """All nodes of the lab, by name."""
        chosen = ("--filter", f"label=edpm.lab={self._lab}", "--filter", "label=edpm.node")
        found = json.loads(podman.run("ps", "--all", *chosen, "--format", "json").stdout or "[]")
        nodes = [
            Node(each["Labels"]["edpm.node"], each["Labels"]["edpm.address"], each["State"], each["Image"])
            for each in found
        ]
        return sorted(nodes, key=lambda node: [int(part) if part.isdigit() else part for part in _parts(node.name)])

    def address(self, name: str) -> str:
        """Where a node is in the lab's network."""
        return self._node(name).address

    def execute(
        self, name: str, *words: str, timeout: float = 60, check: bool = True, stdin: str | None = None
    ) -> Result:
        """Run a command on a node as root, from outside: a fraction of what a login costs.

        Where a node's systemd shares out a group of its own, no process may come into that group from outside.
        """
        if self._cgroup:
            return self.ssh(name, *words, timeout=timeout, check=check, stdin=stdin)
        return podman.execute(self._container(name), *words, timeout=timeout, check=check, stdin=stdin)

    def ssh(self, name: str, *words: str, timeout: float = 60, check: bool = True, stdin: str | None = None) -> Result:
        """Run a command on a node as root; the words arrive as they are, without a shell's reading."""
        return command.run(
            [*self.ssh_argv(name), "-o", "BatchMode=yes", shlex.join(words)], timeout=timeout, check=check, stdin=stdin
        )

    def ssh_argv(self, name: str) -> Sequence[str]:
        """What to execute for a shell on a node."""
        return ["ssh", *self._ssh_options(), "-i", str(self.private_key), f"root@{self._node(name).address}"]

    def reboot(self, name: str) -> None:
        """Halt a node as a machine is halted, and start it again."""
        if self._node(name).state == "running":
            self._halt(name)
        self.start(name)

    def kill(self, name: str) -> None:
        """Cut a node's power."""
        self._node(name)
        # Podman waits for some seconds here and then calls it an error; whether the node ends is seen below.
        podman.run("kill", "--signal", "KILL", self._container(name), check=False)
        podman.run("wait", self._container(name))

    def start(self, name: str) -> None:
        """Switch a stopped node on and wait until it answers."""
        node = self._node(name)
        if node.state != "running":
            self._come_up(name, node.address, lambda: self._begin_again(name))

    def inventory(self) -> str:
        """An Ansible inventory of the lab's nodes, as YAML."""
        hosts = {node.name: {"ansible_host": node.address} for node in self.list()}
        shared = {
            "ansible_user": "root",
            "ansible_python_interpreter": "/usr/bin/python3",
            "ansible_ssh_private_key_file": str(self.private_key),
            "ansible_ssh_common_args": shlex.join(self._ssh_options()),
        }
        text: str = yaml.safe_dump({"all": {"hosts": hosts, "vars": shared}}, sort_keys=False)
        return text

    def _node(self, name: str) -> Node:
        nodes = self.list()
        for node in nodes:
            if node.name == name:
                return node
        there = ", ".join(node.name for node in nodes) or "none"
        raise LabError(f"the lab {self._lab} has no node {name}; there are: {there}")

    def _container(self, name: str) -> str:
        return f"edpm-{self._lab}-{name}"

    def _ssh_options(self) -> Sequence[str]:
        options = {
            "UserKnownHostsFile": str(self.known_hosts),
            "GlobalKnownHostsFile": "/dev/null",
            "StrictHostKeyChecking": "yes",
            "IdentitiesOnly": "yes",
            "ConnectTimeout": "10",
        }
        return ["-F", "/dev/null", *(word for name, value in options.items() for word in ("-o", f"{name}={value}"))]

    def _make_key(self) -> None:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        if not self.private_key.exists():
            command.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", self._lab, "-f", self.private_key])

    def _addresses(self, names: Iterable[str], known: dict[str, Node]) -> dict[str, str]:
        """Each node's address: the one it has, or the next free one."""
        network = podman.network(self._lab)
        addresses = {name: node.address for name, node in known.items()}
        number = FIRST_ADDRESS
        for name in names:
            while network.address(number) in addresses.values():
                number += 1
            addresses.setdefault(name, network.address(number))
        return addresses

    def _begin_new(self, name: str, address: str, reference: str) -> None:
        container = self._container(name)
        podman.run("rm", "--force", "--time", "0", "--volumes", "--ignore", container)
        podman.run(
            *("run", "--detach", "--name", container, "--hostname", name),
            *podman.labels(self._lab),
            *("--label", f"edpm.node={name}", "--label", f"edpm.address={address}"),
            *("--privileged", "--cgroupns=private", "--systemd=false"),
            *([f"--cgroup-parent={self._cgroup}"] if self._cgroup else []),
            *podman.network(self._lab).at(address),
            *hosts.mounted(self._in),
            *("--tmpfs", "/run:rw,exec,mode=755", "--tmpfs", "/tmp:rw,exec,mode=1777"),
            *("--volume", "/var/lib/containers"),
            *("--mount", f"type=bind,source={podman.storage()},destination=/srv/images,readonly,bind-nonrecursive"),
            *("--env", f"AUTHORIZED_KEY={self.private_key.with_suffix('.pub').read_text().strip()}"),
            *(reference, "/bin/sh", "-c", _FIRST_PROCESS),
        )

    def _begin_again(self, name: str, *_: str) -> None:
        podman.run("kill", "--signal", "KILL", self._container(name), check=False)
        podman.run("start", self._container(name))

    def _halt(self, name: str) -> None:
        container = self._container(name)
        podman.run("kill", "--signal", _HALT, container)
        try:
            podman.run("wait", container, timeout=_HALT_LIMIT)
        except LabError:
            say(f"node {name} did not halt within {_HALT_LIMIT:.0f} s, so its power is cut")
            podman.run("kill", "--signal", "KILL", container, check=False)

    def _come_up(self, name: str, address: str, begin: Callable[[], None]) -> None:
        """Start a node and wait for it; a start may fail once."""
        try:
            begin()
            self._await(name, address)
        except LabError as first:
            say(f"node {name} is started a second time: {first}")
            try:
                begin()
                self._await(name, address)
            except LabError as error:
                raise NodeError(
                    f"node {name} did not come up: {error}; last logged: {self._last_words(name)}"
                ) from None

    def _await(self, name: str, address: str) -> None:
        try:
            answer = podman.execute(self._container(name), "sh", "-c", _UNTIL_BOOTED, timeout=_START_LIMIT)
        except command.CommandFailed as failure:
            raise NodeError(f"it stopped while it booted ({failure.result.stderr.strip()})") from None
        except LabError:
            raise NodeError(f"its systemd was not done within {_START_LIMIT:.0f} s") from None
        state, _, host_key = answer.stdout.partition("\n")
        word, *failed = state.split()
        if word == "maintenance":
            raise NodeError("its systemd stopped for maintenance")
        if failed:
            say(f"node {name} is up, but failed to start: {', '.join(failed)}")
        self._remember_host_key(name, address, host_key)
        _await_sshd(address)

    def _remember_host_key(self, name: str, address: str, host_key: str) -> None:
        kind, key = host_key.split()[:2]
        (self._folder / f"{name}.host-key").write_text(f"{name},{address} {kind} {key}\n")
        lines = [file.read_text() for file in sorted(self._folder.glob("*.host-key"))]
        half = self.known_hosts.with_suffix(f".{name}")
        half.write_text("".join(lines))
        half.replace(self.known_hosts)

    def _last_words(self, name: str) -> str:
        container = self._container(name)
        asked = ("journalctl", "--no-pager", "--output=cat", "--lines=5")
        shown = podman.execute(container, *asked, timeout=20, check=False).stdout
        if not shown:
            logs = podman.run("logs", "--tail", "5", container, check=False)
            shown = logs.stdout + logs.stderr
        return " / ".join(shown.strip().splitlines()) or "nothing"


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name):
        raise LabError(f"{name!r} cannot name a node; use small letters, digits and dashes")


def _parts(name: str) -> Sequence[str]:
    return re.split(r"(\d+)", name)


def _side_by_side(work: Callable[[str], None], names: Sequence[str]) -> None:
    with ThreadPoolExecutor(min(8, len(names)), thread_name_prefix="node") as pool:
        for finished in [pool.submit(work, name) for name in names]:
            finished.result()


def _await_sshd(address: str, limit: float = 15.0) -> None:
    """Wait until something that speaks SSH answers at an address."""
    end = time.monotonic() + limit
    while True:
        try:
            with socket.create_connection((address, 22), timeout=2) as connection:
                if connection.recv(4) == b"SSH-":
                    return
                fault = "what answers there is no sshd"
        except OSError as error:
            fault = str(error)
        if time.monotonic() > end:
            raise LabError(f"sshd does not answer at {address}: {fault}")
        time.sleep(0.2)
