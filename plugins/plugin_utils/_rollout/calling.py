# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules of a node, called from the controller: one round trip each, and no file on the way."""

from __future__ import annotations

import gc
from typing import Any

from ansible import constants
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

PYTHON = "/usr/bin/python3"
_PYTHON_SETTING = "ansible_python_interpreter"
_NOT_FOUND = 127
_SHEBANG = b"#!"
_AT_ONCE = """-c 'import sys; exec(compile(sys.stdin.buffer.read(), "<stdin>", "exec"))'"""


def read_at_once(command: str, program: object) -> str:
    """The command by which an interpreter that is given a module on its stdin runs it.

    Most Pythons, 3.9 of Enterprise Linux 9 among them, read a program from there byte by byte, with a system call for
    each of some 300,000: a fifth of what a call of a module costs a node.
    """
    if not isinstance(program, bytes) or not program.startswith(_SHEBANG):
        return command
    interpreter = program.partition(b"\n")[0][len(_SHEBANG) :].decode(errors="replace").strip()
    return f"{command} {_AT_ONCE}" if command.endswith(interpreter) else command


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

    def __init_subclass__(cls) -> None:
        """Ansible has loaded an action and forks for each node from now on: the forks leave alone what is there now.

        Each would look through all of Ansible for garbage while it makes the module ready.
        """
        super().__init_subclass__()
        gc.freeze()

    def call(self, module: str, options: dict[str, Any], task_vars: dict[str, Any]) -> dict[str, Any]:
        """Run a module of this collection. Its options may be secret: they travel on the connection's own pipe."""
        self._pipeline()
        usual = self._with_usual_python(task_vars)
        answer = self._run(module, options, usual or task_vars)
        if usual and answer.get("rc") == _NOT_FOUND and "module_stderr" in answer:
            answer = self._run(module, options, task_vars)
        return answer

    def content(self, path: str, task_vars: dict[str, Any]) -> str:
        """What is in a public file of the node, nothing where there is none."""
        answer = self.call("service_facts", {"health_checks": False, "read": [path]}, task_vars)
        return str((answer.get("contents") or {}).get(path, ""))

    def _run(self, module: str, options: dict[str, Any], task_vars: dict[str, Any]) -> dict[str, Any]:
        name = f"edpm.services.{module}"
        answer: dict[str, Any] = self._execute_module(
            module_name=name, module_args=Quiet(options), task_vars=task_vars, wrap_async=False
        )
        return answer

    def _is_pipelining_enabled(self, module_style: str, wrap_async: bool = False) -> bool:
        """Also where somebody wants to keep remote files: secrets are never among them."""
        return module_style == "new" and not wrap_async and self._pipes()

    def _low_level_execute_command(self, cmd: str, *words: Any, in_data: bytes | None = None, **more: Any) -> Any:
        """Run a command on the node."""
        command = read_at_once(cmd, in_data)
        return super()._low_level_execute_command(command, *words, in_data=in_data, **more)

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

    def _with_usual_python(self, task_vars: dict[str, Any]) -> dict[str, Any] | None:
        """Where nobody says which Python the node has, the usual one is tried first: to search costs round trips."""
        chosen = str(constants.config.get_config_value("INTERPRETER_PYTHON", variables=task_vars))
        known = "discovered_interpreter_python" in (task_vars.get("ansible_facts") or {})
        if known or self._task.delegate_to or not chosen.startswith("auto"):
            return None
        return {**task_vars, _PYTHON_SETTING: PYTHON}
