# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

from ansible import constants
from ansible.plugins.action import ActionBase
from ansible_collections.edpm.services.plugins.plugin_utils._report.lines import Tone, blocks
from ansible_collections.edpm.services.plugins.plugin_utils._report.overview import Question
from ansible_collections.edpm.services.plugins.plugin_utils._report.plans import SOURCE_SPEC, plan_of
from ansible_collections.edpm.services.plugins.plugin_utils._report.refusals import REFUSALS
from ansible_collections.edpm.services.plugins.plugin_utils._report.rendered import rendered

COLOURS = {Tone.BAD: constants.COLOR_ERROR, Tone.GOOD: constants.COLOR_OK, Tone.REMARK: constants.COLOR_WARN}
SPEC: dict[str, Any] = {
    **SOURCE_SPEC,
    **{name: {"type": "str", "default": ""} for name in ("node", "service")},
    "output_dir": {"type": "path", "required": True},
    "show_secrets": {"type": "bool", "default": False},
}


class ActionModule(ActionBase):
    _requires_connection = False
    _supports_async = False
    _supports_check_mode = True
    _supports_diff = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validation, given = self.validate_argument_spec(argument_spec=SPEC)
        question = Question(given["node"], given["service"])
        modes = {"check": self._task.check_mode, "diff": self._task.diff, "show_secrets": given["show_secrets"]}
        try:
            plan = plan_of(given, self._task.args, self._loader.get_basedir())
            found = rendered(plan, question, given["output_dir"], **modes)
        except REFUSALS as error:
            return result | {"failed": True, "msg": str(error)}
        for text, tone in blocks(found.lines):
            self._display.display(text, color=COLOURS.get(tone))
        return result | found.result
