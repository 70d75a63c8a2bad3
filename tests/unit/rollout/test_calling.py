# SPDX-License-Identifier: GPL-3.0-or-later
"""How the call of a module travels to its node."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._rollout import sending

PYTHON = sys.executable
FACTS, SERVICE = sending.MODULES["service_facts"], sending.MODULES["service"]
QUIET = {"name": "ansible-edpm.services.service", "facility": "LOG_USER", "text": ""}
PLAYBOOK = """
- hosts: localhost
  gather_facts: false
  connection: local
  vars:
    ansible_python_interpreter: {python}
    roots: {{root: {folder}/root, unit_root: {folder}/units}}
  tasks:
    - edpm.services.service_facts: "{{{{ roots }}}}"
      ignore_errors: true
      register: plain
    - edpm.services.service_facts: "{{{{ roots }}}}"
      ignore_errors: true
      delegate_to: localhost
      register: delegated
    - edpm.services.service_facts: "{{{{ roots }}}}"
      ignore_errors: true
      vars: {{ansible_python_interpreter: /no/such/python}}
      register: gone
    - edpm.services.service_facts: {{rot: x}}
      ignore_errors: true
      register: wrong
    - edpm.services.service_facts: "{{{{ roots }}}}"
      ignore_errors: true
      environment: {{PYTHONPATH: "{folder}/dies"}}
      vars: {{ansible_python_interpreter: "{{{{ ansible_playbook_python }}}}"}}
      register: dies
    - ansible.builtin.copy:
        content: "{{{{ answers | to_json }}}}"
        dest: {folder}/answers.json
        mode: "0600"
      vars:
        answers: {{plain: "{{{{ plain }}}}", delegated: "{{{{ delegated }}}}",
                   gone: "{{{{ gone }}}}", wrong: "{{{{ wrong }}}}", dies: "{{{{ dies }}}}"}}
