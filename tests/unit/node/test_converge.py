# SPDX-License-Identifier: GPL-3.0-or-later
"""One call, step by step: what is done, in which order, and what is left alone."""

from __future__ import annotations

import dataclasses

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import Bundle, Health, Image
from ansible_collections.edpm.services.plugins.module_utils._node.errors import Failed
from ansible_collections.edpm.services.plugins.module_utils._node.podman import Podman

from .fakes import bundle_of, deploy, everything_in, text
from .plug import Plug
from .programs import IMAGE, QUADLET, UNIT, World
from .samples import FIRST, JUDGE, SECOND, A, B, C, D, generations, home, live


def test_a_first_deployment_writes_for_root_alone_and_starts_the_unit(world: World) -> None:
    outcome = deploy(world, bundle_of(world, A, FIRST, kolla='{"command": "x"}'))

    assert (
        outcome.result(check=False)["msg"] == "nova_compute aaaaaaa is live: 3 files added, 1 unit changed, 1 restart."
    )
    generation = home(world) / "current"
    assert (generation / "conf.d/01-nova.conf").read_bytes() == FIRST["01-nova.conf"]
    assert (generation / "kolla.json").read_text() == '{"command": "x"}'
    for path in (home(world), *home(world).rglob("*")):
        if not path.is_symlink():
            assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
    (link,) = (home(world) / "mounted").iterdir()
    assert f"Volume={link}/conf.d:" in (world.places.units / QUADLET).read_text()
    assert link.resolve() == generation.resolve()
    record = (generation / "bundle.json").read_text()
    assert "hunter2" not in record
    assert "conf.d/05-secret.conf" in record
    assert dict(world.processes[UNIT].files) == FIRST


def test_the_second_run_asks_systemd_once_and_touches_nothing(world: World, deployed: Bundle) -> None:
    before = everything_in(world.places.root.parent)
    plug = Plug()
    outcome = deploy(world, deployed, plug=plug)
    assert outcome.result(check=False)["changed"] is False
    assert plug.names == []
    assert [call[:2] for call in world.calls] == [["systemctl", "show"]]
    assert everything_in(world.places.root.parent) == before


@pytest.mark.usefixtures("deployed")
def test_an_update_pulls_then_validates_then_restarts_once(world: World) -> None:
    newer = "registry.example.org/nova-compute:31"
    world.registry.add(newer)
    unit = {QUADLET: text(world).replace(IMAGE, newer)}
    made = bundle_of(world, B, SECOND, image=Image(newer), units=unit, validation=JUDGE)
    outcome = deploy(world, made)
    result = outcome.result(check=False)
    assert result["files"] == {"added": (), "removed": (), "changed": ("conf.d/01-nova.conf",)}
    assert (result["image"], result["pulled"]) == ({"before": IMAGE, "after": newer}, True)
    verbs = [" ".join(call[:2]) for call in world.calls]
    order = ["podman pull", f"{world.places.root.parent}/generator --dryrun", "podman run", "systemctl daemon-reload"]
    assert [verb for verb in verbs if verb in order or verb == "systemctl restart"] == [*order, "systemctl restart"]
    assert (home(world) / "previous").readlink().name == A
    assert generations(world) == [A, B]


@pytest.mark.usefixtures("deployed")
def test_check_mode_says_the_same_as_the_run_and_touches_nothing(world: World) -> None:
    made = bundle_of(world, B, {"02-new.conf": b"x = 1\n"}, units={QUADLET: text(world, extra="Pull=never\n")})
    before = everything_in(world.places.root.parent)
    foreseen = deploy(world, made, check=True)
    assert everything_in(world.places.root.parent) == before
    assert {call[1] for call in world.calls} <= {"show", "--version", "image"}
    done = deploy(world, made)
    assert dataclasses.replace(foreseen, pruned=done.pruned) == done
    assert done.changes.added == ("conf.d/02-new.conf",)
    assert done.changes.removed == ("conf.d/01-nova.conf", "conf.d/05-secret.conf")
    assert foreseen.sentence(check=True).startswith("nova_compute bbbbbbb would be made live: 1 file added")


@pytest.mark.usefixtures("deployed")
def test_the_diff_shows_texts_and_masks_secrets(world: World) -> None:
    files = {"01-nova.conf": b"[DEFAULT]\nvalue = two\n", "05-secret.conf": b"password = correct-horse\n", "x": b"\xff"}
    shown = {
        one["after_header"]: (one["before"], one["after"])
        for one in deploy(world, bundle_of(world, B, files, units={QUADLET: text(world, extra="User=1\n")})).diff
    }
    assert shown["nova_compute/conf.d/01-nova.conf"] == ("[DEFAULT]\nvalue = one\n", "[DEFAULT]\nvalue = two\n")
    assert shown["nova_compute/conf.d/05-secret.conf"] == ("(secret, before)\n", "(secret, after)\n")
    assert shown["nova_compute/conf.d/x"] == ("", "(1 bytes that are no text, after)\n")
    assert "User=1" in shown[str(world.places.units / QUADLET)][1]


