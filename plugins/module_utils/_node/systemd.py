# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The node's systemd, and the generator that makes its units from Quadlet files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .commands import NOT_FOUND, Run
from .errors import NotPrepared, UnitRefused, one_line

_SHOWN = (
    *("ActiveState", "SubState", "LoadState", "InvocationID", "NRestarts", "Result", "UnitFileState", "MainPID"),
    *("Triggers", "NeedDaemonReload"),
)
#: Where distributions put the generator.
GENERATORS = (
    "/usr/lib/systemd/system-generators/podman-system-generator",
    "/lib/systemd/system-generators/podman-system-generator",
    "/usr/libexec/podman/quadlet",
    "/usr/lib/podman/quadlet",
)
_COMPLAINT = re.compile(r"\b(ERROR|CRITICAL|FATAL|[Ff]atal|[Ee]rror|[Pp]anic|Traceback)\b|\w(Error|Exception)\b")
#: What a service logs before its own words: when, its process, how bad it is, where in its code and in which request.
_BEFORE_WORDS = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\S*( \d+)? [A-Z]+ \S+ ?(\[[^]]*\] ?)?")
#: The lines of a traceback before its last, and those that say nothing.
_ON_THE_WAY = re.compile(r"\s|Traceback \(most recent call last\)|$")
_READ_LINES = 400
#: What podman itself logs about each step in a container's life.
_NOISE = re.compile(r"^\s*$| m=\+[0-9.]+ (container|image) |^[0-9a-f]{64}$|^conmon [0-9a-f]+ <n")


@dataclass(frozen=True)
class UnitState:
    """A unit as systemd sees it."""

    active: str = "inactive"
    sub: str = "dead"
    load: str = "not-found"
    invocation: str = ""
    restarts: int = 0
    result: str = ""
    #: Whether it is started at boot, in systemctl's word, such as `enabled` or `static`.
    file: str = ""
    #: The number of its main process; of a container that is the one that watches over it.
    main: int = 0
    #: What it starts when somebody comes; of a socket that is its service.
    triggers: str = ""
    #: Whether its file has changed since systemd read it.
    stale: bool = False

    @property
    def is_active(self) -> bool:
        """Whether it is up."""
        return self.active == "active"


class Systemd:
    """systemctl, journalctl and the generator."""

    def __init__(self, run: Run, generators: Sequence[str] = GENERATORS) -> None:
        self._run = run
        self._generators = generators

    def states(self, units: Sequence[str]) -> dict[str, UnitState]:
        """The states of units, asked for at once."""
        if not units:
            return {}
        shown = self._ask("show", f"--property={','.join(_SHOWN)}", "--", *units)
        blocks = [block for block in shown.split("\n\n") if block.strip()]
        return {unit: _state(block) for unit, block in zip(units, blocks)}

    def state(self, unit: str) -> UnitState:
        """The state of one unit."""
        return self.states([unit]).get(unit, UnitState())

    def accepts(self, units: Sequence[str], folders: Sequence[Path]) -> None:
        """Refuse those files of the first folder of which no service is made; the others are for what these name."""
        generator = next((path for path in self._generators if Path(path).exists()), None)
        if generator is None:
            raise NotPrepared(
                "The node has no Quadlet: none of its known places has podman's systemd generator; "
                "install podman 4.4 or newer with Quadlet."
            )
        if not units:
            return
        answer = self._run([generator, "--dryrun"], {"QUADLET_UNIT_DIRS": ":".join(map(str, folders))})
        for unit in units:
            if not _made(answer.out, folders[0] / unit):
                told = [line for line in answer.err.splitlines() if unit in line and "Loading source" not in line]
                said = one_line(told[-1].partition("]: ")[2] or told[-1]) if told else answer.said
                raise UnitRefused(f"Quadlet makes no service of {unit}: {said}; correct its text. Nothing was touched.")

    def reload(self) -> None:
        """Let systemd read its units again."""
        self._ask("daemon-reload")

    def restart(self, units: Sequence[str]) -> str:
        """Start units anew in one go; the answer is what systemctl complained about, empty when all is well."""
        self._run(["systemctl", "reset-failed", "--", *units], {})
        answer = self._run(["systemctl", "restart", "--", *units], {})
        return "" if answer.ok else answer.said

    def start(self, unit: str) -> str:
        """Start a unit that is not up; the answer is as with restart."""
        answer = self._run(["systemctl", "start", "--", unit], {})
        return "" if answer.ok else answer.said

    def stop(self, units: Sequence[str]) -> None:
        """Stop units; those that are not there are fine."""
        if units:
            self._run(["systemctl", "stop", "--", *units], {})
            self._run(["systemctl", "reset-failed", "--", *units], {})

    def change(self, verb: str, unit: str, *words: str) -> str:
        """Enable, disable, mask or unmask a unit; the answer is as with restart."""
        answer = self._run(["systemctl", verb, *words, "--", unit], {})
        return "" if answer.ok else answer.said

    def log(self, unit: str, since: float = 0, lines: int = 20) -> tuple[str, ...]:
        """The last lines that a unit logged since a moment, and before them complaints that came earlier.

        A service that dies is started again and again: its last lines may be those of a start.
        """
        asked = ["journalctl", f"--unit={unit}", f"--since=@{int(since)}", f"--lines={_READ_LINES}"]
        answer = self._run([*asked, "--output=cat", "--no-pager", "--quiet"], {})
        told = [line for line in answer.out.splitlines() if not _NOISE.search(line)]
        earlier = complaints(told[:-lines])[-lines // 2 :]
        return (*earlier, *told[len(earlier) - lines :])

    def _ask(self, *words: str) -> str:
        answer = self._run(["systemctl", *words], {})
        if answer.rc == NOT_FOUND or "not been booted with systemd" in answer.err:
            raise NotPrepared(
                "The node does not run systemd, which starts and watches the services; use a node that does."
            )
        if not answer.ok:
            raise NotPrepared(
                f"systemctl {words[0]} failed on the node: {answer.said}; repair its systemd, then run again."
            )
        return answer.out


def complaints(lines: Sequence[str]) -> list[str]:
    """Those of a log's lines that tell of a fault: of a traceback its end, and what is said at every start once."""
    told: dict[str, str] = {}
    for line in filter(_COMPLAINT.search, lines):
        words = _BEFORE_WORDS.sub("", line)
        if not _ON_THE_WAY.match(words):
            told.pop(words, None)
            told[words] = line
    return list(told.values())


def service_of(unit: str) -> str:
    """The service that Quadlet makes of a file."""
    stem, _dot, kind = unit.rpartition(".")
    return f"{stem}.service" if kind in ("container", "kube") else f"{stem}-{kind}.service"


def _made(out: str, unit: Path) -> bool:
    """Whether the generator's answer has the unit's service, made from this very file."""
    text = out.partition(f"---{service_of(unit.name)}---\n")[2]
    source = re.search(r"^SourcePath=(.+)$", text.partition("\n---")[0], re.MULTILINE)
    return source is not None and Path(source.group(1)).resolve() == unit.resolve()


def _state(block: str) -> UnitState:
    values = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
    return UnitState(
        active=values.get("ActiveState", "inactive"),
        sub=values.get("SubState", "dead"),
        load=values.get("LoadState", "not-found"),
        invocation=values.get("InvocationID", ""),
        restarts=_number(values.get("NRestarts", "")),
        result=values.get("Result", ""),
        file=values.get("UnitFileState", ""),
        main=_number(values.get("MainPID", "")),
        triggers=values.get("Triggers", ""),
        stale=values.get("NeedDaemonReload") == "yes",
    )


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0
