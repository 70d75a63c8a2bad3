# SPDX-License-Identifier: GPL-3.0-or-later
"""Tells the guests that run on this node, one to a line: QEMU's processes, whether libvirt answers or not.

The words are the state path of the plain nova-compute and the instance that is asked, none for the plain one: then only
those guests are told that are this instance's, or may be. Without words all are.
"""

from __future__ import annotations

import os
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


def named(words: list[bytes], plain: str) -> set[str]:
    """The instances whose state paths a process names: nova-compute gives its guests disks and volumes from there."""
    path = rb"(?<![\w./-])" + re.escape(os.fsencode(plain)) + rb"(?:-([a-z0-9-]+))?/"
    return {found.decode() for word in words for found in re.findall(path, word)}


def is_of(instance: str, words: list[bytes], plain: str) -> bool:
    """Whether a guest is this instance's, or nobody can say whose it is.

    nova-compute makes a folder for each of its guests, also for one whose disks lie elsewhere. The other instances'
    folders cannot be seen from here, so the plain instance has all guests that name none of those.
    """
    whose, uuid = named(words, plain), value(words, b"-uuid").decode(errors="replace")
    try:
        folders = {one.name for one in Path(f"{plain}-{instance}" if instance else plain, "instances").iterdir()}
    except OSError:
        return instance in whose or not whose
    return instance in whose or uuid in folders or (not whose and not (instance and uuid))


def main(asked: list[str], proc: Path = Path("/proc")) -> int:
    """The exit code."""
    for process in sorted((one for one in proc.iterdir() if one.name.isdigit()), key=lambda one: int(one.name)):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:  # it ended meanwhile
            continue
        told = guest(words)
        if told and (not asked or is_of("".join(asked[1:2]), words, asked[0])):
            print(told)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
