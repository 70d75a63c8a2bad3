# SPDX-License-Identifier: GPL-3.0-or-later
"""A real libvirtd, in a container and from packages: it answers, guests outlive it, it takes certificates."""

from __future__ import annotations

import shlex
import time

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import ServicePlan
from edpm_lab import ovn
from edpm_lab.pki import Authority

from .certificates import authority, fingerprint, secret, shown_by
from .conftest import Bring
from .machine import CONTAINERS, GUEST, WITH_OVN, Machine, planned
from .privileges import check

IN_CONTAINER = {"edpm_libvirt_mode": "container"}
ON_NODE = {"edpm_libvirt_mode": "host", "edpm_libvirt_daemons": "monolithic"}
MODULAR = {"edpm_libvirt_mode": "host", "edpm_libvirt_daemons": "modular"}
#: The third needs daemons that are in no package of Debian; tests/hosts has it.
OPTIONS = {"container": IN_CONTAINER, "host": ON_NODE, "modular": MODULAR}
UNITS = {"container": "edpm_libvirt.service", "host": "libvirtd.service", "modular": "virtqemud.service"}
#: What has the ends of the guests' consoles.
KEEPERS = {"container": "edpm_libvirt-virtlogd.service", "host": "virtlogd.service", "modular": "virtlogd.service"}
#: What other nodes talk to.
LISTENING = {**UNITS, "modular": "virtproxyd.service"}


