# SPDX-License-Identifier: GPL-3.0-or-later
"""A compute from plain variables: verbatim text, an identity that stays, libvirt beside it."""

from __future__ import annotations

from typing import Any

SNIPPET = "# {{ this }} is {% nobody's %} template\n[DEFAULT]\ndebug = True\n"


def test_the_snippet_arrives_verbatim_and_sorts_last(service: Any) -> None:
    compute = service("nova_compute")
    assert compute.text("conf.d/02-nova-override.conf") == SNIPPET
    assert compute.inside("ls /etc/nova/nova.conf.d").split() == [
        *("01-nova.conf", "02-nova-compute-profile.conf", "02-nova-host-specific.conf", "02-nova-override.conf"),
    ]


def test_the_compute_calls_itself_what_it_was_called(host: Any, service: Any) -> None:
    address = host.check_output("hostname -I").split()[0]
    told = service("nova_compute").text("conf.d/02-nova-host-specific.conf")
    assert "host = compute-zero\n" in told
    assert f"my_ip = {address}\n" in told


def test_nova_compute_itself_runs_in_the_container(service: Any) -> None:
    assert "nova-compute" in service("nova_compute").inside("sh -c 'cat /proc/[0-9]*/cmdline; true'")


def test_libvirt_answers_beside_it(service: Any) -> None:
    assert service("libvirt").inside("virsh --connect qemu:///system list --name") == ""


def test_nobody_but_root_reads_the_files(service: Any) -> None:
    assert service("nova_compute").modes() <= {("root", "700"), ("root", "600")}
