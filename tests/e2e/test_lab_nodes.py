# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's nodes are machines and its service images are the services, shown before anything relies on it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from edpm_lab import command, images, labs, podman
from edpm_lab.errors import LabError
from edpm_lab.labs import Lab
from edpm_lab.nodes import Node, Nodes, default_names
from edpm_lab.prerequisites import architecture
from edpm_lab.quadlet import LIBVIRT, Unit, virsh

FIRST, SECOND = default_names(2)


NOVA, NEUTRON, CINDER = (
    "/etc/nova/nova.conf.d/01.conf",
    "/etc/neutron/conf.d/01.conf",
    "/etc/cinder/cinder.conf.d/01.conf",
)
QEMU = "qemu-system-" + {"amd64": "x86_64", "arm64": "aarch64"}[architecture()]

#: Programs of the service images, each run once, and what they say about themselves.
PROGRAMS = [
    (Unit("say-nova", "nova-compute", "nova", "nova-compute --version", NOVA), r"^31\.\d+\.\d+"),
    (Unit("say-qemu", "libvirt", "root", f"{QEMU} --version", "/etc/libvirt/qemu.conf"), r"QEMU emulator version 10"),
    (Unit("say-libvirt", "libvirt", "root", "libvirtd --version", LIBVIRT.configuration), r"\(libvirt\) 11\."),
    (
        Unit("say-metadata", "neutron", "neutron", "neutron-ovn-metadata-agent --version", NEUTRON),
        r"^neutron-ovn-metadata-agent 26\.",
    ),
    (
        Unit("say-sriov", "neutron", "neutron", "neutron-sriov-nic-agent --version", NEUTRON),
        r"^neutron-sriov-nic-agent 26\.",
    ),
    (Unit("say-cinder", "cinder-volume", "cinder", "cinder-volume --version", CINDER), r"^26\."),
]


@pytest.fixture(scope="module")
def nodes(lab: Lab) -> Nodes:
    images.build_all(["node", *images.SERVICES])
    nodes = Nodes(lab)
    nodes.up([FIRST, SECOND])
    return nodes


@pytest.fixture(scope="module")
def libvirt(nodes: Nodes) -> str:
    """libvirtd as a Quadlet unit on the first node that serves and that comes back with the node."""
    LIBVIRT.start(nodes, FIRST)
    return f"{LIBVIRT.name}.service"


@pytest.mark.parametrize(("unit", "says"), PROGRAMS, ids=[unit.name for unit, _ in PROGRAMS])
def test_each_service_answers_as_the_process_of_a_quadlet_unit(nodes: Nodes, unit: Unit, says: str) -> None:
    unit.start(nodes, FIRST)
    journal = unit.journal(nodes, FIRST)
    shown = nodes.ssh(FIRST, "systemctl", "show", "--property=Result,ExecMainStatus", f"{unit.name}.service").stdout
    assert set(shown.split()) == {"Result=success", "ExecMainStatus=0"}, journal
    assert re.search(says, journal, re.MULTILINE), journal
    assert f"Copying /var/lib/openstack/config/service.conf to {unit.configuration}" in journal


@pytest.mark.usefixtures("libvirt")
def test_libvirtd_serves_clients_and_finds_its_qemu(nodes: Nodes) -> None:
    answer = virsh(nodes, FIRST, "version")
    assert re.search(r"Running hypervisor: QEMU 10\.", answer), answer


def test_a_second_up_leaves_running_nodes_alone(nodes: Nodes) -> None:
    before = boot_id(nodes, FIRST), boot_id(nodes, SECOND)
    assert [node.name for node in nodes.up([FIRST, SECOND])] == [FIRST, SECOND]
    assert (boot_id(nodes, FIRST), boot_id(nodes, SECOND)) == before


