# SPDX-License-Identifier: GPL-3.0-or-later
"""A real nova-compute beside a real libvirtd and on a real message bus, asked for what it runs with."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.bundle import bundle
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.migration import known_hosts, with_known_hosts
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.parcel import parcel
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import ExtraMount, ServicePlan
from edpm_lab.cloud import Cloud
from edpm_lab.cloud_settings import bus_user
from edpm_lab.labs import Lab

from .compute import CEPH_KEY, UUID, compute, given, reported
from .conftest import Bring
from .machine import CONTAINERS, GUEST, Machine, planned
from .privileges import check

FAKE = {"05-driver.conf": "[DEFAULT]\ncompute_driver = fake.FakeDriver\n"}
#: What a deployer wants in the container beside what it has: paths of the node, and a file out of a Secret.
MOUNTS = (
    ExtraMount("/opt/site", "/srv/site", options=("ro",)),
    ExtraMount("/opt/kept", "/srv/kept"),
    ExtraMount("/opt/given", files=(given("/opt/given", "word", "of the Secret"),)),
)
#: A deployer's own way to start it: the files elsewhere, and a command that reads them there.
FOLDER = "/etc/elsewhere/conf.d"
COMMAND = f"nova-compute --config-dir {FOLDER}"
OWN_KOLLA = {
    "command": COMMAND,
    "config_files": [
        {"source": "/var/lib/openstack/config/conf.d/*", "dest": f"{FOLDER}/", "owner": "nova", "perm": "0440"},
        {
            "source": "/var/lib/openstack/config/files/opt/given/word",
            "dest": "/opt/word",
            "owner": "root",
            "perm": "0644",
        },
    ],
    "permissions": [{"path": "/var/log/kolla/nova", "owner": "nova:nova", "recurse": True}],
}


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


def fake(machine: Machine, bus: str, key: Path) -> ServicePlan:
    """Another instance, with a driver that runs no guests and with the deployer's own mounts."""
    return replace(compute(machine, bus, key, instance="fake", **FAKE), extra_mounts=MOUNTS)


def test_the_running_process_has_the_values_that_were_given(machine: Machine, bus: str, key: Path) -> None:
    first = machine.brought(compute(machine, bus, key))
    assert first["restarted"]
    address = machine.nodes.address(machine.name)
    said = reported(machine, "nova_compute")
    assert said["host"] == machine.name
    assert said["my_ip"] == address
    assert said["reserved_host_memory_mb"] == "333"
    assert said["libvirt.live_migration_inbound_addr"] == address
    assert said["libvirt.live_migration_uri"].startswith("qemu+ssh://nova@%s/system?keyfile=/var/lib/nova/.ssh/")


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
    machine.sh("install -d -o nova /srv/site /srv/kept && install -o nova /dev/stdin /srv/site/word <<< 'of the node'")
    first = machine.deploy(fake(machine, bus, key))
    assert (first["failed"], first["changed"]) == (False, True), first["shown"]
    said = reported(machine, "nova_compute@fake")
    assert (said["host"], said["state_path"]) == (f"{machine.name}-fake", "/var/lib/nova-fake")
    ids = machine.sh("cat /var/lib/nova/compute_id /var/lib/nova-fake/compute_id").split()
    assert len(set(ids)) == 2
    assert machine.sh("podman exec --user nova edpm_nova_compute-fake cat /var/lib/nova/.ssh/config").startswith(
        "Host *"
    )


def test_the_mounts_that_a_deployer_adds_are_there_for_its_user(machine: Machine) -> None:
    inside = "podman exec --user nova edpm_nova_compute-fake"
    assert machine.sh(f"{inside} cat /opt/site/word /opt/given/word").split("\n") == ["of the node", "of the Secret"]
    refused = machine.sh(f"{inside} sh -c 'echo changed > /opt/site/word' 2>&1", check=False)
    assert refused.endswith("Read-only file system")
    machine.sh(f"{inside} sh -c 'echo from inside > /opt/kept/word'")
    assert machine.sh("cat /srv/site/word /srv/kept/word").split("\n") == ["of the node", "from inside"]
    assert machine.sh(f"{inside} stat -c '%U %a' /opt/given/word") == "nova 600"


def test_every_container_may_what_its_definition_says_and_no_more(machine: Machine, bus: str, key: Path) -> None:
    check(machine, planned("libvirt"), compute(machine, bus, key, ca="second"), fake(machine, bus, key))


def test_a_guest_keeps_its_own_instance_on_the_node_and_no_other(machine: Machine) -> None:
    disk = "/var/lib/nova/instances/guest/disk"
    machine.sh(f"mkdir -p {disk.rpartition('/')[0]} && truncate --size 1M {disk}")
    device = f"<devices><disk type='file'><source file='{disk}'/><target dev='vda' bus='virtio'/></disk></devices>"
    machine.put("/var/lib/libvirt/guest.xml", GUEST.replace("</domain>", f"{device}</domain>"))
    machine.sh("podman exec edpm_libvirt virsh create --paused /var/lib/libvirt/guest.xml")
    plain, other = (
        machine.call("service", {"state": "absent", "service": "nova_compute", "instance": one}, "--check")
        for one in ("", "fake")
    )
    machine.sh("podman exec edpm_libvirt virsh destroy guest")
    assert plain["failed"], plain["shown"]
    assert [line.split()[:2] for line in plain["busy"]] == [["guest", "guest"]]
    assert (other["failed"], other["changed"]) == (False, True), other["shown"]


def test_a_deployers_own_kolla_config_starts_it(machine: Machine, bus: str, key: Path) -> None:
    own = machine.deploy(replace(fake(machine, bus, key), user_kolla=json.dumps(OWN_KOLLA).encode()))
    assert (own["failed"], own["restarted"]) == (False, True), own["shown"]
    container = "edpm_nova_compute-fake"
    first = machine.sh(f"podman inspect --format '{{{{.State.Pid}}}}' {container}")
    assert machine.sh(f"ps --ppid {first} --format user:9,args --no-headers").endswith(COMMAND)
    said = reported(machine, "nova_compute@fake")
    assert (said["host"], said["reserved_host_memory_mb"]) == (f"{machine.name}-fake", "333")
    inside = f"podman exec --user nova {container}"
    assert machine.sh(f"{inside} stat -c '%U %a' {FOLDER}/01-nova.conf /opt/word").split("\n") == [
        "nova 440",
        "root 644",
    ]
    # What is generated where there is none did not take part.
    assert machine.sh(f"{inside} find /etc/nova/nova.conf.d -type f") == ""


def test_a_compute_that_was_stopped_has_not_failed(machine: Machine) -> None:
    unit = "edpm_nova_compute@fake.service"
    machine.sh(f"systemctl stop {unit}")
    shown = machine.sh(f"systemctl show --property=ActiveState,ExecMainStatus {unit}").split()
    assert sorted(shown) == ["ActiveState=inactive", "ExecMainStatus=143"]
