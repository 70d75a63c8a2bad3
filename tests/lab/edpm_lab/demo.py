# SPDX-License-Identifier: GPL-3.0-or-later
"""The demo: a data plane of two nodes in two cells, from its plan to a server that runs on each of them.

What needs nothing but Python comes first, while images, nodes and OpenStack's control plane are brought up beside it.
The commands that are shown are those that a person would type.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import yaml

from . import images, labs, ovn, places, podman, servers, table
from .api_server import api_server
from .binaries import API, binaries
from .cloud import Cloud
from .errors import LabError, NotOnThisHost
from .labs import Lab
from .nodes import Nodes, default_names

SOURCES = ("manifests", "cluster")
NAME = "demo"
TREE = places.SOURCE.parents[1]
SAMPLES = TREE / "docs/tutorial/manifests"
BIN = Path(sys.executable).parent
NODES = default_names(2)
NO_INVENTORY = {"ANSIBLE_LOCALHOST_WARNING": "false", "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false"}
EXPLAINED = {"node": "edpm-compute-0", "service": "nova_compute", "option": "DEFAULT.debug"}
HEADING = ("NODE", "CELL", "NOVA SAYS", "SERVER", "IS", "LIBVIRT RUNS")


@dataclass(frozen=True)
class Inventory:
    """An inventory file of the demo, and what its reader needs in the environment."""

    path: Path
    environment: Mapping[str, str]

    @property
    def read(self) -> list[str]:
        """The words that name it to Ansible."""
        return ["-i", str(self.path)]


def show(source: str) -> int:
    """Run the demo from a folder of manifests or through a cluster; a part that cannot run here is told."""
    with labs.opened(NAME) as lab, ThreadPoolExecutor(1) as beside:
        building = beside.submit(_bring_up, lab, source)
        _show_plan(_inventory(lab, "sample", {"manifests": str(SAMPLES)}, {}))
        try:
            building.result()
        except NotOnThisHost as reason:
            print(f"\nThe part on nodes was left out: {reason}.")
        else:
            _show_cloud(lab, source)
        print("\nEverything that the demo started is taken down now; docs/tutorial does the same by hand.")
    return 0


def _bring_up(lab: Lab, source: str) -> None:
    podman.containers_work()
    images.build_all(["control-plane", "libvirt", "nova-compute", ovn.IMAGE])
    if source == "cluster":
        binaries(*API.names)
    Nodes(lab).up(NODES, image=ovn.IMAGE)
    Cloud(lab).up(["compute"])


def _show_plan(inventory: Inventory) -> None:
    _heading(f"The sample data plane of {SAMPLES.relative_to(TREE)}: what every node should run")
    _playbook("plan", inventory.read, inventory.environment)
    _heading("Who sets an option, and who was overridden")
    asked = [word for pair in EXPLAINED.items() for word in ("-e", "=".join(pair))]
    _playbook("explain", [*inventory.read, *asked], inventory.environment)
    _heading("The files that one node would get, with secrets masked")
    rendered = inventory.path.parent / "rendered"
    chosen = ["-e", f"node={EXPLAINED['node']}", "-e", f"output_dir={rendered}"]
    _playbook("render", [*inventory.read, *chosen], inventory.environment)
    files = sorted(str(file.relative_to(rendered)) for file in rendered.rglob("*") if file.is_file())
    print(re.sub(r"/([0-9a-f]{7})[0-9a-f]{57}/", r"/\1…/", "\n".join(files)))


def _show_cloud(lab: Lab, source: str) -> None:
    with ExitStack() as ending:
        folder, applied = lab.folder / "site", []
        given: dict[str, object] = {"manifests": [str(folder / "control-plane"), str(folder / "data-plane")]}
        environment: Mapping[str, str] = {}
        if source == "cluster":
            server = ending.enter_context(api_server(lab))
            given, environment, applied = {"kubeconfig": str(server.kubeconfig)}, server.environment(), ["--apply"]
            _heading("A Kubernetes API with the collection's definitions")
            _playbook("install_cluster", [], {**environment, **NO_INVENTORY})
        _heading("What the control plane's operators write, and what the deployer writes")
        _lab("cloud", "manifests", *applied, str(folder / "control-plane"))
        _lab("data-plane", *applied, str(folder / "data-plane"))
        _heading("The deployment")
        _playbook("deploy", *_deploying(lab, given, environment))
        _show_answers(lab)


def _deploying(
    lab: Lab, given: Mapping[str, object], environment: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """The words and the environment of the deployment; new computes are mapped by a command of the lab's."""
    inventory = _inventory(lab, "site", given, environment)
    variables = lab.folder / "site.vars.json"
    discover = [str(BIN / "edpm-lab"), "cloud", "discover", "--name", NAME]
    variables.write_text(json.dumps({"edpm_discover_command": discover}))
    return [*inventory.read, "-e", f"@{variables}"], dict(inventory.environment)


def _show_answers(lab: Lab) -> None:
    """What OpenStack and libvirt answer, as they are asked, and then in one table."""
    _heading("What OpenStack and libvirt say")
    cloud = Cloud(lab)
    _lab("cloud", "computes")
    _lab("cloud", "boot", *NODES)
    running = {node: _lab("ssh", node, "podman", "exec", "edpm_libvirt", "virsh", "list", "--name") for node in NODES}
    known = {server.host: server for server in servers.listed(cloud)}
    rows = [
        (
            one.host,
            one.cell,
            f"{one.state}, {one.status}",
            known[one.host].name,
            known[one.host].status,
            running[one.host].strip(),
        )
        for one in cloud.computes()
    ]
    _heading("So there is, on each node")
    print(table.text(HEADING, rows))


def _inventory(lab: Lab, name: str, source: Mapping[str, object], environment: Mapping[str, str]) -> Inventory:
    path = lab.folder / f"{name}.dataplane.yml"
    path.write_text(yaml.safe_dump({"plugin": "edpm.services.dataplane", **source}))
    default = {
        f"RELATED_IMAGE_NOVA_{name}_IMAGE_URL_DEFAULT": images.reference(image)
        for name, image in (("COMPUTE", "nova-compute"), ("LIBVIRT", "libvirt"))
    }
    return Inventory(path, {**default, **environment})


def _lab(verb: str, *words: str) -> str:
    """Run a command of the lab, and show it with what it says; folders are told by their last names."""
    first = [verb, words[0]] if verb == "cloud" else [verb]
    argv = [*first, "--name", NAME, *(words[1:] if verb == "cloud" else words)]
    print(f"\n$ edpm-lab {_short(' '.join(argv))}", flush=True)
    done = subprocess.run([BIN / "edpm-lab", *argv], stdout=subprocess.PIPE, text=True, check=False, cwd=TREE)
    print(_short(done.stdout.rstrip()), flush=True)
    if done.returncode != 0:
        raise LabError(f"edpm-lab {verb} failed; what it printed is above")
    return done.stdout


def _playbook(name: str, words: Sequence[str], environment: Mapping[str, str]) -> None:
    print(f"$ ansible-playbook edpm.services.{name} {_short(' '.join(words))}".rstrip(), flush=True)
    done = subprocess.run(
        [BIN / "ansible-playbook", f"edpm.services.{name}", *words],
        env={**os.environ, **environment},
        cwd=TREE,
        check=False,
    )
    if done.returncode != 0:
        raise LabError(f"edpm.services.{name} failed; what it printed is above")


def _short(text: str) -> str:
    return re.sub(r"(?<![\w.])@?/\S*/(?=[^\s/])", lambda found: "@" if found[0].startswith("@") else "", text)


def _heading(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}", flush=True)
