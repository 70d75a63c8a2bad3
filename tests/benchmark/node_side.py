# SPDX-License-Identifier: GPL-3.0-or-later
"""What deploying costs on four real nodes, beside what Ansible costs without it."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import yaml
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import (
    GENERATION,
    Bundle,
    File,
    Health,
    Image,
    LiveFile,
)
from ansible_collections.edpm.services.plugins.module_utils._node.travel import written
from edpm_lab import images
from edpm_lab.cloud import Cloud
from edpm_lab.labs import Lab
from edpm_lab.nodes import Nodes

from tests.benchmark.figures import TREE, Figure, in_turns, medians
from tests.benchmark.lab_side import BIN, empty_playbook

NAMES = tuple(f"edpm-compute-{number}" for number in range(4))
FILES = 20
#: How often each way of bringing them is measured.
RUNS = 3
#: How often a deployment with nothing to change is tried: over minutes, since a shared machine can be slow for one.
TRIES = 15
#: Seconds that the community's role for nova took on four such nodes where nothing was to change, and that one module
#: call, which writes as many files as here, took on the same nodes in the same hour, its playbook's start included.
COMMUNITY, COMMUNITY_CALL = 86.0, 1.9
_UNIT = """[Container]
Image={image}
ContainerName={name}
Pull=never
Exec=sleep infinity
PodmanArgs=--stop-timeout=0
"""
_COUNTING = """#!/bin/sh
# A call about the connection itself is no round trip to a node.
case " $* " in *" -O "*) ;; *) echo "$*" | tr '\\n' ' ' >> {log}; echo >> {log} ;; esac
exec ssh "$@"
"""


class Control:
    """Ansible over the four nodes."""

    def __init__(self, lab: Lab) -> None:
        self.nodes = Nodes(lab)
        self.nodes.up(NAMES)
        self.folder = lab.folder
        self.log = lab.folder / "round-trips"
        self.inventory = lab.folder / "inventory.yml"
        self.inventory.write_text(self.nodes.inventory())
        self.environment = {
            **os.environ,
            "ANSIBLE_PIPELINING": "1",
            "ANSIBLE_FORKS": "20",
            "ANSIBLE_HOST_KEY_CHECKING": "0",
            "ANSIBLE_LIBRARY": str(Path(__file__).parent / "library"),
        }

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count round trips, which makes each of them longer: so nothing is timed meanwhile."""
        ssh = self.folder / "counting-ssh"
        ssh.write_text(_COUNTING.format(log=shlex.quote(str(self.log))))
        ssh.chmod(0o755)
        self.environment["ANSIBLE_SSH_EXECUTABLE"] = str(ssh)
        yield
        del self.environment["ANSIBLE_SSH_EXECUTABLE"]

    def play(self, name: str, *tasks: Mapping[str, Any], **variables: Any) -> Path:
        """A playbook of these tasks for all nodes."""
        path = self.folder / f"{name}.yml"
        play = {"hosts": ",".join(NAMES), "gather_facts": False, "vars": variables, "tasks": list(tasks)}
        path.write_text(yaml.safe_dump([play]))
        return path

    def run(self, *argv: str | Path, inventory: Path | None = None) -> str:
        """Run one of Ansible's programs; one that fails is no measurement."""
        self.log.write_text("")
        words = [BIN / argv[0], "-i", inventory or self.inventory, *argv[1:]]
        done = subprocess.run(
            words, cwd=TREE, env=self.environment, check=False, capture_output=True, text=True, timeout=300
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(map(str, argv))} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def deploy(self, inventory: Path, *words: str) -> str:
        """Run edpm.services.deploy."""
        return self.run("ansible-playbook", "edpm.services.deploy", *words, inventory=inventory)

    def playing(self, name: str, tasks: Callable[[int], Sequence[Mapping[str, Any]]]) -> Callable[[int], object]:
        """Runs a playbook of the tasks, which are new in each run."""
        return lambda run: self.run("ansible-playbook", self.play(f"{name}-{run}", *tasks(run)))

    def round_trips(self) -> float:
        """How often the last run went to a node, on average."""
        return len(self.log.read_text().splitlines()) / len(NAMES)


