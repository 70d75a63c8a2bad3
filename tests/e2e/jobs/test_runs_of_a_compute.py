# SPDX-License-Identifier: GPL-3.0-or-later
"""A compute that a pod deploys from the cluster's objects: Nova says that it is up, and its cell is its for good."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from edpm_lab.cloud import Cloud, Compute
from edpm_lab.labs import Lab

from .conftest import NODES, Site

NODE = NODES[2]
CELL = "nova.openstack.org/cell"


@pytest.fixture(scope="module")
def cloud(lab: Lab) -> Cloud:
    """All of the control plane that a compute needs."""
    return Cloud(lab).up(["compute"])


@pytest.fixture(scope="module")
def described(site: Site, cloud: Cloud) -> Site:
    """The cluster with what the control plane's operators write, and a node that belongs to a cell."""
    cloud.apply(site.cluster)
    site.kubectl("annotate", "openstackdataplanenode", NODE, f"{CELL}=nova-cell2")
    return site


def test_a_pod_deploys_a_compute_that_nova_says_is_up(described: Site, cloud: Cloud) -> None:
    done = described.in_cluster("edpm.services.deploy", node=NODE)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 changed" in done.stdout
    found = cloud.await_compute(NODE)
    print(found)
    assert found.cell == "-"


def test_it_is_mapped_to_its_cell_from_outside_with_the_clusters_credentials(
    described: Site, cloud: Cloud, tmp_path: Path
) -> None:
    task = {
        "name": "Map the new compute to its cell",
        "edpm.services.compute_service": {
            "hosts": [NODE],
            "state": "discovered",
            "discover_command": cloud.discover_argv(),
        },
        "delegate_to": "localhost",
    }
    (tmp_path / "discover.yml").write_text(yaml.safe_dump([{"hosts": NODE, "gather_facts": False, "tasks": [task]}]))
    done = described.run(str(tmp_path / "discover.yml"))

    assert done.returncode == 0, done.stdout + done.stderr
    found = cloud.await_compute(NODE)
    print(found)
    assert found == Compute(NODE, "cell2", "up", "enabled", "QEMU")


def test_the_cluster_refuses_to_move_it_to_another_cell(described: Site, cloud: Cloud) -> None:
    moved = ("annotate", "--overwrite", "openstackdataplanenode", NODE, f"{CELL}=nova-cell1")
    refused = described.cluster.kubectl("--namespace", "openstack", *moved, check=False)
    print(refused.stderr.strip())
    assert refused.returncode != 0
    assert "Nova does not move computes between cells" in refused.stderr
    node = json.loads(described.kubectl("get", "openstackdataplanenode", NODE, "-o", "json"))
    assert node["metadata"]["annotations"][CELL] == "nova-cell2"
    found = cloud.await_compute(NODE)
    print(found)
    assert found.cell == "cell2"
    described.nodes.execute(NODE, "bash", "-c", "systemctl stop 'edpm_*'")
