# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading annotations: the Node's counts, else the Role's; two spellings of one thing must agree."""

from __future__ import annotations

from dataclasses import dataclass

from .model import Node, Role

ANSWERS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Said:
    """What an annotation says and where it stands; `value` is None where nothing is said."""

    value: str | None = None
    where: str = ""
    error: str | None = None


def said(node: Node, role: Role | None, names: tuple[str, ...]) -> Said:
    """The value of an annotation that may have several names, in the order of who counts."""
    for owner in (node, role):
        if owner is None:
            continue
        found = [(name, owner.meta.annotations[name].strip()) for name in names if name in owner.meta.annotations]
        if not found:
            continue
        name, value = found[0]
        where = f"{owner.meta.ref}, annotation {name}"
        other = next((other for other, against in found[1:] if against != value), None)
        if other is not None:
            return Said(where=where, error=f"{where}: says otherwise than {other}; keep one of the two.")
        return Said(value, where)
    return Said()


def answer(node: Node, role: Role | None, names: tuple[str, ...]) -> tuple[bool | None, Said]:
    """A "true" or "false" of an annotation; None where nothing is said or what is said is an error."""
    found = said(node, role, names)
    if found.value is None or found.error is not None:
        return None, found
    if found.value in ANSWERS:
        return ANSWERS[found.value], found
    return None, Said(found.value, found.where, f'{found.where}: is "{found.value}"; write "true" or "false".')
