# SPDX-License-Identifier: GPL-3.0-or-later
"""A name that is not there, and those that were perhaps meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class NotThereError(Exception):
    """Somebody asks for a node, a service, a file or an option that is not there; the text says what is."""


def did_you_mean(name: str, known: Iterable[str], things: str) -> str:
    """The end of a sentence about an unknown name."""
    names = list(known)
    folded = {one.casefold() for one in names}
    close = get_close_matches(name.casefold(), folded, n=3, cutoff=0.75)
    near = [one for one in names if one.casefold() in close]
    if near:
        *first, last = near
        return f"did you mean {', '.join(first)}{' or ' if first else ''}{last}?"
    return f"its {things} are {listed(names, most=5)}." if names else f"there are no {things}."


def listed(names: Iterable[str], most: int = 3) -> str:
    """The first of the names, and how many others there are."""
    known = list(names)
    others = len(known) - most
    if others <= 0:
        return ", ".join(known)
    return f"{', '.join(known[:most])} and {others} other{'s' if others > 1 else ''}"
