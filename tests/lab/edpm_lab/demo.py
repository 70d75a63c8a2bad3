# SPDX-License-Identifier: GPL-3.0-or-later
"""The demo: the sample data plane, first as it is written, then on real parts.

What needs nothing but Python comes at once, while images and programs for the rest are being built.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml

from . import images, labs, places, podman, table
from .access import Access
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
CELL = "nova.openstack.org/cell"

NOVA_COMPUTE = Unit(
    name="nova_compute",
    image="nova-compute",
    user="nova",
    program="nova-compute --version",
    configuration="/etc/nova/nova.conf.d/01-nova.conf",
)


def show(source: str) -> int:
    """Run the demo from a folder of manifests or through a cluster; a part that cannot run here is told."""
    with labs.opened("demo") as lab, ThreadPoolExecutor(1) as beside:
        building = beside.submit(_build, source)
        _show_samples()
        if source == "cluster":
            binaries(*API.names)
            _show_cluster(lab)
        try:
            building.result()
            _show_nodes(lab)
        except NotOnThisHost as reason:
            print(f"\nThe part on nodes was left out: {reason}.")
        print("\nEverything that the demo started is taken down now; `make lab` leaves a lab running.")
    return 0


def _build(source: str) -> None:
    if source == "cluster":
        binaries(*API.names)
    podman.containers_work()
    images.build_all(["node", "nova-compute"])


def _show_samples() -> None:
    _heading(f"The sample data plane, in {SAMPLES.relative_to(TREE)}")
    rows = [
        (document["kind"], document["metadata"]["name"], document["metadata"]["annotations"][CELL])
        for document in _samples()
        if CELL in document["metadata"].get("annotations", {})
    ]
    print(table.text(("KIND", "NAME", CELL.upper()), rows))
    snippet = next(document for document in _samples() if document["kind"] == "NovaExternalCompute")
    print(f"\nWhat a person wrote for {snippet['metadata']['name']} alone, in spec.customServiceConfig:\n")
    print(re.sub(r"^", "    ", snippet["spec"]["customServiceConfig"].rstrip(), flags=re.MULTILINE))


def _show_cluster(lab: Lab) -> None:
    _heading("The same through a Kubernetes API")
    with api_server(lab) as server:
        _install_definitions(server)
        server.kubectl("apply", "--server-side", "-f", SAMPLES)
        for cell in ("nova-cell1", "nova-cell2"):
            ready = '{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}'
            where = ("-n", NAMESPACE, "novacell", cell, "--subresource=status", "--type=merge")
            server.kubectl("patch", *where, "-p", ready)
        _run_kubectl(server, "get", "novacell,openstackdataplanerole,openstackdataplanenode,novaexternalcompute")
        print("\nA compute never moves between cells, so this is refused:")
        move = ("novaexternalcompute", "edpm-compute-0", "--type=merge", "-p", '{"spec":{"cellName":"nova-cell2"}}')
        _run_kubectl(server, "patch", *move)


def _install_definitions(server: Access) -> None:
    playbook = Path(sys.executable).parent / "ansible-playbook"
    print("$ ansible-playbook edpm.services.install_cluster", flush=True)
    no_inventory = {"ANSIBLE_LOCALHOST_WARNING": "false", "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false"}
    environment = {**os.environ, **server.environment(), **no_inventory}
    done = subprocess.run([playbook, "edpm.services.install_cluster"], env=environment, check=False)
    if done.returncode != 0:
        raise LabError("edpm.services.install_cluster failed; what it printed is above")


def _run_kubectl(server: Access, *words: str) -> None:
    print(f"\n$ kubectl -n {NAMESPACE} {' '.join(words)}")
    answer = server.kubectl("-n", NAMESPACE, *words, check=False)
    print((answer.stdout + answer.stderr).rstrip())


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


def _samples() -> Iterator[dict[str, Any]]:
    for file in sorted(SAMPLES.glob("*.yaml")):
        yield from yaml.safe_load_all(file.read_text())


def _heading(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}", flush=True)