def copies(lab: Lab) -> Iterator[Figure]:
    """The same files by the module that everybody knows, one after the other, and by one call of ours.

    Ours are a new generation each time, as a deployment of nova_compute brings it: staged, judged, made the live one.
    Neither restarts anything: the files alone are compared. What a playbook without a task costs on the same nodes is
    in both, and says nothing of either: so it is taken off for the limit, and left in the figure beside it. Files
    outside the generations, such as certificates, take a shorter way, which is shown too.
    """
    control = Control(lab)
    image = images.image("base")
    seconds = medians(
        {
            "empty": control.playing("empty", lambda _run: ()),
            "call": control.playing("call", lambda run: (_calling(_generation(image, run)),)),
            "live": control.playing("live", lambda run: (_calling(_live(image, run)),)),
            "loop": control.playing("loop", _copying),
        },
        RUNS,
        short=("empty", "call", "live"),
    )
    start, call, live, loop = (seconds[name] for name in ("empty", "call", "live", "loop"))
    what, other = f"{FILES} files to {len(NAMES)} nodes by one call of service", "by copy in a loop"
    yield Figure(f"{what}, without the playbook's start", call - start, other, loop - start, 1 / 20)
    yield Figure(f"{what}, with the playbook's start", call, other, loop)
    yield Figure(f"{what}, outside its generation, without the playbook's start", live - start, other, loop - start)


def _texts(run: int) -> dict[str, str]:
    return {f"{number:02}-bench.conf": f"[DEFAULT]\nrun = {run}\nfile = {number}\n" for number in range(FILES)}


def _copying(run: int) -> Sequence[Mapping[str, Any]]:
    items = [{"name": name, "content": text} for name, text in _texts(run).items()]
    options = {"dest": "/var/lib/bench/{{ item.name }}", "content": "{{ item.content }}", "mode": "0600"}
    return (
        {"ansible.builtin.file": {"path": "/var/lib/bench", "state": "directory", "mode": "0700"}},
        {"ansible.builtin.copy": options, "loop": items, "loop_control": {"label": "{{ item.name }}"}},
    )


def _calling(bundle: Bundle) -> Mapping[str, Any]:
    return {"edpm.services.service": {"bundle": written(bundle)}}


def _generation(image: str, run: int) -> Bundle:
    """The files as a service has its configuration: in a generation that its unit mounts."""
    files = tuple(File(f"conf.d/{name}", text.encode()) for name, text in _texts(run).items())
    unit = _UNIT.format(image=image, name="edpm_bench") + f"Volume={GENERATION}/conf.d:/etc/bench:ro\n"
    digest = hashlib.sha256(json.dumps([image, unit, _texts(run)]).encode()).hexdigest()
    bundle = _bundle(image, "bench", digest, unit)
    return replace(bundle, files=files, restart="never")


def _live(image: str, run: int) -> Bundle:
    """The files at paths of their own, beside a generation that stays."""
    files = tuple(LiveFile(f"/var/lib/bench-live/{name}", text.encode()) for name, text in _texts(run).items())
    unit = _UNIT.format(image=image, name="edpm_bench_live")
    return replace(_bundle(image, "bench_live", "0" * 64, unit), live=files)


def _bundle(image: str, service: str, digest: str, unit: str) -> Bundle:
    name = f"edpm_{service}"
    units = {f"{name}.container": unit}
    return Bundle(service, digest, Image(image), units, container=name, health=Health(settle=0))


# --- deploy -----------------------------------------------------------------------------------------------------------
_AGENT = """[DEFAULT]
state_path = /var/lib/neutron
transport_url = {bus}
[agent]
root_helper = sudo neutron-rootwrap /etc/neutron/rootwrap.conf
[oslo_concurrency]
lock_path = /var/lib/neutron/lock
"""
_NOVA = """[DEFAULT]
transport_url = {bus}
compute_driver = libvirt.LibvirtDriver
[libvirt]
virt_type = qemu
"""
_IMAGES = {
    "RELATED_IMAGE_NOVA_LIBVIRT_IMAGE_URL_DEFAULT": "libvirt",
    "RELATED_IMAGE_NOVA_COMPUTE_IMAGE_URL_DEFAULT": "nova-compute",
    "RELATED_IMAGE_EDPM_NEUTRON_SRIOV_AGENT_IMAGE_URL_DEFAULT": "neutron",
}


