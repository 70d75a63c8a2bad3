# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible.plugins.loader import lookup_loader
from ansible_collections.edpm.services.plugins.plugin_utils._jobs import answer
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.asking import REFUSALS, carry_out
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.options import SPEC
from ansible_collections.edpm.services.plugins.plugin_utils._kube.connection import ARGUMENT_SPEC


class ActionModule(ActionBase):
    _requires_connection = False
    _supports_async = False
    _supports_check_mode = True
    _supports_diff = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validation, options = self.validate_argument_spec(
            argument_spec={**ARGUMENT_SPEC, **SPEC}, mutually_exclusive=[["nodes", "limit"]]
        )
        check = self._task.check_mode

        def matching(pattern: str) -> list[str]:
            lookup = lookup_loader.get(
                "ansible.builtin.inventory_hostnames", loader=self._loader, templar=self._templar
            )
            return list(lookup.run([pattern], variables=task_vars))

        try:
            outcome = carry_out(options, matching, self._display.display, check=check)
        except REFUSALS as error:
            return result | {"failed": True, "msg": str(error)}
        return result | answer.as_result(outcome, check=check)
