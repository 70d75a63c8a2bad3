# SPDX-License-Identifier: GPL-3.0-or-later
"""The small service that these tests deploy."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.edpm.services.plugins.module_utils._node.bundle import Validation

from .programs import World

FIRST = {"01-nova.conf": b"[DEFAULT]\nvalue = one\n", "05-secret.conf": b"password = hunter2hunter2\n"}
SECOND = {**FIRST, "01-nova.conf": b"[DEFAULT]\nvalue = two\n"}
A, B, C, D = ("a" * 64, "b" * 64, "c" * 64, "d" * 64)
JUDGE = Validation(("oslo-config-validator",), {"conf.d": "/etc/nova/nova.conf.d"}, fatal=(2,))


def home(world: World) -> Path:
    return world.places.root / "nova_compute"


def generations(world: World) -> list[str]:
    return sorted(one.name for one in (home(world) / "generations").iterdir())


def live(world: World) -> str:
    return (home(world) / "current").readlink().name
