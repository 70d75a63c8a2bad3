# SPDX-License-Identifier: GPL-3.0-or-later
"""What end-to-end tests share: one cloud for the whole run."""

from __future__ import annotations

import pytest
from edpm_lab.cloud import Cloud
from edpm_lab.labs import Lab


@pytest.fixture(scope="session")
def cloud(lab: Lab) -> Cloud:
    """OpenStack's control plane in the run's lab; hosts that tests add are theirs to remove."""
    return Cloud(lab).up()