def test_two_nodes_are_two_machines(nodes: Nodes) -> None:
    ask = (
        "cat",
        "/etc/machine-id",
        "/etc/ssh/ssh_host_ed25519_key.pub",
        "/sys/class/net/eth0/address",
        "/etc/hostname",
    )
    first, second = (nodes.ssh(name, *ask).stdout.split() for name in (FIRST, SECOND))
    assert not set(first) & set(second) - {"ssh-ed25519"}
    assert nodes.ssh(FIRST, "hostname").stdout.strip() == FIRST


def test_a_command_from_outside_is_as_one_over_ssh(nodes: Nodes) -> None:
    script = 'printf "%s\\n" "$1" "${container:-a machine}" "$HOME"; cat; id -u; exit 3'
    words = ("sh", "-c", script, "sh", """ "a" 'b' $HOME\\ """)
    over, outside = (way(FIRST, *words, stdin="given\n", check=False) for way in (nodes.ssh, nodes.execute))
    assert (outside.returncode, outside.stdout) == (over.returncode, over.stdout)
    assert outside.stdout.splitlines()[1:] == ["a machine", "/root", "given", "0"]
    assert nodes.execute(FIRST, "grep", "^0::", "/proc/self/cgroup").stdout.strip() == "0::/init.scope"
    with pytest.raises(LabError, match=f"-{FIRST}: sleep 9 did not end within 1 s"):
        nodes.execute(FIRST, "sleep", "9", timeout=1)


def test_a_reboot_brings_back_the_node_and_its_unit_and_changes_neither_address_nor_keys(
    nodes: Nodes, libvirt: str
) -> None:
    address, boot = the_node(nodes, FIRST).address, boot_id(nodes, FIRST)
    known_hosts = nodes.known_hosts.read_text()
    machine = nodes.ssh(FIRST, "cat", "/etc/machine-id").stdout
    nodes.reboot(FIRST)
    assert boot_id(nodes, FIRST) != boot
    assert the_node(nodes, FIRST).address == address
    assert nodes.known_hosts.read_text() == known_hosts
    assert nodes.ssh(FIRST, "cat", "/etc/machine-id").stdout == machine
    assert nodes.ssh(FIRST, "systemctl", "is-active", libvirt).stdout.strip() == "active"
    assert "Running hypervisor: QEMU" in virsh(nodes, FIRST, "version")


def test_a_node_that_loses_power_takes_no_other_with_it_and_starts_again(nodes: Nodes) -> None:
    other = boot_id(nodes, FIRST)
    nodes.kill(SECOND)
    assert the_node(nodes, SECOND).state == "exited"
    assert nodes.ssh(SECOND, "true", check=False, timeout=30).returncode == 255
    with pytest.raises(LabError, match="running"):
        nodes.execute(SECOND, "true")
    assert boot_id(nodes, FIRST) == other
    nodes.up([FIRST, SECOND])
    assert nodes.execute(SECOND, "hostname").stdout.strip() == SECOND
    assert nodes.ssh(SECOND, "systemctl", "is-system-running").stdout.strip() == "running"


def test_an_unknown_node_is_named_with_those_there_are(nodes: Nodes) -> None:
    with pytest.raises(LabError, match="has no node nowhere; there are: ") as told:
        nodes.ssh("nowhere", "true")
    assert {FIRST, SECOND} <= set(str(told.value).partition("there are: ")[2].split(", "))


def test_a_second_lab_has_its_own_network_and_leaves_nothing_behind(nodes: Nodes, lab: Lab) -> None:
    untouched = boot_id(nodes, FIRST)
    with labs.opened(f"{lab.name[:20]}-two") as second:
        others = Nodes(second)
        others.up([FIRST])
        assert podman.network(second.name).subnet != podman.network(lab.name).subnet
        assert boot_id(others, FIRST) != untouched
        traces = Traces.of(second)
        assert traces.left()
    assert traces.left() == []
    assert boot_id(nodes, FIRST) == untouched


