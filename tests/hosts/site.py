# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine with a security module, small services for it, and Ansible that deploys them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.running import Running
from edpm_lab import images
from edpm_lab.machines import Machine

FILES = Path(__file__).parent / "files"
#: What the services run from; a machine has it without unpacking it.
IMAGE = "kolla"
#: An emulated machine takes its time.
HEALTH_SECONDS = 180
#: Reads its configuration, and writes what it found there into its folder.
_AGENT = """\
trap 'exit 0' TERM
cat /etc/{name}/conf.d/*.conf > {folder}/read-by-{name}
sleep infinity &
wait
"""


def definition(name: str, folder: str = "/var/lib/probe", **others: Any) -> dict[str, Any]:
    """A service that keeps to itself, except for a folder that it shares with the others of its kind."""
    return {
        "version": 1,
        "name": name,
        "user": "root",
        "command": f"sh /etc/{name}/agent",
        "config_directory": f"/etc/{name}",
        "conf_d": f"/etc/{name}/conf.d",
        "keys": [{"key": "ca.crt", "directory": f"/etc/{name}/tls", "live": True}],
        "files": [{"path": f"/etc/{name}/agent", "mode": "0700", "content": _AGENT.format(name=name, folder=folder)}],
        "mounts": [{"source": folder, "own": True}],
        "folders": [{"path": folder}],
        "privileges": {"confined": True},
        "stop_seconds": 2,
        "health": {"command": ["test", "-s", f"{folder}/read-by-{name}"], "settle": 1, "timeout": HEALTH_SECONDS},
        "validation": {"command": ["sh", "-c", f"! grep -q nonsense /etc/{name}/conf.d/*.conf"]},
        **others,
    }


def like(running: Running, folder: str) -> dict[str, Any]:
    """The small service with the privileges and the mounts of one that this collection brings."""
    mounts = [{"source": one.source.replace("{suffix}", ""), "options": list(one.options)} for one in running.mounts]
    return definition(
        f"like-{running.service.replace('_', '-')}",
        folder,
        mounts=[{**mount, "own": one.own} for mount, one in zip(mounts, running.mounts, strict=True)],
        folders=[{"path": one.path.replace("{suffix}", "")} for one in running.folders],
        tmpfiles=list(running.tmpfiles),
        privileges={
            "privileged": running.privileged,
            "confined": running.confined,
            "capabilities": list(running.capabilities),
            "podman_options": list(running.podman_options),
        },
    )


@dataclass(frozen=True)
class Site:
    """The machine, and a folder for what Ansible reads."""

    machine: Machine
    folder: Path

    def converge(self, said: Mapping[str, Any], interval: int = 5, certificate: str = "first", **others: str) -> int:
        """Deploy a service; the answer is how many tasks changed something."""
        (self.folder / "edpm-service.yaml").write_text(yaml.safe_dump(dict(said)))
        variables = {
            "service_name": said["name"],
            "service_definition": str(self.folder / "edpm-service.yaml"),
            "service_image": images.reference(IMAGE),
            "interval": interval,
            "certificate": certificate,
            **others,
        }
        return self.play("converge.yml", variables)

    def play(self, playbook: str, variables: Mapping[str, Any]) -> int:
        """Run a playbook of these tests; the answer is how many tasks changed something."""
        (self.folder / "hosts.yml").write_text(self.machine.inventory())
        kept = {key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")}
        run = subprocess.run(
            [
                Path(sys.executable).parent / "ansible-playbook",
                "-i",
                "hosts.yml",
                FILES / playbook,
                "-e",
                json.dumps(variables),
            ],
            cwd=self.folder,
            env={**kept, "ANSIBLE_NOCOLOR": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=900,
            check=False,
        )
        found = re.search(r"^\S+ +: .*changed=(\d+) .*failed=0", run.stdout, re.MULTILINE)
        assert found is not None, run.stdout
        assert run.returncode == 0, run.stdout
        return int(found[1])

    def sh(self, script: str, *, check: bool = True) -> str:
        return self.machine.ssh("sh", "-c", script, check=check, timeout=300).stdout.strip()

    def holds(self, name: str, script: str) -> bool:
        """Whether a script succeeds in a service's container."""
        return self.machine.ssh("podman", "exec", f"edpm_{name}", "sh", "-c", script, check=False).returncode == 0

    def confinement(self, name: str) -> str:
        """What the kernel says about the service's first process."""
        pid = self.sh(f"podman inspect --format '{{{{.State.Pid}}}}' edpm_{name}")
        return self.sh(f"tr -d '\\0' < /proc/{pid}/attr/current")

    def invocation(self, name: str) -> str:
        """The life that the service's unit is in."""
        return self.sh(f"systemctl show --value --property=InvocationID edpm_{name}.service")

    def denied(self) -> list[str]:
        """What the kernel has refused since the machine started, in the order in which it did."""
        log = self.sh("cat /var/log/audit/audit.log; journalctl --dmesg --output=cat --no-pager")
        return [line for line in log.splitlines() if re.search(r'avc: +denied|apparmor="DENIED"|SELINUX_ERR', line)]
