# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

from ansible_collections.edpm.services.plugins.plugin_utils._report.refusals import REFUSALS
from ansible_collections.edpm.services.plugins.plugin_utils._rollout import looking
from ansible_collections.edpm.services.plugins.plugin_utils._rollout.calling import NodeAction


class ActionModule(NodeAction):
    _supports_diff = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        known = task_vars or {}
        try:
            look = looking.Look.at(str(known.get("inventory_hostname", "")), self._task.args)
        except REFUSALS as error:
            return result | {"failed": True, "msg": str(error)}
        answer = self.call("service_facts", look.options(self._task.args), known)
        return result | look.judged(answer)
