# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The call of the module service: from its options to return values."""

from __future__ import annotations

from typing import Any

from .call import Call
from .converge import converge
from .errors import Failed, InUse, NodeError
from .node import Node
from .options import CONTROLLER
from .outcome import Outcome, Prefetch, Removed
from .travel import named, read


def service(call: Call) -> dict[str, Any]:
    """Have the service in the state that the options ask for."""
    strange = [name for name in CONTROLLER if call.options[name] not in (None, "auto")]
    if strange:
        return _failed(
            f"The node cannot do anything with {', '.join(strange)}; the action edpm.services.service makes a "
            "bundle of these options, so call it by that name."
        )
    try:
        outcome = _done(call, call.node())
    except Failed as failure:
        told = {"log": failure.log, "rolled_back": failure.rolled_back, "changed": failure.changed}
        return _failed(str(failure), warnings=failure.warnings, **told)
    except InUse as refusal:
        return _failed(str(refusal), busy=refusal.lines)
    except NodeError as error:
        return _failed(str(error), warnings=error.warnings)
    return {**outcome.result(check=call.check), **({"diff": outcome.diff} if call.diff else {})}


def _failed(msg: str, **told: Any) -> dict[str, Any]:
    return {"failed": True, "msg": msg, "log": (), "rolled_back": False, **told}


def _done(call: Call, node: Node) -> Outcome | Prefetch | Removed:
    options, check = call.options, call.check
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
