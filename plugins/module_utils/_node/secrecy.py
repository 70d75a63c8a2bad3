# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keep secrets out of what is shown: programs quote lines of the files that they complain about."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Union

from .bundle import File, LiveFile

#: Whatever may hold secrets.
Source = Union[File, LiveFile]
MASK = "********"
#: Shorter ones are ordinary words more often than secrets.
_SHORTEST = 8


def scrubbed(text: str, files: Iterable[Source]) -> str:
    """The text without anything that stands in a secret file."""
    for word in sorted(_secrets(files), key=len, reverse=True):
        text = text.replace(word, MASK)
    return text


def shown(content: bytes | None, secret: bool, when: str) -> str:
    """A file's content for a person, empty where there is none."""
    if content is None:
        return ""
    if secret:
        return f"(secret, {when})\n"
    try:
        return content.decode()
    except UnicodeDecodeError:
        return f"({len(content)} bytes that are no text, {when})\n"


def _secrets(files: Iterable[Source]) -> set[str]:
    found = set()
    for file in files:
        if file.secret:
            for line in file.content.decode("utf-8", "ignore").splitlines():
                value = line.partition("=")[2]
                found |= {part.strip() for part in (line, value, *re.findall(r"://[^:/@\s]*:([^@\s]+)@", line))}
    return {word for word in found if len(word) >= _SHORTEST}
