# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One run at a time on a node. The lock dies with its process, whatever kills that."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import Busy, disk_faults

_PAUSE = 0.2


@contextmanager
def held(path: Path, patience: float, sleep: Callable[[float], None], now: Callable[[], float]) -> Iterator[None]:
    """Hold the node's lock; wait for it as long as `patience` says, then tell who has it."""
    with disk_faults(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        _wait(number, path, now() + patience, sleep, now)
        os.ftruncate(number, 0)
        os.pwrite(number, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(number)


def _wait(number: int, path: Path, end: float, sleep: Callable[[float], None], now: Callable[[], float]) -> None:
    while True:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if now() >= end:
                owner = os.pread(number, 32, 0).decode("ascii", "replace") or "unknown"
                raise Busy(
                    f"Another run works on this node: process {owner} holds {path}; wait until it is done, or give "
                    "lock_timeout more seconds. Nothing was touched."
                ) from None
        sleep(_PAUSE)
