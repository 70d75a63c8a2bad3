# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How programs are run. A test hands over a fake."""

from __future__ import annotations

import os
import subprocess
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


def run(argv: Sequence[str], environment: Mapping[str, str]) -> Result:
    """The node's own way; words are never read by a shell.

    What the program says is kept in memory, not read from a pipe: something that it leaves running may hold that open.
    """
    out, err = (os.memfd_create("said") for _each in range(2))
    try:
        environ = {**os.environ, "LC_ALL": "C.UTF-8", **environment}
        done = subprocess.run(list(argv), stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environ, check=False)
        return Result(done.returncode, _said(out), _said(err))
    except OSError as error:
        return Result(NOT_FOUND, "", f"{argv[0]}: {error.strerror}")
    finally:
        os.close(out)
        os.close(err)


def bounded(seconds: float, argv: Sequence[str]) -> Sequence[str]:
    """The same command, ended when it takes longer than this."""
    return ["timeout", "--kill-after=5", f"{max(1.0, seconds):.0f}", *argv]


def _said(descriptor: int) -> str:
    os.lseek(descriptor, 0, os.SEEK_SET)
    with open(descriptor, encoding="utf-8", errors="replace", closefd=False) as kept:
        return kept.read()
