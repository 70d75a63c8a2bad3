# SPDX-License-Identifier: GPL-3.0-or-later
"""A real nova-compute beside a real libvirtd and on a real message bus, asked for what it runs with."""

from __future__ import annotations

import base64
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.bundle import bundle
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.migration import known_hosts, with_known_hosts
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.parcel import parcel
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.identity import host_specific
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import (
    ConfigSource,
    Identity,
    Layer,
    Origin,
    ServicePlan,
)
from edpm_lab.cloud import Cloud
from edpm_lab.cloud_settings import bus_user
from edpm_lab.labs import Lab

from .conftest import Bring
from .machine import CONTAINERS, GUEST, Machine, planned
from .privileges import check

UUID = "5a1b0e9e-0a3c-4e1f-9f35-1f0d9f3b9f53"
CEPH_KEY = base64.b64encode(b"marked-ceph-key").decode()
CELL = """[DEFAULT]
debug = True
transport_url = {bus}
[libvirt]
virt_type = qemu
rbd_user = openstack
rbd_secret_uuid = {uuid}
"""
FAKE = {"05-driver.conf": "[DEFAULT]\ncompute_driver = fake.FakeDriver\n"}
SNIPPET = "[DEFAULT]\nreserved_host_memory_mb = 333\n"


@pytest.fixture(scope="module")
def bus(lab: Lab) -> str:
    """A bus on which no conductor answers: a compute of no cloud waits there, whether the lab has one or not."""
    cloud = Cloud(lab).up(["bus"])
    cloud.inside("rabbitmqctl", "--quiet", "add_vhost", "apart")
    cloud.inside("rabbitmqctl", "--quiet", "set_permissions", "-p", "apart", bus_user("cell1"), ".*", ".*", ".*")
    return cloud.site.transport_url("cell1").rpartition("/")[0] + "/apart"


@pytest.fixture(scope="module")
def machine(bring: Bring) -> Machine:
    found = bring(CONTAINERS)
    found.brought(planned("libvirt"))
    return found


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("key") / "id"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    return path


def compute(
    machine: Machine, bus: str, key: Path, *, ca: str = "first", instance: str = "", **more: str
) -> ServicePlan:
    """nova-compute with all that a deployer lists for it."""
    address = machine.nodes.address(machine.name)
    suffix = f"-{instance}" if instance else ""
    who = Identity(f"{machine.name}{suffix}", address, f"/var/lib/nova{suffix}")
    files: dict[str, str | bytes] = {
        "01-nova.conf": CELL.format(bus=bus, uuid=UUID),
        "ssh-privatekey": key.read_bytes(),
        "ssh-publickey": key.with_suffix(".pub").read_bytes(),
        "ceph.conf": "[global]\nmon_host = 192.0.2.1\n",
        "ceph.client.openstack.keyring": f"[client.openstack]\n\tkey = {CEPH_KEY}\n",
        "tls-ca-bundle.pem": ca,
        "provider-extra.yaml": "meta: {schema_version: '1.0'}\nproviders: []\n",
        "02-nova-override.conf": SNIPPET,
        **more,
    }
    plan = planned("nova_compute", files, identity=who, instance=instance)
    origin = Origin(plan.sources[0].origin.ref, "identity")
    own = ConfigSource(origin, plan.conf_d or "", "02-nova-host-specific.conf", Layer.HOST, False, host_specific(who))
    return replace(plan, sources=(*plan.sources, own))


def test_the_running_process_has_the_values_that_were_given(machine: Machine, bus: str, key: Path) -> None:
    first = machine.brought(compute(machine, bus, key))
    assert first["restarted"]
    address = machine.nodes.address(machine.name)
    reported = _reported(machine, "nova_compute")
    assert reported["host"] == machine.name
    assert reported["my_ip"] == address
    assert reported["reserved_host_memory_mb"] == "333"
    assert reported["libvirt.live_migration_inbound_addr"] == address
    assert reported["libvirt.live_migration_uri"].startswith("qemu+ssh://nova@%s/system?keyfile=/var/lib/nova/.ssh/")


def test_the_secret_for_ceph_is_in_libvirt_and_nowhere_to_be_seen(machine: Machine) -> None:
    inside = "podman exec edpm_libvirt virsh -c qemu:///system"
    machine.until(f"{inside} secret-list | grep -q {UUID}")
    assert "client.openstack" in machine.sh(f"{inside} secret-dumpxml {UUID}")
    assert machine.sh(f"cat /etc/libvirt/secrets/{UUID}.base64") == CEPH_KEY
    pattern = f"[{CEPH_KEY[0]}]{CEPH_KEY[1:]}"
    seen = machine.sh(f"journalctl -o json | grep -c {pattern}; grep -l {pattern} /proc/*/cmdline", check=False)
    assert seen == "0"
    machine.sh("timeout 60 systemctl restart edpm_libvirt")
    machine.until(f"{inside} secret-list | grep -q {UUID}")


def test_its_id_is_the_nodes_and_survives_everything(machine: Machine, bus: str, key: Path) -> None:
    identity = machine.sh("cat /var/lib/nova/compute_id")
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", identity)
    assert machine.sh("stat -c %U /var/lib/nova/compute_id") == "nova"
    machine.sh("rm /var/lib/nova/compute_id")
    changed = machine.deploy(compute(machine, bus, key, **{"03-more.conf": "[DEFAULT]\nforce_raw_images = True\n"}))
    assert (changed["failed"], changed["restarted"]) == (False, True), changed["shown"]
    assert machine.sh("cat /var/lib/nova/compute_id") == identity
    back = machine.deploy(compute(machine, bus, key))
    assert (back["failed"], back["restarted"]) == (False, True), back["shown"]
    assert machine.sh("cat /var/lib/nova/compute_id") == identity