def test_what_a_killed_run_left_is_removed_by_the_next_one(nodes: Nodes, lab: Lab) -> None:
    untouched = boot_id(nodes, FIRST)
    cut_off = Lab(f"{lab.name[:20]}-cut", lab.folder.with_name(f"{lab.name[:20]}-cut"), kept=False)
    with subprocess.Popen([sys.executable, "-c", RUN, cut_off.name, FIRST], stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"up\n"
        run.kill()
    traces = Traces.of(cut_off)
    assert traces.left()
    labs.sweep()
    assert traces.left() == []
    assert boot_id(nodes, FIRST) == untouched


RUN = """
import sys, time
from edpm_lab import labs, nodes
with labs.opened(sys.argv[1]) as lab:
    nodes.Nodes(lab).up([sys.argv[2]])
    print("up", flush=True)
    time.sleep(600)
"""


def boot_id(nodes: Nodes, name: str) -> str:
    return nodes.ssh(name, "cat", "/proc/sys/kernel/random/boot_id").stdout.strip()


def the_node(nodes: Nodes, name: str) -> Node:
    return next(node for node in nodes.list() if node.name == name)


def link_number(name: str) -> str:
    """Empty where there is none; another lab may have a link of that name by now."""
    try:
        return Path(f"/sys/class/net/{name}/ifindex").read_text().strip()
    except FileNotFoundError:
        return ""


@dataclass(frozen=True)
class Traces:
    """What a lab with nodes leaves on the host while it runs, and must not leave afterwards."""

    lab: Lab
    containers: tuple[str, ...]
    volumes: tuple[str, ...]
    #: By name, the number that no other link of that name has.
    links: dict[str, str]
    namespaces: tuple[str, ...]
    subnet: str

    @classmethod
    def of(cls, lab: Lab) -> Traces:
        listed = podman.run("ps", "--all", "--quiet", "--no-trunc", "--filter", f"label=edpm.lab={lab.name}")
        containers = listed.stdout.split()
        found = json.loads(podman.run("inspect", *containers).stdout)
        network = json.loads(podman.run("network", "inspect", podman.network(lab.name).name).stdout)[0]
        bridge = network["network_interface"]
        ports = json.loads(command.run(["ip", "-json", "link", "show", "master", bridge]).stdout)
        return cls(
            lab,
            tuple(containers),
            tuple(mount["Name"] for each in found for mount in each["Mounts"] if mount["Type"] == "volume"),
            {name: link_number(name) for name in (bridge, *(port["ifname"] for port in ports))},
            tuple(str(Path(f"/proc/{each['State']['Pid']}/ns/pid").readlink()) for each in found),
            str(podman.network(lab.name).subnet),
        )

    def left(self) -> list[str]:
        return [
            *(f"folder {self.lab.folder}" for _ in range(self.lab.folder.exists())),
            *self._in_podman(),
            *(f"link {name}" for name, number in self.links.items() if link_number(name) == number),
            *(f"process {process}" for process in self._processes()),
            *(f"mount {line}" for line in Path("/proc/self/mountinfo").read_text().splitlines() if self._names(line)),
            *(f"cgroup {path}" for path in Path("/sys/fs/cgroup").rglob("libpod-*") if self._names(path.name)),
            *(f"rule {line}" for line in command.run(["iptables-save"]).stdout.splitlines() if self.subnet in line),
        ]

    def _names(self, text: str) -> bool:
        return any(container in text for container in self.containers)

    def _in_podman(self) -> Iterator[str]:
        for kind, name in [
            *(("container", name) for name in self.containers),
            *(("volume", name) for name in self.volumes),
            ("network", f"edpm-{self.lab.name}"),
        ]:
            if podman.run(kind, "exists", name, check=False).returncode == 0:
                yield f"{kind} {name}"

    def _processes(self) -> Iterator[str]:
        """Those inside the lab's containers, and those on the host that look after them."""
        for process in Path("/proc").glob("[0-9]*"):
            try:
                namespace = str((process / "ns/pid").readlink())
                line = (process / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
            if namespace in self.namespaces or self._names(line):
                yield f"{process.name} {line}"
