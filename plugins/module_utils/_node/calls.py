# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The two module calls: from options to return values. A module is its documentation and one of these."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .commands import NOT_FOUND, Result, Run
from .converge import converge
from .errors import Failed, InUse, NodeError, NotPrepared
from .facts import facts, host_keys, public_contents
from .node import Node, real_node
from .outcome import Outcome, Prefetch, Removed
from .prefetch import prefetch
from .previous import go_back
from .record import Places
from .removal import remove
from .travel import named, read


def refuse_controllers(module: Any, names: Iterable[str]) -> None:
    """Refuse options that only the controller's half knows what to do with."""
    strange = [name for name in names if module.params[name] not in (None, "auto")]
    if strange:
        module.fail_json(
            msg=f"The node cannot do anything with {', '.join(strange)}; the action edpm.services.service makes a "
            "bundle of these options, so call it by that name."
        )


def service(module: Any) -> None:
    """Have the service in the state that the module's options ask for."""
    try:
        _require_root()
        outcome = _done(module, real_node(runner(module), _places(module)))
    except Failed as failure:
        module.fail_json(
            msg=str(failure), log=failure.log, rolled_back=failure.rolled_back, changed=failure.rolled_back
        )
    except InUse as refusal:
        module.fail_json(msg=str(refusal), log=(), rolled_back=False, busy=refusal.lines)
    except NodeError as error:
        module.fail_json(msg=str(error), log=(), rolled_back=False)
    else:
        result = outcome.result(check=module.check_mode)
        for warning in result.pop("warnings"):
            module.warn(warning)
        module.exit_json(**result, **({"diff": outcome.diff} if module._diff else {}))


def service_facts(module: Any) -> None:
    """Tell of all services of the node."""
    options = module.params
    try:
        _require_root()
        node = real_node(runner(module), _places(module))
        found = {
            "services": facts(node, ask=options["health_checks"]),
            "missing_images": node.podman.missing(options["images"]),
            "ssh_host_keys": host_keys(node),
            "contents": public_contents(node, options["read"]),
        }
    except NodeError as error:
        module.fail_json(msg=str(error))
    else:
        module.exit_json(changed=False, **found)


def _done(module: Any, node: Node) -> Outcome | Prefetch | Removed:
    options, check = module.params, module.check_mode
    patience, state = options["lock_timeout"], options["state"]
    if state == "present":
        return converge(node, read(options["bundle"]), check=check, patience=patience)
    if state == "pulled":
        return prefetch(node, read(options["bundle"]), check=check, patience=patience)
    name = named(options["service"], options["instance"])
    if state == "previous":
        return go_back(node, name, check=check, patience=patience)
    force, purge = options["force"], options["purge_data"]
    return remove(node, name, force=force, purge=purge, check=check, patience=patience)


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
