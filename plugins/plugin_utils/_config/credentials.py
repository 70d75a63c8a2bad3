# SPDX-License-Identifier: GPL-3.0-or-later

"""Secrets inside a longer text: passwords in addresses, `password: …` among other things, private keys."""

from __future__ import annotations

import re

from .secret_names import Kind, kind_of

MASK = "***"

_USER = r"[^:@/?#,\s]*"
_PASSWORD = r"[^@/?#,\s]*"  # noqa: S105  (a pattern, not a password)
_HOST = r"(?:\[[^\]@,\s]*\]|[^:@/?#,\s\[\]]*)(?::(?:\d*|\$\{?[\w.]+\}?))?"
_ENTRY = rf"(?:{_USER}(?::{_PASSWORD})?@)?{_HOST}"

# The hosts of one address, as oslo.messaging and SQLAlchemy read them; what does not fit may hide a part of a password.
_AUTHORITY = re.compile(rf"{_ENTRY}(?:,{_ENTRY})*")
_ENTRY_PASSWORD = re.compile(rf"((?:^|,){_USER}:){_PASSWORD}@")
_WHOLE_ADDRESS = re.compile(r"(\s*[A-Za-z][A-Za-z0-9+.\-]*://)([^/?#\s\"']*)([^@\s\"']*)\s*")

# An address in a text ends at a space or a quote, or where a list has its next one. Bounds keep long texts cheap.
_ADDRESS_IN_TEXT = re.compile(r"://((?:(?!,[A-Za-z][A-Za-z0-9+.\-]{0,30}://)[^\s\"'])*)")
_PARAMETER = re.compile(r"([?&;]([\w.\-]{1,64})=)([^&\s\"']+)")
_NAME = re.compile(r"([A-Za-z][\w\-]{2,64})[\"']?\s{0,8}[:=]\s{0,8}")
_VALUE = re.compile(r"\"[^\"]*(?:\"|\Z)|'[^']*(?:'|\Z)|\S[^\s,;&\"']*")
_PATH = re.compile(r"(file://)?/(etc|var|usr|run|opt|home|root|srv|tmp|mnt)/[\w.\-/@%+]+")
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)", re.DOTALL
)


def masked(value: str, option: str) -> str:
    """A value as it may be shown, for an option given as `name` or `group.name`."""
    kind = kind_of(option)
    if not value.strip() or (kind is Kind.KEY and _PATH.fullmatch(value.strip())):
        return value
    if kind is Kind.PLAIN:
        return without_passwords(value)
    return masked_address(value) if kind is Kind.ADDRESS else MASK


def masked_address(value: str) -> str:
    """An address without its passwords; a mask where it cannot be read as one, down to the last character."""
    whole = _WHOLE_ADDRESS.fullmatch(value)
    if whole and _AUTHORITY.fullmatch(whole[2]):
        return whole[1] + _masked_entries(whole[2]) + _masked_parameters(whole[3])
    return MASK


def without_passwords(text: str) -> str:
    """Any text, with what is known to be secret in it masked."""
    text = _PRIVATE_KEY.sub(MASK, text)
    text = _ADDRESS_IN_TEXT.sub(lambda found: "://" + _masked_rest(found[1]), text)
    return _masked_pairs(text)


def _masked_rest(rest: str) -> str:
    """What follows `://`. Where hosts and passwords cannot be told apart, all up to the last @ is masked."""
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    colon, at = rest.find(":"), rest.rfind("@")
    ends_in_path = ":" in authority and "@" not in authority and at >= 0
    if _AUTHORITY.fullmatch(authority) and not ends_in_path:
        return _masked_entries(authority) + _masked_parameters(rest[len(authority) :])
    if 0 <= colon < at:
        rest = rest[: colon + 1] + MASK + rest[at:]
    return _masked_parameters(rest)


def _masked_entries(authority: str) -> str:
    return _ENTRY_PASSWORD.sub(rf"\g<1>{MASK}@", authority)


def _masked_parameters(text: str) -> str:
    return _PARAMETER.sub(lambda found: found[1] + (MASK if _is_secret_part(found[2], found[3]) else found[3]), text)


def _masked_pairs(text: str) -> str:
    """Each name is looked at on its own, since a value may itself begin with a name: `device = password:…`."""
    shown, done = "", 0
    for name in _NAME.finditer(text):
        value = _VALUE.match(text, name.end())
        if value and name.start() >= done and _is_secret_part(name[1], value[0]):
            shown += text[done : name.end()] + MASK
            done = value.end()
    return shown + text[done:]


def _is_secret_part(name: str, value: str) -> bool:
    """Whether the value of a name within a text is to be masked."""
    kind = kind_of(name)
    return kind is Kind.SECRET or (kind is Kind.KEY and not _PATH.fullmatch(value.strip("\"'")))
