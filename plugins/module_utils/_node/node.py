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
from .firewall import Firewall
from .labels import Labels
from .packages import Packages
from .podman import Podman
from .record import Places
from .systemd import Systemd


@dataclass(frozen=True)
class Clock:
    """Time that no one sets back, and the date as the node has it."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    date: Callable[[], float] = time.time


@dataclass(frozen=True)
class Node:
    """All ways out of this code."""

    places: Places
    disk: Disk
    run: Run
    systemd: Systemd
    podman: Podman
    accounts: Accounts
    packages: Packages
    firewall: Firewall
    labels: Labels
    clock: Clock


def real_node(run: Run, places: Places) -> Node:
    """The node on which this runs."""
    disk, systemd, labels = Disk(), Systemd(run), Labels(run, places.kernel)
    return Node(
        places=places,
        disk=disk,
        run=run,
        systemd=systemd,
        podman=Podman(run, disk, places.scratch, places.podman),
        accounts=Accounts(run),
        packages=Packages(run, places.etc),
        firewall=Firewall(run, disk, systemd, labels, places),
        labels=labels,
        clock=Clock(),
    )
