# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The two module calls: from options to return values. A module is its documentation and one of these."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .commands import NOT_FOUND, Result, Run
from .converge import converge
from .errors import Failed, NodeError, NotPrepared
from .facts import facts
from .node import real_node
from .record import Places
from .travel import read


def service(module: Any) -> None:
    """Converge the bundle in the module's options."""
    try:
        _require_root()
        bundle = read(module.params["bundle"])
        node = real_node(runner(module), _places(module))
        outcome = converge(node, bundle, check=module.check_mode, patience=module.params["lock_timeout"])
    except Failed as failure:
        module.fail_json(
            msg=str(failure), log=failure.log, rolled_back=failure.rolled_back, changed=failure.rolled_back
        )
    except NodeError as error:
        module.fail_json(msg=str(error), log=(), rolled_back=False)
    else:
        result = outcome.result(check=module.check_mode)
        for warning in result.pop("warnings"):
            module.warn(warning)
        module.exit_json(**result, **({"diff": outcome.diff} if module._diff else {}))


def service_facts(module: Any) -> None:
    """Tell of all services of the node."""
    try:
        _require_root()
        node = real_node(runner(module), _places(module))
        found = facts(node, ask=module.params["health_checks"])
    except NodeError as error:
        module.fail_json(msg=str(error))
    else:
        module.exit_json(changed=False, services=found)


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


def _require_root() -> None:
    if os.geteuid() != 0:
        raise NotPrepared("Only root may see and change the services of a node; give the task `become: true`.")


def _places(module: Any) -> Places:
    return Places(root=Path(module.params["root"]), units=Path(module.params["unit_root"]))
