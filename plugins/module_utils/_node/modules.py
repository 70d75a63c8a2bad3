# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A node as a module finds it: with its way of running programs, and at the places that its options name."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .commands import NOT_FOUND, Result, Run
from .errors import NotPrepared
from .node import Node, real_node
from .record import Places


def node_of(module: Any) -> Node:
    """The node on which the module runs; refused for anybody but root."""
    if os.geteuid() != 0:
        raise NotPrepared("Only root may see and change the services of a node; give the task `become: true`.")
    return real_node(runner(module), Places(root=Path(module.params["root"]), units=Path(module.params["unit_root"])))


def runner(module: Any) -> Run:
    """The module's own way of running programs; words are never read by a shell nor expanded."""

    def run(argv: Sequence[str], environment: Mapping[str, str]) -> Result:
        try:
            rc, out, err = module.run_command(
                list(argv),
                environ_update={"LC_ALL": "C.UTF-8", **environment},
                expand_user_and_vars=False,
                handle_exceptions=False,
                errors="replace",
            )
        except OSError as error:
            return Result(NOT_FOUND, "", f"{argv[0]}: {error.strerror}")
        return Result(rc, out, err)

    return run
