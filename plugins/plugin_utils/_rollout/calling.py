# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules of a node, called from the controller: one round trip each, and no file on the way."""

from __future__ import annotations

from typing import Any

from ansible import constants
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.edpm.services.plugins.module_utils._node.commands import NOT_FOUND

from . import sending

PYTHON = "/usr/bin/python3"


class Quiet(dict[str, Any]):
    """Options of a module that do not show when somebody prints them, as Ansible does while it is debugged."""

    def __repr__(self) -> str:
        return f"({', '.join(self)})"

    __str__ = __repr__


class NodeAction(ActionBase):
    """An action that calls modules on its node."""

    _supports_async = False
    _supports_check_mode = True
    _supports_diff = True

    def call(self, module: str, options: dict[str, Any], task_vars: dict[str, Any]) -> dict[str, Any]:
        """Run a module of this collection. Its options may be secret: they travel on the connection's own pipe.

        Where a Python must be searched for first, Ansible does all of it in its own way.
        """
        self._pipeline()
        asked = sending.MODULES[module]
        python, given = self._python(task_vars)
        answer = self._sent(python, asked, options, task_vars) if python else None
        if answer is None or (answer.pop(sending.TOO_OLD, False) and not given):
            return self._searched(asked, options, task_vars)
        return answer

    def content(self, path: str, task_vars: dict[str, Any]) -> str:
        """What is in a public file of the node, nothing where there is none."""
        answer = self.call("service_facts", {"health_checks": False, "read": [path]}, task_vars)
        return str((answer.get("contents") or {}).get(path, ""))

    def _sent(
        self, python: str, module: sending.Module, options: dict[str, Any], task_vars: dict[str, Any]
    ) -> dict[str, Any] | None:
        """What the node's half answers; None when the node has no such Python."""
        try:
            checked = module.checked(options)
        except sending.RefusedOptionsError as error:
            return {"failed": True, "msg": str(error)}
        call = {"options": checked, "check": self._task.check_mode, "diff": self._task.diff}
        data = sending.program() + sending.question(module, call, self._log(module, checked, task_vars))
        command = f"{self._compute_environment_string()} {sending.command(python)}"
        said = self._low_level_execute_command(command.strip(), in_data=data)
        answer = sending.answer(said["stdout"])
        if answer is not None:
            return answer
        if said["rc"] == NOT_FOUND:
            return None
        return {
            "failed": True,
            "msg": f"{module.full_name} ended on the node without an answer (exit code {said['rc']})"
            f"{sending.last_words(said['stderr'])}; run again, and look at the node's log when it happens again.",
            "rc": said["rc"],
            "module_stdout": said["stdout"],
            "module_stderr": said["stderr"],
        }

    def _log(self, module: sending.Module, checked: dict[str, Any], task_vars: dict[str, Any]) -> dict[str, str]:
        """What the node's log is told, and how."""
        silent = self._task.no_log or constants.config.get_config_value("DEFAULT_NO_TARGET_SYSLOG", variables=task_vars)
        return {
            "name": f"ansible-{module.full_name}",
            "facility": str(task_vars.get("ansible_syslog_facility", constants.DEFAULT_SYSLOG_FACILITY)),
            "text": "" if silent else module.shown(checked),
        }

    def _searched(self, module: sending.Module, options: dict[str, Any], task_vars: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = self._execute_module(
            module_name=module.full_name, module_args=Quiet(options), task_vars=task_vars, wrap_async=False
        )
        return answer

    def _is_pipelining_enabled(self, module_style: str, wrap_async: bool = False) -> bool:
        """Also where somebody wants to keep remote files: secrets are never among them."""
        return module_style == "new" and not wrap_async and self._pipes()

    def _pipeline(self) -> None:
        self._play_context.pipelining = True
        if "pipelining" in self._connection.get_options():
            self._connection.set_option("pipelining", True)
        if not self._pipes():
            become = f" with {self._connection.become.name}" if self._connection.become else ""
            raise AnsibleActionFail(
                f"The connection {self._connection.transport}{become} cannot run a module without a file on the node, "
                "and the file would hold secrets; connect by ssh as root or with sudo."
            )

    def _pipes(self) -> bool:
        connection = self._connection
        able = connection.has_pipelining and (not connection.become or connection.become.pipelining)
        return bool(able or connection.always_pipeline_modules)

    def _python(self, task_vars: dict[str, Any]) -> tuple[str, bool]:
        """The node's Python, empty when it must be searched for, and whether somebody has named it.

        Where nobody has, the usual one is tried first: to search costs round trips.
        """
        if self._task.delegate_to:
            return "", False
        named = constants.config.get_config_value("INTERPRETER_PYTHON", variables=task_vars)
        chosen = str(self._templar.template(named) or "").strip()
        if chosen and not chosen.startswith("auto"):
            return chosen, True
        found = (task_vars.get("ansible_facts") or {}).get("discovered_interpreter_python")
        return str(found or PYTHON), bool(found)
