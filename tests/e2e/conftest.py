# SPDX-License-Identifier: GPL-3.0-or-later
"""What end-to-end tests share: one cloud and one cluster that runs pods for the whole run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from edpm_lab import images
from edpm_lab.cloud import Cloud
from edpm_lab.cluster import Cluster, cluster
from edpm_lab.labs import Lab


@pytest.fixture(scope="session")
def cloud(lab: Lab) -> Cloud:
    """OpenStack's control plane in the run's lab; hosts that tests add are theirs to remove."""
    return Cloud(lab).up()


@pytest.fixture(scope="session")
def whole_cluster(lab: Lab) -> Iterator[Cluster]:
    """A cluster with the execution environment in it; tests have namespaces of their own there."""
    image = images.image("ee")
    with cluster(lab) as whole:
        whole.load(image)
        yield whole
