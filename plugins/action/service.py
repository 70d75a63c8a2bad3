# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleError
from ansible_collections.edpm.services.plugins.plugin_utils._report.refusals import REFUSALS
from ansible_collections.edpm.services.plugins.plugin_utils._rollout import asking
from ansible_collections.edpm.services.plugins.plugin_utils._rollout.calling import NodeAction


class ActionModule(NodeAction):
    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        known = task_vars or {}
        if "bundle" in self._task.args:
            return result | self.call("service", dict(self._task.args), known)
        _validation, given = self.validate_argument_spec(argument_spec=asking.SPEC)
        try:
            asked = asking.asked(given, self._task.args, known, self._find, lambda path: self.content(path, known))
        except REFUSALS as error:
            return result | {"failed": True, "msg": str(error)}
        if asked.answer is not None:
            return result | asked.answer
        return result | self.call("service", dict(asked.options), known)

    def _find(self, path: str) -> str:
        """Where a file of the controller lies; that it is not there is told by who wants to read it."""
        try:
            return str(self._find_needle("files", path))
        except AnsibleError:
            return path
