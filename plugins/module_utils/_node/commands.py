# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How programs are run. A test hands over a fake."""

from __future__ import annotations

import os
import selectors
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .errors import one_line

#: What a shell answers, too, when there is no such program.
NOT_FOUND = 127
#: Seconds until it is seen that a program has ended whose pipes are still open.
_LOOK_AGAIN = 0.5
_AT_ONCE = 1 << 16


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

    What the program leaves running may hold its pipes open, so its own end is waited for, not theirs.
    """
    environ = {**os.environ, "LC_ALL": "C.UTF-8", **environment}
    pipe = subprocess.PIPE
    try:
        with subprocess.Popen(list(argv), stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=environ) as process:
            out, err = _said(process)
    except OSError as error:
        return Result(NOT_FOUND, "", f"{argv[0]}: {error.strerror}")
    return Result(process.returncode, out, err)


def bounded(seconds: float, argv: Sequence[str]) -> Sequence[str]:
    """The same command, ended when it takes longer than this."""
    return ["timeout", "--kill-after=5", f"{max(1.0, seconds):.0f}", *argv]


def _said(process: subprocess.Popen[bytes]) -> list[str]:
    """What a program says on stdout and stderr until it ends."""
    said = {pipe: bytearray() for pipe in (process.stdout, process.stderr) if pipe}
    with selectors.DefaultSelector() as open_ones:
        for pipe, text in said.items():
            open_ones.register(pipe, selectors.EVENT_READ, text)
        while open_ones.get_map():
            ended = process.poll() is not None
            ready = open_ones.select(0 if ended else _LOOK_AGAIN)
            for key, _events in ready:
                part = os.read(key.fd, _AT_ONCE)
                key.data.extend(part)
                if not part:
                    open_ones.unregister(key.fileobj)
            if ended and not ready:
                break
    process.wait()
    return [text.decode("utf-8", "replace") for text in said.values()]
