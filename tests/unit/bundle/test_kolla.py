# SPDX-License-Identifier: GPL-3.0-or-later
"""What the image's start program is told."""

from __future__ import annotations

import json

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.built_in import RUNNING
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.bundle import bundle

from .definitions import made, planned, source

NOVA_CONF_D = "/etc/nova/nova.conf.d"


def test_every_file_is_copied_to_its_place_for_the_user_that_runs_the_service() -> None:
    service = planned(
        "nova_compute",
        "",
        source(NOVA_CONF_D, "01-nova.conf"),
        source("/etc/nova", "nova.conf"),
        source("/etc/ceph", "ceph.client.nova.keyring", b"\x00"),
    )
    found = json.loads(bundle(service).kolla)
    assert found["command"] == "nova-compute"
    assert {(one["source"], one["dest"]) for one in found["config_files"]} == {
        ("/var/lib/openstack/config/files/etc/nova/nova.conf", "/etc/nova/nova.conf"),
        ("/var/lib/openstack/config/conf.d/01-nova.conf", f"{NOVA_CONF_D}/01-nova.conf"),
        ("/var/lib/openstack/config/files/etc/ceph/ceph.client.nova.keyring", "/etc/ceph/ceph.client.nova.keyring"),
    }
    assert {(one["owner"], one["perm"]) for one in found["config_files"]} == {("nova", "0600")}
    assert found["permissions"] == [{"path": "/var/log/kolla/nova", "owner": "nova:nova", "recurse": True}]


def test_a_program_among_the_files_can_be_run() -> None:
    modes = {one["dest"]: one["perm"] for one in json.loads(made("libvirt").kolla)["config_files"]}
    assert modes == {
        "/etc/libvirt/hooks/qemu": "0700",
        "/etc/libvirt/libvirtd.conf": "0600",
        "/etc/ssh/ssh_config.d/20-edpm-migration.conf": "0644",
    }


@pytest.mark.parametrize("service", RUNNING)
def test_the_text_is_json_with_a_line_for_each_file(service: str) -> None:
    found = made(service)
    assert json.loads(found.kolla)["command"] == RUNNING[service].command
    assert found.kolla.count('"source"') == len(found.files)
    assert all(line.count('"source"') <= 1 for line in found.kolla.splitlines())


def test_a_service_without_files_is_started_all_the_same() -> None:
    service = planned("cinder_volume")
    bare = bundle(type(service)("cinder_volume", image=service.image))
    assert json.loads(bare.kolla)["config_files"] == []


def test_a_service_that_nothing_here_describes_has_neither_units_nor_a_start_file() -> None:
    found = bundle(planned("partner"))
    assert (found.kolla, dict(found.units), found.running) == ("", {}, None)
