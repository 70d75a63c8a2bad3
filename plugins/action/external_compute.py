# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.edpm.services.plugins.plugin_utils._control import report
from ansible_collections.edpm.services.plugins.plugin_utils._control.reconcile import reconcile
from ansible_collections.edpm.services.plugins.plugin_utils._control.source import CLUSTER_SPEC, cluster_of
from ansible_collections.edpm.services.plugins.plugin_utils._control.wanted import Chosen
from ansible_collections.edpm.services.plugins.plugin_utils._kube.errors import KubernetesError


class ActionModule(ActionBase):
    _requires_connection = False
    _supports_async = False
    _supports_check_mode = True
    _supports_diff = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        spec = {**CLUSTER_SPEC, "leaving_only": {"type": "bool", "default": False}}
        _validation, given = self.validate_argument_spec(argument_spec=spec)
        check, diff = self._task.check_mode, self._task.diff
        chosen = Chosen(frozenset(given["nodes"]), frozenset(given["services"]))
        try:
            source = cluster_of(given, self._task.args)
            only = given["leaving_only"]
            done = reconcile(source.settings, source.namespaces, chosen, check=check, leaving_only=only)
        except KubernetesError as error:
            if not given["required"]:
                return result | report.not_written(str(error))
            return result | {"failed": True, "msg": str(error)}
        self._display.display(report.table(done, check=check))
        answer = report.as_result(done, check=check, diff=diff)
        return result | (answer if given["required"] else report.lenient(answer))
