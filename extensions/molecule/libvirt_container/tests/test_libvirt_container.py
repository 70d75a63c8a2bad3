# SPDX-License-Identifier: GPL-3.0-or-later
"""libvirt answers through its container, with the settings that were asked for."""

from __future__ import annotations

from typing import Any


def test_virsh_answers_through_the_container(service: Any) -> None:
    assert "Running hypervisor: QEMU" in service("libvirt").inside("virsh --connect qemu:///system version")


def test_its_own_file_and_the_given_one_are_there(service: Any) -> None:
    libvirt = service("libvirt")
    assert libvirt.inside("cat /etc/libvirt/qemu.conf") == "max_files = 1024"
    assert 'auth_unix_rw = "none"' in libvirt.inside("cat /etc/libvirt/libvirtd.conf")


def test_the_keeper_of_the_consoles_runs_beside_it(host: Any) -> None:
    assert host.service("edpm_libvirt-virtlogd").is_running
