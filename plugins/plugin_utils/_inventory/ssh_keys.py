# SPDX-License-Identifier: GPL-3.0-or-later
"""What an SSH private key out of a Secret is good for. OpenSSH's programs get it on a pipe, never in a file."""

from __future__ import annotations

import base64
import binascii
import os
import re
import subprocess
from collections.abc import Mapping

TIMEOUT = 30.0
_OPENSSH = re.compile(rb"-----BEGIN OPENSSH PRIVATE KEY-----(.*?)-----END OPENSSH PRIVATE KEY-----", re.DOTALL)
_MAGIC = b"openssh-key-v1\0"
_LOCKED_PEM = (b"Proc-Type: 4,ENCRYPTED", b"-----BEGIN ENCRYPTED PRIVATE KEY-----")


class BadKeyError(Exception):
    """The text, a clause that says what is wrong and what to do, belongs behind the name of the Secret."""


def usable(key: bytes) -> bytes:
    """The key as OpenSSH wants it: its programs refuse one whose last line does not end."""
    return key.replace(b"\r\n", b"\n").strip() + b"\n"


def public_key(key: bytes) -> str:
    """The public half, which is also the proof that OpenSSH can use the key; FileNotFoundError without OpenSSH."""
    if is_locked(key):
        raise BadKeyError(
            "is protected by a passphrase, which nobody can type here; "
            "store the key without one, or bring an agent or a key file of your own."
        )
    done = subprocess.run(
        ["ssh-keygen", "-y", "-P", "", "-f", "/dev/stdin"],
        input=key,
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
        env=quiet_environment(),
        start_new_session=True,
    )
    if done.returncode != 0:
        raise BadKeyError("is no SSH private key; store one in OpenSSH or PEM format there.")
    return done.stdout.decode("utf-8", "replace").strip()


def is_locked(key: bytes) -> bool:
    """Whether the key is encrypted, in any of the three formats."""
    if any(mark in key for mark in _LOCKED_PEM):
        return True
    found = _OPENSSH.search(key)
    if found is None:
        return False
    try:
        blob = base64.b64decode(b"".join(found.group(1).split()))
    except binascii.Error:
        return False
    cipher = len(_MAGIC) + 4
    return blob.startswith(_MAGIC) and not blob[cipher:].startswith(b"none")


def quiet_environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """An environment in which OpenSSH's programs ask nobody anything."""
    kept = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "SSH_ASKPASS")}
    return {**kept, "SSH_ASKPASS_REQUIRE": "never", "LC_ALL": "C", **(more or {})}