@pytest.fixture(scope="module", params=["container", "host"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return authority(tmp_path_factory.mktemp("pki"))


@pytest.fixture(scope="module")
def machine(bring: Bring, mode: str) -> Machine:
    return bring(CONTAINERS) if mode == "container" else bring(WITH_OVN, ovn.IMAGE)


def plan_of(mode: str, **files: bytes) -> ServicePlan:
    keys = {name.replace("_", "."): content for name, content in files.items()}
    return planned("libvirt", keys, options=OPTIONS[mode])


def virsh(machine: Machine, mode: str, words: str) -> str:
    """Ask libvirt as an operator of that kind of node does."""
    return machine.sh(f"{'podman exec edpm_libvirt ' if mode == 'container' else ''}virsh -c qemu:///system {words}")


def test_libvirt_answers_once_it_is_deployed_and_a_second_deployment_changes_nothing(
    machine: Machine, mode: str
) -> None:
    first = machine.brought(plan_of(mode))
    assert first["restarted"], first["shown"]
    assert "QEMU" in virsh(machine, mode, "version")
    if mode == "container":
        check(machine, plan_of(mode))
    else:
        assert "podman" not in machine.sh(f"systemctl cat {UNITS[mode]}")
        assert not machine.sh("podman ps --quiet")


def test_guests_survive_a_restart_and_their_consoles_stay_open(machine: Machine, mode: str) -> None:
    machine.put("/var/lib/libvirt/guest.xml", GUEST)
    virsh(machine, mode, "create --paused /var/lib/libvirt/guest.xml")
    guest = machine.sh("pgrep -f '[g]uest=guest'")
    keeper = machine.main_process(KEEPERS[mode])
    begin = time.monotonic()
    machine.sh(f"timeout 30 systemctl restart {UNITS[mode]}")
    ask = "podman exec edpm_libvirt " if mode == "container" else ""
    machine.until(f"{ask}virsh -c qemu:///system list --all --name | grep -qx guest")
    print(f"libvirt ({mode}) answers {time.monotonic() - begin:.1f} s after its restart began")
    assert machine.sh("pgrep -f '[g]uest=guest'") == guest
    assert machine.main_process(KEEPERS[mode]) == keeper


def test_what_runs_is_told_before_a_removal(machine: Machine, mode: str) -> None:
    refused = machine.call("service", {"state": "absent", "service": "libvirt"})
    assert refused["failed"], refused["shown"]
    assert any("guest guest (" in line for line in refused["busy"]), refused["shown"]
    assert virsh(machine, mode, "list --name") == "guest"


def test_certificates_make_it_listen_and_renewed_ones_need_no_restart(
    machine: Machine, mode: str, ca: Authority
) -> None:
    address = machine.nodes.address(machine.name)
    guest = machine.sh("pgrep -f '[g]uest=guest'")
    old, new = (secret(ca, machine.name, address) for _ in range(2))
    keeper = machine.main_process(KEEPERS[mode])
    first = machine.deploy(plan_of(mode, **keys_of(old)))
    assert (first["failed"], first["restarted"]) == (False, True), first["shown"]
    assert shown_by(address) == fingerprint(old["tls.crt"])
    assert _remote_answer(machine, mode, address) == "guest"
    if mode == "container":
        check(machine, plan_of(mode, **keys_of(old)))

    units = machine.invocation(f"{UNITS[mode]} {LISTENING[mode]}")
    renewed = machine.deploy(plan_of(mode, **keys_of(new)))
    assert (renewed["failed"], renewed["changed"], renewed["restarted"]) == (False, True, False), renewed["shown"]
    assert renewed["reloaded"], renewed["shown"]
    assert shown_by(address) == fingerprint(new["tls.crt"])
    assert machine.invocation(f"{UNITS[mode]} {LISTENING[mode]}") == units
    assert _remote_answer(machine, mode, address) == "guest"
    again = machine.deploy(plan_of(mode, **keys_of(new)))
    assert (again["failed"], again["changed"]) == (False, False), again["shown"]
    assert machine.sh("pgrep -f '[g]uest=guest'") == guest
    assert machine.main_process(KEEPERS[mode]) == keeper, "or the guests' consoles would fall silent"


def test_no_other_user_of_the_node_can_read_a_private_key(machine: Machine) -> None:
    keys = machine.sh("grep -rl 'PRIVATE KEY' /var/lib/openstack /etc/pki /etc/libvirt 2>/dev/null || true").split()
    assert len(keys) == 4
    for path in keys:
        for user in ("nobody", "nova"):
            assert machine.sh(f"setpriv --reuid={user} --clear-groups cat {shlex.quote(path)} 2>&1 || true").endswith(
                "Permission denied"
            )


def test_qemu_can_read_its_certificates(machine: Machine) -> None:
    """It is another user than libvirt, the one that the guest runs as, and it started before there were any."""
    guest = machine.sh("pgrep -f '[g]uest=guest'")
    user = machine.sh(f"ps -o uid= -p {guest}").strip()
    groups = machine.sh(f"grep Groups /proc/{guest}/status").split(None, 1)[1].replace(" ", ",")
    read = f"setpriv --reuid={user} --groups={groups.replace(chr(9), ',')} cat /etc/pki/qemu/server-key.pem"
    assert "PRIVATE KEY" in machine.sh(f"nsenter --target={guest} --mount {read}")


@pytest.mark.parametrize("mode", ["host"], indirect=True, scope="module")
def test_without_certificates_it_no_longer_listens(machine: Machine, mode: str) -> None:
    gone = machine.deploy(plan_of(mode))
    assert (gone["failed"], gone["restarted"]) == (False, True), gone["shown"]
    assert machine.sh("ss --no-header --listening --tcp 'sport = :16514'") == ""
    assert virsh(machine, mode, "list --name") == "guest"


@pytest.mark.parametrize("mode", ["host"], indirect=True, scope="module")
def test_files_that_its_daemon_cannot_read_go_back_by_themselves(machine: Machine, mode: str) -> None:
    before = machine.sh("sha256sum /etc/libvirt/libvirtd.conf")
    ill = machine.deploy(plan_of(mode, libvirtd_conf=b"max_clients = nonsense\n"))
    assert (ill["failed"], ill["rolled_back"]) == (True, True), ill["shown"]
    print(ill["msg"])
    assert "runs again as before" in ill["msg"]
    assert machine.sh("sha256sum /etc/libvirt/libvirtd.conf") == before
    assert virsh(machine, mode, "list --name") == "guest"


@pytest.mark.parametrize("mode", ["host"], indirect=True, scope="module")
def test_a_node_changes_to_the_container_and_back_and_its_guest_stays(machine: Machine, mode: str) -> None:
    guest = machine.sh("pgrep -f '[g]uest=guest'")
    for other in ("container", mode):
        changed = machine.brought(plan_of(other))
        assert changed["restarted"], changed["shown"]
        assert virsh(machine, other, "list --name") == "guest"
    assert machine.sh("pgrep -f '[g]uest=guest'") == guest
    print(virsh(machine, mode, "list"))


def keys_of(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name.replace(".", "_"): content for name, content in files.items()}


def _remote_answer(machine: Machine, mode: str, address: str) -> str:
    """What libvirt says to a client that shows a certificate, as the libvirt of another node does."""
    inside = "podman exec edpm_libvirt " if mode == "container" else ""
    return machine.sh(f"{inside}virsh -c qemu+tls://{address}/system list --name --all")
