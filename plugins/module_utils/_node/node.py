# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A node as this collection sees it: its disk, its systemd, its podman, its clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from .accounts import Accounts
from .commands import Run
from .disk import Disk
from .podman import Podman
from .record import Places
from .systemd import Systemd


@dataclass(frozen=True)
class Clock:
    """Time that no one sets back."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True)
class Node:
    """All ways out of this code."""

    places: Places
    disk: Disk
    run: Run
    systemd: Systemd
    podman: Podman
    accounts: Accounts
    clock: Clock


def real_node(run: Run, places: Places) -> Node:
    """The node on which this runs."""
    disk = Disk()
    return Node(places, disk, run, Systemd(run), Podman(run, disk, places.scratch), Accounts(run), Clock())
