# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A call of a module as it reaches the node, however it got there."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .commands import run
from .errors import NotPrepared
from .node import Node, real_node
from .record import Places


@dataclass(frozen=True)
class Call:
    """What a module is asked for."""

    options: Mapping[str, Any]
    #: Whether only to tell what would be done.
    check: bool = False
    #: Whether to tell how texts differ.
    diff: bool = False

    def node(self) -> Node:
        """The node on which this runs; refused for anybody but root."""
        if os.geteuid() != 0:
            raise NotPrepared("Only root may see and change the services of a node; give the task `become: true`.")
        return real_node(run, Places(root=_path(self.options["root"]), units=_path(self.options["unit_root"])))


#: Does what a call asks for; the answer is what the module returns, with `failed` where it did not work.
Work = Callable[[Call], dict[str, Any]]


def answer(module: Any, work: Work) -> None:
    """Have a call that Ansible's own module brought done, and end the module."""
    result = work(Call(module.params, module.check_mode, module._diff))
    for warning in result.pop("warnings", ()):
        module.warn(warning)
    end = module.fail_json if result.pop("failed", False) else module.exit_json
    end(**result)


def _path(given: str) -> Path:
    return Path(os.path.expandvars(given)).expanduser()
