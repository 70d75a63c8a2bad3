# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ports as numbers: a firewall may join ranges that overlap, and a part of one may belong to somebody else."""

from __future__ import annotations

import re
from collections.abc import Iterable

Numbers = frozenset[tuple[str, int]]

_PORT = re.compile(r"(\w+) (\d+)(?:-(\d+))?")


def numbers(ports: Iterable[str]) -> Numbers:
    """Every single port of such as `tcp 5900-6923`; what names no number is none."""
    found = (_PORT.fullmatch(port) for port in ports)
    return frozenset(
        (one.group(1), number)
        for one in found
        if one
        for number in range(int(one.group(2)), int(one.group(3) or one.group(2)) + 1)
    )


def ranges(found: Numbers) -> list[str]:
    """The same in as few words as possible, in order."""
    told: list[tuple[str, int, int]] = []
    for kind, number in sorted(found):
        if told and told[-1][0] == kind and told[-1][2] == number - 1:
            told[-1] = (kind, told[-1][1], number)
        else:
            told.append((kind, number, number))
    return [f"{kind} {first}" if first == last else f"{kind} {first}-{last}" for kind, first, last in told]
