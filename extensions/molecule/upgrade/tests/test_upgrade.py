# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent runs from the first image: deployed first, then gone back to."""

from __future__ import annotations

from typing import Any


def test_the_agent_runs_from_the_first_image(service: Any) -> None:
    assert service("neutron_sriov_agent").facts(".ImageName") == "localhost/upgrade/neutron:1"


def test_the_unit_names_it_too(host: Any) -> None:
    unit = host.file("/etc/containers/systemd/edpm_neutron_sriov_agent.container").content_string
    assert "Image=localhost/upgrade/neutron:1\n" in unit
