# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The first that runs on a node: what the controller sent becomes a package, and the call that came with it is done."""

from __future__ import annotations

import json
import sys
import syslog
from collections.abc import Mapping
from importlib import import_module
from importlib.abc import ExecutionLoader
from importlib.machinery import ModuleSpec
from typing import IO

PACKAGE = "edpm_services_node"


class Sent(ExecutionLoader):
    """Finds and loads the modules of the package in the texts that were sent; nothing of them is on the disk."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = {f"{PACKAGE}.{name}".replace(".__init__", ""): text for name, text in texts.items()}

    def find_spec(self, fullname: str, *_places: object) -> ModuleSpec | None:
        """How a module of the package is loaded; None for all others."""
        if fullname not in self._texts:
            return None
        return ModuleSpec(fullname, self, origin=self.get_filename(fullname), is_package=self.is_package(fullname))

    def is_package(self, fullname: str) -> bool:
        """Whether others are in it."""
        return fullname == PACKAGE

    def get_filename(self, fullname: str) -> str:
        """What Python calls the module's file when it fails."""
        return f"{fullname}.py"

    def get_source(self, fullname: str) -> str:
        """The text of a module."""
        return self._texts[fullname]


def begin(texts: Mapping[str, str], asked: IO[bytes], told: IO[str]) -> None:
    """Do the call that is asked for, and tell the answer on the last line."""
    sys.meta_path.insert(0, Sent(texts))
    question = json.load(asked)
    _log(**question["log"])
    call = import_module(f"{PACKAGE}.call").Call(**question["call"])
    result = getattr(import_module(f"{PACKAGE}.{question['room']}"), question["work"])(call)
    told.write(f"\n{json.dumps(result)}\n")


def _log(name: str, facility: str, text: str) -> None:
    """Tell the node's log of the call, as every module of Ansible does."""
    if text:
        syslog.openlog(name, 0, getattr(syslog, facility, syslog.LOG_USER))
        syslog.syslog(syslog.LOG_INFO, text)
