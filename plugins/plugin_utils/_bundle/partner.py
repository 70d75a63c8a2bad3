# SPDX-License-Identifier: GPL-3.0-or-later
"""How a partner's service runs, out of the fields of its definition.

`_dataplane.partners` has judged the fields: those that are wrong are not among them, and the plan says what was wrong.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence

from .._dataplane.partner_schema import OSLO_CONFIG
from .._dataplane.values import Value
from .running import Account, Folder, Health, Mount, OwnFile, Running

Entry = Mapping[str, Value]

_MODE = 0o600
_MOST = 64
#: A definition lives as long as its snapshot, and thousands of nodes share it.
_made: dict[int, tuple[Entry, Running]] = {}


def running(definition: Entry) -> Running:
    """What the definition says of a node and a container."""
    known = _made.get(id(definition))
    if known is not None and known[0] is definition:
        return known[1]
    if len(_made) >= _MOST:
        _made.clear()
    made = _running(definition)
    _made[id(definition)] = (definition, made)
    return made


def _running(says: Entry) -> Running:
    name = _text(says.get("name"))
    privileges, order = _entry(says.get("privileges")), _entry(says.get("order"))
    devices = tuple(f"--device={device}" for device in _texts(privileges.get("devices")))
    validation = says.get("validation")
    return Running(
        service=name,
        title=_text(says.get("title")) or name,
        command=_text(says.get("command")),
        user=_text(says.get("user")) or "root",
        mounts=tuple(_mount(one) for one in _entries(says.get("mounts"))),
        log_folder=_text(says.get("log_folder")),
        privileged=privileges.get("privileged") is True,
        confined=privileges.get("confined") is True,
        capabilities=_texts(privileges.get("capabilities")),
        podman_options=(*devices, *_texts(privileges.get("podman_options"))),
        environment=_pairs(says.get("environment")),
        wants=_texts(order.get("wants")),
        after=_texts(order.get("after")),
        stop_seconds=_number(says.get("stop_seconds"), 15),
        files=tuple(_file(one) for one in _entries(says.get("files"))),
        accounts=tuple(_account(one) for one in _entries(says.get("accounts"))),
        folders=tuple(_folder(one) for one in _entries(says.get("folders"))),
        tmpfiles=_texts(says.get("tmpfiles")),
        sysctls=_pairs(says.get("sysctls")),
        modules=_texts(says.get("kernel_modules")),
        health=_health(_entry(says.get("health"))),
        validates=validation == OSLO_CONFIG,
        validation=_texts(_entry(validation).get("command")),
        reload=_texts(says.get("reload")),
        ports=_texts(says.get("ports")),
        busy=_texts(says.get("busy")),
        data=_texts(says.get("data")),
    )


def _mount(one: Entry) -> Mount:
    source, target = _text(one.get("source")), _text(one.get("target"))
    return Mount(source, target, _texts(one.get("options")), own=one.get("own") is True)


def _file(one: Entry) -> OwnFile:
    directory, name = posixpath.split(_text(one.get("path")).rstrip("/"))
    return OwnFile(directory, name, _text(one.get("content")), mode=_mode(one.get("mode"), _MODE) or _MODE)


def _account(one: Entry) -> Account:
    name = _text(one.get("name"))
    return Account(name, _number(one.get("number"), 0), _text(one.get("home")) or f"/var/lib/{name}")


def _folder(one: Entry) -> Folder:
    return Folder(_text(one.get("path")), _text(one.get("owner")), _mode(one.get("mode"), None))


def _health(one: Entry) -> Health | None:
    connected, command = _text(one.get("connected")), _texts(one.get("command"))
    if not (connected or command):
        return None
    times = {name: value for name in ("settle", "timeout") if isinstance(value := one.get(name), int)}
    return Health(command, connected, **times)


def _mode(value: Value, default: int | None) -> int | None:
    return int(value, 8) if isinstance(value, str) else default


def _text(value: Value) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Value, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _texts(value: Value) -> tuple[str, ...]:
    return tuple(one for one in _list(value) if isinstance(one, str))


def _entries(value: Value) -> Iterator[Entry]:
    return (one for one in _list(value) if isinstance(one, Mapping))


def _list(value: Value) -> Sequence[Value]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def _entry(value: Value) -> Entry:
    return value if isinstance(value, Mapping) else {}


def _pairs(value: Value) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, _text(one)) for name, one in _entry(value).items()))
