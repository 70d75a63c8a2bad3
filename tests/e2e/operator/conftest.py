# SPDX-License-Identifier: GPL-3.0-or-later
"""The operator in the run's cluster, and nodes beside it."""

from __future__ import annotations

import pytest
from edpm_lab import images
from edpm_lab.cluster import Cluster
from edpm_lab.labs import Lab
from edpm_lab.nodes import Nodes

from .site import COMPUTE, NODES, Site, prepare


@pytest.fixture(scope="package")
def site(lab: Lab, whole_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Site:
    nodes = Nodes(lab)
    nodes.up([*NODES, COMPUTE])
    images.build_all(["ee", "operator", "kolla"])
    whole_cluster.load(images.image("operator"))
    made = Site(whole_cluster, nodes)
    prepare(made, tmp_path_factory.mktemp("operator"))
    return made
