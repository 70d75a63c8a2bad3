# SPDX-License-Identifier: GPL-3.0-or-later
"""The demo shows what it can on any host, and says in one sentence why it leaves the rest out."""

from __future__ import annotations

import pytest
from edpm_lab import demo, labs, prerequisites


def test_without_root_the_demo_shows_the_data_plane_and_says_why_it_stops_there(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(prerequisites, "is_root", lambda: False)
    monkeypatch.setenv("USER", "someone")

    assert demo.show("manifests") == 0

    shown = capfd.readouterr().out
    assert "edpm-compute-1" in shown
    assert "nova-cell2" in shown
    assert shown.count("The part on nodes was left out: ") == 1
    assert "needs root, and this is the user someone." in shown
    assert labs.names() == []
