# SPDX-License-Identifier: GPL-3.0-or-later
"""How a virtual machine is put together; none is started here."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from edpm_lab import machines
from edpm_lab.errors import LabError
from edpm_lab.labs import Lab
from edpm_lab.machines import Machine, Security


def made(tmp_path: Path, security: Security = "selinux") -> Machine:
    return Machine(Lab("some", tmp_path, kept=False), security, security, 4711, tmp_path / "disk", tmp_path / "images")


@pytest.mark.parametrize(
    ("arch", "program", "console"),
    [("amd64", "qemu-system-x86_64", "ttyS0"), ("arm64", "qemu-system-aarch64", "ttyAMA0")],
)
def test_a_machine_is_of_the_hosts_own_architecture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arch: str, program: str, console: str
) -> None:
    monkeypatch.setattr(machines, "architecture", lambda: arch)
    argv = made(tmp_path)._argv()
    assert program in argv
    assert f"console={console}" in argv[argv.index("-append") + 1].split()


@pytest.mark.parametrize(
    ("security", "chosen"), [("apparmor", {"security=apparmor"}), ("selinux", {"security=selinux", "enforcing=1"})]
)
def test_the_kernel_is_told_its_security_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, security: Security, chosen: set[str]
) -> None:
    monkeypatch.setattr(machines, "architecture", lambda: "amd64")
    argv = made(tmp_path, security)._argv()
    assert chosen <= set(argv[argv.index("-append") + 1].split())


def test_a_machine_is_reached_at_the_loopback_address_alone_and_reaches_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machines, "architecture", lambda: "amd64")
    argv = made(tmp_path)._argv()
    settings = argv[argv.index("-netdev") + 1].split(",")
    assert "restrict=on" in settings
    assert [one for one in settings if one.startswith("hostfwd=")] == ["hostfwd=tcp:127.0.0.1:4711-:22"]


def test_ansible_finds_a_machine_by_its_port_and_key(tmp_path: Path) -> None:
    host = yaml.safe_load(made(tmp_path).inventory())["all"]["hosts"]["selinux"]
    assert (host["ansible_host"], host["ansible_port"]) == ("127.0.0.1", 4711)
    assert host["ansible_ssh_private_key_file"] == str(tmp_path / "disk/key")
    assert "StrictHostKeyChecking=yes" in host["ansible_ssh_common_args"]


def test_an_unknown_security_module_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="there is no machine with 'smack'; there are apparmor, selinux"):
        machines.machine(Lab("some", tmp_path, kept=False), "smack")  # type: ignore[arg-type] # what a typo would be
