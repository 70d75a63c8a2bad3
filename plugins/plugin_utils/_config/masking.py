# SPDX-License-Identifier: GPL-3.0-or-later

"""What of a configuration may be shown: in a plan, an explanation, a diff or a rendered tree.

A mask has always the same length. Everything that is not masked stays as it is, to the byte.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from .credentials import MASK, masked, without_passwords
from .provenance import Explanation, Option
from .secret_names import Kind, kind_of
from .sources import Source
from .substitution import OptionKey

__all__ = ["MASK", "masked", "masked_bytes", "masked_explanation", "masked_file", "masked_text"]

_NEVER_SHOWN = re.compile(
    r"\.(keyring|key|p12|pfx|jks)$|^id_(rsa|ecdsa|ed25519)$|ssh-?privatekey|^(clouds|secure)\.ya?ml$|htpasswd"
)
# oslo.config's lines end where a file's lines end; str.splitlines would break at more characters.
_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
_ASSIGNMENT = re.compile(r"([^=:]*)[=:]\s*")
_COMMENTED_ASSIGNMENT = re.compile(r"[#;]+\s*([\w.\-]+)\s*[=:]\s*")
_KEY_BEGINS = re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----")
_KEY_ENDS = re.compile(r"-----END [A-Z0-9 ]*PRIVATE KEY-----")
_QUOTED = re.compile(r"([\"'])(.*)\1")
_SPLITS_AN_ADDRESS = re.compile(r"[@:/,?#\s]")


def masked_explanation(explanation: Explanation) -> Explanation:
    """The same explanation, fit to be shown."""
    options = {(option.group, option.name): option for option in explanation.options}
    shown = (_masked_option(option, options) for option in explanation.options)
    # A password with a dollar sign in it would show in the reference that it is taken for.
    return replace(
        explanation,
        options=tuple(replace(option, unresolved=()) if _holds_a_mask(option) else option for option in shown),
    )


def _holds_a_mask(option: Option) -> bool:
    return any(MASK in text for text in (*option.values, *(place.value for place in option.places)))


def masked_file(source: Source) -> bytes:
    """A file's content as it may be written or shown; out of a Secret, whatever is not configuration is one mask."""
    opaque = source.secret and not source.name.endswith(".conf")
    if source.content and (opaque or _NEVER_SHOWN.search(source.name.lower())):
        return f"{MASK}\n".encode()
    return masked_bytes(source.content)


def masked_text(content: bytes) -> str:
    """Configuration text for a person's eyes; a byte that is not UTF-8 shows as its escape."""
    return masked_bytes(content).decode("utf-8", "backslashreplace")


def masked_bytes(content: bytes) -> bytes:
    """Configuration text with its secrets masked, line by line, every other byte as it was."""
    # Bytes that are not UTF-8 travel as lone surrogates and come back as they were.
    text = content.decode("utf-8", "surrogateescape")
    lines = _Lines()
    shown = (lines.masked(found[1]) + found[2] for found in _LINE.finditer(text))
    return "".join(shown).encode("utf-8", "surrogateescape")


def _masked_option(option: Option, options: Mapping[OptionKey, Option]) -> Option:
    places = tuple(replace(place, value=masked(place.value, option.name)) for place in option.places)
    if _shows_a_reference(option, options):
        return replace(option, places=places, values=(MASK,) * len(option.values))
    return replace(option, places=places, values=tuple(masked(value, option.name) for value in option.values))


def _shows_a_reference(option: Option, options: Mapping[OptionKey, Option]) -> bool:
    """Whether another option's secret may show in this one's value: an address is trusted to hide what fits into it."""
    secrets = [options[key] for key in option.references if kind_of(key[1]) is not Kind.PLAIN]
    if kind_of(option.name) is not Kind.ADDRESS:
        return bool(secrets)
    shown = "\n".join(masked(value, option.name) for value in option.values)
    return any(
        secret.accumulates or _SPLITS_AN_ADDRESS.search(secret.value) or (secret.value and secret.value in shown)
        for secret in secrets
    )


class _Lines:
    """Goes through a file the way oslo.config does, remembering what the line above was a part of."""

    def __init__(self) -> None:
        self._hiding = False
        self._in_private_key = False

    def masked(self, line: str) -> str:
        """The line as it may be shown, without its end."""
        if self._in_private_key or _KEY_BEGINS.search(line):
            return self._of_private_key(line)
        if not line.strip() or line.startswith("["):
            self._hiding = False
            return line
        if line.startswith((" ", "\t")) and self._hiding:
            return line[: len(line) - len(line.lstrip())] + MASK
        return self._setting(line)

    def _of_private_key(self, line: str) -> str:
        begins = None if self._in_private_key else _KEY_BEGINS.search(line)
        self._in_private_key = not _KEY_ENDS.search(line)
        return line[: begins.start() if begins else 0] + MASK

    def _setting(self, line: str) -> str:
        comment = line.startswith(("#", ";"))
        found = (_COMMENTED_ASSIGNMENT if comment else _ASSIGNMENT).match(line)
        if not found:
            # What is no setting at all is shown, unless it may be the rest of a secret that lost its indentation.
            return MASK if self._hiding and not comment else without_passwords(line)
        self._hiding = kind_of(found[1]) is not Kind.PLAIN
        return _masked_setting(line, found)


def _masked_setting(line: str, found: re.Match[str]) -> str:
    prefix, value = line[: found.end()], line[found.end() :]
    if kind_of(found[1]) is Kind.PLAIN:
        return prefix + without_passwords(value)
    quoted = _QUOTED.fullmatch(value.rstrip())
    quote, inner = (quoted[1], quoted[2]) if quoted else ("", value.rstrip())
    shown = masked(inner, found[1])
    return line if shown == inner else f"{prefix}{quote}{shown}{quote}"
