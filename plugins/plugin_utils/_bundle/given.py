# SPDX-License-Identifier: GPL-3.0-or-later
"""The plain options of a task, read one by one. What is wrong with one is a sentence that names it."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .._dataplane.model import Reference
from .._dataplane.planned import Origin

_CONTENT = ("content", "content_b64", "src")
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True, order=True)
class Option(Reference):
    """An option of a task in the place of an object of the cluster: its `name`, and in `namespace` the service.

    Its `kind` is that of the object, since it tells whether contents may be shown.
    """

    def __str__(self) -> str:
        return f"option {self.name} of {self.namespace}"


@dataclass
class Given:
    """The options of one service. `find` tells where a path of the controller lies."""

    service: str
    options: Mapping[str, Any]
    find: Callable[[str], str]
    faults: list[str] = field(default_factory=list)

    def option(self, name: str, *, secret: bool = False) -> Option:
        """The option as the source of something."""
        return Option("Secret" if secret else "ConfigMap", self.service, name)

    def fault(self, option: str, sentence: str) -> None:
        """Keep what is wrong with an option."""
        self.faults.append(f"{self.option(option)}: {sentence}")

    def word(self, name: str) -> str:
        """An option that is a word, such as a name or a path."""
        return self.text(name).strip()

    def text(self, name: str) -> str:
        """An option that is a text, as it is."""
        return str(self.options.get(name) or "")

    def entries(self, name: str) -> Iterable[Mapping[str, Any]]:
        """An option that is a list of mappings."""
        return self.options.get(name) or ()

    def mapping(self, name: str) -> dict[str, Any]:
        """An option that is a mapping. What is empty in it says nothing, so that a role's variable may."""
        return {key: value for key, value in (self.options.get(name) or {}).items() if value not in ("", None)}

    def file(self, option: str, entry: Mapping[str, Any]) -> Iterable[tuple[Origin, bytes]]:
        """Where a listed file comes from, and its bytes; nothing where that cannot be told."""
        name = str(entry.get("name") or "")
        if _NAME.fullmatch(name) is None:
            self.fault(option, f'"{name}" is no name for a file; use letters, digits, dashes, dots and underscores.')
            return ()
        ways = [way for way in _CONTENT if entry.get(way) is not None]
        if len(ways) != 1:
            self.fault(option, f"{name} needs exactly one of {', '.join(_CONTENT)}; correct it.")
            return ()
        content = self._bytes(f"{option}, {name}", ways[0], str(entry[ways[0]]))
        return () if content is None else ((Origin(self.option(option), name), content),)

    def folder(self, option: str) -> dict[str, bytes]:
        """The files of a folder of the controller; what lies deeper does not count."""
        path = self.word(option)
        if not path:
            return {}
        try:
            found = sorted(one for one in Path(self.find(path)).iterdir() if one.is_file())
        except OSError as error:
            self.fault(option, f"{path} cannot be read ({error.strerror}); name a folder of the controller.")
            return {}
        contents = {one.name: self.read(option, str(one)) for one in found}
        return {name: content for name, content in contents.items() if content is not None}

    def read(self, option: str, path: str) -> bytes | None:
        """A file of the controller."""
        try:
            return Path(self.find(path)).read_bytes()
        except OSError as error:
            self.fault(option, f"{path} cannot be read ({error.strerror}); name a file of the controller.")
            return None

    def read_text(self, option: str, path: str) -> str:
        """The same as text."""
        try:
            return (self.read(option, path) or b"").decode()
        except UnicodeDecodeError:
            self.fault(option, f"{path} is not UTF-8; write the text anew.")
            return ""

    def _bytes(self, option: str, way: str, value: str) -> bytes | None:
        if way == "content":
            return value.encode()
        if way == "src":
            return self.read(option, value)
        try:
            return base64.b64decode("".join(value.split()), validate=True)
        except (binascii.Error, ValueError):
            self.fault(option, "content_b64 is not base64; encode the content.")
            return None
