# SPDX-License-Identifier: GPL-3.0-or-later
"""Computes in two cells, brought by `deploy`: OpenStack itself says that they are up, and servers run on them.

The tests build on each other and print what OpenStack answered.
"""

from __future__ import annotations

import re

from edpm_lab import servers

from .site import CELLS, FIRST, RATIO, SECOND, THIRD, Site


def test_all_computes_are_up_and_mapped_in_their_cells(site: Site) -> None:
    shown = site.play("deploy")
    print(shown[shown.rindex("NODE ") :])
    assert site.computes() == dict.fromkeys(CELLS, ("up", "enabled"))
    assert site.hypervisors() == dict.fromkeys(CELLS, "QEMU")
    assert site.mapped() == CELLS


def test_the_snippet_shows_in_placement_for_its_node_and_for_no_other(site: Site) -> None:
    ratios = site.ratios()
    assert ratios[FIRST] == RATIO
    assert RATIO not in (ratios[SECOND], ratios[THIRD])


def test_a_second_deployment_changes_nothing(site: Site) -> None:
    shown = site.play("deploy")
    recaps = re.findall(r"^(\S+) +: ok=\d+ +changed=(\d+)", shown, re.MULTILINE)
    assert {name: count for name, count in recaps if name in CELLS} == dict.fromkeys(CELLS, "0"), shown
    assert re.search(r"^0 nodes changed, 3 unchanged", shown, re.MULTILINE), shown


def test_neutron_lists_the_agents_as_alive(site: Site) -> None:
    assert site.agents(SECOND)["neutron-sriov-nic-agent"] is True
    assert site.agents(FIRST)["neutron-ovn-metadata-agent"] is True


def test_a_server_is_active_on_each_and_is_a_domain_of_libvirt(site: Site) -> None:
    for server in servers.boot(site.cloud, list(CELLS), linux_on=FIRST):
        print(server)
        assert (server.status, server.name) == ("ACTIVE", f"on-{server.host}")
        assert site.domains(server.host) == [server.domain]
        site.running[server.host] = server
    assert set(site.running) == set(CELLS)


def test_cinder_makes_a_volume_on_ceph_and_nova_attaches_it(site: Site) -> None:
    assert site.volume_services() == {f"{SECOND}@ceph": "up"}
    server = site.running[THIRD]
    volume = servers.attach(site.cloud, server.uuid, "first")
    print(f"volume {volume.uuid} of {volume.backend}: {volume.states}, attached to {volume.attached}")
    assert volume.states == ["available", "in-use"]
    assert [one for one, _device in volume.attached] == [server.uuid]
    assert site.ceph.volumes() == [f"volume-{volume.uuid}"]
    disks = site.sh(THIRD, f"podman exec edpm_libvirt virsh domblklist {server.domain}")
    assert f"volumes/volume-{volume.uuid}" in disks


def test_a_linux_guest_gets_its_own_uuid_from_nova_through_the_agent(site: Site) -> None:
    server = site.running[FIRST]
    when, uuid = site.told_to_guest(FIRST)
    print(f"{when} s after its start the guest was told that it is {uuid}")
    assert uuid == server.uuid
