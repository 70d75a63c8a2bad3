# SPDX-License-Identifier: GPL-3.0-or-later
"""Sentences for people. What resources say is quoted in them, so nothing in it may break a line or a terminal."""

from __future__ import annotations

from collections.abc import Iterable


def told(sentences: Iterable[str]) -> tuple[str, ...]:
    """The sentences, each once and each on one line."""
    return tuple(dict.fromkeys(one_line(sentence) for sentence in sentences))


def one_line(text: str) -> str:
    """The text with what cannot be printed written out, as in Python's own quoting."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)
