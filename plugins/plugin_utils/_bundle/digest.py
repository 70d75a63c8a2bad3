# SPDX-License-Identifier: GPL-3.0-or-later
"""One number for all that a service is on a node: two bundles with the same digest are the same deployment."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

from .files import File

# A change of the encoding changes every digest, and with it restarts every service: so it carries its version.
ENCODING = 1
_SHORT = 7


def digest(service: str, image: str | None, files: Iterable[File], texts: Mapping[str, str] | None = None) -> str:
    """SHA-256 over the service's name, its image and each file's path, mode and bytes, in whatever order they come.

    `texts` are what starts it, by name: kolla.json, units; empty ones do not count. Where a file comes from does not:
    the same bytes are the same deployment.
    """
    listed = sorted((file.path, file.mode, hashlib.sha256(file.content).hexdigest()) for file in files)
    others = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in (texts or {}).items() if text}
    whole = {"encoding": ENCODING, "service": service, "image": image, "files": listed, "texts": others}
    canonical = json.dumps(whole, sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def short(whole: str) -> str:
    """As many characters of a digest as a person compares."""
    return whole[:_SHORT]
