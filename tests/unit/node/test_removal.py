# SPDX-License-Identifier: GPL-3.0-or-later
"""Off the node: what goes, what stays, and what is not removed without force."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import Bundle, Folder, LiveFile, Seed
from ansible_collections.edpm.services.plugins.module_utils._node.commands import Result
from ansible_collections.edpm.services.plugins.module_utils._node.disk import Disk
from ansible_collections.edpm.services.plugins.module_utils._node.errors import Failed, Guarded, InUse, NodeError

from .fakes import away, bundle_of, deploy, everything_in, node_of, text, told
from .programs import QUADLET, UNIT, World
from .samples import FIRST, SECOND, A, B, home

SIDE = "edpm_nova_compute-side.container"
BUSY = {"busy": ("virsh", "list", "--name"), "container": "nova_compute"}


@pytest.fixture
def state(world: World) -> Path:
    return world.places.root.parent / "state"


@pytest.fixture
def full(world: World, state: Path) -> Bundle:
    """A service that has had two generations and everything besides."""
    named = text(world, extra="ContainerName=edpm_side\n")
    seeds = (Seed(str(state / "compute_id")),)
    deploy(world, bundle_of(world, A, FIRST, units={QUADLET: text(world), SIDE: named}, seeds=seeds))
    world.fabric.chain("INPUT", "drop")
    world.fabric.files.update(
        {"iscsid.socket": "disabled", "multipathd.service": "enabled", "libvirtd.socket": "enabled"}
    )
    world.fabric.up.add("multipathd.service")
    made = bundle_of(
        world,
        B,
        SECOND,
        folders=(Folder(str(state / "instances")),),
        tmpfiles=("d /run/nova",),
        live=(LiveFile(str(state / "ca.crt"), b"PEM"), LiveFile(str(state / "key"), b"sesame", secret=True)),
        seeds=seeds,
        ports=("tcp 22",),
        node_units=("iscsid.socket", "multipathd.service"),
        masked=("libvirtd.socket",),
        guards={"cell": "nova-cell1"},
        data=(str(state / "instances"),),
        **BUSY,
    )
    deploy(world, made)
    (state / "instances/disk").write_text("data")
    return made


@pytest.mark.usefixtures("full")
def test_all_of_it_goes_and_the_data_stays(world: World, state: Path) -> None:
    world.containers |= {"nova_compute", "edpm_side", "somebody-elses"}
    outcome = away(world)
    result = outcome.result(check=False)
    assert (result["changed"], result["digest_before"]) == (True, B)
    assert result["msg"] == f"nova_compute was removed from the node; its data stays in {state / 'instances'}."
    assert {Path(path).name for path in result["removed"]} == {
        *("ca.crt", "key", "compute_id", QUADLET, "edpm_nova_compute.conf", "nova_compute"),
        "50-edpm_nova_compute-ports.conf",
    }
    assert result["node"] == ("unit iscsid.socket", "unit libvirtd.socket", "port tcp 22")
    assert (world.processes, world.containers) == ({}, {"somebody-elses"})
    assert [
        one for one in everything_in(world.places.root.parent) if one.startswith(("root/", "units/", "state/"))
    ] == [
        "state/instances",
        "state/instances/disk",
    ]
    assert [path for path in world.places.etc.rglob("*") if path.is_file()] == []
    assert not away(world).result(check=False)["changed"]


@pytest.mark.usefixtures("full")
def test_only_what_the_service_switched_is_switched_back(world: World) -> None:
    assert world.fabric.files == {
        "iscsid.socket": "enabled",
        "multipathd.service": "enabled",
        "libvirtd.socket": "masked",
    }
    away(world)
    assert (world.fabric.files["iscsid.socket"], world.fabric.files["multipathd.service"]) == ("disabled", "enabled")
    assert world.fabric.files["libvirtd.socket"] != "masked"
    assert world.fabric.up == {"multipathd.service"}
    assert world.fabric.rules() == []


def test_what_another_service_needs_stays(world: World, full: Bundle) -> None:
    unit = {"edpm_nova_compute@two.container": text(world)}
    shared = {"node_units": full.node_units, "masked": full.masked}
    deploy(world, bundle_of(world, A, FIRST, instance="two", units=unit, **shared))
    away(world)
    assert (world.fabric.files["iscsid.socket"], world.fabric.files["libvirtd.socket"]) == ("enabled", "masked")
    assert "edpm_nova_compute@two.service" in world.processes


def test_afterwards_the_node_is_free(world: World, full: Bundle) -> None:
    seed = Path(full.seeds[0].path)
    first = seed.read_text()
    away(world)
    other = bundle_of(world, A, FIRST, guards={"cell": "nova-cell2"}, seeds=full.seeds)
    deploy(world, other)
    assert seed.read_text() not in ("", first)


@pytest.mark.usefixtures("full")
def test_data_goes_where_it_is_asked_for(world: World, state: Path) -> None:
    outcome = away(world, purge=True)
    assert (str(state / "instances") in outcome.paths, outcome.kept) == (True, ())
    assert not (state / "instances").exists()


@pytest.mark.usefixtures("full")
def test_data_on_a_mounted_file_system_is_not_purged(
    world: World, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Disk, "mounts", lambda _self: [Path("/"), state / "instances/shared"])
    before = everything_in(world.places.root.parent)
    with pytest.raises(InUse, match=r"holds the mounted file system .*/shared, which may be shared; unmount it first"):
        away(world, purge=True)
    assert everything_in(world.places.root.parent) == before
    away(world)


def test_mounts_are_those_of_the_kernel() -> None:
    assert Path("/proc") in Disk().mounts()


@pytest.mark.usefixtures("full")
def test_check_mode_says_the_same_as_the_run_and_touches_nothing(world: World) -> None:
    before, processes = everything_in(world.places.root.parent), dict(world.processes)
    foreseen = away(world, check=True)
    assert (everything_in(world.places.root.parent), world.processes) == (before, processes)
    assert foreseen == away(world)
    assert foreseen.sentence(check=True).startswith("nova_compute would be removed from the node")


@pytest.mark.usefixtures("full")
def test_the_diff_shows_what_goes_and_masks_secrets(world: World) -> None:
    shown = {Path(one["before_header"]).name: (one["before"], one["after"]) for one in away(world, check=True).diff}
    assert shown["01-nova.conf"] == ("[DEFAULT]\nvalue = two\n", "")
    assert shown["05-secret.conf"] == shown["key"] == ("(secret, before)\n", "")
    assert shown["ca.crt"] == ("PEM", "")
    assert QUADLET in shown


ASKED = "podman exec nova_compute virsh list --name"


@pytest.mark.usefixtures("full")
@pytest.mark.parametrize("check", [True, False])
def test_what_is_in_use_is_not_removed_without_force(world: World, check: bool) -> None:
    world.refuse[ASKED] = Result(0, "instance-1\n\ninstance-2\n")
    before, processes = everything_in(world.places.root.parent), dict(world.processes)
    with pytest.raises(
        InUse, match="nova_compute is still in use by instance-1, instance-2; end or move that"
    ) as caught:
        away(world, check=check)
    assert caught.value.lines == ("instance-1", "instance-2")
    assert (everything_in(world.places.root.parent), world.processes) == (before, processes)
    assert away(world, force=True, check=check).paths


@pytest.mark.usefixtures("full")
def test_one_that_cannot_say_is_not_removed_without_force_either(world: World) -> None:
    world.refuse[ASKED] = Result(1, "", "failed to connect")
    with pytest.raises(InUse, match="does not say whether it is still in use: failed to connect; see to it, or remove"):
        away(world)
    world.refuse.clear()
    world.processes.pop(UNIT)
    with pytest.raises(
        InUse, match="does not run, so it cannot be asked whether it is still in use; start it, or remove"
    ):
        away(world)
    away(world, force=True)
    assert not home(world).exists()


@pytest.mark.usefixtures("deployed")
def test_a_unit_that_does_not_stop_is_told(world: World) -> None:
    world.refuse["systemctl stop"] = Result(1, "", "timeout")
    with pytest.raises(NodeError, match=r"edpm_nova_compute.service does not stop on the node; see to it there"):
        away(world)
    world.refuse.clear()
    away(world)
    assert not home(world).exists()


def test_a_name_that_was_kept_after_a_failed_start_goes_too(world: World) -> None:
    with pytest.raises(NodeError):
        deploy(world, bundle_of(world, A, {"1": b"die"}, guards={"cell": "nova-cell1"}))
    assert away(world).paths == (str(home(world)),)
    assert node_of(world).disk.read(home(world) / "identity.json") is None
    assert not away(world).paths


def test_where_nothing_is_nothing_is_asked_or_made(world: World) -> None:
    assert away(world).result(check=False) == away(world, check=True).result(check=False)
    assert away(world).sentence(check=False) == "nova_compute is not on the node, nothing to do."
    assert world.calls == []


def test_a_compute_first_sent_to_the_wrong_cell_is_free_after_a_removal(world: World) -> None:
    right = bundle_of(world, A, FIRST, guards={"cell": "nova-cell2"})
    with pytest.raises(Failed, match="nothing of this first deployment was left running"):
        deploy(world, bundle_of(world, B, {"1": b"die"}, guards={"cell": "nova-cell1"}))
    with pytest.raises(Guarded, match="or remove the service from the node first"):
        deploy(world, right)
    found = told(world)
    assert (found["digest"], found["generations"], found["unfinished"]) == (None, [], False)
    assert found["identity"] == {"cell": "nova-cell1"}
    assert away(world, check=True).paths == (str(home(world)),)
    away(world)
    assert not home(world).exists()
    assert deploy(world, right).digest == A


@pytest.mark.parametrize("note", ["claims.json", "live.json", "intent.json", "identity.json"])
def test_whatever_a_run_left_is_told_and_may_be_removed(world: World, note: str) -> None:
    home(world).mkdir(parents=True)
    (home(world) / note).write_text("{}")
    assert told(world)["digest"] is None
    away(world)
    assert not home(world).exists()
