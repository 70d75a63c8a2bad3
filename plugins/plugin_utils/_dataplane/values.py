# SPDX-License-Identifier: GPL-3.0-or-later
"""What YAML and JSON can say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Value: TypeAlias = bool | int | float | str | Sequence["Value"] | Mapping[str, "Value"] | None
Variables: TypeAlias = Mapping[str, Value]
