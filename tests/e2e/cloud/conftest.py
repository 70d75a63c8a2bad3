# SPDX-License-Identifier: GPL-3.0-or-later
"""One data plane for all tests of this folder; they build on each other, in the order of a compute's life."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from edpm_lab.cloud import Cloud
from edpm_lab.labs import Lab

from .site import Site, clear, make


@pytest.fixture(scope="package")
def site(cloud: Cloud, lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = make(cloud, lab, tmp_path_factory.mktemp("cloud"))
    yield made
    clear(made)
