# SPDX-License-Identifier: GPL-3.0-or-later
"""An ssh-agent of the run's own: keys live in its memory, and it goes when the run goes, however that ends.

A shell waits at the end of a pipe whose other end only this process and its forks hold. The kernel closes that end
when the last of them is gone, killed or not; then the shell removes the folder and ends the agent.
"""

from __future__ import annotations

import hashlib
import os
import select
import shutil
import socket
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast

from .ssh_keys import TIMEOUT, BadKeyError, quiet_environment

SOCKET_VARIABLE = "SSH_AUTH_SOCK"
PREFIX = "edpm-ssh-"
# A socket's path may be 104 bytes long on some systems, and temporary folders are deep on others.
LONGEST = 70
# A terminal's Ctrl-C and a service manager's SIGTERM reach the shell too, and it must outlive the run.
WATCH = 'trap "" INT TERM HUP; echo; cat >/dev/null; rm -rf -- "$1"; kill "$SSH_AGENT_PID"'


class AgentError(Exception):
    """No agent could be started; the text is a sentence for a person."""


@dataclass
class Agent:
    """An agent that runs. `watch` is the shell that ends it, `lifeline` the end of the pipe that the shell waits at."""

    folder: Path
    lifeline: int
    watch: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _files: dict[str, Path] = field(default_factory=dict)

    @property
    def socket(self) -> Path:
        """Where ssh finds it."""
        return self.folder / "agent"

    def add(self, key: bytes, public: str) -> Path:
        """Load a key, and name its public half in a file: the file by which ssh chooses among the keys."""
        if public in self._files:
            return self._files[public]
        done = subprocess.run(
            ["ssh-add", "-q", "-"],
            input=key,
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
            env=quiet_environment({SOCKET_VARIABLE: str(self.socket)}),
            start_new_session=True,
        )
        if done.returncode != 0:
            raise BadKeyError("is refused by ssh-add; store another key there.")
        file = self.folder / f"{hashlib.sha256(public.encode()).hexdigest()[:16]}.pub"
        file.write_text(f"{public}\n", encoding="utf-8")
        self._files[public] = file
        return file


def own_agent() -> Agent:
    """The agent of this run, started when it is first asked for."""
    global _agent  # noqa: PLW0603 - one for the process and its forks, like the snapshot
    if _agent is None or not is_alive(_agent.socket):
        _sweep()
        _agent = _start(_folder())
    return _agent


def users_agent_has_keys() -> bool:
    """Whether the person who started the run brought an agent, and one that can open something."""
    path = os.environ.get(SOCKET_VARIABLE)
    if not path or (_agent is not None and path == str(_agent.socket)):
        return False
    listed = subprocess.run(["ssh-add", "-l"], capture_output=True, timeout=TIMEOUT, check=False)
    return listed.returncode == 0


def is_alive(path: Path) -> bool:
    """Whether somebody listens at a socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


_agent: Agent | None = None


def _start(folder: Path) -> Agent:
    waiting, lifeline = os.pipe()
    agent = Agent(folder, lifeline)
    try:
        watch = agent.watch = subprocess.Popen(
            ["ssh-agent", "-a", str(agent.socket), "sh", "-c", WATCH, "edpm-ssh-agent", str(folder)],
            stdin=waiting,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=quiet_environment(),
            start_new_session=True,
            cwd="/",
        )
    except BaseException:
        os.close(lifeline)
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        os.close(waiting)
    with cast(IO[bytes], watch.stdout) as output:
        begun = select.select([output], [], [], TIMEOUT)[0]
        if not begun or not output.read(1):
            os.close(lifeline)
            shutil.rmtree(folder, ignore_errors=True)
            raise AgentError(f"ssh-agent does not start in {folder}; run ssh-agent by hand there to see why.")
    return agent


def _folder() -> Path:
    places = [place for place in _places() if len(place) <= LONGEST and os.access(place, os.W_OK)]
    if not places:
        raise AgentError("There is no folder for the socket of an ssh-agent; let TMPDIR name one with a short path.")
    return Path(tempfile.mkdtemp(prefix=PREFIX, dir=places[0]))


def _places() -> tuple[str, ...]:
    return (tempfile.gettempdir(), "/tmp")  # noqa: S108 - mkdtemp makes a private folder in it


def _sweep() -> None:
    """Remove folders whose agent and watch were killed together, as when a whole machine or session ends."""
    for place in _places():
        for folder in Path(place).glob(f"{PREFIX}*"):
            socket_file = folder / "agent"
            try:
                ours = folder.stat().st_uid == os.geteuid() and socket_file.is_socket()
            except OSError:
                continue
            if ours and not is_alive(socket_file):
                shutil.rmtree(folder, ignore_errors=True)
