# SPDX-License-Identifier: GPL-3.0-or-later
"""A node in a folder, whose disk need not be waited for."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import Bundle

from .fakes import bundle_of, deploy, world_in
from .programs import World
from .samples import FIRST, A


@pytest.fixture(autouse=True)
def _no_waiting_for_the_platter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _number: None)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return world_in(tmp_path)


@pytest.fixture
def deployed(world: World) -> Bundle:
    made = bundle_of(world, A, FIRST)
    deploy(world, made)
    world.calls.clear()
    return made


@pytest.fixture
def debian(world: World) -> World:
    world.places.etc.mkdir(exist_ok=True)
    (world.places.etc / "os-release").write_text('PRETTY_NAME="x"\nID=ubuntu\nID_LIKE=debian\n')
    return world
