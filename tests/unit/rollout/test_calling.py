# SPDX-License-Identifier: GPL-3.0-or-later
"""How a module travels to its node."""

from __future__ import annotations

import shlex
import subprocess
import sys
from typing import Any

import pytest
from ansible.plugins.action import ActionBase
from ansible_collections.edpm.services.plugins.action import service_facts
from ansible_collections.edpm.services.plugins.plugin_utils._rollout.calling import read_at_once

PYTHON = sys.executable
#: As Ansible makes it: a line that holds all that the module needs, and characters beyond ASCII somewhere.
PROGRAM = """#!{python}

from __future__ import annotations
HELD = "{held}ü"
with open("/proc/self/io") as told:
    print([line.split()[1] for line in told if line.startswith("syscr")][0], ascii(HELD[-1]))
""".format(python=PYTHON, held="x" * 200_000).encode()
OTHERS = {
    "another program's data": ("cat", b"echo 1\n"),
    "no data": ("rm -r /x", None),
    "an interpreter that is not the command": ("/usr/bin/python3 /x/module.py", b"#!/usr/bin/python3\n"),
}


def calls(command: str, program: bytes) -> tuple[int, str]:
    """How often Python reads while it runs the program, and what comes of a character that is not ASCII."""
    done = subprocess.run(["/bin/sh", "-c", command], input=program, capture_output=True, check=True)
    reads, last = done.stdout.decode().split()
    return int(reads), last


def test_a_node_reads_a_module_at_once() -> None:
    command = read_at_once(PYTHON, PROGRAM)
    for way in (command, f"sh -c {shlex.quote(command)}"):
        after, last = calls(way, PROGRAM)
        assert (after < 1000, last) == (True, r"'\xfc'")


def test_where_it_fails_python_shows_the_same_as_before() -> None:
    program = f"#!{PYTHON}\n\nx = 1\nraise ValueError(__name__)\n".encode()
    told = [
        subprocess.run(["/bin/sh", "-c", command], input=program, capture_output=True, check=False).stderr.decode()
        for command in (PYTHON, read_at_once(PYTHON, program))
    ]
    assert all('File "<stdin>", line 4, in <module>\nValueError: __main__' in one for one in told), told


@pytest.mark.parametrize(("command", "data"), OTHERS.values(), ids=OTHERS)
def test_every_other_command_stays_as_it_is(command: str, data: bytes | None) -> None:
    assert read_at_once(command, data) == command


def test_settings_before_the_interpreter_and_words_behind_it_stay() -> None:
    program = b"#!/usr/bin/env python3 -E\nx = 1\n"
    assert read_at_once("LANG=C /usr/bin/env python3 -E", program).startswith("LANG=C /usr/bin/env python3 -E -c '")


def test_it_is_how_every_action_calls_with_all_else_as_ansible_says(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Any, ...]] = []

    def run(_self: object, *words: Any, **more: Any) -> str:
        seen.append((words, more))
        return "done"

    monkeypatch.setattr(ActionBase, "_low_level_execute_command", run)
    action = object.__new__(service_facts.ActionModule)
    assert action._low_level_execute_command(PYTHON, sudoable=False, in_data=PROGRAM, chdir="/x") == "done"
    assert action._low_level_execute_command("rm", True) == "done"
    assert seen == [
        ((read_at_once(PYTHON, PROGRAM),), {"sudoable": False, "in_data": PROGRAM, "chdir": "/x"}),
        (("rm", True), {"in_data": None}),
    ]
