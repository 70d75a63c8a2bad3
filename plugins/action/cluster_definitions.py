# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.edpm.services.plugins.plugin_utils._kube import report
from ansible_collections.edpm.services.plugins.plugin_utils._kube.connection import ARGUMENT_SPEC, Settings
from ansible_collections.edpm.services.plugins.plugin_utils._kube.definitions import install_definitions
from ansible_collections.edpm.services.plugins.plugin_utils._kube.errors import KubernetesError


class ActionModule(ActionBase):
    _requires_connection = False
    _supports_async = False
    _supports_check_mode = True
    _supports_diff = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        spec = {
            **ARGUMENT_SPEC,
            "definitions": {"type": "list", "elements": "path", "required": True},
            "wait_timeout": {"type": "int", "default": 60},
        }
        _validation, options = self.validate_argument_spec(argument_spec=spec)
        check, diff = self._task.check_mode, self._task.diff
        paths = [Path(self._find_needle("files", path)) for path in options["definitions"]]
        try:
            outcomes = install_definitions(
                Settings.from_options(options), paths, check=check, wait_timeout=options["wait_timeout"]
            )
        except KubernetesError as error:
            return result | {"failed": True, "msg": str(error)}
        self._display.display(report.table(outcomes, check=check))
        return result | report.as_result(outcomes, check=check, diff=diff)
