# SPDX-License-Identifier: GPL-3.0-or-later
"""The demo: the sample data plane, planned, explained and rendered at once, then on real parts.

What needs nothing but Python comes first, while images and programs for the rest are being built. The
commands that are shown are those that a person would type, with the samples' folder or a kubeconfig.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from . import images, labs, places, podman, table
from .api_server import api_server
from .binaries import API, binaries
from .errors import LabError, NotOnThisHost
from .labs import Lab
from .nodes import Nodes
from .quadlet import LIBVIRT, Unit, virsh

SOURCES = ("manifests", "cluster")
TREE = places.SOURCE.parents[1]
SAMPLES = TREE / "docs/tutorial/manifests"
NAMESPACE = "openstack"
NO_INVENTORY = {"ANSIBLE_LOCALHOST_WARNING": "false", "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false"}
EXPLAINED = {"node": "edpm-compute-0", "service": "nova_compute", "option": "DEFAULT.debug"}

NOVA_COMPUTE = Unit(
    name="nova_compute",
    image="nova-compute",
    user="nova",
    program="nova-compute --version",
    configuration="/etc/nova/nova.conf.d/01-nova.conf",
)


@dataclass(frozen=True)
class Inventory:
    """The inventory file of the demo, and what its reader needs in the environment."""

    path: Path
    environment: Mapping[str, str]


def show(source: str) -> int:
    """Run the demo from a folder of manifests or through a cluster; a part that cannot run here is told."""
    with labs.opened("demo") as lab, ThreadPoolExecutor(1) as beside:
        building = beside.submit(_build)
        if source == "cluster":
            _show_through_cluster(lab)
        else:
            _show_plan(_inventory(lab, {"manifests": str(SAMPLES)}, {}))
        try:
            building.result()
            _show_nodes(lab)
        except NotOnThisHost as reason:
            print(f"\nThe part on nodes was left out: {reason}.")
        print("\nEverything that the demo started is taken down now; `make lab` leaves a lab running.")
    return 0


def _build() -> None:
    podman.containers_work()
    images.build_all(["node", "nova-compute"])


def _show_plan(inventory: Inventory) -> None:
    _heading(f"The sample data plane of {SAMPLES.relative_to(TREE)}: what every node should run")
    read = ["-i", str(inventory.path)]
    _playbook("plan", read, inventory.environment)
    _heading("Who sets an option, and who was overridden")
    asked = [word for pair in EXPLAINED.items() for word in ("-e", "=".join(pair))]
    _playbook("explain", [*read, *asked], inventory.environment)
    _heading("The files that one node would get, with secrets masked")
    rendered = inventory.path.parent / "rendered"
    chosen = ["-e", f"node={EXPLAINED['node']}", "-e", f"output_dir={rendered}"]
    _playbook("render", [*read, *chosen], inventory.environment)
    files = sorted(str(file.relative_to(rendered)) for file in rendered.rglob("*") if file.is_file())
    print(re.sub(r"/([0-9a-f]{7})[0-9a-f]{57}/", r"/\1…/", "\n".join(files)))


def _show_through_cluster(lab: Lab) -> None:
    binaries(*API.names)
    _heading("A Kubernetes API with the collection's definitions")
    with api_server(lab) as server:
        _playbook("install_cluster", [], {**server.environment(), **NO_INVENTORY})
        server.kubectl("apply", "--server-side", "-f", SAMPLES)
        for cell in ("nova-cell1", "nova-cell2"):
            ready = '{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}'
            where = ("-n", NAMESPACE, "novacell", cell, "--subresource=status", "--type=merge")
            server.kubectl("patch", *where, "-p", ready)
        for words in (
            ("get", "novacell,openstackdataplanerole,openstackdataplanenode,novaexternalcompute"),
            (
                "patch",
                "novaexternalcompute",
                "edpm-compute-0",
                "--type=merge",
                "-p",
                '{"spec":{"cellName":"nova-cell2"}}',
            ),
        ):
            print(f"\n$ kubectl -n {NAMESPACE} {' '.join(words)}")
            answer = server.kubectl("-n", NAMESPACE, *words, check=False)
            print((answer.stdout + answer.stderr).rstrip())
        _show_plan(_inventory(lab, {"kubeconfig": str(server.kubeconfig)}, server.environment()))


def _show_nodes(lab: Lab) -> None:
    _heading("The nodes of the data plane, as machines of the lab")
    names = [document["metadata"]["name"] for document in _samples() if document["kind"] == "OpenStackDataPlaneNode"]
    nodes = Nodes(lab)
    rows: list[Sequence[str]] = []
    for node in nodes.up(names):
        LIBVIRT.start(nodes, node.name)
        answer = re.search(r"Running hypervisor: (.*)", virsh(nodes, node.name, "version"))
        rows.append((node.name, node.address, "libvirt", images.reference("libvirt"), answer[1] if answer else "-"))
        NOVA_COMPUTE.start(nodes, node.name)
        version = re.search(r"^\d+\.\d+\.\d+$", NOVA_COMPUTE.journal(nodes, node.name), re.MULTILINE)
        image = images.reference("nova-compute")
        rows.append(("", "", "nova_compute", image, f"nova-compute {version[0]}" if version else "-"))
    print()
    print(table.text(("NODE", "ADDRESS", "SERVICE", "IMAGE", "ANSWERS AS"), rows))


def _inventory(lab: Lab, source: Mapping[str, str], environment: Mapping[str, str]) -> Inventory:
    path = lab.folder / "demo.dataplane.yml"
    path.write_text(yaml.safe_dump({"plugin": "edpm.services.dataplane", **source}))
    default = {
        f"RELATED_IMAGE_NOVA_{name}_IMAGE_URL_DEFAULT": images.reference(image)
        for name, image in (("COMPUTE", "nova-compute"), ("LIBVIRT", "libvirt"))
    }
    return Inventory(path, {**default, **environment})


def _playbook(name: str, words: Sequence[str], environment: Mapping[str, str]) -> None:
    shown = re.sub(r"/\S*/", "", " ".join(words))
    print(f"$ ansible-playbook edpm.services.{name} {shown}".rstrip(), flush=True)
    done = subprocess.run(
        [Path(sys.executable).parent / "ansible-playbook", f"edpm.services.{name}", *words],
        env={**os.environ, **environment},
        cwd=TREE,
        check=False,
    )
    if done.returncode != 0:
        raise LabError(f"edpm.services.{name} failed; what it printed is above")


def _samples() -> Iterator[dict[str, Any]]:
    for file in sorted(SAMPLES.glob("*.yaml")):
        yield from yaml.safe_load_all(file.read_text())


def _heading(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}", flush=True)
