# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How programs are run. A module hands over its own way of doing that; a test hands over a fake."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .errors import one_line

#: What a shell answers, too, when there is no such program.
NOT_FOUND = 127


@dataclass(frozen=True)
class Result:
    """What a program answered."""

    rc: int
    out: str = ""
    err: str = ""

    @property
    def ok(self) -> bool:
        """Whether it ended well."""
        return self.rc == 0

    @property
    def said(self) -> str:
        """What it had to say about its failure, on one line."""
        return one_line(self.err.strip() or self.out.strip()) or f"exit code {self.rc}"


#: Runs a program to its end, with additions to its environment; a program that is not there answers NOT_FOUND.
Run = Callable[[Sequence[str], Mapping[str, str]], Result]


def bounded(seconds: float, argv: Sequence[str]) -> Sequence[str]:
    """The same command, ended when it takes longer than this."""
    return ["timeout", "--kill-after=5", f"{max(1.0, seconds):.0f}", *argv]
