# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a program of a unit holds a TCP connection that is established: it reached what it works with.

A service that waits for its message bus or database runs as well, and does nothing. The node's kernel tells all of it,
so that nothing has to be started in a container.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from enum import Enum
from pathlib import Path

_ESTABLISHED = "01"
_FIRST_WORDS = 4


class Reach(Enum):
    """How far a program has come."""

    CONNECTED = "is connected"
    WAITS = "has no connection yet to what it works with"
    ABSENT = "does not run"


def reach(proc: Path, main: int, program: str) -> Reach:
    """How far the program has come among the processes of a unit, whose main one is `main`."""
    found = Reach.ABSENT
    for process in _family(proc, main):
        try:
            if _runs(process, program):
                found = Reach.WAITS
                if _sockets(process) & _established(process):
                    return Reach.CONNECTED
        except OSError:  # it ended meanwhile
            continue
    return found


def _family(proc: Path, main: int) -> Iterator[Path]:
    """A process and all below it: what a container starts is below its monitor, whatever namespaces it has."""
    children: defaultdict[str, list[str]] = defaultdict(list)
    for process in proc.iterdir():
        if process.name.isdigit():
            children[_parent(process)].append(process.name)
    found = [str(main)] if main else []
    while found:
        one = found.pop()
        found += children[one]
        yield proc / one


def _parent(process: Path) -> str:
    try:
        # The name of a program stands in brackets before it, and may hold anything.
        return (process / "stat").read_text(errors="replace").rpartition(")")[2].split()[1]
    except (OSError, IndexError):  # it ended meanwhile
        return ""


def _runs(process: Path, program: str) -> bool:
    # Some services give themselves a title, with the program's own words in brackets.
    words = re.split(rb"[\0\s()]+", (process / "cmdline").read_bytes())
    return program.encode() in {word.rpartition(b"/")[2] for word in words[:_FIRST_WORDS]}


def _sockets(process: Path) -> set[str]:
    """The sockets that it has open."""
    found: set[str] = set()
    for descriptor in (process / "fd").iterdir():
        with suppress(FileNotFoundError):  # it was closed meanwhile
            link = str(descriptor.readlink())
            if link.startswith("socket:["):
                found.add(link[len("socket:[") : -1])
    return found


def _established(process: Path) -> set[str]:
    """The sockets with a connection to somebody in the network that it lives in."""
    found: set[str] = set()
    for table in (process / "net/tcp", process / "net/tcp6"):
        lines = table.read_text().splitlines()[1:] if table.exists() else []
        found.update(words[9] for words in map(str.split, lines) if words[3] == _ESTABLISHED)
    return found
