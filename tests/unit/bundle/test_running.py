# SPDX-License-Identifier: GPL-3.0-or-later
"""The definitions of how services run, and how they travel to a node."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node.travel import read, written
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.built_in import RUNNING
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.bundle import bundle
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.libvirt import QEMU_HOOK
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.parcel import parcel
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.built_in import BUILT_IN
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import Identity, Layer, ServicePlan

from .definitions import made, planned, source


def test_every_service_that_can_be_planned_can_be_run() -> None:
    assert list(RUNNING) == list(BUILT_IN)


def test_only_nova_compute_and_libvirt_are_privileged() -> None:
    privileged = {name for name, one in RUNNING.items() if one.privileged or "--privileged" in one.podman_options}
    assert privileged == {"libvirt", "nova_compute"}
    units = {name: [text for text in made(name).units.values() if "--privileged" in text] for name in RUNNING}
    assert {name for name, found in units.items() if found} == privileged
    assert all("--pid=host" not in one.podman_options for name, one in RUNNING.items() if name not in privileged)


def test_what_a_container_may_is_listed_here_and_nowhere_else() -> None:
    """A service that needs more than this needs a reason, and this list shows it."""
    names = ("AddCapability", "SecurityLabelDisable")
    found = {}
    for service in RUNNING:
        lines = made(service).units[f"edpm_{service}.container"].splitlines()
        options = [line.partition("=")[2].strip('"') for line in lines if line.startswith("PodmanArgs=")]
        rights = [line.partition("=")[2] for line in lines if line.startswith(names[0])]
        kept = [one for one in options if not one.startswith(("--pull", "--stop-timeout"))]
        found[service] = (sorted(rights), sorted(kept), any(line.startswith(names[1]) for line in lines))
    guests = ["--cgroupns=host", "--cgroups=no-conmon", "--pid=host", "--privileged"]
    mounts = "--security-opt=apparmor=unconfined"
    assert found == {
        "libvirt": ([], guests, False),
        "nova_compute": ([], guests, False),
        "ovn_metadata_agent": (
            ["DAC_READ_SEARCH", "NET_ADMIN", "NET_RAW", "SYS_ADMIN", "SYS_PTRACE"],
            [mounts, "--security-opt=unmask=/proc/sys"],
            True,
        ),
        "neutron_sriov_agent": (["DAC_READ_SEARCH", "NET_ADMIN", "SYS_ADMIN"], [], False),
        "cinder_volume": (
            ["DAC_READ_SEARCH", "SYS_ADMIN"],
            ["--device-cgroup-rule=b *:* rwm", "--device-cgroup-rule=c 10:236 rwm", mounts],
            True,
        ),
    }


@pytest.mark.parametrize("service", RUNNING)
def test_every_service_is_asked_whether_it_does_its_work(service: str) -> None:
    health = RUNNING[service].health
    assert health is not None
    assert health.connected or health.command[0] == "virsh"


@pytest.mark.parametrize("service", RUNNING)
def test_what_is_mounted_is_there(service: str) -> None:
    """A folder of the definition, one that tmpfiles makes, or one that every node has."""
    running = RUNNING[service]
    there = {one.path for one in running.folders} | {line.split()[1] for line in running.tmpfiles}
    always = {"/dev", "/sys/fs/cgroup", "/run/dbus/system_bus_socket"}
    assert {one.source for one in running.mounts} - there <= always


@pytest.mark.parametrize("service", RUNNING)
def test_a_bundle_travels_to_its_node_and_arrives_as_it_was(service: str) -> None:
    plan = planned(service)
    found = parcel(plan, bundle(plan))
    assert found is not None
    assert read(written(found)) == found
    assert found.unit == f"edpm_{service}.service"
    assert found.container == f"edpm_{service}"
    owners = {one.owner for one in found.folders} - {""}
    assert owners <= {one.name for one in found.users}


def test_instances_of_a_service_share_nothing_that_is_theirs() -> None:
    plans = [planned("nova_compute", instance) for instance in ("", "fast")]
    plain, fast = (parcel(plan, bundle(plan)) for plan in plans)
    assert plain is not None
    assert fast is not None
    assert read(written(fast)) == fast
    assert {one.path for one in plain.folders} & {one.path for one in fast.folders} == {"/var/lib/libvirt"}
    assert plain.container != fast.container
    assert plain.digest != fast.digest


def test_a_service_without_an_image_or_a_definition_does_not_travel() -> None:
    for plan in (planned("libvirt", image=None), planned("partner")):
        assert parcel(plan, bundle(plan)) is None


def test_the_validator_is_strict_with_what_a_human_wrote_and_reads_in_order() -> None:
    folder = "/etc/nova/nova.conf.d"
    plan = planned(
        "nova_compute",
        "",
        source(folder, "02-nova-override.conf", layer=Layer.OVERRIDE),
        source(folder, "01-nova.conf"),
        source("/etc/nova", "nova.conf"),
        source("/etc/ceph", "ceph.conf", b"not oslo.config"),
    )
    found = parcel(plan, bundle(plan))
    assert found is not None
    assert found.validation is not None
    words = found.validation.command
    assert words[3:] == (
        "/etc/nova/nova.conf",
        f"{folder}/01-nova.conf",
        "--strict",
        f"{folder}/02-nova-override.conf",
    )
    assert set(found.validation.mounts) == {
        "files/etc/nova/nova.conf",
        "conf.d/01-nova.conf",
        "conf.d/02-nova-override.conf",
    }


def test_a_compute_keeps_its_cell_and_its_host() -> None:
    who = Identity("edpm-compute-0", None, "/var/lib/nova")
    compute = ServicePlan("nova_compute", cell="nova-cell1", identity=who, image=planned("libvirt").image)
    libvirt = ServicePlan("libvirt", cell="nova-cell1", image=compute.image)
    found = [parcel(plan, bundle(plan)) for plan in (compute, libvirt)]
    assert [one.guards if one else None for one in found] == [{"cell": "nova-cell1", "host": "edpm-compute-0"}, {}]


def test_a_file_from_the_cluster_replaces_that_of_the_definition() -> None:
    mine = source("/etc/libvirt", "libvirtd.conf", b'unix_sock_group = "mine"\n')
    files = {file.path: file for file in bundle(planned("libvirt", "", mine)).files}
    assert files["/etc/libvirt/libvirtd.conf"].content == mine.content
    assert files["/etc/libvirt/hooks/qemu"].origin == "definition of libvirt, file qemu"
    assert bundle(planned("libvirt", "", mine)).errors == ()


def test_the_hook_is_a_program_that_leaves_other_events_alone(tmp_path: Path) -> None:
    hook = tmp_path / "qemu"
    hook.write_text(QEMU_HOOK)
    for event in ("prepare", "stopped", "started"):
        run = subprocess.run(["sh", hook, "no-such-guest", event, "begin", "-"], capture_output=True, check=False)
        assert run.returncode == 0
