# SPDX-License-Identifier: GPL-3.0-or-later
"""Two computes, each with the configuration of its own cell, and one with a snippet of its own."""

from __future__ import annotations

from typing import Any

SNIPPET = "# {{ nothing }} here is a template\n[DEFAULT]\ndebug = True\n"
CELLS = {"edpm-compute-0": "cell1", "edpm-compute-1": "cell2"}


def test_the_compute_is_up_with_the_secret_of_its_cell(host: Any, service: Any) -> None:
    cell = CELLS[host.check_output("hostname")]
    compute = service("nova_compute")
    assert compute.is_up()
    assert f"@127.0.0.1:5672/{cell}\n" in compute.inside("cat /etc/nova/nova.conf.d/01-nova.conf") + "\n"


def test_only_the_node_with_a_snippet_has_its_file(host: Any) -> None:
    file = host.file("/var/lib/openstack/nova_compute/current/conf.d/02-nova-override.conf")
    if host.check_output("hostname") == "edpm-compute-0":
        assert file.content_string == SNIPPET
    else:
        assert not file.exists


def test_each_has_an_identity_of_its_own_that_stays(host: Any) -> None:
    remembered = host.file("/var/lib/openstack/nova_compute/identity.json").content_string
    assert f"nova-{CELLS[host.check_output('hostname')]}" in remembered
    assert host.check_output("hostname") in remembered


def test_libvirt_answers_beside_it(service: Any) -> None:
    assert "Running hypervisor: QEMU" in service("libvirt").inside("virsh --connect qemu:///system version")


def test_nobody_but_root_reads_the_files(service: Any) -> None:
    assert service("nova_compute").modes() <= {("root", "700"), ("root", "600")}
