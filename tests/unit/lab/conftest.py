# SPDX-License-Identifier: GPL-3.0-or-later
"""A cache and a state folder of the test's own, so that no real lab is seen or touched."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EDPM_LAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("EDPM_LAB_STATE", str(tmp_path / "state"))
    return tmp_path
