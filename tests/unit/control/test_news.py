# SPDX-License-Identifier: GPL-3.0-or-later
"""What a list that is repeated tells."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._watch.news import Memory

BEGUN = datetime(2026, 11, 1, 8, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("created", "what"), [("2026-11-01T07:59:59Z", "listed"), ("2026-11-01T08:00:05Z", "added"), (None, "listed")]
)
def test_what_came_while_nobody_listened_was_added(created: str | None, what: str) -> None:
    meta = {"name": "one", "namespace": "openstack", "uid": "1", "creationTimestamp": created}
    change = Memory(BEGUN).change(None, {"apiVersion": "v1", "kind": "Thing", "metadata": meta})
    assert change is not None
    assert change.what == what
