# SPDX-License-Identifier: GPL-3.0-or-later
"""libvirt's container on a node where libvirt can ask systemd-machined to take its guests.

libvirt asks it only where the node's control groups have a controller. Nodes of the lab have none unless one is lent to
them: hugetlb, which nothing else of the host uses.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from edpm_lab.errors import NotOnThisHost
from edpm_lab.labs import Lab
from edpm_lab.nodes import Nodes

from .machine import GUEST, Machine, planned

_UNIFIED = Path("/sys/fs/cgroup/unified")
_CONTROLLER = "hugetlb"


@pytest.fixture(scope="module")
def cgroup(lab: Lab) -> Iterator[str]:
    """A control group of the host with a controller that its children may use."""
    root = _UNIFIED if _UNIFIED.is_dir() else _UNIFIED.parent
    if _CONTROLLER not in (root / "cgroup.controllers").read_text().split():
        raise NotOnThisHost(f"the host's control groups have no {_CONTROLLER} that could be lent to a node")
    lent = _CONTROLLER not in (root / "cgroup.subtree_control").read_text().split()
    folder = root / f"edpm-{lab.name}"
    (root / "cgroup.subtree_control").write_text(f"+{_CONTROLLER}")
    folder.mkdir(exist_ok=True)
    (folder / "cgroup.subtree_control").write_text(f"+{_CONTROLLER}")
    yield f"/{folder.name}"
    for _ in range(50):
        with suppress(OSError):
            for inner in sorted(folder.rglob("*/"), reverse=True):
                inner.rmdir()
            folder.rmdir()
            break
        time.sleep(0.2)
    if lent:
        with suppress(OSError):
            (root / "cgroup.subtree_control").write_text(f"-{_CONTROLLER}")


@pytest.fixture(scope="module")
def machine(lab: Lab, cgroup: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    nodes = Nodes(lab, cgroup=cgroup)
    nodes.up(["edpm-machined-0"])
    yield Machine(nodes, "edpm-machined-0", tmp_path_factory.mktemp("machined"))
    nodes.kill("edpm-machined-0")


def test_a_guest_is_machineds_and_survives_a_restart_of_libvirt(machine: Machine) -> None:
    assert _CONTROLLER in machine.sh("cat /sys/fs/cgroup/cgroup.controllers")
    machine.brought(planned("libvirt"))
    machine.put("/var/lib/libvirt/guest.xml", GUEST)
    machine.sh("podman exec edpm_libvirt virsh create --paused /var/lib/libvirt/guest.xml")
    guest = machine.sh("pgrep -f '[g]uest=guest'")
    assert "guest" in machine.sh("machinectl list --no-legend")
    assert "machine.slice/machine-qemu" in machine.sh(f"cat /proc/{guest}/cgroup")
    begin = time.monotonic()
    machine.sh("timeout 30 systemctl restart edpm_libvirt.service")
    machine.until("podman exec edpm_libvirt virsh list --all --name | grep -qx guest")
    print(f"libvirt (machined) answers {time.monotonic() - begin:.1f} s after its restart began")
    assert machine.sh("pgrep -f '[g]uest=guest'") == guest
    machine.sh("podman exec edpm_libvirt virsh destroy guest")
