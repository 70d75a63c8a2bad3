# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables for people: columns as wide as their widest cell."""

from __future__ import annotations

from collections.abc import Sequence


def text(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A heading and rows as lines of aligned columns."""
    lines = [heading, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heading))]
    return "\n".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