def deployments(lab: Lab) -> Iterator[Figure]:
    """Three services on four nodes: what the first deployment asks of a node, and what a second one costs."""
    control = Control(lab)
    control.environment |= {name: images.image(image) for name, image in _IMAGES.items()}
    data_plane = _data_plane(lab, control)
    control.deploy(data_plane, "-e", "service=libvirt")
    with control.counting():
        control.deploy(data_plane, "-e", "service=nova_compute")
        yield Figure("first deploy of nova_compute: round trips a node", control.round_trips(), "one", 1, 12, "")
        control.deploy(data_plane)
        control.deploy(data_plane)
        trips = control.round_trips()
    call = control.play("call", {"write_files": {"folder": "/var/lib/bench", "files": _texts(0)}})
    with empty_playbook(lab) as empty:
        seconds = in_turns(
            {
                "three": lambda: control.deploy(data_plane),
                "alone": lambda: control.deploy(data_plane, "-e", "service=nova_compute"),
                "start": lambda: control.run("ansible-playbook", empty),
                "true": lambda: control.run("ansible", "all", "-m", "command", "-a", "true"),
                "call": lambda: control.run("ansible-playbook", call),
            },
            TRIES,
        )
    # The quickest try of each, since noise only ever adds.
    again, start, true = (min(seconds[name]) for name in ("three", "start", "true"))
    compared = "ansible -m command -a true and an empty playbook"
    yield Figure("deploy of three services with nothing to change", again, compared, start + true, 1.5)
    yield Figure("deploy with nothing to change: round trips a node", trips, "one", 1, 1, "")
    yield from beside_the_community(median(seconds["alone"]), median(seconds["call"]))


def beside_the_community(alone: float, call: float) -> Iterator[Figure]:
    """A deployment of nova alone beside the community's, which was measured once, on a machine as quick as it was then.

    A module call that was measured then, too, tells how quick this machine is now beside that one: so there is the
    figure of that time, and what it would be now. All are times in the middle of several: that is what a user meets.
    """
    what = "deploy of nova_compute alone, nothing to change"
    now = COMMUNITY * call / COMMUNITY_CALL
    yield Figure(what, alone, "the community's role, once", COMMUNITY, 1 / 30)
    yield Figure(f"{what}, at this machine's speed", alone, "the community's role at that speed", now, 1 / 30)
    yield Figure(f"{what}, beside Ansible", alone, f"one call of a module that writes {FILES} files", call)


def _data_plane(lab: Lab, control: Control) -> Path:
    """An inventory of the nodes as computes of a cell, with the SR-IOV agent beside."""
    bus = Cloud(lab).up(["bus"]).site.transport_url()
    group = "dataplane.openstack.org/v1beta1"
    template = {
        "ansibleUser": "root",
        "ansibleSSHPrivateKeySecret": "ssh",
        "ansibleVars": {"ansible_ssh_common_args": "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"},
    }
    asking = {"nova.openstack.org/cell": "nova-cell1", "neutron.openstack.org/sriov-agent": "true"}
    agent = {"edpmServiceType": "neutron-sriov", "dataSources": [{"secretRef": {"name": "sriov"}}]}
    role = {"services": ["neutron-sriov"], "nodeTemplate": template}
    objects = [
        _object("nova.openstack.org/v1beta1", "Nova", "nova", spec={"cellTemplates": {"cell1": {}}}),
        _object("nova.openstack.org/v1beta1", "NovaCell", "nova-cell1", spec={"cellName": "cell1"}),
        _object("v1", "Secret", "ssh", stringData={"ssh-privatekey": control.nodes.private_key.read_text()}),
        _object("v1", "Secret", "nova-cell1-compute-config", stringData={"01-nova.conf": _NOVA.format(bus=bus)}),
        _object("v1", "Secret", "sriov", stringData={"01-agent.conf": _AGENT.format(bus=bus)}),
        _object(group, "OpenStackDataPlaneService", "neutron-sriov", spec=agent),
        _object(group, "OpenStackDataPlaneRole", "compute", spec=role, annotations=asking),
    ]
    for node in control.nodes.list():
        spec = {"role": "compute", "hostName": node.name, "ansibleHost": node.address}
        objects += [_object(group, "OpenStackDataPlaneNode", node.name, spec=spec)] if node.name in NAMES else []
    manifests = lab.folder / "bench.yaml"
    manifests.write_text(yaml.safe_dump_all(objects))
    inventory = lab.folder / "bench.dataplane.yml"
    inventory.write_text(yaml.safe_dump({"plugin": "edpm.services.dataplane", "manifests": str(manifests)}))
    return inventory


def _object(version: str, kind: str, name: str, annotations: Mapping[str, str] | None = None, **rest: Any) -> Any:
    metadata = {"name": name, "namespace": "openstack", "annotations": dict(annotations or {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **rest}
