# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How a bundle travels: a single opaque text, JSON in base64, best compressed with zlib.

`read` and `written` are each other's inverse; both halves of the collection use them, so the format lives here alone.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from pathlib import PurePosixPath
from typing import Any

from .bundle import POLICIES, PULLS, RESTARTS, Bundle, File, Folder, Group, Health, Image, User, Validation
from .fields import Fields, bad, closed, decoded

VERSION = 1

_LARGEST = 64 * 1024 * 1024
_LONGEST = 255
_NAME = r"[a-z0-9][a-z0-9_.-]{0,62}"
_ACCOUNT = r"[a-z_][a-z0-9_-]{0,31}"
_ABSOLUTE = r"/[^\0\n]*"
_LINE = r"[^\0\n]+"
_UNIT_KINDS = "container|volume|network|image|pod|kube|build"
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
    )
    _check(made)
    return made


def _image(one: Fields) -> Image:
    return Image(
        reference=one.text("reference", r"[A-Za-z0-9][A-Za-z0-9_./:@-]*"),
        pull=one.word("pull", PULLS, "missing"),
        auth=one.text("auth", default=""),
        certificates=one.mapping("certificates", r"[A-Za-z0-9][A-Za-z0-9_.-]*\.(crt|cert|key)"),
    )


def _file(one: Fields) -> File:
    return File(
        path=one.text("path", r"[^\0\n]{1,500}"),
        content=one.data("content"),
        mode=one.mode("mode", 0o600),
        secret=one.take("secret", bool, False),
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
        on_node=one.take("on_node", bool, False),
        settle=one.number("settle", 3),
        timeout=one.number("timeout", 60, least=1),
    )


def _check(made: Bundle) -> None:
    """What no field can tell by itself."""
    main = f"edpm_{made.name}.container"
    if main not in made.units:
        raise bad(f"units has no {main}")
    strange = [unit for unit in made.units if not unit.startswith((f"edpm_{made.name}.", f"edpm_{made.name}-"))]
    if strange:
        raise bad(f"units.{strange[0]} does not begin with edpm_{made.name}, so it is another service's")
    if made.health.command and not made.health.on_node and not made.container:
        raise bad("health.command runs in the container, and container is missing")
    if any(".." in key for key in made.sysctls):
        raise bad("sysctls has a key with two dots in a row")
    paths = [file.path for file in made.files] + (["kolla.json"] if made.kolla else [])
    for path in paths:
        _check_path(path, paths)
    for source in made.validation.mounts if made.validation else ():
        if not any(path == source or path.startswith(f"{source}/") for path in paths):
            raise bad(f"validation.mounts names {source!r}, and no file of the bundle lies there")


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
