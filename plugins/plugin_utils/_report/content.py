# SPDX-License-Identifier: GPL-3.0-or-later
"""A file's content as it may be shown, line by line as oslo.config counts lines."""

from __future__ import annotations

import re
from functools import lru_cache

from .._config.masking import masked_file
from .._config.sources import Source

_LINE_END = re.compile(r"\r\n|\r|\n")


# Thousands of nodes share one Secret; its text is masked once.
@lru_cache(maxsize=512)
def shown_lines(source: Source) -> tuple[str, ...]:
    """The masked lines without their ends; of what is no text only its size."""
    try:
        text = masked_file(source).decode()
    except UnicodeDecodeError:
        return (f"({len(source.content)} bytes that are no text)",)
    lines = _LINE_END.split(text)
    return tuple(lines[:-1] if not lines[-1] else lines)
