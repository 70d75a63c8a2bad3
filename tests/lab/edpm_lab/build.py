# SPDX-License-Identifier: GPL-3.0-or-later
"""Building the lab's parts side by side, and saying which of them this host could run at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from . import binaries, images, podman
from .errors import LabError, NotOnThisHost
from .prerequisites import architecture
from .progress import say

#: What is built, in the order in which it is worth having: programs in one line, images in another.
PARTS = ("api", "cluster", "images")


def build(parts: Sequence[str]) -> int:
    """Build parts; what this host cannot run is told and left out, or counts as a failure under STRICT=1."""
    programs = [part for part in ("api", "cluster") if part in parts]
    lines: list[Callable[[], None]] = []
    if programs:
        lines.append(lambda: _programs(programs))
    if "images" in parts:
        lines.append(_images)
    with ThreadPoolExecutor(len(lines) or 1) as pool:
        outcomes = list(pool.map(_outcome, lines))
    faults = [str(fault) for fault in outcomes if fault]
    for fault in faults:
        say(f"not built: {fault}")
    strict = os.environ.get("STRICT") == "1"
    return int(any(fault and (strict or not isinstance(fault, NotOnThisHost)) for fault in outcomes))


def not_on_this_host() -> dict[str, str]:
    """The parts that cannot run here, with the reason; containers are found out by running one."""
    reasons = {}
    try:
        architecture()
    except NotOnThisHost as reason:
        return dict.fromkeys(PARTS, str(reason))
    try:
        podman.containers_work()
    except LabError as reason:
        reasons = dict.fromkeys(("cluster", "images"), str(reason))
    return reasons


def _programs(parts: Sequence[str]) -> None:
    binaries.binaries(*binaries.API.names)
    if "cluster" in parts:
        binaries.build_all()


def _images() -> None:
    podman.containers_work()
    # Two are built at a time, so the longest comes early.
    others = ["node-ovn", "registry", "ee", "operator", "ceph", "guest"]
    images.build_all(["node", "control-plane", *images.SERVICES, *others])


def _outcome(line: Callable[[], None]) -> LabError | None:
    try:
        line()
    except LabError as fault:
        return fault
    return None
