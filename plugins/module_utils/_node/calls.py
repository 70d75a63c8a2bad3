# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The call of the module service: from its options to return values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .converge import converge
from .errors import Failed, InUse, NodeError
from .modules import node_of
from .node import Node
from .outcome import Outcome, Prefetch, Removed
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
        outcome = _done(module, node_of(module))
    except Failed as failure:
        _warn(module, failure.warnings)
        module.fail_json(msg=str(failure), log=failure.log, rolled_back=failure.rolled_back, changed=failure.changed)
    except InUse as refusal:
        module.fail_json(msg=str(refusal), log=(), rolled_back=False, busy=refusal.lines)
    except NodeError as error:
        _warn(module, error.warnings)
        module.fail_json(msg=str(error), log=(), rolled_back=False)
    else:
        result = outcome.result(check=module.check_mode)
        _warn(module, result.pop("warnings"))
        module.exit_json(**result, **({"diff": outcome.diff} if module._diff else {}))


def _warn(module: Any, warnings: Iterable[str]) -> None:
    for warning in warnings:
        module.warn(warning)


def _done(module: Any, node: Node) -> Outcome | Prefetch | Removed:
    options, check = module.params, module.check_mode
    patience, state = options["lock_timeout"], options["state"]
    if state == "present":
        return converge(node, read(options["bundle"]), check=check, patience=patience)
    # A node reads all that it imports anew in each call, so the rarer states are left out until they are asked for.
    if state == "pulled":
        from .prefetch import prefetch  # noqa: PLC0415  (see above)

        return prefetch(node, read(options["bundle"]), check=check, patience=patience)
    name = named(options["service"], options["instance"])
    if state == "previous":
        from .previous import go_back  # noqa: PLC0415  (see above)

        return go_back(node, name, check=check, patience=patience)
    from .removal import remove  # noqa: PLC0415  (see above)

    force, purge = options["force"], options["purge_data"]
    return remove(node, name, force=force, purge=purge, check=check, patience=patience)
