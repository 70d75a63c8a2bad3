# SPDX-License-Identifier: GPL-3.0-or-later
"""A node of the lab on which services of a plan are deployed, one module call each."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible_collections.edpm.services.plugins.module_utils._node import bundle as node
from ansible_collections.edpm.services.plugins.module_utils._node.travel import written
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.bundle import bundle
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.parcel import parcel
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.built_in import BUILT_IN
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.model import Reference
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import (
    ConfigSource,
    Identity,
    Image,
    Layer,
    Origin,
    ServicePlan,
)
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.values import Value
from edpm_lab import images
from edpm_lab.nodes import Nodes
from edpm_lab.prerequisites import architecture

IMAGES = {
    "libvirt": "libvirt",
    "nova_compute": "nova-compute",
    "ovn_metadata_agent": "neutron",
    "neutron_sriov_agent": "neutron",
    "cinder_volume": "cinder-volume",
}
#: The nodes of these tests: one for services in containers, and one with Open vSwitch and a libvirt of its own.
CONTAINERS, WITH_OVN = "edpm-services-0", "edpm-services-1"
ARCHITECTURE, TYPE = {"amd64": ("x86_64", "q35"), "arm64": ("aarch64", "virt")}[architecture()]
GUEST = f"""<domain type='qemu'><name>guest</name><memory unit='MiB'>32</memory><vcpu>1</vcpu>
<os><type arch='{ARCHITECTURE}' machine='{TYPE}'>hvm</type></os></domain>"""
_SECRET = Reference("Secret", "openstack", "config")


def planned(
    service: str,
    files: Mapping[str, str | bytes] | None = None,
    *,
    instance: str = "",
    options: Mapping[str, Value] | None = None,
    identity: Identity | None = None,
) -> ServicePlan:
    """The service from the lab's image. Files are named by keys of a Secret; those of a human are `override`."""
    sources = tuple(_sources(service, files or {}))
    image = Image(images.image(IMAGES[service]), "the lab")
    return ServicePlan(
        service,
        instance,
        image=image,
        conf_d=BUILT_IN[service].conf_d,
        sources=sources,
        options=options or {},
        identity=identity,
    )


def _sources(service: str, files: Mapping[str, str | bytes]) -> Iterator[ConfigSource]:
    definition = BUILT_IN[service]
    for key, text in files.items():
        place = definition.place_of(key)
        directory, live = (place.directory, place.live) if place else (definition.conf_d or "", False)
        layer = Layer.OVERRIDE if "override" in key else Layer.GENERATED
        content = text.encode() if isinstance(text, str) else text
        name = (place.file_name if place else "") or key
        yield ConfigSource(Origin(_SECRET, f"key {key}"), directory, name, layer, True, content, live)


@dataclass(frozen=True)
class Machine:
    """One node, and the modules called on it as Ansible calls them."""

    nodes: Nodes
    name: str
    folder: Path
    inventory: Path = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "inventory", self.folder / "inventory.yml")
        self.inventory.write_text(self.nodes.inventory())

    def deploy(self, plan: ServicePlan, *flags: str) -> dict[str, Any]:
        """Deploy a service of a plan, which must have no faults; the answer is the module's."""
        made = bundle(plan)
        assert made.errors == ()
        wanted = parcel(plan, made)
        assert wanted is not None
        return self.converge(wanted, *flags)

    def converge(self, wanted: node.Bundle, *flags: str, **options: Any) -> dict[str, Any]:
        """Deploy a bundle."""
        return self.call("service", {"bundle": written(wanted), **options}, *flags)

    def brought(self, plan: ServicePlan) -> dict[str, Any]:
        """Deploy a service, then once more; the first must change the node and the second nothing."""
        first = self.deploy(plan)
        assert (first["failed"], first["changed"]) == (False, True), first["shown"]
        again = self.deploy(plan)
        assert (again["failed"], again["changed"]) == (False, False), again["shown"]
        return first

    def call(self, module: str, options: Mapping[str, Any], *flags: str) -> dict[str, Any]:
        """The answer of a module."""
        argv = [str(Path(sys.executable).parent / "ansible"), self.name, "-i", str(self.inventory)]
        argv += ["-m", f"edpm.services.{module}", "-a", json.dumps(options), *flags]
        env = {**os.environ, "ANSIBLE_PIPELINING": "1", "ANSIBLE_NOCOLOR": "1"}
        done = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=400, check=False)
        shown = done.stdout + done.stderr
        found = re.search(rf"^{self.name} \| (\w+)!? => (?=\{{)", shown, re.MULTILINE)
        answer: dict[str, Any] = json.JSONDecoder().raw_decode(shown[found.end() :])[0] if found else {}
        failed = found is None or found.group(1) == "FAILED"
        return {"failed": failed, "changed": None, "restarted": None, **answer, "shown": shown}

    def sh(self, script: str, *, check: bool = True, stdin: str | None = None) -> str:
        """Run a script on the node."""
        return self.nodes.execute(self.name, "bash", "-c", script, check=check, stdin=stdin).stdout.strip()

    def until(self, script: str, seconds: float = 30) -> float:
        """Run a script until it succeeds; the answer is how many seconds that took."""
        begin = time.monotonic()
        loop = f"until bash -c {shlex.quote(script)}; do sleep 0.1; done"
        words = ("timeout", f"{seconds:.0f}", "bash", "-c", loop)
        assert self.nodes.execute(self.name, *words, timeout=seconds + 60, check=False).returncode == 0, script
        return time.monotonic() - begin

    def put(self, path: str, text: str) -> None:
        """Write a file on the node."""
        self.nodes.execute(self.name, "install", "-D", "-m", "0600", "/dev/stdin", path, stdin=text)

    def main_process(self, unit: str) -> str:
        """The number of a unit's main process."""
        return self.sh(f"systemctl show --value -p MainPID {unit}")

    def invocation(self, unit: str) -> str:
        """Another one after every start."""
        return self.sh(f"systemctl show --value -p InvocationID {unit}")
