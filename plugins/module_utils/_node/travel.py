# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How a bundle travels: a single opaque text, JSON in base64, best compressed with zlib.

`read` and `written` are each other's inverse; both halves of the collection use them, so the format lives here alone.
"""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64encode
from pathlib import PurePosixPath
from typing import Any

from .bundle import (
    POLICIES,
    PULLS,
    RESTARTS,
    Bundle,
    File,
    Folder,
    Group,
    Health,
    Image,
    LiveFile,
    NodeFile,
    Seed,
    User,
    Validation,
)
from .errors import BadBundle
from .fields import Fields, bad, closed, decoded

VERSION = 1

_LARGEST = 64 * 1024 * 1024
_LONGEST = 255
_NAME = r"[a-z0-9][a-z0-9_.-]{0,62}"
_ACCOUNT = r"[a-z_][a-z0-9_-]{0,31}"
_ABSOLUTE = r"/[^\0\n]*"
_LINE = r"[^\0\n]+"
_UNIT_KINDS = "container|volume|network|image|pod|kube|build"
_NODE_UNIT = r"[A-Za-z0-9][A-Za-z0-9_.@:\\-]*\.(service|socket|target|timer|path|mount)"
_PACKAGE = r"[A-Za-z0-9][A-Za-z0-9+._:-]*"
_PORT = r"(tcp|udp|sctp) [1-9][0-9]{0,4}(-[1-9][0-9]{0,4})?"
_LAST_PORT = 65535
#: What lies at a path of the node lies at least in a folder.
_DEPTH = 2
#: What lies directly in one of these is the node's and is never removed with a service.
_TOO_HIGH = ("/", "/run", "/usr", "/var")
#: What the generation keeps for itself, next to the service's files.
_OWN = ("bundle.json", "units", "node")


def read(text: str) -> Bundle:
    """The bundle in a text; BadBundle says what is wrong with it."""
    raw = decoded(text.strip(), "it")
    if not raw.startswith(b"{"):
        raw = _inflated(raw)
    try:
        data = json.loads(raw)
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise bad("it holds half a character, which no file can hold") from None
    except (ValueError, RecursionError):
        raise bad("it holds no JSON") from None
    if isinstance(data, dict) and data.get("version") != VERSION:
        raise bad(f"its version is {data.get('version')!r} and this node's half reads version {VERSION}")
    return closed(data, "", _bundle)


def written(bundle: Bundle) -> str:
    """The text that `read` makes the same bundle of."""
    data = {key: value for key, value in _plain(bundle).items() if value not in (None, "", [], {})}
    data["version"] = VERSION
    return b64encode(zlib.compress(json.dumps(data, sort_keys=True).encode())).decode()


def named(service: str, instance: str) -> str:
    """The name of a service on a node, for one that is asked for without its bundle."""
    for what, value in (("service", service), ("instance", instance or "x")):
        if not re.fullmatch(_NAME, value):
            raise BadBundle(
                f"The option {what} has the value {value[:80]!r}, and no {what} can be called so; use small letters, "
                "digits, dots, dashes and underscores."
            )
    return f"{service}@{instance}" if instance else service


def _inflated(raw: bytes) -> bytes:
    opened = zlib.decompressobj()
    try:
        found = opened.decompress(raw, _LARGEST)
    except zlib.error:
        raise bad("it is neither JSON nor compressed with zlib") from None
    if opened.unconsumed_tail or not opened.eof:
        raise bad(f"it is cut short, or larger than {_LARGEST >> 20} MiB")
    return found


def _bundle(one: Fields) -> Bundle:
    one.take("version", int)
    made = Bundle(
        service=one.text("service", _NAME),
        instance=one.text("instance", _NAME, ""),
        digest=one.text("digest", r"[0-9a-f]{7,128}"),
        image=one.needed("image", _image),
        units=one.mapping("units", rf"edpm_[A-Za-z0-9_.@-]+\.({_UNIT_KINDS})"),
        container=one.text("container", r"[A-Za-z0-9][A-Za-z0-9_.-]*", ""),
        files=tuple(sorted(one.each("files", _file), key=lambda file: file.path)),
        kolla=one.text("kolla", default=""),
        groups=one.each("groups", _group),
        users=one.each("users", _user),
        folders=one.each("folders", _folder),
        tmpfiles=one.texts("tmpfiles", _LINE),
        sysctls=one.mapping("sysctls", r"[a-zA-Z0-9_]([a-zA-Z0-9_./-]*[a-zA-Z0-9_])?", _LINE),
        modules=one.texts("modules", r"[A-Za-z0-9_-]+"),
        validation=one.part("validation", _validation),
        health=one.part("health", _health) or Health(),
        guards=one.mapping("guards", "cell|host", _LINE),
        keep=one.number("keep", 3, least=1),
        restart=one.word("restart", RESTARTS, "restart"),
        node_files=one.each("node_files", _node_file),
        live=one.each("live", _live),
        seeds=one.each("seeds", _seed),
        reload=one.texts("reload"),
        ports=one.texts("ports", _PORT),
        packages=one.lists("packages", "apt|dnf", _PACKAGE),
        node_units=one.texts("node_units", _NODE_UNIT),
        masked=one.texts("masked", _NODE_UNIT),
        busy=one.texts("busy"),
        data=one.texts("data", _ABSOLUTE),
    )
    _check(made)
    _check_places(made)
    return made


def _image(one: Fields) -> Image:
    return Image(
        reference=one.text("reference", r"[A-Za-z0-9][A-Za-z0-9_./:@-]*", ""),
        pull=one.word("pull", PULLS, "missing"),
        auth=one.text("auth", default=""),
        certificates=one.mapping("certificates", r"[A-Za-z0-9][A-Za-z0-9_.-]*\.(crt|cert|key)"),
        registries=one.text("registries", default=""),
    )


def _file(one: Fields) -> File:
    return File(
        path=one.text("path", r"[^\0\n]{1,500}"),
        content=one.data("content"),
        mode=one.mode("mode", 0o600),
        secret=one.take("secret", bool, False),
    )


def _node_file(one: Fields) -> NodeFile:
    return NodeFile(
        path=one.text("path", _ABSOLUTE),
        content=one.data("content"),
        mode=one.mode("mode", 0o600),
        secret=one.take("secret", bool, False),
    )


def _live(one: Fields) -> LiveFile:
    return LiveFile(
        path=one.text("path", _ABSOLUTE),
        content=one.data("content"),
        mode=one.mode("mode", 0o600),
        owner=one.text("owner", _ACCOUNT, ""),
        group=one.text("group", _ACCOUNT, ""),
        secret=one.take("secret", bool, False),
    )


def _seed(one: Fields) -> Seed:
    return Seed(
        path=one.text("path", _ABSOLUTE),
        mode=one.mode("mode", 0o644),
        owner=one.text("owner", _ACCOUNT, ""),
        group=one.text("group", _ACCOUNT, ""),
    )


def _group(one: Fields) -> Group:
    return Group(one.text("name", _ACCOUNT), one.optional_number("gid"))


def _user(one: Fields) -> User:
    return User(
        name=one.text("name", _ACCOUNT),
        uid=one.optional_number("uid"),
        group=one.text("group", _ACCOUNT, ""),
        groups=one.texts("groups", _ACCOUNT),
        home=one.text("home", _ABSOLUTE, "/nonexistent"),
        shell=one.text("shell", _ABSOLUTE, "/usr/sbin/nologin"),
    )


def _folder(one: Fields) -> Folder:
    mode = one.text("mode", r"0?[0-7]{3,4}", "")
    return Folder(
        path=one.text("path", _ABSOLUTE),
        mode=int(mode, 8) if mode else None,
        owner=one.text("owner", _ACCOUNT, ""),
        group=one.text("group", _ACCOUNT, ""),
        setype=one.text("setype", r"[a-z0-9_]+", ""),
    )


def _validation(one: Fields) -> Validation:
    command = one.texts("command")
    fatal = one.take("fatal", list, [])
    if not command:
        raise bad(f"{one.at('command')} is missing")
    if not all(isinstance(code, int) and code not in (True, False) for code in fatal):
        raise bad(f"{one.at('fatal')} is not a list of exit codes")
    return Validation(
        command=command,
        mounts=one.mapping("mounts", r"[^\0\n:]+", r"/[^\0\n:]+"),
        policy=one.word("policy", POLICIES, "fail"),
        timeout=one.number("timeout", 120, least=1),
        fatal=tuple(fatal),
    )


def _health(one: Fields) -> Health:
    return Health(
        command=one.texts("command"),
        connected=one.text("connected", r"[A-Za-z0-9_.-]+", ""),
        on_node=one.take("on_node", bool, False),
        settle=one.number("settle", 3),
        timeout=one.number("timeout", 60, least=1),
    )


def _check(made: Bundle) -> None:
    """What no field can tell by itself."""
    if made.image.reference:
        _check_container(made)
    else:
        _check_plain(made)
    strange = [unit for unit in made.units if not unit.startswith((f"edpm_{made.name}.", f"edpm_{made.name}-"))]
    if strange:
        raise bad(f"units.{strange[0]} does not begin with edpm_{made.name}, so it is another service's")
    if any(".." in key for key in made.sysctls):
        raise bad("sysctls has a key with two dots in a row")
    paths = [file.path for file in made.files] + (["kolla.json"] if made.kolla else [])
    for path in paths:
        _check_path(path, paths)
    for source in made.validation.mounts if made.validation else ():
        if not any(path == source or path.startswith(f"{source}/") for path in paths):
            raise bad(f"validation.mounts names {source!r}, and no file of the bundle lies there")


def _check_container(made: Bundle) -> None:
    main = f"edpm_{made.name}.container"
    if main not in made.units:
        raise bad(f"units has no {main}")
    inside = {"health.command": () if made.health.on_node else made.health.command}
    inside.update({"reload": made.reload, "busy": made.busy})
    for name, command in inside.items():
        if command and not made.container:
            raise bad(f"{name} runs in the container, and container is missing")


def _check_plain(made: Bundle) -> None:
    """A service that is no container."""
    if made.units or made.container or made.validation:
        raise bad("image.reference is missing, and units, container or validation need an image")
    if not made.node_units:
        raise bad("it has neither an image nor node_units, so nothing would run")
    if made.health.command and not made.health.on_node:
        raise bad("health.command runs in the container, and there is none without an image")


def _check_places(made: Bundle) -> None:
    """Whatever lies at a path of the node."""
    named = [("node_files", one.path) for one in made.node_files]
    named += [("live", one.path) for one in made.live] + [("seeds", one.path) for one in made.seeds]
    for field, path in (*named, *(("data", one) for one in made.data)):
        parts = PurePosixPath(path).parts
        if path != "/" + "/".join(parts[1:]) or ".." in parts or len(parts) <= _DEPTH:
            raise bad(f"{field} has the path {path!r}, which is not a plain path below a folder of the node")
    for path in made.data:
        if str(PurePosixPath(path).parent) in _TOO_HIGH:
            raise bad(f"data has the path {path!r}, which holds more than a service's own data")
    paths = [path for _field, path in named]
    for path in paths:
        above = {str(one) for one in PurePosixPath(path).parents}
        if paths.count(path) > 1 or above & set(paths):
            raise bad(f"node_files, live and seeds have the path {path!r} twice, or as a file and as a folder")
    for port in made.ports:
        first, _dash, last = port.partition(" ")[2].partition("-")
        if not int(first) <= int(last or first) <= _LAST_PORT:
            raise bad(f"ports holds {port!r}, which is no range of ports")
    for unit in made.masked:
        if unit in made.node_units:
            raise bad(f"{unit} is both among node_units and masked")


def _check_path(path: str, paths: list[str]) -> None:
    parts = PurePosixPath(path).parts
    if path != "/".join(parts) or not parts or {"..", "."} & set(parts) or path.startswith("/"):
        raise bad(f"files has the path {path!r}, which does not lie below the generation")
    if parts[0] in _OWN or parts[0].startswith(".") or any(len(part.encode()) > _LONGEST for part in parts):
        raise bad(f"files has the path {path!r}, a name that cannot be used there")
    above = {"/".join(parts[:count]) for count in range(1, len(parts))}
    if paths.count(path) > 1 or above & set(paths):
        raise bad(f"files has the path {path!r} twice, or as a file and as a folder")


def _plain(value: Any) -> Any:
    """Dataclasses as JSON knows them."""
    if hasattr(value, "__dataclass_fields__"):
        return {name: _as_field(name, getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value


def _as_field(name: str, value: Any) -> Any:
    if name == "mode" and value is not None:
        return f"{value:04o}"
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return _plain(value)