def test_a_generation_that_dies_goes_back_to_the_one_before_with_the_reason(world: World, deployed: Bundle) -> None:
    unit = (world.places.units / QUADLET).read_text()
    with pytest.raises(Failed) as caught:
        deploy(
            world, bundle_of(world, B, {"01.conf": b"die\n", **FIRST}, units={QUADLET: text(world, extra="User=1\n")})
        )
    message = str(caught.value)
    assert message.startswith(
        "nova_compute does not run as generation bbbbbbb: edpm_nova_compute.service failed (Job for"
    )
    assert "generation aaaaaaa runs again as before; correct the cause and run again." in message
    assert message.endswith("It last logged: ERROR cannot read ********")
    assert caught.value.rolled_back
    assert (live(world), dict(world.processes[UNIT].files)) == (A, FIRST)
    assert (world.places.units / QUADLET).read_text() == unit
    assert generations(world) == [A]
    assert not deploy(world, deployed).changes.any


def test_a_service_that_does_not_answer_goes_back_too(world: World) -> None:
    health = Health(("curl",), settle=1, timeout=5)
    deploy(world, bundle_of(world, A, FIRST, health=health, container="nova_compute"))
    with pytest.raises(Failed, match=r"its health check fails \(no answer\) within 5 s; generation aaaaaaa runs again"):
        deploy(world, bundle_of(world, B, {"1": b"mute"}, health=health, container="nova_compute"))


@pytest.mark.usefixtures("deployed")
def test_where_the_old_one_does_not_come_back_the_message_says_so(world: World) -> None:
    (home(world) / "current/conf.d/01-nova.conf").write_bytes(b"die")
    with pytest.raises(Failed, match="generation aaaaaaa was put back and is not healthy either"):
        deploy(world, bundle_of(world, B, {"01.conf": b"die"}))
    assert live(world) == A


def test_a_first_deployment_that_dies_leaves_nothing_but_its_name(world: World) -> None:
    made = bundle_of(world, A, {"01.conf": b"die"}, guards={"cell": "nova-cell1"}, tmpfiles=("d /run/nova",))
    with pytest.raises(Failed, match="nothing of this first deployment was left running"):
        deploy(world, made)
    assert world.processes == {}
    assert [one.name for one in home(world).iterdir()] == ["identity.json"]
    assert list(world.places.units.glob("*")) == []
    assert [path for path in world.places.etc.rglob("*") if path.is_file()] == []


def test_a_unit_that_does_not_run_is_started_again_without_a_new_generation(world: World, deployed: Bundle) -> None:
    world.processes.clear()
    outcome = deploy(world, deployed)
    assert (outcome.changes.unhealthy, outcome.restarted) == ("edpm_nova_compute.service is inactive (dead)", True)
    assert live(world) == A


def test_a_health_check_that_changes_needs_no_restart(world: World, deployed: Bundle) -> None:
    made = dataclasses.replace(deployed, health=Health(settle=2, timeout=20))
    outcome = deploy(world, made)
    assert (outcome.changes.any, outcome.restarted, world.done("restart")) == (True, False, [])
    assert not deploy(world, made).changes.any


@pytest.mark.usefixtures("deployed")
def test_a_bundle_that_forbids_restarts_leaves_the_running_service_alone(world: World) -> None:
    made = bundle_of(world, B, SECOND, restart="never")
    outcome = deploy(world, made)
    assert (outcome.restarted, outcome.restart_pending, world.done("restart")) == (False, True, [])
    assert len(world.done("show")) == 1
    assert dict(world.processes[UNIT].files) == FIRST
    again = deploy(world, made)
    assert (again.changes.any, again.restart_pending) == (False, True)
    world.start(UNIT)
    assert dict(world.processes[UNIT].files) == SECOND
    assert not deploy(world, made).restart_pending


@pytest.mark.usefixtures("deployed")
def test_a_bundle_that_forbids_restarts_does_not_restart_what_was_started_while_its_image_was_looked_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.stop([UNIT])
    monkeypatch.setattr(Podman, "require", lambda _, **_how: world.start(UNIT))
    assert deploy(world, bundle_of(world, B, SECOND, restart="never")).restart_pending
    assert (world.done("restart"), dict(world.processes[UNIT].files)) == ([], FIRST)


@pytest.mark.usefixtures("deployed")
def test_a_bundle_that_forbids_restarts_leaves_a_service_to_systemd_that_ended_meanwhile(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = bundle_of(world, B, SECOND, restart="never")
    monkeypatch.setattr(Podman, "require", lambda _, **_how: world.stop([UNIT]))
    assert (deploy(world, made).restarted, world.done("restart"), UNIT in world.processes) == (False, [], False)
    outcome = deploy(world, made)
    assert (outcome.restarted, dict(world.processes[UNIT].files)) == (True, SECOND)


@pytest.mark.usefixtures("deployed")
def test_a_pending_restart_is_made_when_the_bundle_allows_it_again(world: World) -> None:
    deploy(world, bundle_of(world, B, SECOND, restart="never"))
    outcome = deploy(world, bundle_of(world, B, SECOND))
    assert (outcome.restarted, outcome.restart_pending) == (True, False)
    assert dict(world.processes[UNIT].files) == SECOND


@pytest.mark.usefixtures("deployed")
def test_while_a_restart_is_due_no_generation_is_pruned_under_the_running_service(world: World) -> None:
    for digest in (B, C, D):
        deploy(world, bundle_of(world, digest, {"1.conf": digest.encode()}, restart="never", keep=1))
    assert generations(world) == [A, B, C, D]
    deploy(world, bundle_of(world, D, {"1.conf": D.encode()}, keep=1))
    assert generations(world) == [C, D]
