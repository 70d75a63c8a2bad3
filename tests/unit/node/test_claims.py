# SPDX-License-Identifier: GPL-3.0-or-later
"""What a service takes of the node: packages, and units of the node's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import (
    Bundle,
    Image,
    LiveFile,
)
from ansible_collections.edpm.services.plugins.module_utils._node.commands import Result
from ansible_collections.edpm.services.plugins.module_utils._node.errors import Failed, NodeError

from .fakes import away, back, bundle_of, deploy, everything_on, told
from .plug import Killed, Plug
from .programs import UNIT, World
from .samples import FIRST, SECOND, A, B, home


# --- packages and units ----------------------------------------------------------------------------------------------
def packed(world: World, **others: Any) -> Bundle:
    return bundle_of(world, A, FIRST, packages={"apt": ("one", "two"), "dnf": ("three",)}, **others)


def test_packages_are_installed_where_they_are_missing_and_never_looked_for_again(debian: World) -> None:
    debian.fabric.packages.add("one")
    debian.fabric.available.add("two")
    outcome = deploy(debian, packed(debian))
    assert outcome.changes.ground == ("package two",)
    (asked,) = debian.argv("apt-get")
    assert asked[asked.index("--") + 1 :] == ["two"]
    assert "--no-install-recommends" in asked
    debian.calls.clear()
    assert not deploy(debian, packed(debian)).changes.any
    assert debian.argv("apt-get") == []


def test_a_daemon_that_its_package_has_started_reads_what_came_after_it(debian: World) -> None:
    debian.fabric.available |= {"one", "two"}
    made = packed(debian, node_units=("one.service",), tmpfiles=("f /etc/one.conf 0644 root root - word",))
    deploy(debian, made)
    calls = [call[:2] if call[0] == "systemd-tmpfiles" else call for call in debian.calls]
    restart = ["systemctl", "restart", "--", "one.service"]
    assert calls.index(["systemd-tmpfiles", "--create"]) < calls.index(restart)
    debian.fabric.up.remove("one.service")
    debian.calls.clear()
    deploy(debian, made)
    assert debian.done("start") == [["systemctl", "start", "--", "one.service"]]
    assert restart not in debian.calls


def test_package_lists_are_fetched_only_when_that_may_help(debian: World) -> None:
    debian.fabric.unlisted |= {"one", "two"}
    deploy(debian, packed(debian))
    assert ["update" in call for call in debian.argv("apt-get")] == [False, True, False]


def test_another_family_of_nodes_has_another_manager(world: World) -> None:
    world.places.etc.mkdir()
    (world.places.etc / "os-release").write_text('ID="rhel"\nID_LIKE="fedora"\n')
    world.fabric.available.add("three")
    assert deploy(world, packed(world)).changes.ground == ("package three",)
    assert world.fabric.packages == {"three"}
    assert not deploy(world, packed(world)).changes.any


def test_check_mode_names_packages_and_units_and_touches_none(debian: World) -> None:
    debian.fabric.files["iscsid.socket"] = "disabled"
    made = packed(debian, node_units=("iscsid.socket",), masked=("libvirtd.socket",))
    assert deploy(debian, made, check=True).changes.ground == (
        *("package one", "package two"),
        *("unit libvirtd.socket, not masked", "unit iscsid.socket, disabled"),
    )
    assert (debian.fabric.packages, debian.fabric.files) == (set(), {"iscsid.socket": "disabled"})


def test_a_unit_is_masked_before_a_package_starts_it_and_others_are_switched_on(debian: World) -> None:
    debian.fabric.available |= {"one", "two"}
    made = packed(debian, node_units=("one.service",), masked=("two.service",))
    plug = Plug()
    deploy(debian, made, plug=plug)
    names = [name for name in plug.names if name.endswith(".service") or name == "install"]
    assert names == ["mask two.service", "install"]
    assert debian.fabric.files["one.service"] == "enabled"
    assert not deploy(debian, made).changes.any
    away(debian)
    assert debian.fabric.files == {"one.service": "disabled", "two.service": "disabled"}


def test_units_that_somebody_switched_off_are_told_and_switched_on_without_a_restart(world: World) -> None:
    world.fabric.files.update({"iscsid.socket": "enabled", "libvirtd.socket": "enabled"})
    made = bundle_of(world, A, FIRST, node_units=("iscsid.socket",), masked=("libvirtd.socket",))
    deploy(world, made)
    assert world.fabric.up == {"iscsid.socket"}
    assert not deploy(world, made).changes.any
    world.fabric.up.clear()
    world.fabric.files["libvirtd.socket"] = "disabled"
    assert told(world)["drift"] == [
        {"name": "unit libvirtd.socket", "what": "not masked"},
        {"name": "unit iscsid.socket", "what": "down"},
    ]
    outcome = deploy(world, made)
    assert (len(outcome.changes.ground), outcome.restarted) == (2, False)
    assert told(world)["drift"] == []


def test_what_one_generation_masks_the_next_may_want_and_the_other_way_round(world: World) -> None:
    world.fabric.files.update({"a.socket": "disabled", "b.socket": "disabled"})
    first = bundle_of(world, A, FIRST, masked=("a.socket",), node_units=("b.socket",))
    second = bundle_of(world, B, SECOND, masked=("b.socket",), node_units=("a.socket",))
    deploy(world, first)
    deploy(world, second)
    assert (world.fabric.files, world.fabric.up) == ({"a.socket": "enabled", "b.socket": "masked"}, {"a.socket"})
    assert not deploy(world, second).changes.any
    back(world)
    assert (world.fabric.files, world.fabric.up) == ({"a.socket": "masked", "b.socket": "enabled"}, {"b.socket"})
    away(world)
    assert (world.fabric.files, world.fabric.up) == ({"a.socket": "disabled", "b.socket": "disabled"}, set())


def test_a_switch_that_fails_gives_the_old_generation_its_claims_again(world: World) -> None:
    world.fabric.files.update({"a.socket": "disabled", "b.socket": "disabled"})
    world.fabric.chain("INPUT", "drop")
    first = bundle_of(world, A, FIRST, node_units=("a.socket",), ports=("tcp 22",))
    deploy(world, first)
    with pytest.raises(Failed, match="generation aaaaaaa runs again as before"):
        deploy(world, bundle_of(world, B, {"1": b"die"}, node_units=("b.socket",), ports=("tcp 23",)))
    assert (world.fabric.files, world.fabric.up) == ({"a.socket": "enabled", "b.socket": "disabled"}, {"a.socket"})
    assert world.fabric.rules() == ["tcp 22 edpm_nova_compute"]
    assert not deploy(world, first).changes.any


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "no such package": (
        {"packages": {"apt": ("none",)}},
        {},
        "needs none, which apt cannot install on the node: E: Unable",
    ),
    "no name for it": (
        {"packages": {"dnf": ("x",)}},
        {},
        "nova_compute names packages for dnf, and this node uses apt; name its packages in the definition",
    ),
    "no dpkg": (
        {"packages": {"apt": ("x",)}},
        {"dpkg-query": Result(127)},
        "The node has no dpkg-query, so nothing can be said about its packages",
    ),
    "no unit": (
        {"node_units": ("no.service",)},
        {},
        "The node has no unit no.service, which nova_compute needs; install",
    ),
    "masked by others": (
        {"node_units": ("held.service",)},
        {},
        "The unit held.service, which nova_compute needs, is masked on the node; unmask it",
    ),
    "does not start": (
        {"node_units": ("iscsid.socket",)},
        {"systemctl start -- iscsid.socket": Result(1, "", "Job failed")},
        "systemctl start iscsid.socket failed on the node, and nova_compute needs it: Job failed; see to it there",
    ),
    "no nft": (
        {"ports": ("tcp 1",)},
        {"nft insert rule inet filter INPUT tcp dport 1 ": Result(1, "", "Operation not permitted")},
        'nft insert rule inet filter INPUT tcp dport 1 accept comment "edpm_nova_compute" failed on the node',
    ),
}


#: What is masked besides, and was up; what the generation before has, and nobody else.
ELSE: dict[str, Any] = {"masked": ("theirs.socket", "theirs.service")}
BEFORE: dict[str, Any] = {"node_units": ("ours.socket",), "ports": ("tcp 22",)}


@pytest.fixture
def taken(debian: World) -> World:
    """A node on which others run."""
    theirs = dict.fromkeys(ELSE["masked"], "enabled")
    debian.fabric.files.update(
        {"held.service": "masked", **dict.fromkeys(("iscsid.socket", "ours.socket"), "disabled")}
    )
    debian.fabric.files.update(theirs)
    debian.fabric.up.update(theirs)
    debian.fabric.chain("INPUT", "drop")
    return debian


class PlugOf(Plug):
    """Is pulled after the step of a name."""

    def __init__(self, name: str) -> None:
        super().__init__(when="after")
        self.name = name

    def around(self, name: str, whole: Callable[[], object], half: Callable[[], object] = lambda: None) -> object:
        if name == self.name:
            self.at = self.steps
        return super().around(name, whole, half)


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_node_refuses_is_told_and_the_service_is_not_touched(taken: World, case: str) -> None:
    others, refuse, says = REFUSED[case]
    deploy(taken, bundle_of(taken, A, FIRST, **BEFORE))
    before = everything_on(taken)
    taken.refuse.update(refuse)
    with pytest.raises(NodeError) as caught:
        deploy(taken, bundle_of(taken, B, SECOND, **ELSE, **others))
    assert says in str(caught.value)
    assert "not all given back" not in str(caught.value)
    assert everything_on(taken) == before
    taken.refuse.clear()
    assert not deploy(taken, bundle_of(taken, A, FIRST, **BEFORE)).changes.any


@pytest.mark.parametrize("case", REFUSED)
def test_a_first_deployment_that_the_node_refuses_leaves_nothing(taken: World, tmp_path: Path, case: str) -> None:
    others, refuse, says = REFUSED[case]
    before = everything_on(taken)
    taken.refuse.update(refuse)
    live = (LiveFile(str(tmp_path / "state/ca.crt"), b"PEM"),)
    with pytest.raises(NodeError) as caught:
        deploy(taken, bundle_of(taken, B, SECOND, live=live, **ELSE, **others))
    assert says in str(caught.value)
    assert everything_on(taken)[:-2] == before[:-2]
    assert not home(taken).exists()
    assert not Path(live[0].path).exists()


FORESEEN = ("no unit", "masked by others")


@pytest.mark.parametrize("case", FORESEEN)
def test_a_unit_that_is_not_there_is_refused_before_any_is_masked_and_in_check_mode_too(
    taken: World, case: str
) -> None:
    others, _refuse, says = REFUSED[case]
    for check in (True, False):
        with pytest.raises(NodeError, match=says):
            deploy(taken, bundle_of(taken, B, SECOND, **ELSE, **others), check=check)
    assert (taken.done("mask"), taken.done("stop"), taken.done("restart")) == ([], [], [])


def test_a_unit_that_a_package_may_bring_is_waited_for(taken: World) -> None:
    taken.fabric.available.add("one")
    made = bundle_of(taken, A, FIRST, packages={"apt": ("one",)}, node_units=("one.service",))
    assert deploy(taken, made, check=True).changes.any
    deploy(taken, made)
    with pytest.raises(NodeError, match=r"The node has no unit no.service"):
        deploy(taken, bundle_of(taken, B, SECOND, packages={"apt": ("one",)}, node_units=("no.service",)), check=True)


def test_what_was_up_before_it_was_masked_is_up_again_after_a_removal(taken: World) -> None:
    before = everything_on(taken)[:4]
    deploy(taken, bundle_of(taken, A, FIRST, **ELSE))
    assert taken.fabric.up == set()
    away(taken)
    assert everything_on(taken)[:4] == before


@pytest.mark.parametrize("failing", [True, False])
def test_a_unit_that_was_up_without_being_enabled_stays_up(taken: World, failing: bool) -> None:
    taken.fabric.up.add("ours.socket")
    before = everything_on(taken)[:4]
    if failing:
        with pytest.raises(NodeError):
            deploy(taken, bundle_of(taken, A, FIRST, packages={"apt": ("none",)}, **BEFORE))
    else:
        deploy(taken, bundle_of(taken, A, FIRST, **BEFORE))
        assert taken.fabric.files["ours.socket"] == "enabled"
        away(taken)
    assert everything_on(taken)[:4] == before


def test_a_generation_that_leaves_a_unit_alone_does_not_start_it(taken: World) -> None:
    deploy(taken, bundle_of(taken, A, FIRST, **ELSE))
    deploy(taken, bundle_of(taken, B, SECOND))
    assert (taken.fabric.up, taken.fabric.files["theirs.service"]) == (set(), "enabled")


def test_what_a_killed_run_masked_is_told_and_given_back_by_the_live_generation(taken: World) -> None:
    made = bundle_of(taken, A, FIRST, **BEFORE)
    deploy(taken, made)
    before = everything_on(taken)[:4]
    with pytest.raises(Killed):
        deploy(taken, bundle_of(taken, B, SECOND, **ELSE), plug=PlugOf("mask theirs.service"))
    assert told(taken)["drift"] == [
        {"name": "unit ours.socket", "what": "disabled"},
        *({"name": f"unit {unit}", "what": "left masked"} for unit in sorted(ELSE["masked"])),
    ]
    assert not deploy(taken, made).restarted
    assert everything_on(taken)[:4] == before
    assert told(taken)["drift"] == []


DAEMONS = {
    "virtqemud.service": "or where the node has libvirtd, as Debian packages it, set libvirt_daemons "
    r"\(edpm_libvirt_daemons\) to monolithic\. The service was not touched",
    "libvirtd.service": r"or where the node has virtqemud, set libvirt_daemons \(edpm_libvirt_daemons\) to modular\.",
}


@pytest.mark.parametrize("unit", DAEMONS)
def test_where_libvirts_daemons_are_of_the_other_kind_the_setting_is_named(world: World, unit: str) -> None:
    made = bundle_of(world, A, FIRST, service="libvirt", image=Image(""), units={}, node_units=(unit,))
    with pytest.raises(NodeError, match=DAEMONS[unit]):
        deploy(world, made, check=True)


# --- sockets of a service that is up ---------------------------------------------------------------------------------
SOCKETS = ("proxy.socket", "proxy-tls.socket")


@pytest.fixture
def proxy(world: World) -> World:
    world.fabric.files.update({"proxy.socket": "enabled", "proxy-tls.socket": "disabled", "proxy.service": "disabled"})
    world.fabric.triggers.update(dict.fromkeys(SOCKETS, "proxy.service"))
    world.fabric.up |= {"proxy.socket", "proxy.service"}
    return world


def test_a_socket_comes_to_a_service_that_another_socket_has_brought_up_and_goes_from_it(proxy: World) -> None:
    deploy(proxy, bundle_of(proxy, A, FIRST, node_units=SOCKETS))
    assert proxy.fabric.up == set(SOCKETS), "who talks to the service starts it again, with both"
    proxy.fabric.up.add("proxy.service")
    proxy.calls.clear()
    assert not deploy(proxy, bundle_of(proxy, A, FIRST, node_units=SOCKETS)).changes.any
    assert proxy.done("stop") == []
    deploy(proxy, bundle_of(proxy, B, SECOND, node_units=SOCKETS[:1]))
    assert proxy.fabric.up == {"proxy.socket"}, "the service would go on listening"


def test_a_service_that_runs_by_itself_is_not_ended_for_its_socket(proxy: World) -> None:
    with pytest.raises(NodeError, match=r"systemctl start proxy-tls\.socket failed .*already active"):
        deploy(proxy, bundle_of(proxy, A, FIRST, node_units=SOCKETS[1:]))
    assert "proxy.service" in proxy.fabric.up
    assert proxy.done("stop") == []


def test_sockets_are_opened_once_the_container_that_may_have_them_is_gone(proxy: World) -> None:
    """What listens in a container, at the same paths, takes them away when it ends."""
    proxy.fabric.up.clear()
    proxy.fabric.files["proxy.socket"] = "disabled"
    deploy(proxy, bundle_of(proxy, A, FIRST))
    proxy.calls.clear()
    on_node = bundle_of(proxy, B, {}, image=Image(""), units={}, node_units=("proxy.service", *SOCKETS))
    deploy(proxy, on_node)
    assert proxy.done("start") == []
    ended = [call[3:] for call in proxy.calls if call[1] == "stop"]
    assert ended == [[UNIT], ["proxy.service", *SOCKETS]], "also one that a package opened has lost its path"
    [opened] = proxy.done("restart")
    assert opened[3:] == [*SOCKETS, "proxy.service"]
    assert proxy.calls.index(opened) > max(number for number, call in enumerate(proxy.calls) if call[1] == "stop")
    assert proxy.fabric.up == {*SOCKETS, "proxy.service"}
    assert not deploy(proxy, on_node).changes.any

    deploy(proxy, bundle_of(proxy, A, FIRST))
    assert not proxy.fabric.up & set(SOCKETS), "they would be in the container's way"
    proxy.calls.clear()
    back(proxy)
    assert proxy.done("start") == []
    assert proxy.done("restart") == [["systemctl", "restart", "--", *SOCKETS, "proxy.service"]]
    assert proxy.fabric.up == {*SOCKETS, "proxy.service"}
