from __future__ import annotations

from collections.abc import Iterator

import pytest

from .api import Api


@pytest.fixture
def api() -> Iterator[Api]:
    server = Api()
    yield server
    server.close()
