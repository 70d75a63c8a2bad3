# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the lab keeps things: what is built (the cache) and what runs (the labs), both outside the tree."""

from __future__ import annotations

import os
from pathlib import Path

#: tests/lab of the repository: recipes of images and of Go builds lie here.
SOURCE = Path(__file__).resolve().parents[1]


def cache() -> Path:
    """The folder of built things; EDPM_LAB_CACHE moves it."""
    return _folder("EDPM_LAB_CACHE", "XDG_CACHE_HOME", ".cache")


def labs() -> Path:
    """The folder with one folder for each lab that runs; EDPM_LAB_STATE moves it."""
    return _folder("EDPM_LAB_STATE", "XDG_STATE_HOME", ".local/state") / "labs"


def _folder(own: str, xdg: str, fallback: str) -> Path:
    if chosen := os.environ.get(own):
        return Path(chosen).absolute()
    base = os.environ.get(xdg)
    return (Path(base) if base else Path.home() / fallback) / "edpm-services"
