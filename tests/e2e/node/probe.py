# SPDX-License-Identifier: GPL-3.0-or-later
"""A small service in a real image, and the module that deploys it, called as Ansible calls it."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from ansible_collections.edpm.services.plugins.module_utils._node.bundle import (
    Bundle,
    File,
    Folder,
    Group,
    Health,
    Image,
    User,
    Validation,
)
from ansible_collections.edpm.services.plugins.module_utils._node.travel import written
from edpm_lab.nodes import Nodes

#: Says what it found, dies when told to, tells when it reads again, and ends at once when it is stopped.
PROGRAM = b"""trap 'exit 0' TERM
trap 'echo "probe reads again"' HUP
echo "probe started"
cat /etc/probe/*.conf
grep -q "^die" /etc/probe/*.conf && exit 3
sleep infinity &
while :; do wait $!; done
"""
RELOAD = ("sh", "-c", "kill -HUP 1")
UNIT = """[Container]
Image={image}
ContainerName={container}
Pull=never
Network=host
Exec=/bin/sh /etc/probe/program
Volume=@GENERATION@/conf.d:/etc/probe:ro,z
[Service]
Restart=always
[Install]
WantedBy=multi-user.target
"""
LOCK = "/run/edpm_services.lock"


def bundle(image: str, files: Mapping[str, bytes], *, instance: str = "", settle: int = 1, **others: Any) -> Bundle:
    """The probe with these files in its conf.d."""
    name = f"probe@{instance}" if instance else "probe"
    container = f"edpm_{name.replace('@', '-')}"
    contents = {"program": PROGRAM, **files}
    made = tuple(File(f"conf.d/{one}", text, secret="secret" in one) for one, text in sorted(contents.items()))
    fields: dict[str, Any] = {
        "service": "probe",
        "instance": instance,
        "digest": sha256(repr((name, image, sorted(contents.items()))).encode()).hexdigest(),
        "image": Image(image),
        "container": container,
        "units": {f"edpm_{name}.container": UNIT.format(image=image, container=container)},
        "files": made,
        "kolla": '{"command": "true"}',
        "groups": (Group("probe", 4711), Group("probers", 4712)),
        "users": (User("probe", 4711, groups=("probers",)),),
        "folders": (Folder("/var/lib/probe", 0o750, "probe", "probe"),),
        "tmpfiles": ("d /run/probe 0710 probe probe -",),
        "validation": Validation(("sh", "-c", "! grep -H nonsense /etc/probe/*.conf"), {"conf.d": "/etc/probe"}),
        "health": Health(("test", "-e", "/etc/probe/program"), settle=settle, timeout=30),
        "guards": {"cell": "nova-cell1", "host": "edpm-compute-0"},
        **others,
    }
    return Bundle(**fields)


@dataclass(frozen=True)
class Caller:
    """Runs modules on a node through Ansible."""

    nodes: Nodes
    node: str
    folder: Path
    inventory: Path = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "inventory", self.folder / "inventory.yml")
        self.inventory.write_text(self.nodes.inventory())

    def begin(self, module: str, options: Mapping[str, Any], *flags: str) -> Callable[[], dict[str, Any]]:
        """Start a module call; the answer waits for its end."""
        argv = [str(Path(sys.executable).parent / "ansible"), self.node, "-i", str(self.inventory)]
        argv += ["-m", f"edpm.services.{module}", "-a", json.dumps(options), *flags]
        env = {**os.environ, "ANSIBLE_PIPELINING": "1", "ANSIBLE_NOCOLOR": "1"}
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)

        def end() -> dict[str, Any]:
            shown = process.communicate(timeout=400)[0]
            found = re.search(rf"^{self.node} \| (\w+)!? => (?=\{{)", shown, re.MULTILINE)
            answer: dict[str, Any] = json.JSONDecoder().raw_decode(shown[found.end() :])[0] if found else {}
            return {"failed": bool(found and found.group(1) == "FAILED"), **answer, "shown": shown}

        return end

    def deploy(self, made: Bundle, *flags: str, **options: Any) -> dict[str, Any]:
        return self.begin("service", {"bundle": written(made), **options}, *flags)()

    def go_back(self, *flags: str, **options: Any) -> dict[str, Any]:
        return self.begin("service", {"state": "previous", "service": "probe", **options}, *flags)()

    def remove(self, *flags: str, **options: Any) -> dict[str, Any]:
        return self.begin("service", {"state": "absent", "service": "probe", **options}, *flags)()

    def look(self, **options: Any) -> dict[str, Any]:
        answer = self.begin("service_facts", {"health_checks": True, **options})()
        assert "services" in answer, answer["shown"]
        return answer

    def facts(self, name: str = "probe") -> dict[str, Any]:
        found: dict[str, Any] = self.look()["services"][name]
        return found

    def logged(self, line: str) -> int:
        """How often the service has logged a line so far."""
        return int(self.sh(f"journalctl -u edpm_probe.service -o cat --no-pager | grep -c '^{line}$' || true"))

    def reaches(self, port: int) -> bool:
        """Whether the node's port answers from outside."""
        address = next(node.address for node in self.nodes.list() if node.name == self.node)
        try:
            socket.create_connection((address, port), timeout=2).close()
        except OSError:
            return False
        return True

    def runs(self, digest: str) -> bool:
        """Whether a generation is the live one and its unit is up, asked without Ansible."""
        script = "readlink /var/lib/openstack/probe/current; systemctl is-active edpm_probe.service"
        return self.sh(script, check=False).split() == [f"generations/{digest}", "active"]

    def sh(self, script: str, *, check: bool = True) -> str:
        return self.nodes.execute(self.node, "bash", "-c", script, check=check).stdout.strip()

    def invocation(self) -> str:
        return self.sh("systemctl show --value -p InvocationID edpm_probe.service")

    def starts(self) -> int:
        """How often the service has been started so far."""
        return self.logged("probe started")

    def tree(self) -> str:
        """All of the service's files with modes, owners, times and digests."""
        places = "/var/lib/openstack /etc/containers/systemd /etc/tmpfiles.d"
        return self.sh(
            f"find {places} -printf '%p %m %u %T@ %l\\n' | sort; find {places} -type f -exec sha256sum {{}} + | sort"
        )

    def kill_the_run(self) -> None:
        """kill -9 the module's own process on the node."""
        self.sh(f"kill -9 $(cat {LOCK})")

    def until(self, script: str) -> None:
        loop = f"for _ in $(seq 1000); do {script} && exit; sleep 0.1; done; exit 1"
        self.nodes.execute(self.node, "bash", "-c", loop, timeout=300)
