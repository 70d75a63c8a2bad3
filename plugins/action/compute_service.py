# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import shlex
from functools import partial
from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.edpm.services.plugins.plugin_utils._kube import snapshot
from ansible_collections.edpm.services.plugins.plugin_utils._kube.errors import KubernetesError
from ansible_collections.edpm.services.plugins.plugin_utils._openstack.credentials import settings
from ansible_collections.edpm.services.plugins.plugin_utils._openstack.errors import OpenStackError
from ansible_collections.edpm.services.plugins.plugin_utils._openstack.nova import Nova
from ansible_collections.edpm.services.plugins.plugin_utils._openstack.states import REASON, STATES, Order, carry_out

SPEC: dict[str, Any] = {
    "hosts": {"type": "list", "elements": "str", "required": True},
    "state": {"type": "str", "required": True, "choices": list(STATES)},
    "cloud": {"type": "str", "default": ""},
    "namespace": {"type": "str", "default": ""},
    "reason": {"type": "str", "default": REASON},
    "on_servers": {"type": "str", "default": "refuse", "choices": ["refuse", "migrate"]},
    "discover_command": {"type": "list", "elements": "str", "default": []},
    "timeout": {"type": "int", "default": 120},
}


class ActionModule(ActionBase):
    _supports_async = False
    _supports_check_mode = True
    _supports_diff = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validation, given = self.validate_argument_spec(argument_spec=SPEC)
        command = given["discover_command"]
        order = Order(
            state=given["state"],
            hosts=tuple(given["hosts"]),
            reason=given["reason"],
            migrate=given["on_servers"] == "migrate",
            timeout=given["timeout"],
            check=self._task.check_mode,
            discover=partial(self._discover, command) if command else None,
        )
        try:
            way_in = settings(given["cloud"], given["namespace"], snapshot.source(), snapshot.taken())
            done = carry_out(Nova.connected(way_in), order)
        except (OpenStackError, KubernetesError) as error:
            return result | {"failed": True, "msg": str(error)}
        changed = [one.host for one in done if one.changed]
        told = "; ".join(one.told for one in done)
        return result | {"changed": bool(changed), "changed_hosts": changed, "msg": f"{told}."}

    def _discover(self, command: list[str]) -> None:
        """Run the site's command on the host of the task."""
        answer = self._low_level_execute_command(shlex.join(command))
        if answer["rc"] != 0:
            lines = (answer["stderr"] or answer["stdout"]).strip().splitlines()
            said = lines[-1] if lines else "it printed nothing"
            raise OpenStackError(f"The command that discovers hosts failed ({answer['rc']}): {said}; see to it.")
