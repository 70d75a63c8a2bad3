# SPDX-License-Identifier: GPL-3.0-or-later
"""A real libvirt with one daemon for each driver, on a node of the lab: all that the other two kinds show, and more.

The tests build on each other, as theirs do.
"""

from __future__ import annotations

import pytest
from edpm_lab.labs import Lab
from edpm_lab.nodes import Nodes
from edpm_lab.pki import Authority

from tests.e2e.services import test_libvirt as of_all
from tests.e2e.services.certificates import fingerprint, secret, shown_by
from tests.e2e.services.machine import Machine

NAME, IMAGE = "edpm-modular-0", "node-modular"
DAEMONS = ("virtqemud", "virtproxyd", "virtnodedevd", "virtsecretd", "virtstoraged")

ca = of_all.ca


@pytest.fixture(scope="module")
def mode() -> str:
    return "modular"


@pytest.fixture(scope="module")
def machine(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    nodes = Nodes(lab)
    nodes.up([NAME], IMAGE)
    return Machine(nodes, NAME, tmp_path_factory.mktemp(NAME))


test_libvirt_answers_once_it_is_deployed_and_a_second_deployment_changes_nothing = (
    of_all.test_libvirt_answers_once_it_is_deployed_and_a_second_deployment_changes_nothing
)


def test_the_daemon_for_all_drivers_stays_down(machine: Machine) -> None:
    said = machine.sh("systemctl start libvirtd.service libvirtd.socket libvirtd-tls.socket 2>&1 || true")
    assert said.count("is masked") == 3, said
    assert not machine.sh("pgrep -x libvirtd || true")


def test_each_driver_answers_by_its_own_daemon(machine: Machine) -> None:
    for asked in ("list", "nodedev-list", "secret-list", "pool-list"):
        machine.sh(f"virsh -c qemu:///system {asked}")
    running = machine.sh("systemctl list-units --plain --no-legend --state=running 'virt*d.service' | cut -d ' ' -f 1")
    assert {f"{daemon}.service" for daemon in DAEMONS if daemon != "virtproxyd"} <= set(running.split())


test_guests_survive_a_restart_and_their_consoles_stay_open = (
    of_all.test_guests_survive_a_restart_and_their_consoles_stay_open
)
test_what_runs_is_told_before_a_removal = of_all.test_what_runs_is_told_before_a_removal


def test_certificates_make_a_proxy_that_runs_listen_and_renewed_ones_need_no_restart(
    machine: Machine, mode: str, ca: Authority
) -> None:
    machine.sh("virsh -c 'qemu:///system?mode=legacy' list")
    machine.sh("systemctl is-active virtproxyd.service")
    of_all.test_certificates_make_it_listen_and_renewed_ones_need_no_restart(machine, mode, ca)


def test_a_renewal_reaches_a_proxy_that_nobody_has_talked_to(machine: Machine, mode: str, ca: Authority) -> None:
    address = machine.nodes.address(machine.name)
    machine.sh("systemctl stop virtproxyd.service virtproxyd-admin.socket")
    new = secret(ca, machine.name, address)
    renewed = machine.deploy(of_all.plan_of(mode, **of_all.keys_of(new)))
    assert (renewed["failed"], renewed["restarted"]) == (False, False), renewed["shown"]
    assert renewed["reloaded"], renewed["shown"]
    assert shown_by(address) == fingerprint(new["tls.crt"])


test_no_other_user_of_the_node_can_read_a_private_key = of_all.test_no_other_user_of_the_node_can_read_a_private_key
test_qemu_can_read_its_certificates = of_all.test_qemu_can_read_its_certificates


def test_without_certificates_it_no_longer_listens(machine: Machine, mode: str) -> None:
    of_all.test_without_certificates_it_no_longer_listens(machine, mode)


def test_a_removal_with_force_leaves_the_guests_and_nothing_of_the_service(machine: Machine) -> None:
    guest = machine.sh("pgrep -f '[g]uest=guest'")
    gone = machine.call("service", {"state": "absent", "service": "libvirt", "force": True})
    assert (gone["failed"], gone["changed"]) == (False, True), gone["shown"]
    left = "systemctl list-units --plain --no-legend --state=active 'virt*d*.socket' 'virt*d.service' 'libvirtd*'"
    assert machine.sh(left) == ""
    on = "systemctl list-unit-files --no-legend --state=enabled,masked 'virt*d*' 'libvirtd*' | cut -d ' ' -f 1"
    # A package that came along switches it on.
    assert machine.sh(on) == "virtlockd.service"
    files = "find /etc/systemd/system/virt*.d /var/lib/openstack/libvirt /etc/pki -type f 2>/dev/null || true"
    assert machine.sh(files) == ""
    assert machine.sh("pgrep -f '[g]uest=guest'") == guest
