# SPDX-License-Identifier: GPL-3.0-or-later
"""A service that is as it should be and not healthy: how long it is waited for, and what is done then."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node import connections
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import Bundle, Folder, Health, LiveFile
from ansible_collections.edpm.services.plugins.module_utils._node.connections import Reach
from ansible_collections.edpm.services.plugins.module_utils._node.errors import Failed

from .fakes import bundle_of, deploy, told
from .programs import World
from .samples import FIRST, SECOND, A, B, live

PATIENCE = 20


class Bus:
    """What the service works with: gone from a moment on, and back after some seconds."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.back, self.else_ = 0.0, Reach.WAITS

    def goes(self, *, seconds: float = 1e9, so_that: Reach = Reach.WAITS) -> None:
        self.back, self.else_ = self.world.seconds + seconds, so_that

    def __call__(self, _proc: Path, _main: int, _program: str) -> Reach:
        return Reach.CONNECTED if self.world.seconds >= self.back else self.else_


@pytest.fixture
def bus(world: World, monkeypatch: pytest.MonkeyPatch) -> Bus:
    made = Bus(world)
    monkeypatch.setattr(connections, "reach", made)
    return made


def agent(world: World, **others: object) -> Bundle:
    return bundle_of(world, A, FIRST, health=Health(connected="agent", settle=1, timeout=PATIENCE), **others)


@pytest.fixture
def running(world: World, bus: Bus) -> Bus:
    deploy(world, agent(world))
    world.calls.clear()
    return bus


def test_a_service_that_is_not_healthy_for_a_moment_is_waited_for(world: World, running: Bus) -> None:
    running.goes(seconds=5)
    outcome = deploy(world, agent(world))
    assert (outcome.changes.any, outcome.restarted, world.done("restart")) == (False, False, [])


def test_a_service_that_lacks_only_its_bus_is_told_and_not_restarted(world: World, running: Bus) -> None:
    running.goes()
    before = world.seconds
    with pytest.raises(Failed) as caught:
        deploy(world, agent(world))
    assert str(caught.value) == (
        "nova_compute aaaaaaa is as it should be and not healthy: edpm_nova_compute.service is up, and its health "
        "check fails (agent has no connection yet to what it works with) within 20 s; see to what it works with, such "
        "as its message bus. It was not restarted, which would not help."
    )
    assert (world.done("restart"), caught.value.rolled_back) == ([], False)
    assert world.seconds - before >= PATIENCE
    assert "has no connection yet" in told(world)["fault"]


def test_what_else_is_to_be_done_is_done_all_the_same(world: World, running: Bus, tmp_path: Path) -> None:
    running.goes()
    folder = tmp_path / "state"
    with pytest.raises(Failed, match="is as it should be and not healthy"):
        deploy(world, agent(world, folders=(Folder(str(folder)),)))
    assert folder.is_dir()
    assert world.done("restart") == []


def certificate(tmp_path: Path, text: bytes) -> dict[str, object]:
    return {"live": (LiveFile(str(tmp_path / "tls.crt"), text),), "reload": ("kill", "-HUP", "1")}


@pytest.fixture
def with_certificate(world: World, bus: Bus, tmp_path: Path) -> Bus:
    deploy(world, agent(world, **certificate(tmp_path, b"old")))
    world.calls.clear()
    return bus


def test_a_renewed_certificate_is_not_blamed_for_a_bus_that_is_gone(
    world: World, with_certificate: Bus, tmp_path: Path
) -> None:
    with_certificate.goes()
    renewed = agent(world, **certificate(tmp_path, b"new"))
    with pytest.raises(Failed, match="is as it should be and not healthy") as caught:
        deploy(world, renewed)
    assert caught.value.changed
    with pytest.raises(Failed) as again:
        deploy(world, renewed)
    assert not again.value.changed, "it has read the file"


def test_a_renewed_certificate_may_be_all_that_it_lacked(world: World, with_certificate: Bus, tmp_path: Path) -> None:
    with_certificate.goes(seconds=PATIENCE + 5)
    outcome = deploy(world, agent(world, **certificate(tmp_path, b"new")))
    assert (outcome.reloaded, outcome.changes.waits, world.done("restart")) == (True, "", [])


def test_a_service_that_does_not_do_its_work_by_itself_is_restarted_after_its_time(world: World, running: Bus) -> None:
    running.goes(seconds=PATIENCE + 1, so_that=Reach.ABSENT)
    outcome = deploy(world, agent(world))
    assert outcome.changes.unhealthy.endswith("its health check fails (agent does not run) within 20 s")
    assert len(world.done("restart")) == 1


def test_check_mode_waits_for_nothing_and_tells(world: World, running: Bus) -> None:
    running.goes()
    before = world.seconds
    result = deploy(world, agent(world), check=True).result(check=True)
    assert (result["changed"], world.seconds) == (False, before)
    assert "has no connection yet" in result["unhealthy"]
    assert result["msg"] == "nova_compute aaaaaaa is live, nothing to do."
    assert [warning.partition(":")[0] for warning in result["warnings"]] == [
        "nova_compute aaaaaaa is as it should be and not healthy"
    ]


def test_a_new_generation_that_gets_no_connection_goes_back(world: World, running: Bus) -> None:
    running.goes(seconds=PATIENCE + 5)
    health = Health(connected="agent", settle=1, timeout=PATIENCE)
    with pytest.raises(Failed, match="generation aaaaaaa runs again as before"):
        deploy(world, bundle_of(world, B, SECOND, health=health))
    assert live(world) == A
