# SPDX-License-Identifier: GPL-3.0-or-later
"""A whole cluster with the execution environment in it, nodes beside it, and a data plane that describes them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from edpm_lab import images
from edpm_lab.cluster import Cluster
from edpm_lab.labs import Lab
from edpm_lab.nodes import Nodes

NAMESPACE = "openstack"
#: The lab may have others, of other tests.
NODES = [f"edpm-job-{number}" for number in range(3)]
ACCOUNT = "edpm-services-runner"
BIN = Path(sys.executable).parent
DATA_PLANE = "dataplane.openstack.org/v1beta1"


@dataclass(frozen=True)
class Site:
    """What a person at this data plane has: the cluster, nodes, an inventory file, and ansible-playbook."""

    cluster: Cluster
    nodes: Nodes
    inventory: Path
    image: str

    def run(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        quiet = {key: value for key, value in os.environ.items() if not key.startswith(("K8S_AUTH_", "ANSIBLE_"))}
        images_of_services = {
            "RELATED_IMAGE_NOVA_LIBVIRT_IMAGE_URL_DEFAULT": images.image("libvirt"),
            "RELATED_IMAGE_NOVA_COMPUTE_IMAGE_URL_DEFAULT": images.image("nova-compute"),
        }
        return subprocess.run(
            [BIN / "ansible-playbook", name, "-i", self.inventory, *arguments],
            env={**quiet, **self.cluster.environment(), **images_of_services, "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )

    def in_cluster(self, playbook: str, **variables: Any) -> subprocess.CompletedProcess[str]:
        told = {"playbook": playbook, "edpm_run_image": self.image, "edpm_run_image_pull_policy": "Never"}
        return self.run("edpm.services.run_in_cluster", "-e", json.dumps({**told, **variables}))

    def play(self, folder: Path, tasks: list[dict[str, Any]], **options: Any) -> dict[str, Any]:
        """Run a play of one's own over all nodes, and return what the module returned."""
        play = [{"name": "In the pod", "hosts": "all", "gather_facts": False, "tasks": tasks}]
        usual = {"image": self.image, "image_pull_policy": "Never", "known_hosts": "known-hosts", "play": "{{ inner }}"}
        asked = {"name": "Run", "edpm.services.ee_job": {**usual, **options}, "register": "done", "ignore_errors": True}
        kept = {
            "name": "Keep",
            "ansible.builtin.copy": {"content": "{{ done | to_json }}", "dest": str(folder / "done")},
        }
        (folder / "inner.yml").write_text(yaml.safe_dump(play))
        outer = {"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": [asked, kept]}
        outer["vars"] = {"inner": "{{ lookup('ansible.builtin.file', '" + str(folder / "inner.yml") + "') }}"}
        (folder / "outer.yml").write_text(yaml.safe_dump([outer]))
        shown = self.run(str(folder / "outer.yml"))
        assert (folder / "done").exists(), shown.stdout + shown.stderr
        found: dict[str, Any] = json.loads((folder / "done").read_text())
        return {**found, "shown": shown.stdout}

    def kubectl(self, *words: str | Path, **more: Any) -> str:
        return self.cluster.kubectl("--namespace", NAMESPACE, *words, **more).stdout


@pytest.fixture(scope="package")
def site(lab: Lab, whole_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Site:
    nodes = Nodes(lab)
    nodes.up(NODES)
    inventory = tmp_path_factory.mktemp("site") / "openstack.dataplane.yml"
    inventory.write_text(yaml.safe_dump({"plugin": "edpm.services.dataplane", "namespaces": [NAMESPACE]}))
    made = Site(whole_cluster, nodes, inventory, images.image("ee"))
    prepare(made)
    return made


def prepare(site: Site) -> None:
    done = site.run("edpm.services.install_cluster")
    assert done.returncode == 0, done.stdout + done.stderr
    site.cluster.kubectl("create", "namespace", NAMESPACE)
    site.cluster.kubectl("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")
    site.kubectl("create", "serviceaccount", ACCOUNT)
    for role in (ACCOUNT, "edpm-services-reader"):
        site.kubectl(
            *("create", "rolebinding", f"runner-{role}"),
            *(f"--clusterrole={role}", f"--serviceaccount={NAMESPACE}:{ACCOUNT}"),
        )
    site.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(data_plane(site.nodes)))


def data_plane(nodes: Nodes) -> Iterator[dict[str, Any]]:
    yield {
        "apiVersion": DATA_PLANE,
        "kind": "OpenStackDataPlaneRole",
        "metadata": {"name": "edpm-compute", "annotations": {"edpm.openstack.org/service-libvirt": "true"}},
        "spec": {"nodeTemplate": {"ansibleUser": "root", "ansibleSSHPrivateKeySecret": "dataplane-ssh"}},
    }
    for node in (one for one in nodes.list() if one.name in NODES):
        yield {
            "apiVersion": DATA_PLANE,
            "kind": "OpenStackDataPlaneNode",
            "metadata": {"name": node.name},
            "spec": {"role": "edpm-compute", "hostName": node.name, "ansibleHost": node.address},
        }
    secret = {"ssh-privatekey": nodes.private_key.read_text()}
    yield {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "dataplane-ssh"}, "stringData": secret}
    known = {"known_hosts": nodes.known_hosts.read_text()}
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "known-hosts"}, "data": known}
