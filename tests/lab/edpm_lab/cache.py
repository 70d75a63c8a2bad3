# SPDX-License-Identifier: GPL-3.0-or-later
"""Things that are built once: a folder each, named by a digest of what it is built from.

A folder is built beside its place and renamed into it when it is whole, so what has the right name
is complete. Two processes that want the same thing build it once: the second waits for the first.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from . import places
from .errors import LabError
from .progress import say, step


def digest(inputs: Mapping[str, str | bytes]) -> str:
    """A short digest over names and contents; the same inputs give the same digest everywhere."""
    whole = hashlib.sha256()
    for name in sorted(inputs):
        value = inputs[name]
        data = value.encode() if isinstance(value, str) else value
        whole.update(f"{name}\0{len(data)}\0".encode() + data)
    return whole.hexdigest()[:16]


def folder(name: str, inputs: Mapping[str, str | bytes], build: Callable[[Path], None]) -> Path:
    """The folder `name` built from `inputs`; `build` fills an empty folder if there is none yet."""
    place = places.cache() / f"{name}-{digest(inputs)}"
    if place.is_dir():
        return place
    with building(name):
        if not place.is_dir():
            _build(name, place, build)
    return place


@contextmanager
def building(name: str) -> Iterator[None]:
    """Hold the build lock of `name`; a second builder waits here and then finds the thing built."""
    with _open_lock(places.cache() / f".{name}.lock") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"{name}: it is being built already, waiting")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def require_space(gibibytes: float, purpose: str) -> None:
    """Refuse to begin what cannot end: `purpose` needs this much free space in the cache."""
    with translated():
        places.cache().mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(places.cache()).free / 2**30
    if free < gibibytes:
        raise LabError(
            f"{purpose} needs {gibibytes:.0f} GiB in {places.cache()}, where {free:.1f} GiB are free; "
            "free some space or set EDPM_LAB_CACHE to a larger disk"
        )


@contextmanager
def translated() -> Iterator[None]:
    """Turn a full disk or a folder without write permission into a sentence."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise LabError(f"the disk of {places.cache()} is full; free some space and run it again") from error
        if error.errno in (errno.EACCES, errno.EROFS):
            raise LabError(
                f"{error.filename} cannot be written; set EDPM_LAB_CACHE and EDPM_LAB_STATE to folders of yours"
            ) from error
        raise


def _build(name: str, place: Path, build: Callable[[Path], None]) -> None:
    for left_over in place.parent.glob(f".{name}.building-*"):
        say(f"{name}: removing a build that was interrupted")
        shutil.rmtree(left_over)
    half = place.parent / f".{name}.building-{os.getpid()}"
    half.mkdir()
    try:
        with step(name), translated():
            build(half)
        half.rename(place)
    finally:
        shutil.rmtree(half, ignore_errors=True)


@contextmanager
def _open_lock(path: Path) -> Iterator[int]:
    with translated():
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield lock
    finally:
        os.close(lock)
