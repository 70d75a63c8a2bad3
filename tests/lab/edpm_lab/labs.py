# SPDX-License-Identifier: GPL-3.0-or-later
"""A lab: a name, a folder, the processes and containers that carry its name, and how all of it ends.

A lab belongs to the process that opened it, through a lock that dies with that process. A lab whose
owner is gone is stale, and the next one to open any lab removes it. A kept lab (`edpm-lab up`, `make
lab`) has no owner and stays until it is taken down.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import places
from .cache import translated
from .command import tied
from .errors import LabError
from .progress import say

#: A process has this many seconds to end after it was asked to.
PATIENCE = 5.0

#: Every part of the lab that makes something outside the lab's folder puts its remover here.
REMOVERS: list[Callable[[str], None]] = []
PARTS_WITH_REMOVERS = ("podman", "cluster")

#: A tied process dies with the very thread that started it, so one that stays starts them all.
_STARTER = ThreadPoolExecutor(1, thread_name_prefix="lab-starter")


@dataclass(frozen=True)
class Lab:
    """A lab that is open; its parts put their files below `folder`."""

    name: str
    folder: Path
    kept: bool

    def start(
        self, what: str, argv: Sequence[str | Path], *, log: Path, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a process of this lab; unless the lab is kept, the process dies with its owner.

        To the kernel the owner is the thread that calls this, so it must be one that lives as long as the lab.
        """
        deathwatch = [] if self.kept else tied()

        def begin() -> subprocess.Popen[bytes]:
            with log.open("ab") as sink:
                return subprocess.Popen(
                    [*deathwatch, *map(str, argv)],
                    stdin=subprocess.DEVNULL,
                    stdout=sink,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, **(env or {})},
                    start_new_session=True,
                )

        process = _STARTER.submit(begin).result()
        (self.folder / "processes").mkdir(exist_ok=True)
        record = {"what": what, "pid": process.pid, "started": _start_time(process.pid)}
        self._record(what).write_text(json.dumps(record))
        return process

    def runs(self, what: str) -> bool:
        """Whether a process that was started under this name is alive."""
        return self._record(what).exists() and _is_alive(json.loads(self._record(what).read_text()))

    def end(self, what: str, *, at_once: bool = False) -> None:
        """End a process before the lab ends; `at_once` gives it no time to tidy up."""
        if self._record(what).exists():
            _end(self._record(what), at_once=at_once)

    def _record(self, what: str) -> Path:
        return self.folder / "processes" / f"{what}.json"


@contextmanager
def opened(name: str, *, kept: bool = False) -> Iterator[Lab]:
    """Open a lab. One that is not kept is removed at the end, whatever happens."""
    sweep()
    with _ownership(name):
        if _is_kept(name) and not kept:
            raise LabError(f"the lab {name} is kept running; take it down first with: edpm-lab down --name {name}")
        lab = Lab(name, _folder(name), kept)
        with translated():
            lab.folder.mkdir(exist_ok=True, mode=0o700)
            (lab.folder / "lab.json").write_text(json.dumps({"kept": kept}))
        try:
            yield lab
        finally:
            if not kept:
                _remove(name)


def close(name: str) -> None:
    """Take a lab down and leave nothing of it behind; one that is not there is fine."""
    if not _folder(name).exists():
        _run_removers(name)
        return
    with _ownership(name):
        _remove(name)


def sweep() -> None:
    """Remove what labs left behind whose owner is gone."""
    for name in names():
        if _is_kept(name):
            continue
        try:
            with _ownership(name):
                say(f"removing the lab {name}, which a run that was cut off left behind")
                _remove(name)
        except LabInUse:
            continue


def found(name: str) -> Lab:
    """A lab that another process opened, to look at it; what it has is not changed by that."""
    return Lab(name, _folder(name), _is_kept(name))


def names() -> list[str]:
    """All labs on this machine."""
    home = places.labs()
    return sorted(entry.name for entry in home.iterdir() if entry.is_dir()) if home.is_dir() else []


class LabInUse(LabError):
    """Another process owns the lab."""


@contextmanager
def _ownership(name: str) -> Iterator[None]:
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,30}", name):
        raise LabError(f"{name!r} cannot name a lab; use up to 31 small letters, digits and dashes")
    with translated():
        places.labs().mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(places.labs() / f".{name}.owner", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(lock, 64, 0).decode() or "unknown"
            raise LabInUse(
                f"the lab {name} is in use by process {owner}; wait for it, or name another lab with --name"
            ) from None
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(lock)


def _folder(name: str) -> Path:
    return places.labs() / name


def _is_kept(name: str) -> bool:
    try:
        return bool(json.loads((_folder(name) / "lab.json").read_text())["kept"])
    except (OSError, ValueError, KeyError):
        return False


def _remove(name: str) -> None:
    for record in sorted((_folder(name) / "processes").glob("*.json")):
        _end(record)
    _run_removers(name)
    shutil.rmtree(_folder(name), ignore_errors=True)


def _run_removers(name: str) -> None:
    """A sweep ends also what comes from parts that this process has not used, so these are loaded here."""
    for part in PARTS_WITH_REMOVERS:
        importlib.import_module(f".{part}", __package__)
    for remover in REMOVERS:
        remover(name)


def _end(record: Path, *, at_once: bool = False) -> None:
    """End a recorded process, but never another that has its number now."""
    known = json.loads(record.read_text())
    pid: int = known["pid"]
    for sent in [signal.SIGKILL] if at_once else [signal.SIGTERM, signal.SIGKILL]:
        if not _is_alive(known):
            return
        os.kill(pid, sent)
        limit = time.monotonic() + PATIENCE
        while _is_alive(known) and time.monotonic() < limit:
            _reap(pid)
            time.sleep(0.05)


def _is_alive(known: Mapping[str, Any]) -> bool:
    return bool(known["started"]) and _start_time(known["pid"]) == known["started"]


def _reap(pid: int) -> None:
    """A child of this very process stays a zombie until it is waited for."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _start_time(pid: int) -> str:
    """When a process began, in the kernel's ticks since boot; empty when there is no such process.

    One whose first thread has ended still holds its files and ports while another of its threads has not.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return ""
    state, threads, began = fields[0], int(fields[17]), fields[19]
    return "" if state == "Z" and threads <= 1 else f"{boot}/{began}"
