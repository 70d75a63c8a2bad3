# SPDX-License-Identifier: GPL-3.0-or-later
"""All services of a node in one look, and the module calls around it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node import calls
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import Health
from ansible_collections.edpm.services.plugins.module_utils._node.commands import NOT_FOUND, Result
from ansible_collections.edpm.services.plugins.module_utils._node.facts import facts
from ansible_collections.edpm.services.plugins.module_utils._node.travel import written

from .fakes import bundle_of, deploy, node_of, text
from .plug import Killed, Plug
from .programs import IMAGE, World

A, B = "a" * 64, "b" * 64
FILES = {"1.conf": b"x = 1\n"}
NEXT = {"1.conf": b"x = 2\n"}


def test_every_service_is_told_with_one_question_to_systemd(world: World) -> None:
    deploy(world, bundle_of(world, A, FILES, guards={"cell": "nova-cell1"}))
    deploy(world, bundle_of(world, B, NEXT, guards={"cell": "nova-cell1"}))
    unit = {"edpm_nova_compute@two.container": text(world)}
    deploy(world, bundle_of(world, A, FILES, instance="two", units=unit))
    (world.places.root / "somebody-elses").mkdir()
    (world.places.root / "nova_compute/current/conf.d/1.conf").write_text("edited")
    world.calls.clear()

    found = facts(node_of(world), ask=True)

    assert [call[1] for call in world.calls] == ["show"]
    assert sorted(found) == ["nova_compute", "nova_compute@two"]
    assert found["nova_compute"] == {
        "service": "nova_compute",
        "instance": "",
        "digest": B,
        "previous": A,
        "generations": [B, A],
        "image": IMAGE,
        "drift": [{"name": "conf.d/1.conf", "what": "changed"}],
        "unit": {
            "name": "edpm_nova_compute.service",
            "active": "active",
            "sub": "running",
            "invocation": "run-2",
            "restarts": 0,
        },
        "healthy": True,
        "fault": None,
        "unfinished": False,
        "restart_pending": False,
        "identity": {"cell": "nova-cell1"},
    }
    assert json.loads(json.dumps(found)) == found


def test_a_unit_that_is_down_or_does_not_answer_is_not_healthy(world: World) -> None:
    made = bundle_of(world, A, FILES, container="nova_compute", health=Health(("curl",), settle=0, timeout=5))
    deploy(world, made)
    world.refuse["podman exec"] = Result(7, "", "connection refused")
    told = facts(node_of(world), ask=True)["nova_compute"]
    assert (told["healthy"], told["fault"]) == (
        False,
        "edpm_nova_compute.service is up, and its health check fails (connection refused)",
    )
    assert facts(node_of(world), ask=False)["nova_compute"]["healthy"]
    world.processes.clear()
    told = facts(node_of(world), ask=False)["nova_compute"]
    assert (told["healthy"], told["fault"]) == (False, "edpm_nova_compute.service is inactive (dead)")


def test_a_cut_off_run_and_a_pending_restart_are_told(world: World) -> None:
    deploy(world, bundle_of(world, A, FILES))
    deploy(world, bundle_of(world, B, NEXT, restart="never"))
    assert facts(node_of(world), ask=True)["nova_compute"]["restart_pending"]
    plug = Plug()
    deploy(world, bundle_of(world, A, FILES), plug=plug)
    with pytest.raises(Killed):
        deploy(world, bundle_of(world, B, NEXT), plug=Plug(plug.names.index("restart")))
    assert facts(node_of(world), ask=True)["nova_compute"]["unfinished"]


def test_a_node_without_services_is_asked_nothing(world: World) -> None:
    assert facts(node_of(world), ask=True) == {}
    assert world.calls == []


class Ended(Exception):
    """What exit_json and fail_json do."""


class Module:
    """As much of AnsibleModule as a call needs."""

    def __init__(self, answer: object = (0, "", ""), **params: object) -> None:
        self.params = params
        self.check_mode = self._diff = False
        self.answer = answer
        self.asked: list[tuple[list[str], Mapping[str, Any]]] = []
        self.result: dict[str, Any] = {}

    def run_command(self, argv: list[str], **options: Any) -> object:
        self.asked.append((argv, options))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def fail_json(self, **result: Any) -> NoReturn:
        self.result = {"failed": True, **result}
        raise Ended

    def exit_json(self, **result: Any) -> NoReturn:
        self.result = result
        raise Ended


def ended(call: Any, module: Module) -> dict[str, Any]:
    with pytest.raises(Ended):
        call(module)
    return module.result


def test_a_call_ends_with_a_sentence_and_never_with_a_traceback(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    roots = {"root": str(tmp_path / "root"), "unit_root": str(tmp_path / "units")}
    assert ended(calls.service, Module(bundle="*", **roots))["msg"].startswith("The bundle cannot be used")
    assert ended(calls.service_facts, Module(health_checks=True, **roots)) == {"changed": False, "services": {}}
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    for call in (calls.service, calls.service_facts):
        assert "give the task `become: true`" in ended(call, Module(bundle="*", **roots))["msg"]


def test_check_mode_reaches_the_node_and_a_missing_systemd_is_told(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    bundle = written(bundle_of(world, A, FILES))
    roots = {"root": str(tmp_path / "root"), "unit_root": str(tmp_path / "units")}
    module = Module(FileNotFoundError(2, "No such file"), bundle=bundle, lock_timeout=0, **roots)
    module.check_mode = True
    assert "The node does not run systemd" in ended(calls.service, module)["msg"]


def test_programs_are_run_without_a_shell_and_a_missing_one_is_an_answer() -> None:
    module = Module((3, "out", "err"))
    assert calls.runner(module)(["podman", "$HOME"], {"A": "b"}) == Result(3, "out", "err")
    argv, options = module.asked[0]
    assert (argv, options["expand_user_and_vars"], options["environ_update"]["A"]) == (["podman", "$HOME"], False, "b")
    gone = calls.runner(Module(FileNotFoundError(2, "No such file")))(["podman"], {})
    assert (gone.rc, gone.err) == (NOT_FOUND, "podman: No such file")
