# SPDX-License-Identifier: GPL-3.0-or-later
"""libvirt runs on the node itself."""

from __future__ import annotations

from typing import Any


def test_virsh_answers_on_the_node(host: Any) -> None:
    assert "Running hypervisor: QEMU" in host.check_output("virsh --connect qemu:///system version")


def test_its_units_are_up_now_and_after_a_boot(host: Any) -> None:
    assert host.service("libvirtd").is_running
    assert host.service("libvirtd").is_enabled


def test_there_is_no_container_of_it(host: Any) -> None:
    assert host.check_output("podman ps --all --quiet") == ""
