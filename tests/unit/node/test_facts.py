# SPDX-License-Identifier: GPL-3.0-or-later
"""All services of a node in one look, and the module calls around it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any, NoReturn

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node import call as calling
from ansible_collections.edpm.services.plugins.module_utils._node import calls, telling
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import Folder, Health
from ansible_collections.edpm.services.plugins.module_utils._node.call import Call
from ansible_collections.edpm.services.plugins.module_utils._node.commands import NOT_FOUND, Result
from ansible_collections.edpm.services.plugins.module_utils._node.errors import Failed, NodeError
from ansible_collections.edpm.services.plugins.module_utils._node.facts import facts, host_keys, public_contents
from ansible_collections.edpm.services.plugins.module_utils._node.options import SERVICE, SERVICE_FACTS
from ansible_collections.edpm.services.plugins.module_utils._node.record import Places, settings
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
        "settings": settings(bundle_of(world, B, NEXT)),
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
        "live": {},
        "unfinished": False,
        "restart_pending": False,
        "identity": {"cell": "nova-cell1"},
        "seeds": {},
    }
    assert json.loads(json.dumps(found)) == found


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ([], ["libvirt", "nova_compute", "nova_compute@two"]),
        (["nova_compute"], ["nova_compute", "nova_compute@two"]),
        (["nova_compute@"], ["nova_compute"]),
        (["nova_compute@two", " libvirt "], ["libvirt", "nova_compute@two"]),
        (["nova"], []),
        ([""], ["libvirt", "nova_compute", "nova_compute@two"]),
    ],
)
def test_only_the_services_that_are_asked_for_are_looked_at(
    world: World, monkeypatch: pytest.MonkeyPatch, asked: list[str], told: list[str]
) -> None:
    for service, instance in (("nova_compute", ""), ("nova_compute", "two"), ("libvirt", "")):
        name = f"{service}@{instance}".rstrip("@")
        container = name.replace("@", "-")
        health = Health(("answers", name), settle=0, timeout=5)
        unit = {f"edpm_{name}.container": text(world)}
        rest = {"service": service, "instance": instance, "units": unit, "container": container, "health": health}
        deploy(world, bundle_of(world, A, FILES, **rest))
    monkeypatch.setattr(Call, "node", lambda _call: node_of(world))
    world.calls.clear()

    found = telling.service_facts(call(health_checks=True, services=asked))

    assert sorted(found["services"]) == told
    assert sorted(call[-1] for call in world.calls if "exec" in call) == told
    units = {f"edpm_{name}.service" for name in told}
    assert {word for call in world.calls if "show" in call for word in call if word.startswith("edpm_")} == units


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


def test_images_keys_and_public_files_are_told_in_the_same_call(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(telling, "host_keys", lambda _node: {"ssh-ed25519": "AAAA"})
    (tmp_path / "known_hosts").write_text("edpm-compute-0 ssh-ed25519 AAAA\n")
    paths = [str(tmp_path / "known_hosts"), str(tmp_path / "none")]
    options = {"root": str(tmp_path / "root"), "unit_root": str(tmp_path / "units"), "health_checks": True}
    monkeypatch.setattr(calling, "run", lambda _argv, _environment: Result(1, "", "no such image"))
    found = telling.service_facts(call(**options, images=["a:1", "b@sha256:0123"], read=paths))
    assert found == {
        "changed": False,
        "services": {},
        "missing_images": ["a:1", "b@sha256:0123"],
        "ssh_host_keys": {"ssh-ed25519": "AAAA"},
        "contents": {paths[0]: "edpm-compute-0 ssh-ed25519 AAAA\n"},
    }


def test_images_that_are_there_are_looked_for_with_one_question(world: World) -> None:
    world.images |= {"a:1", "b:1"}
    assert node_of(world).podman.missing(["a:1", "b:1"]) == []
    assert len(world.calls) == 1
    assert node_of(world).podman.missing(["a:1", "c:1"]) == ["c:1"]
    world.calls.clear()
    assert node_of(world).podman.missing([]) == []
    assert world.calls == []


def test_an_image_that_a_service_runs_from_is_not_looked_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    deploy(world, bundle_of(world, A, FILES))
    monkeypatch.setattr(Call, "node", lambda _call: node_of(world))
    asked = call(health_checks=True, images=[IMAGE])
    world.calls.clear()
    assert telling.service_facts(asked)["missing_images"] == []
    assert [call[0] for call in world.calls] == ["systemctl"]
    world.processes.clear()
    world.images.clear()
    assert telling.service_facts(asked)["missing_images"] == [IMAGE]


def test_host_keys_are_told_by_their_type(world: World) -> None:
    folder = world.places.etc / "ssh"
    folder.mkdir(parents=True)
    (folder / "ssh_host_ed25519_key.pub").write_text("ssh-ed25519 AAAA root@node\n")
    (folder / "ssh_host_ed25519_key").write_text("private")
    (folder / "ssh_host_rsa_key.pub").write_text("\n")
    assert host_keys(node_of(world)) == {"ssh-ed25519": "AAAA"}


@pytest.mark.parametrize("case", ["private", "folder", "large"])
def test_only_public_files_are_told(world: World, tmp_path: Path, case: str) -> None:
    path = tmp_path / "file"
    if case == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"x" * (2 << 20 if case == "large" else 1))
        path.chmod(0o600 if case == "private" else 0o644)
    with pytest.raises(NodeError, match=r"file on the node is not a public text: only a file that everybody may read"):
        public_contents(node_of(world), [str(path)])


def test_a_node_without_services_is_asked_nothing(world: World) -> None:
    assert facts(node_of(world), ask=True) == {}
    assert world.calls == []


STATES = {
    "present": ({"bundle": "x"}, "The bundle cannot be used"),
    "pulled": ({"bundle": "x"}, "The bundle cannot be used"),
    "previous": ({"service": "nova_compute"}, "nova_compute is not on this node, so it cannot go back; deploy it."),
    "absent": ({"service": "../etc"}, "The option service has the value '../etc', and no service can be called so"),
}


@pytest.mark.parametrize("state", STATES)
def test_every_state_ends_with_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, state: str) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(Places, "lock", tmp_path / "lock")
    options, says = STATES[state]
    asked = call(state=state, root=str(tmp_path / "root"), unit_root=str(tmp_path / "units"), **options)
    assert calls.service(asked)["msg"].startswith(says)


def test_an_instance_is_removed_by_its_name_and_what_is_not_there_is_fine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(Places, "lock", tmp_path / "lock")
    monkeypatch.setattr(Places, "scratch", tmp_path / "scratch")
    asked = {"state": "absent", "service": "nova_compute", "instance": "two"}
    result = calls.service(call(root=str(tmp_path / "root"), unit_root=str(tmp_path / "units"), **asked))
    assert (result["changed"], result["service"], result["removed"], result["busy"]) == (
        *(False, "nova_compute@two"),
        *((), ()),
    )


def call(**asked: Any) -> Call:
    """A call as it reaches a node: with all options."""
    spec = SERVICE_FACTS if "health_checks" in asked else SERVICE
    return Call({**{name: one.get("default") for name, one in spec.items()}, "lock_timeout": 0, **asked})


def test_a_call_ends_with_a_sentence_and_never_with_a_traceback(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    roots = {"root": str(tmp_path / "root"), "unit_root": str(tmp_path / "units")}
    assert calls.service(call(bundle="*", **roots))["msg"].startswith("The bundle cannot be used")
    found = telling.service_facts(call(health_checks=True, **roots))
    assert (found["changed"], found["services"], found["missing_images"], found["contents"]) == (False, {}, [], {})
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    for result in (calls.service(call(bundle="*", **roots)), telling.service_facts(call(health_checks=True, **roots))):
        assert result["failed"]
        assert "give the task `become: true`" in result["msg"]


@pytest.mark.parametrize("kind", [Failed, NodeError])
def test_a_call_that_fails_passes_on_what_else_is_to_be_told(
    monkeypatch: pytest.MonkeyPatch, world: World, tmp_path: Path, kind: type[NodeError]
) -> None:
    def fails(*_words: object, **_options: object) -> NoReturn:
        error = kind("It failed.")
        error.warnings = ("01.conf: debgu is unknown",)
        raise error

    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(calls, "converge", fails)
    roots = {"root": str(tmp_path / "root"), "unit_root": str(tmp_path / "units")}
    result = calls.service(call(bundle=written(bundle_of(world, A, FILES)), **roots))
    assert (result["failed"], result["msg"]) == (True, "It failed.")
    assert result["warnings"] == ("01.conf: debgu is unknown",)


def test_check_mode_reaches_the_node_and_a_missing_systemd_is_told(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    bundle = written(bundle_of(world, A, FILES))
    roots = {"root": str(tmp_path / "root"), "unit_root": str(tmp_path / "units")}
    monkeypatch.setattr(calling, "run", lambda _argv, _environment: Result(NOT_FOUND, "", "No such file"))
    asked = dataclasses.replace(call(bundle=bundle, **roots), check=True)
    assert "The node does not run systemd" in calls.service(asked)["msg"]


def test_options_of_the_controller_are_refused_where_they_reach_a_node(world: World) -> None:
    result = calls.service(call(bundle=written(bundle_of(world, A, FILES)), definition="nova_compute", cell="cell1"))
    assert result["failed"]
    assert result["msg"].startswith("The node cannot do anything with definition, cell; the action edpm.services.servi")


@pytest.mark.parametrize("failed", [True, False])
def test_a_module_of_ansibles_own_way_ends_with_the_same(failed: bool) -> None:
    """Ansible's module is real in the tests of the nodes; here is what it is told."""
    told: list[object] = []

    class Module:
        params = SERVICE
        check_mode, _diff = True, False
        warn = staticmethod(told.append)
        fail_json = staticmethod(lambda **result: told.append(("failed", result)))
        exit_json = staticmethod(lambda **result: told.append(("done", result)))

    def work(asked: Call) -> dict[str, Any]:
        assert (asked.options, asked.check, asked.diff) == (SERVICE, True, False)
        return {"failed": failed, "msg": "x", "warnings": ["careful"]}

    calling.answer(Module(), work)
    assert told == ["careful", ("failed" if failed else "done", {"msg": "x"})]


