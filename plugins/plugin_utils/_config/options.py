# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of one file, read by oslo.config's own parser, each with the line that sets it."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, NoReturn

from .sources import Source

DEFAULT = "DEFAULT"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class OsloConfigMissingError(Exception):
    """The oslo.config package is not there; the text says what to install."""

    def __init__(self) -> None:
        super().__init__(
            "Python's oslo.config package cannot be imported, and only it can say how a service reads its files; "
            "install oslo.config 9.4 or later for the Python that runs Ansible"
        )


@dataclass(frozen=True)
class Setting:
    """One `name = value` of a file: the text as oslo.config takes it, before any substitution."""

    group: str
    name: str
    value: str = field(repr=False)
    line: int


@dataclass(frozen=True)
class Fault:
    """Why oslo.config refuses a file. It quotes nothing: a broken line may well be a part of a password."""

    line: int
    words: str


@dataclass(frozen=True)
class Parsed:
    """A file's settings in order; none at all when there is a fault, as a service would not start with it."""

    settings: tuple[Setting, ...] = ()
    fault: Fault | None = None


def parse_errors(files: Iterable[Source]) -> tuple[str, ...]:
    """A sentence for every file that oslo.config cannot read: the object, the field, the line and the remedy."""
    sentences = (parse_error(file) for file in files)
    return tuple(sentence for sentence in sentences if sentence)


def parse_error(file: Source) -> str | None:
    """The sentence for this file, or None when oslo.config can read it."""
    fault = parse(file.content).fault
    return f"{file.origin}, line {fault.line}: {fault.words}" if fault else None


# Thousands of nodes share one Secret; its text is read once.
@lru_cache(maxsize=512)
def parse(content: bytes) -> Parsed:
    """Read a file's bytes the way a service does: UTF-8, and any of the three line ends."""
    try:
        lines = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8").readlines()
    except UnicodeDecodeError:
        return Parsed(fault=_not_utf8(content))
    parser = _parser_class()()
    try:
        # The blank line makes oslo.config end the last value the way it ends all others, which settles its line.
        parser.parse([*lines, "\n"])
    except _RefusedError as refused:
        if content.startswith(_BYTE_ORDER_MARK):
            return Parsed(fault=Fault(1, "the text begins with a byte order mark; save it as UTF-8 without one"))
        return Parsed(fault=refused.fault)
    return Parsed(tuple(parser.settings))


def normalized(group: str) -> str:
    """The name under which oslo.config files a group: lower case, and DEFAULT is only itself."""
    return group if group == DEFAULT else group.lower()


def _not_utf8(content: bytes) -> Fault:
    try:
        content.decode()
    except UnicodeDecodeError as found:
        before = content[: found.start].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return Fault(before.count(b"\n") + 1, "a byte here is not UTF-8; save the text as UTF-8")
    raise AssertionError


class _RefusedError(Exception):
    def __init__(self, line: int, words: str) -> None:
        super().__init__(words)
        self.fault = Fault(line, words)


class _Hooks:
    """What oslo.config's parser calls; it is mixed into that parser once the library is known to be there."""

    lineno: int

    def __init__(self) -> None:
        self.settings: list[Setting] = []
        self._group: str | None = None

    def new_section(self, section: str) -> None:
        self._group = normalized(section)

    def assignment(self, key: str, value: list[str]) -> None:
        # Called on the line behind the value, whose every element was one line.
        line = self.lineno - len(value)
        if self._group is None:
            raise _RefusedError(line, "an option before any [group]; put [DEFAULT] or its group above it")
        self.settings.append(Setting(self._group, key, "\n".join(value), line))

    def comment(self, comment: str) -> None:
        pass

    def error_invalid_assignment(self, _line: str) -> NoReturn:
        self._refuse("no = or : on this line; write it as name = value or remove it")

    def error_empty_key(self, _line: str) -> NoReturn:
        self._refuse("no name before the = or :; write it as name = value or remove it")

    def error_unexpected_continuation(self, _line: str) -> NoReturn:
        self._refuse("an indented line with no value above it to continue; remove the spaces at its beginning")

    def error_no_section_end_bracket(self, _line: str) -> NoReturn:
        self._refuse("a [group] line that does not end with ]; put nothing behind the group's name but ]")

    def error_no_section_name(self, _line: str) -> NoReturn:
        self._refuse("a [group] line without a name; write the group's name between the brackets")

    def _refuse(self, words: str) -> NoReturn:
        raise _RefusedError(self.lineno, words)


@cache
def _parser_class() -> Any:
    try:
        from oslo_config import iniparser  # noqa: PLC0415  (the rest of the collection works without it)
    except ImportError as missing:
        raise OsloConfigMissingError from missing
    return type("SettingsParser", (_Hooks, iniparser.BaseParser), {})
