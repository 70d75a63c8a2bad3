# SPDX-License-Identifier: GPL-3.0-or-later
"""Running a program to its end, with a time limit and an error that a person understands."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from .errors import LabError

Result = subprocess.CompletedProcess[str]


class CommandFailed(LabError):
    """A program ended with an error; `result` holds what it printed."""

    def __init__(self, message: str, result: Result) -> None:
        super().__init__(message)
        self.result = result


def run(
    argv: Sequence[str | Path],
    *,
    timeout: float = 120,
    check: bool = True,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: str | None = None,
    log: Path | None = None,
    called: Sequence[str | Path] | None = None,
) -> Result:
    """Run a program; `env` is added to the environment, `log` receives its output instead of memory.

    A program that outlives its time limit is ended with all its children. Errors tell of it in the words `called`.
    """
    words = [str(word) for word in argv]
    named = [str(word) for word in called or argv]
    if not shutil.which(words[0]):
        raise LabError(f"{words[0]} is not there; is it installed?")
    sink = log.open("ab") if log else subprocess.PIPE
    try:
        process = subprocess.Popen(
            [*tied(), *words],
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=sink,
            stderr=subprocess.STDOUT if log else subprocess.PIPE,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            text=True,
            errors="replace",
            process_group=0,
        )
    finally:
        if not isinstance(sink, int):
            sink.close()
    try:
        out, err = process.communicate(stdin, timeout=timeout)
    except BaseException as error:
        _end_group(process)
        if isinstance(error, subprocess.TimeoutExpired):
            raise LabError(f"{_short(named)} did not end within {timeout:.0f} s{_see(log)}") from error
        raise
    result = subprocess.CompletedProcess(named, process.returncode, out or "", err or "")
    if check and result.returncode != 0:
        raise CommandFailed(_failure(result, log), result)
    return result


def tied() -> list[str]:
    """Words to put before a command so that it dies with the process that started it, even when that is killed."""
    return ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []


def _failure(result: Result, log: Path | None) -> str:
    text = log.read_text(errors="replace")[-4000:] if log else result.stderr + result.stdout
    if "No space left on device" in text:
        return f"the disk is full while {_short(result.args)} ran; free some space and run it again"
    last = " / ".join(line.strip() for line in text.strip().splitlines()[-3:])
    return f"{_short(result.args)} failed ({result.returncode}): {last or 'it printed nothing'}{_see(log)}"


def _see(log: Path | None) -> str:
    return f" (all of it is in {log})" if log else ""


def _short(words: Sequence[str]) -> str:
    line = shlex.join(words)
    return line if len(line) <= 100 else line[:97] + "..."


def _end_group(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
