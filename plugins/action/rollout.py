# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

from ansible import constants
from ansible_collections.edpm.services.plugins.plugin_utils._report.lines import Line, Tone
from ansible_collections.edpm.services.plugins.plugin_utils._report.refusals import REFUSALS
from ansible_collections.edpm.services.plugins.plugin_utils._rollout import steps
from ansible_collections.edpm.services.plugins.plugin_utils._rollout.calling import NodeAction

COLOURS = {Tone.BAD: constants.COLOR_ERROR, Tone.GOOD: constants.COLOR_OK, Tone.REMARK: constants.COLOR_WARN}


class ActionModule(NodeAction):
    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        known = task_vars or {}
        _validation, given = self.validate_argument_spec(argument_spec=steps.SPEC)
        try:
            return result | steps.take(given, known, lambda name, asked: self.call(name, asked, known), self._tell)
        except REFUSALS as error:
            return result | {"failed": True, "msg": str(error)}

    def _tell(self, line: Line) -> None:
        self._display.display(line.text, color=COLOURS.get(line.tone))
