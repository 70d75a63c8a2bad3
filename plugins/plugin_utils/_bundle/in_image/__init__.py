# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that run in a service's image, as text to `python3 -c`. They use what is there: Python 3.9, oslo.config."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path


@lru_cache
def program(name: str, *words: str) -> tuple[str, ...]:
    """The command that runs one of them with these words."""
    return ("python3", "-c", text(name), *words)


@lru_cache
def text(name: str) -> str:
    """One of them, for those that are files."""
    return (Path(__file__).parent / f"{name}.py").read_text(encoding="utf-8")
