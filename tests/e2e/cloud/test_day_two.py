# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of deployed computes: changed, rotated, broken, killed, moved and taken away, with servers on them.

The tests go on where those of `test_computes` end, build on each other and print what OpenStack answered.
"""

from __future__ import annotations

import re

from edpm_lab import servers
from edpm_lab.servers import Server

from .site import CELLS, FIRST, SECOND, SNIPPET, THIRD, Site
from .wire import heard

#: Where libvirt listens for others, and where QEMU does for the memory and the disks of a guest.
LIBVIRT_TLS, QEMU = 16514, range(49152, 49216)


def restarted(before: dict[str, str], after: dict[str, str]) -> set[str]:
    """The services that were started anew, by node and unit."""
    found = {name for name, number in after.items() if before.get(name) != number}
    print(f"restarted: {sorted(found)}")
    return found


def migrated(site: Site, server: Server, host: str, *, live: bool) -> bool:
    """Whether Nova has moved a server between the computes of a cell, and libvirt has its domain there alone."""
    for each in (FIRST, SECOND):
        site.cloud.await_compute(each)  # one that has not reported for a minute takes part in no migration
    status, where, moved = servers.migrate(site.cloud, server.uuid, host, live=live)
    print(f"{'live' if live else 'cold'} migration to {host}: {moved}, {status} on {where}")
    there, left = (server.domain in site.domains(one) for one in sorted((FIRST, SECOND), key=lambda one: one != host))
    return (status, where, there, left) == ("ACTIVE", host, True, False)


def test_a_server_moves_between_the_computes_of_a_cell_cold_and_live(site: Site) -> None:
    server = site.running[SECOND]
    assert migrated(site, server, FIRST, live=False)
    assert migrated(site, server, SECOND, live=True)


def test_a_rolling_change_keeps_servers_running_and_moves_metadata_into_the_cells(site: Site) -> None:
    before = {name: site.started(server) for name, server in site.running.items()}
    when, _uuid = site.told_to_guest(FIRST)
    site.cloud.up(["cell-metadata"])
    site.cloud.inside("systemctl", "stop", "nova-api-metadata")
    site.metadata = "cells"
    site.migrate_over_tls(FIRST, SECOND)
    site.plane.profile = "[DEFAULT]\nresume_guests_state_on_host_boot = true\n"

    shown = site.play("deploy", "-e", "edpm_deploy_batch=1")

    assert "batch 3 of 3" in shown
    print(shown[shown.rindex("NODE ") :])
    assert site.all_up()
    after = {name: site.started(server) for name, server in site.running.items()}
    print(f"domains: {after}")
    assert after == before
    since = servers.uptime(site.cloud, site.running[FIRST].uuid)
    assert since > when
    again, uuid = site.told_to_guest(FIRST, after=since)
    print(f"{again} s after its start the guest was told by the service of its cell that it is {uuid}")
    assert uuid == site.running[FIRST].uuid
    site.cloud.inside("systemctl", "start", "nova-api-metadata")


def test_a_new_password_of_a_bus_restarts_the_computes_of_its_cell_and_nothing_else(site: Site) -> None:
    before = site.invocations()
    site.cloud.rotate_bus("cell2")

    site.play("deploy")

    assert site.all_up()
    assert restarted(before, site.invocations()) == {f"{THIRD} edpm_nova_compute.service"}


def test_a_snippet_that_breaks_the_service_is_rolled_back_and_the_compute_stays_up(site: Site) -> None:
    site.plane.snippets[SECOND] = "[DEFAULT]\ncompute_driver = no.such.Driver\n"

    shown = site.play("deploy", "-e", f"node={SECOND}", code=2)

    print("\n".join(line for line in shown.splitlines() if f"{SECOND} · nova_compute" in line))
    assert re.search(r"generation \w+ runs again as before", shown), shown
    assert "No module named 'nova.virt.no'" in shown
    del site.plane.snippets[SECOND]
    assert site.all_up()
    assert site.domains(SECOND) == [site.running[SECOND].domain]


def test_a_running_server_moves_over_tls_where_the_computes_have_certificates(site: Site) -> None:
    server = site.running[SECOND]
    with heard(site.nodes, FIRST, SECOND) as wire:
        moved = migrated(site, server, FIRST, live=True)
    print(f"{SECOND} opened on {FIRST}: {wire}")
    assert moved
    assert {LIBVIRT_TLS, *wire.opened} == wire.with_tls
    assert any(port in QEMU for port in wire.with_tls)


def test_a_cell_move_is_refused_by_the_plan_and_by_the_node_itself(site: Site) -> None:
    """Also in a cluster, which the tests of runs in pods show on a compute of theirs."""
    before = site.invocations()
    moved = site.plane.annotations[FIRST]
    moved["nova.openstack.org/cell"] = "nova-cell2"
    planned = site.play("plan", "-e", f"node={FIRST}")
    snippet = site.plane.snippets.pop(FIRST)
    refused = site.play("deploy", "-e", f"node={FIRST}", code=2)
    del moved["nova.openstack.org/cell"]
    site.plane.snippets[FIRST] = snippet

    assert "Nova does not move computes between cells: set it back to nova-cell1" in planned
    print(planned[planned.index("NODE ") : planned.index("PLAY RECAP")])
    said = "belongs to the cell nova-cell1 and was asked to join nova-cell2; Nova cannot move a compute between cells"
    assert said in refused
    print(refused[refused.rindex("NODE ") : refused.rindex("PLAY [Tell")])
    assert restarted(before, site.invocations()) == set()
    assert site.mapped() == CELLS
    assert site.all_up()


def test_a_node_that_is_killed_during_a_deployment_is_finished_by_the_next(site: Site) -> None:
    servers.delete(site.cloud, site.running.pop(SECOND).uuid)
    generations = "echo $(ls /var/lib/openstack/nova_compute/generations)"
    known = site.sh(SECOND, generations)
    site.plane.snippets[SECOND] = SNIPPET
    ended = site.begin("deploy", "-e", f"node={SECOND}")
    site.sh(SECOND, f"while [ \"$({generations})\" = '{known}' ]; do sleep 0.05; done")
    site.nodes.kill(SECOND)
    site.nodes.start(SECOND)
    # Out of reach; or its systemd went a moment before the rest of it, and what still ran there said so.
    shown = ended(4, 2)
    print(shown[shown.rindex("NODE ") : shown.rindex("PLAY [Tell")])

    site.play("deploy", "-e", f"node={SECOND}")

    assert site.all_up()
    assert site.same_ratio(SECOND, FIRST)


def test_a_compute_with_a_server_is_not_removed(site: Site) -> None:
    shown = site.play("remove", "-e", f"node={FIRST}", code=2)
    print(*(line for line in shown.splitlines() if "1 server" in line), sep="\n")
    assert "1 server" in shown
    assert site.computes()[FIRST] == ("up", "enabled")
    assert site.sh(FIRST, "systemctl is-active edpm_nova_compute edpm_libvirt").split() == ["active", "active"]


def test_an_empty_one_is_gone_from_nova_placement_and_its_node_and_stays_away(site: Site) -> None:
    servers.delete(site.cloud, site.running.pop(THIRD).uuid)
    site.play("remove", "-e", f"node={THIRD}")
    assert THIRD not in site.computes()
    assert THIRD not in site.ratios()
    assert site.sh(THIRD, "ls /etc/containers/systemd /var/lib/openstack 2>/dev/null | grep nova || true") == ""
    site.nodes.reboot(THIRD)
    assert "edpm_nova_compute" not in site.sh(THIRD, "podman ps --all --format '{{.Names}}'")
    assert THIRD not in site.computes()
