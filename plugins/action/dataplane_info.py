# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

from ansible import constants
from ansible.plugins.action import ActionBase
from ansible_collections.edpm.services.plugins.plugin_utils._report.answer import answer
from ansible_collections.edpm.services.plugins.plugin_utils._report.lines import Tone, blocks
from ansible_collections.edpm.services.plugins.plugin_utils._report.overview import Question
from ansible_collections.edpm.services.plugins.plugin_utils._report.plans import SOURCE_SPEC, plan_of
from ansible_collections.edpm.services.plugins.plugin_utils._report.refusals import REFUSALS

COLOURS = {Tone.BAD: constants.COLOR_ERROR, Tone.GOOD: constants.COLOR_OK, Tone.REMARK: constants.COLOR_WARN}
SPEC: dict[str, Any] = {
    **SOURCE_SPEC,
    **{name: {"type": "str", "default": ""} for name in ("node", "service", "option")},
    "explain": {"type": "bool", "default": False},
    "output": {"type": "str", "default": "text", "choices": ["text", "json", "html"]},
    "output_file": {"type": "path", "default": ""},
}


class ActionModule(ActionBase):
    _requires_connection = False
    _supports_async = False
    _supports_check_mode = True
    _supports_diff = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validation, given = self.validate_argument_spec(argument_spec=SPEC)
        question = Question(given["node"], given["service"], given["option"])
        chosen = {name: given[name] for name in ("explain", "output", "output_file")}
        try:
            plan = plan_of(given, self._task.args, self._loader.get_basedir())
            found = answer(plan, question, **chosen, check=self._task.check_mode)
        except REFUSALS as error:
            return result | {"failed": True, "msg": str(error)}
        for text, tone in blocks(found.lines):
            self._display.display(text, color=COLOURS.get(tone))
        return result | found.result