def test_what_a_digest_leaves_out_has_one_of_its_own(world: World, tmp_path: Path) -> None:
    made = bundle_of(world, A, FILES)
    deploy(world, made)
    told = facts(node_of(world), ask=True)["nova_compute"]
    assert told["settings"] == settings(made)
    changed = [
        dataclasses.replace(made, ports=("tcp 9100",)),
        dataclasses.replace(made, health=Health(("true",))),
        dataclasses.replace(made, folders=(Folder(str(tmp_path / "data")),)),
        dataclasses.replace(made, busy=("ps",)),
    ]
    assert len({settings(made), *map(settings, changed)}) == 1 + len(changed)
    for one in changed:
        outcome = deploy(world, one).result(check=False)
        assert (outcome["changed"], outcome["restarted"]) == (True, False)
        assert facts(node_of(world), ask=True)["nova_compute"]["settings"] == settings(one)


def test_what_the_service_stands_on_drifts_too_and_is_repaired(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    made = bundle_of(world, A, FILES, folders=(Folder(str(folder), 0o750),))
    deploy(world, made)
    assert facts(node_of(world), ask=True)["nova_compute"]["drift"] == []
    folder.chmod(0o755)
    drift = facts(node_of(world), ask=True)["nova_compute"]["drift"]
    assert drift == [{"name": f"folder {folder}", "what": "changed"}]
    assert not deploy(world, made).result(check=False)["restarted"]
    assert facts(node_of(world), ask=True)["nova_compute"]["drift"] == []
