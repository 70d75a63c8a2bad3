# SPDX-License-Identifier: GPL-3.0-or-later
"""Where unit tests have their files: they bring thousands of them to the disk, which in memory costs nothing."""

from __future__ import annotations

import os
from pathlib import Path

_MEMORY = Path("/dev/shm")


def pytest_configure() -> None:
    """Have them in memory, where the host offers that and nobody wants them elsewhere."""
    if os.access(_MEMORY, os.W_OK):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))
