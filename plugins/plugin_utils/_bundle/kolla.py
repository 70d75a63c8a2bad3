# SPDX-License-Identifier: GPL-3.0-or-later
"""`kolla.json`: which file of the generation the image's start program copies where, for whom, and what it starts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from .files import File
from .quadlet import GENERATION
from .running import Running


def kolla_json(running: Running, files: Iterable[File], conf_d: str | None) -> str:
    """The text, same input same bytes."""
    copied = [
        {
            "source": f"{GENERATION}/{place(file, conf_d)}",
            "dest": file.path,
            "owner": running.user,
            "perm": f"{file.mode:04o}",
        }
        for file in files
    ]
    owned = [{"path": running.log_folder, "owner": f"{running.user}:{running.user}", "recurse": True}]
    permissions = owned if running.log_folder else []
    # A line for each file is what a person compares.
    return (
        f'{{\n "command": {json.dumps(running.command)},\n "config_files": {_lines(copied)},\n'
        f' "permissions": {_lines(permissions)}\n}}\n'
    )


def place(file: File, conf_d: str | None) -> str:
    """A file's path below the folder of its generation."""
    return f"conf.d/{file.name}" if file.directory == conf_d else f"files{file.path}"


def _lines(entries: Sequence[Mapping[str, object]]) -> str:
    return "[" + ",".join(f"\n  {json.dumps(entry)}" for entry in entries) + ("\n ]" if entries else "]")