"""


@pytest.fixture
def afresh() -> Iterator[None]:
    """The program as it is made with what a test has changed."""
    sending.program.cache_clear()
    yield
    sending.program.cache_clear()


def ran(module: sending.Module, options: dict[str, Any], python: str = PYTHON) -> subprocess.CompletedProcess[bytes]:
    """What a Python makes of a call, in the shell of a node and nowhere near this collection."""
    call = {"options": options, "check": True, "diff": False}
    data = sending.program() + sending.question(module, call, QUIET)
    return subprocess.run(
        ["/bin/sh", "-c", sending.command(python)],
        input=data,
        capture_output=True,
        check=False,
        cwd="/",
        env={"PATH": os.environ["PATH"]},
    )


def test_a_call_is_done_by_what_was_sent_and_leaves_no_file(tmp_path: Path) -> None:
    roots = {"root": str(tmp_path / "root"), "unit_root": str(tmp_path / "units")}
    done = ran(FACTS, FACTS.checked({**roots, "read": [str(tmp_path / "ü")]}))
    found = sending.answer(done.stdout.decode())
    assert found is not None, done.stderr
    assert found["msg"].startswith("Only root") if os.geteuid() else found["services"] == {}
    assert list(tmp_path.iterdir()) == []


def test_where_it_fails_python_shows_the_line() -> None:
    done = ran(FACTS, {})
    assert (done.returncode, sending.answer(done.stdout.decode())) == (1, None)
    assert b'File "edpm_services_node.telling.py", line ' in done.stderr


@pytest.mark.usefixtures("afresh")
def test_a_python_that_is_too_old_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "OLDEST_PYTHON", (4, 2))
    found = sending.answer(ran(FACTS, {}).stdout.decode())
    assert found is not None
    assert found[sending.TOO_OLD]
    assert found["msg"].startswith(f"The Python of the node, {PYTHON}, is 3.")
    assert found["msg"].endswith("need 4.2 or newer there; install one and name it in ansible_python_interpreter.")


SAID = {
    "an answer": ('\n{"changed": false}\n', {"changed": False}),
    "a greeting before it": ('Welcome {"x": 1}\n\n{"changed": true}\n', {"changed": True}),
    "nothing": ("", None),
    "the end of something else": ("Traceback\n  KeyError", None),
    "no object": ("[1]\n", None),
    "no warnings": ('{"changed": true, "warnings": []}', {"changed": True}),
    "warnings": ('{"warnings": ["careful"]}', {"warnings": ["careful"]}),
    "what a node has no say in": ('{"ansible_facts": {"ansible_host": "x"}, "_ansible_no_log": false}', {}),
}


@pytest.mark.parametrize(("said", "found"), SAID.values(), ids=SAID)
def test_the_answer_is_the_last_line(said: str, found: dict[str, Any] | None) -> None:
    assert sending.answer(said) == found


REFUSED = {
    "one that is not there": (
        {"bundel": "x"},
        r"Unsupported parameters for \(edpm.services.service\) module: bundel\.",
    ),
    "one that is lacking": ({"state": "absent"}, "state is absent but all of the following are missing: service"),
    "another choice": ({"state": "gone", "bundle": "x"}, "value of state must be one of: present, previous, absent"),
    "another type": ({"bundle": "x", "lock_timeout": "soon"}, "lock_timeout.*int"),
}


@pytest.mark.parametrize(("given", "says"), REFUSED.values(), ids=REFUSED)
def test_options_are_refused_before_anything_is_sent(given: dict[str, Any], says: str) -> None:
    with pytest.raises(sending.RefusedOptionsError, match=says):
        SERVICE.checked(given)


def test_defaults_are_filled_in_and_a_home_is_the_nodes() -> None:
    checked = FACTS.checked({"root": "~/edpm", "read": ["~/known_hosts"], "health_checks": "no"})
    assert (checked["root"], checked["read"], checked["health_checks"]) == ("~/edpm", ["~/known_hosts"], False)
    assert checked["unit_root"] == "/etc/containers/systemd"


def test_the_nodes_log_is_told_of_a_call_and_of_no_secret() -> None:
    told = SERVICE.shown(SERVICE.checked({"bundle": "c2VjcmV0", "force": True}))
    assert told.startswith("Invoked with bundle=NOT_LOGGING_PARAMETER force=True state=present ")
    assert "c2VjcmV0" not in told
    assert "None" not in told


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the tasks of a playbook on this machine get for answers, by their names."""
    folder = tmp_path_factory.mktemp("played")
    (folder / "dies").mkdir()
    (folder / "dies/sitecustomize.py").write_text("import os\nos.write(2, b'it was told to end\\n')\nos._exit(3)\n")
    (folder / "play.yml").write_text(PLAYBOOK.format(python=PYTHON, folder=folder))
    done = subprocess.run(
        [str(Path(PYTHON).with_name("ansible-playbook")), "-i", "localhost,", str(folder / "play.yml")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "ANSIBLE_NO_TARGET_SYSLOG": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(json.loads((folder / "answers.json").read_text()))


@pytest.mark.parametrize("name", ["plain", "delegated"])
def test_a_task_gets_the_nodes_answer_both_ways(played: dict[str, Any], name: str) -> None:
    answer = played[name]
    assert answer["msg"].startswith("Only root may see") if os.geteuid() else answer["services"] == {}


def test_ansible_tells_of_a_python_that_is_not_there(played: dict[str, Any]) -> None:
    assert played["gone"]["failed"]
    assert "/no/such/python" in json.dumps(played["gone"])


def test_wrong_options_are_told_as_ansible_tells_them(played: dict[str, Any]) -> None:
    says = "Unsupported parameters for (edpm.services.service_facts) module: rot."
    assert played["wrong"]["msg"].startswith(says)


def test_a_tasks_environment_reaches_the_node_and_a_death_there_is_told(played: dict[str, Any]) -> None:
    answer = played["dies"]
    assert (answer["failed"], answer["rc"]) == (True, 3)
    assert answer["msg"] == (
        "edpm.services.service_facts ended on the node without an answer (exit code 3): it was told to end; "
        "run again, and look at the node's log when it happens again."
    )
