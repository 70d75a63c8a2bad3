# SPDX-License-Identifier: GPL-3.0-or-later
"""The names that the machines of a lab have for each other: one file that is /etc/hosts in all of them.

It is mounted, so it is written in place: a new file of the same name would not be seen by those that run.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from pathlib import Path

from .labs import Lab

_OWN = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"


def mounted(lab: Lab) -> list[str]:
    """Arguments that give a container the names of its lab."""
    remember(lab, {})
    return ["--no-hosts", "--volume", f"{_file(lab)}:/etc/hosts"]


def remember(lab: Lab, addresses: Mapping[str, str]) -> None:
    """Let every machine of the lab find these names from now on, also those that run already."""
    handle = os.open(_file(lab), os.O_RDWR | os.O_CREAT, 0o644)
    with os.fdopen(handle, "r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        known = _addresses(file.read())
        lines = [f"{address} {name}\n" for name, address in sorted({**known, **addresses}.items())]
        file.seek(0)
        file.write(_OWN + "".join(lines))
        file.truncate()


def _file(lab: Lab) -> Path:
    return lab.folder / "hosts"


def _addresses(text: str) -> dict[str, str]:
    lines = [line.split() for line in text.removeprefix(_OWN).splitlines()]
    return {name: address for address, name in lines}
