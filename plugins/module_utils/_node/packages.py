# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Packages of the node, installed where they are missing and never removed: others may have come to need them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from .commands import NOT_FOUND, Run, bounded
from .errors import NodeRefused

_LIMIT = 900
_APT = ("apt-get", "--yes", "--quiet=2", "--option=DPkg::Lock::Timeout=120")
_INSTALL = {
    "apt": (*_APT, "--no-install-recommends", "--option=Dpkg::Options::=--force-confold", "install", "--"),
    "dnf": ("dnf", "--assumeyes", "--quiet", "--setopt=install_weak_deps=False", "install", "--"),
}
#: What may help when a package is not found: the lists are old, or were never fetched.
_REFRESH = {"apt": (*_APT, "update"), "dnf": ("dnf", "--quiet", "makecache", "--refresh")}


class Packages:
    """The node's packages, by the manager that its os-release tells of."""

    def __init__(self, run: Run, etc: Path) -> None:
        self._run = run
        self._release = etc / "os-release"

    def missing(self, service: str, wanted: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
        """Those that the node lacks."""
        if not any(wanted.values()):
            return ()
        manager = self._manager()
        if manager not in wanted:
            raise NodeRefused(
                f"{service} names packages for {' and '.join(sorted(wanted))}, and this node uses {manager}; name its "
                "packages in the definition, or an empty list where none is needed. Nothing was touched."
            )
        return tuple(self._missing(manager, wanted[manager]))

    def have(self, service: str, wanted: Mapping[str, Sequence[str]]) -> None:
        """Install what is missing. A node that has everything never reaches out."""
        missing = self.missing(service, wanted)
        if not missing:
            return
        manager = self._manager()
        argv = bounded(_LIMIT, [*_INSTALL[manager], *missing])
        environment = {"DEBIAN_FRONTEND": "noninteractive"}
        answer = self._run(argv, environment)
        if not answer.ok and answer.rc != NOT_FOUND:
            self._run(bounded(_LIMIT, list(_REFRESH[manager])), environment)
            answer = self._run(argv, environment)
        if not answer.ok:
            raise NodeRefused(
                f"{service} needs {', '.join(missing)}, which {manager} cannot install on the node: {answer.said}; see "
                "to the node's package sources, or install it there. The service was not touched."
            )

    def _manager(self) -> str:
        try:
            text = self._release.read_text(errors="replace")
        except OSError:
            text = ""
        names = re.findall(r"""^ID(?:_LIKE)?=["']?([^"'\n]*)""", text, re.MULTILINE)
        return "apt" if {"debian", "ubuntu"} & set(" ".join(names).split()) else "dnf"

    def _missing(self, manager: str, names: Sequence[str]) -> list[str]:
        if not names:
            return []
        if manager == "apt":
            shown = "--showformat=${Package} ${db:Status-Status}\\n"
            told = self._ask(["dpkg-query", "--show", shown, "--", *names])
            there = {line.split()[0] for line in told.splitlines() if line.endswith(" installed")}
        else:
            told = self._ask(["rpm", "--query", "--queryformat=%{NAME} installed\\n", "--", *names])
            there = {
                line.split()[0] for line in told.splitlines() if line.endswith(" installed") and line.count(" ") == 1
            }
        return [name for name in names if name.partition(":")[0] not in there]

    def _ask(self, argv: list[str]) -> str:
        answer = self._run(argv, {})
        if answer.rc == NOT_FOUND:
            raise NodeRefused(
                f"The node has no {argv[0]}, so nothing can be said about its packages; install them by hand and take "
                "them out of the definition. Nothing was touched."
            )
        return answer.out
