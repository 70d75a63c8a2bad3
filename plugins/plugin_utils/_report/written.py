# SPDX-License-Identifier: GPL-3.0-or-later
"""A file that is there whole or not at all, and for its owner's eyes: a plan tells much of a site."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path


class NotWrittenError(Exception):
    """The file cannot be written; the text says which, why, and what to do."""


def write(path: str, text: str, *, check: bool) -> bool:
    """Whether the file changed, or would in check mode. A link is followed, what is no file is left alone."""
    file, content = Path(os.path.realpath(Path(path).expanduser())), text.encode("utf-8", "backslashreplace")
    try:
        if file.exists() and not file.is_file():
            raise NotWrittenError(f"{path} is not a file; name a file that can be written in its place.")
        if file.exists() and file.read_bytes() == content:
            return False
        if not check:
            _replace(file, content)
    except OSError as error:
        raise NotWrittenError(f"{path} cannot be written: {error.strerror}; name another file.") from None
    return True


def _replace(file: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with os.fdopen(handle, "wb") as temporary:
            temporary.write(content)
        Path(name).replace(file)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