def test_a_renewed_ca_reaches_the_running_process_without_a_restart(machine: Machine, bus: str, key: Path) -> None:
    before = machine.invocation("edpm_nova_compute.service")
    renewed = machine.deploy(compute(machine, bus, key, ca="second"))
    assert (renewed["failed"], renewed["changed"], renewed["restarted"]) == (False, True, False), renewed["shown"]
    path = "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem"
    assert machine.sh(f"podman exec --user nova edpm_nova_compute cat {path}") == "second"
    assert machine.invocation("edpm_nova_compute.service") == before


def test_a_node_lets_in_the_key_of_its_cell_for_migration_and_knows_its_peers(
    machine: Machine, bus: str, key: Path
) -> None:
    """The node stands for its own peer: from its container, by the address that others use, to its libvirt."""
    address = machine.nodes.address(machine.name)
    kind, public = machine.sh("cat /etc/ssh/ssh_host_ed25519_key.pub").split()[:2]
    plan = compute(machine, bus, key, ca="second")
    sent = parcel(plan, bundle(plan))
    assert sent is not None
    text = known_hosts([((machine.name, address), {kind: public})])
    known = machine.converge(with_known_hosts(sent, text))
    assert (known["failed"], known["changed"], known["restarted"]) == (False, True, False), known["shown"]
    asked = machine.sh(f"podman exec --user nova edpm_nova_compute ssh {address} id -un")
    assert asked == "nova"
    uri = f"qemu+ssh://nova@{address}/system?keyfile=/var/lib/nova/.ssh/ssh-privatekey&proxy=netcat&no_tty=1"
    assert "QEMU" in machine.sh(f"podman exec edpm_libvirt virsh -c '{uri}' version")
    other = machine.sh(
        f"podman exec --user nova edpm_nova_compute ssh -o HostKeyAlias=stranger {address} id", check=False
    )
    assert other == ""


def test_another_instance_is_another_compute(machine: Machine, bus: str, key: Path) -> None:
    first = machine.deploy(compute(machine, bus, key, instance="fake", **FAKE))
    assert (first["failed"], first["changed"]) == (False, True), first["shown"]
    reported = _reported(machine, "nova_compute@fake")
    assert (reported["host"], reported["state_path"]) == (f"{machine.name}-fake", "/var/lib/nova-fake")
    ids = machine.sh("cat /var/lib/nova/compute_id /var/lib/nova-fake/compute_id").split()
    assert len(set(ids)) == 2
    assert machine.sh("podman exec --user nova edpm_nova_compute-fake cat /var/lib/nova/.ssh/config").startswith(
        "Host *"
    )


def test_every_container_may_what_its_definition_says_and_no_more(machine: Machine, bus: str, key: Path) -> None:
    plain, fake = (compute(machine, bus, key, ca="second"), compute(machine, bus, key, instance="fake", **FAKE))
    check(machine, planned("libvirt"), plain, fake)


def test_a_guest_keeps_its_own_instance_on_the_node_and_no_other(machine: Machine) -> None:
    disk = "/var/lib/nova/instances/guest/disk"
    machine.sh(f"mkdir -p {disk.rpartition('/')[0]} && truncate --size 1M {disk}")
    device = f"<devices><disk type='file'><source file='{disk}'/><target dev='vda' bus='virtio'/></disk></devices>"
    machine.put("/var/lib/libvirt/guest.xml", GUEST.replace("</domain>", f"{device}</domain>"))
    machine.sh("podman exec edpm_libvirt virsh create --paused /var/lib/libvirt/guest.xml")
    plain, fake = (
        machine.call("service", {"state": "absent", "service": "nova_compute", "instance": one}, "--check")
        for one in ("", "fake")
    )
    machine.sh("podman exec edpm_libvirt virsh destroy guest")
    assert plain["failed"], plain["shown"]
    assert [line.split()[:2] for line in plain["busy"]] == [["guest", "guest"]]
    assert (fake["failed"], fake["changed"]) == (False, True), fake["shown"]


def test_a_compute_that_was_stopped_has_not_failed(machine: Machine) -> None:
    unit = "edpm_nova_compute@fake.service"
    machine.sh(f"systemctl stop {unit}")
    shown = machine.sh(f"systemctl show --property=ActiveState,ExecMainStatus {unit}").split()
    assert sorted(shown) == ["ActiveState=inactive", "ExecMainStatus=143"]


def _reported(machine: Machine, service: str) -> dict[str, str]:
    """What the process itself says of its options when it is asked for a report."""
    unit, container = f"edpm_{service}.service", f"edpm_{service.replace('@', '-')}"
    since = machine.sh(f"date +%s; podman kill --signal USR2 {container} > /dev/null").split()[0]
    log = f"journalctl -u {unit} -o cat --no-pager --since=@{since}"
    machine.until(f"{log} | grep -q '^ *live_migration_uri = '", 60)
    found: dict[str, str] = {}
    group = ""
    for line in machine.sh(log).splitlines():
        if named := re.fullmatch(r"([\w.]+): *", line):
            group = "" if named.group(1) in ("default", "DEFAULT") else f"{named.group(1)}."
        elif setting := re.fullmatch(r"  (\w+) = (.*)", line):
            found[group + setting.group(1)] = setting.group(2).strip()
    return found
