# SPDX-License-Identifier: GPL-3.0-or-later
"""One machine at a time: each file of tests that names a security module has its own, which is gone when it ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from edpm_lab.labs import Lab
from edpm_lab.machines import Security, machine

from .site import IMAGE, Site


@pytest.fixture(scope="module")
def site(lab: Lab, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A machine with the security module, and with the image, that the file of tests names."""
    security: Security = request.module.SECURITY
    with machine(lab, security, getattr(request.module, "IMAGE", IMAGE)) as made:
        yield Site(made, tmp_path_factory.mktemp(security))
