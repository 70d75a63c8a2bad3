# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.edpm.services.plugins.plugin_utils._control import report
from ansible_collections.edpm.services.plugins.plugin_utils._control.results import RESULTS_SPEC, results_of, run_of
from ansible_collections.edpm.services.plugins.plugin_utils._control.source import CLUSTER_SPEC, cluster_of
from ansible_collections.edpm.services.plugins.plugin_utils._control.status import report_status
from ansible_collections.edpm.services.plugins.plugin_utils._control.wanted import Chosen
from ansible_collections.edpm.services.plugins.plugin_utils._kube.errors import KubernetesError


class ActionModule(ActionBase):
    _requires_connection = False
    _supports_async = False
    _supports_check_mode = True
    _supports_diff = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validation, given = self.validate_argument_spec(argument_spec={**CLUSTER_SPEC, **RESULTS_SPEC})
        check, diff = self._task.check_mode, self._task.diff
        chosen = Chosen(frozenset(given["nodes"]), frozenset(given["services"]))
        try:
            source = cluster_of(given, self._task.args)
            told, run = results_of(given["results"]), run_of(given)
            done = report_status(source.settings, source.namespaces, told, run, chosen=chosen, check=check)
        except KubernetesError as error:
            if not given["required"]:
                return result | report.not_written(str(error))
            return result | {"failed": True, "msg": str(error)}
        self._display.display(report.status_sentence(done, check=check))
        answer = report.as_status_result(done, check=check, diff=diff)
        return result | (answer if given["required"] else report.lenient(answer, done.unknown))
