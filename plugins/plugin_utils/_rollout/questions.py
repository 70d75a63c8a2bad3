# SPDX-License-Identifier: GPL-3.0-or-later
"""What the node's half is asked to do with a bundle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...module_utils._node import bundle as node
from ...module_utils._node.travel import written
from .._report.near import NotThereError


class NotDeployableError(NotThereError):
    """Something keeps the service off the node; the text says what."""


def question(wanted: node.Bundle | None, state: str, passed: Mapping[str, Any]) -> dict[str, Any]:
    """The options of the node's half that carry a bundle."""
    if wanted is None:
        raise NotDeployableError("There is nothing to deploy; name an image and a definition.")
    return {**passed, "bundle": written(wanted), **({"state": state} if state != "present" else {})}
