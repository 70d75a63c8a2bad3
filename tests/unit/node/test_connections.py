# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a program of a unit has reached what it works with, by a /proc made for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import Health
from ansible_collections.edpm.services.plugins.module_utils._node.connections import Reach, reach
from ansible_collections.edpm.services.plugins.module_utils._node.facts import facts

from .fakes import bundle_of, deploy, node_of
from .programs import World
from .samples import FIRST, A

ROW = "   0: 0100007F:1F90 0100007F:9C40 {state} 00000000:00000000 00:00000000 00000000  1000        0 {inode} 1 0\n"
MONITOR, INIT, SERVICE = 40, 41, 42


class Proc:
    """Processes of one's own: the monitor of a container, what it started, and the service below that."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(exist_ok=True)
        (root / "self").mkdir()
        self.runs(1, "/sbin/init", below=0)
        self.runs(MONITOR, "/usr/bin/conmon\0--api-version\0001\0-c\0id\0-n\0nova-compute", below=1)
        self.runs(INIT, "dumb-init\0--\0kolla_start", below=MONITOR)

    def runs(self, number: int, words: str, below: int = INIT, state: str = "0A") -> None:
        folder = self.root / str(number)
        (folder / "fd").mkdir(parents=True)
        (folder / "fd/3").symlink_to(f"socket:[{number}]")
        (folder / "net").mkdir()
        (folder / "cmdline").write_bytes(words.encode())
        (folder / "stat").write_text(f"{number} (a ) b) S {below} 1 1 0\n")
        (folder / "net/tcp").write_text("heading\n" + ROW.format(state=state, inode=number))


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    return Proc(tmp_path / "proc")


@pytest.mark.parametrize(
    "words",
    [
        "/usr/bin/python3\0/usr/bin/nova-compute\0",
        "nova-compute\0--config-dir\0/etc/nova",
        "nova-compute (/usr/bin/python3 /usr/bin/nova-compute)",
    ],
)
def test_a_service_with_a_connection_does_its_work(proc: Proc, words: str) -> None:
    proc.runs(SERVICE, words, state="01")
    assert reach(proc.root, MONITOR, "nova-compute") is Reach.CONNECTED


def test_a_descriptor_that_is_closed_meanwhile_hides_nothing(proc: Proc, monkeypatch: pytest.MonkeyPatch) -> None:
    proc.runs(SERVICE, "/usr/bin/python3\0/usr/bin/nova-compute\0", state="01")
    real = Path.iterdir

    def iterdir(folder: Path) -> Iterator[Path]:
        if folder.name == "fd":
            yield folder / "99"
        yield from real(folder)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    assert reach(proc.root, MONITOR, "nova-compute") is Reach.CONNECTED


def test_a_service_that_only_listens_does_not(proc: Proc) -> None:
    proc.runs(SERVICE, "/usr/bin/nova-compute\0")
    assert reach(proc.root, MONITOR, "nova-compute") is Reach.WAITS


def test_the_connection_of_another_process_does_not_count(proc: Proc) -> None:
    proc.runs(SERVICE, "/usr/bin/nova-compute\0")
    table = proc.root / str(SERVICE) / "net/tcp"
    table.write_text("heading\n" + ROW.format(state="01", inode=4711))
    assert reach(proc.root, MONITOR, "nova-compute") is Reach.WAITS


def test_a_service_in_another_container_does_not_count(proc: Proc) -> None:
    proc.runs(SERVICE, "/usr/bin/nova-compute\0", below=1, state="01")
    proc.runs(43, "/usr/bin/python3\0-c\0# text\0x\0nova-compute\0", state="01")
    (proc.root / "44").mkdir()
    assert reach(proc.root, MONITOR, "nova-compute") is Reach.ABSENT
    assert reach(proc.root, 0, "nova-compute") is Reach.ABSENT
    assert reach(proc.root, 4711, "nova-compute") is Reach.ABSENT


def test_a_service_that_waits_for_its_bus_is_not_healthy_and_nothing_is_started_to_find_out(world: World) -> None:
    proc = Proc(world.places.proc)
    world.main = MONITOR
    proc.runs(SERVICE, "/usr/bin/nova-compute\0", state="01")
    deploy(world, bundle_of(world, A, FIRST, health=Health(connected="nova-compute", settle=0, timeout=5)))
    world.calls.clear()
    assert facts(node_of(world), ask=True)["nova_compute"]["healthy"]
    (proc.root / str(SERVICE) / "net/tcp").write_text("heading\n")
    assert facts(node_of(world), ask=True)["nova_compute"]["fault"] == (
        "edpm_nova_compute.service is up, and its health check fails "
        "(nova-compute has no connection yet to what it works with)"
    )
    assert {call[0] for call in world.calls} == {"systemctl"}
