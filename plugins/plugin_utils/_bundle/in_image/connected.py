# SPDX-License-Identifier: GPL-3.0-or-later
"""Succeeds when a program of this container holds a TCP connection that is established: it reached what it works with.

A service that waits for its message bus or database runs as well, and does nothing.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

_ESTABLISHED = "01"
_FIRST_WORDS = 4


def established(proc: Path) -> set[str]:
    """The sockets with a connection to somebody."""
    found: set[str] = set()
    for table in ("tcp", "tcp6"):
        lines = (proc / "net" / table).read_text().splitlines()[1:] if (proc / "net" / table).exists() else []
        found.update(words[9] for words in map(str.split, lines) if words[3] == _ESTABLISHED)
    return found


def sockets(process: Path) -> set[str]:
    """The sockets that a process has open."""
    links = (str(descriptor.readlink()) for descriptor in (process / "fd").iterdir())
    return {link[len("socket:[") : -1] for link in links if link.startswith("socket:[")}


def is_meant(process: Path, program: str, container: Path) -> bool:
    """Whether it is the program, and in this container: a container may see all processes of its node."""
    # Some services give themselves a title, with the program's own words in brackets.
    words = re.split(rb"[\0\s()]+", (process / "cmdline").read_bytes())
    names = {word.rpartition(b"/")[2] for word in words[:_FIRST_WORDS]}
    return program.encode() in names and (process / "ns/mnt").readlink() == container


def main(program: str, proc: Path = Path("/proc")) -> int:
    """The exit code."""
    container, connections, seen = (proc / "self/ns/mnt").readlink(), established(proc), False
    for process in proc.iterdir():
        try:
            if process.name.isdigit() and is_meant(process, program, container):
                seen = True
                if sockets(process) & connections:
                    return 0
        except OSError:  # it ended meanwhile, or is somebody else's
            continue
    print(f"{program} {'has no connection yet to what it works with' if seen else 'does not run'}")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
