# SPDX-License-Identifier: GPL-3.0-or-later
"""Tells the guests that run on this node, one to a line: QEMU's processes, whether libvirt answers or not."""

from __future__ import annotations

import re
import sys
from pathlib import Path

_NAME = re.compile(rb"(?:^|,)guest=((?:[^,]|,,)+)")


def value(words: list[bytes], option: bytes) -> bytes:
    """What comes after an option, empty when it is not there."""
    at = words.index(option) + 1 if option in words else len(words)
    return b"".join(words[at : at + 1])


def guest(words: list[bytes]) -> str:
    """The guest that a process is, empty when it is none. QEMU doubles a comma within a name."""
    found = _NAME.search(value(words, b"-name"))
    if found is None:
        return ""
    name = found.group(1).replace(b",,", b",").decode(errors="replace")
    return f"guest {name} ({value(words, b'-uuid').decode(errors='replace')})"


def main(proc: Path = Path("/proc")) -> int:
    """The exit code."""
    for process in sorted((one for one in proc.iterdir() if one.name.isdigit()), key=lambda one: int(one.name)):
        try:
            told = guest((process / "cmdline").read_bytes().split(b"\0"))
        except OSError:  # it ended meanwhile
            continue
        if told:
            print(told)
    return 0


if __name__ == "__main__":
    sys.exit(main())
