# SPDX-License-Identifier: GPL-3.0-or-later
"""A real sshd on the loopback interface, keys of every kind, and Ansible run as a user runs it."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from edpm_lab.command import tied
from edpm_lab.ports import free_port
from edpm_lab.prerequisites import Tool, require

BIN = Path(sys.executable).parent
PATH = f"{os.environ['PATH']}:/usr/sbin"
DATAPLANE = "dataplane.openstack.org/v1beta1"
NOVA = "nova.openstack.org/v1beta1"
# Two nodes with one address would be a fault: every node of a test has one of these.
ADDRESSES = "\n".join(f"ListenAddress 127.0.0.{number}" for number in range(1, 10))
SSHD = """\
Port {port}
{addresses}
HostKey {folder}/host
AuthorizedKeysFile {folder}/authorized
PidFile {folder}/pid
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
LogLevel VERBOSE
"""


@dataclass(frozen=True)
class Sshd:
    """A server that lets the present user in with the keys that are added."""

    folder: Path
    port: int

    def admit(self, *public: str) -> None:
        (self.folder / "authorized").write_text("".join(f"{key}\n" for key in public))

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()


@pytest.fixture(scope="session")
def sshd() -> Iterator[Sshd]:
    """One server for the run; what it admits is each test's to say."""
    require("a test of SSH keys", Tool("sshd", "openssh-server"), Tool("ssh-agent", "openssh-client"))
    program = shutil.which("sshd", path=PATH)
    assert program is not None
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="edpm-sshd-") as name:
        folder, port = Path(name), free_port()
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "host"], check=True)
        (folder / "config").write_text(SSHD.format(folder=folder, port=port, addresses=ADDRESSES))
        (folder / "authorized").touch()
        words: list[str | Path] = [*tied(), program, "-D", "-e", "-f", folder / "config"]
        server = subprocess.Popen(words, stderr=(folder / "log").open("w"))
        _wait_for(port)
        yield Sshd(folder, port)
        server.terminate()
        server.wait(10)


@dataclass(frozen=True)
class Key:
    """A private key, its public half, and a line of it that must never be seen anywhere."""

    private: str
    public: str

    @property
    def line(self) -> str:
        return self.private.splitlines()[2]


def make_key(folder: Path, *options: str, passphrase: str = "") -> Key:
    """A key made by ssh-keygen; the files are gone before anything else happens."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        file = Path(place) / "key"
        subprocess.run(["ssh-keygen", "-q", "-N", passphrase, "-C", "test", "-f", file, *options], check=True)
        return Key(file.read_text(), file.with_suffix(".pub").read_text().strip())


def thing(api_version: str, kind: str, name: str, **rest: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "openstack"}, **rest}


def data_plane(sshd: Sshd, keys: Mapping[str, Key]) -> list[dict[str, Any]]:
    """A role and a node for each key, all of them this machine; the agents that they run need no cell."""
    role = thing(DATAPLANE, "OpenStackDataPlaneRole", "edpm", spec={"nodeTemplate": {"ansiblePort": sshd.port}})
    role["metadata"]["annotations"] = {"neutron.openstack.org/sriov-agent": "true"}
    objects = [role]
    for number, (name, key) in enumerate(keys.items(), start=1):
        section = {
            "ansibleUser": getpass.getuser(),
            "ansibleSSHPrivateKeySecret": f"key-{name}",
            "ansibleVars": {"ansible_python_interpreter": sys.executable},
        }
        spec = {"role": "edpm", "hostName": name, "ansibleHost": f"127.0.0.{number}", "node": section}
        objects.append(thing(DATAPLANE, "OpenStackDataPlaneNode", name, spec=spec))
        objects.append(thing("v1", "Secret", f"key-{name}", stringData={"ssh-privatekey": key.private}))
    return objects


@dataclass(frozen=True)
class Controller:
    """A user's machine: a home folder, a temporary folder, an inventory, and nothing in the environment."""

    folder: Path
    temporary: Path

    @property
    def inventory(self) -> Path:
        return self.folder / "test.dataplane.yml"

    def write(self, objects: list[dict[str, Any]], **options: Any) -> None:
        (self.folder / "manifests.yaml").write_text(yaml.safe_dump_all(objects))
        plugin = {"plugin": "edpm.services.dataplane", "manifests": "manifests.yaml", **options}
        self.inventory.write_text(yaml.safe_dump(plugin))

    def environment(self, **more: str) -> dict[str, str]:
        return {
            "PATH": PATH,
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(self.temporary),
            "ANSIBLE_HOME": str(self.folder / "home" / ".ansible"),
            "ANSIBLE_HOST_KEY_CHECKING": "False",
            "ANSIBLE_SSH_ARGS": "-o UserKnownHostsFile=/dev/null -o LogLevel=ERROR",
            "ANSIBLE_NOCOLOR": "1",
            "LANG": "C.UTF-8",
            **more,
        }

    def command(self, program: str, *args: str | Path) -> list[str | Path]:
        return [BIN / program, "-i", self.inventory, *args]

    def run(self, program: str, *args: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(program, *args),
            cwd=self.folder,
            env=self.environment(**more),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def leftovers(self) -> list[str]:
        """Agents' folders, and processes that name one."""
        folders = [str(path) for path in self.temporary.glob("edpm-ssh-*")]
        processes = [line for line in _command_lines() if f"{self.temporary}/edpm-ssh-" in line]
        return folders + processes

    def wait_until_nothing_is_left(self, seconds: float = 20) -> list[str]:
        deadline = time.monotonic() + seconds
        while (left := self.leftovers()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return left

    def files_with(self, text: str) -> list[Path]:
        """Files of the user's that hold a text, wherever Ansible may have put them."""
        homes = (self.folder / "home", self.temporary)
        return [
            file for home in homes for file in home.rglob("*") if file.is_file() and text.encode() in file.read_bytes()
        ]


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[Controller]:
    (tmp_path / "home").mkdir()
    with tempfile.TemporaryDirectory(prefix="edpm-t-", dir="/tmp") as temporary:
        yield Controller(tmp_path, Path(temporary))


def _command_lines() -> list[str]:
    lines = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(file.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
        except OSError:
            continue
    return lines


def _wait_for(port: int) -> None:
    for _attempt in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"no sshd answers at port {port}")
