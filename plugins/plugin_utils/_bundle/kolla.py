# SPDX-License-Identifier: GPL-3.0-or-later
"""`kolla.json`: which file of the generation the image's start program copies where, for whom, and what it starts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from .._dataplane.planned import ServicePlan
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


def users_kolla(service: ServicePlan) -> tuple[str, tuple[str, ...]]:
    """A user's own text, and a sentence where the image's start program could do nothing with it."""
    try:
        found = json.loads(service.user_kolla or b"")
    except ValueError as error:
        return "", (f"{service.name}: the kolla config.json that is given for it is no JSON ({error}); correct it",)
    command = found.get("command") if isinstance(found, dict) else None
    if not isinstance(command, str) or not command.strip():
        return "", (f"{service.name}: the kolla config.json that is given for it names no command; add one",)
    return (service.user_kolla or b"").decode(), ()


def place(file: File, conf_d: str | None) -> str:
    """A file's path below the folder of its generation."""
    return f"conf.d/{file.name}" if file.directory == conf_d else f"files{file.path}"


def _lines(entries: Sequence[Mapping[str, object]]) -> str:
    return "[" + ",".join(f"\n  {json.dumps(entry)}" for entry in entries) + ("\n ]" if entries else "]")
