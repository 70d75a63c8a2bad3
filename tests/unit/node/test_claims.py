# SPDX-License-Identifier: GPL-3.0-or-later
"""What a service takes of the node: packages, units of the node's own, ports, labels."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import (
    Bundle,
    Folder,
    Health,
    Image,
    LiveFile,
    NodeFile,
    Seed,
)
from ansible_collections.edpm.services.plugins.module_utils._node.commands import Result
from ansible_collections.edpm.services.plugins.module_utils._node.errors import Failed, NodeError

from .fakes import away, back, bundle_of, deploy, everything_in, told, world_in
from .node_programs import NO_MATCH
from .plug import Killed, Plug
from .programs import World
from .samples import FIRST, SECOND, A, B, home

TAG = "edpm_nova_compute"
DROP: list[dict[str, Any]] = [{"counter": {"packets": 0, "bytes": 0}}, {"drop": None}]
REJECT_OF_IPTABLES: list[dict[str, Any]] = [{"counter": None}, {"xt": {"type": "target", "name": "REJECT"}}]


# --- packages and units ----------------------------------------------------------------------------------------------
@pytest.fixture
def debian(world: World) -> World:
    world.places.etc.mkdir(exist_ok=True)
    (world.places.etc / "os-release").write_text('PRETTY_NAME="x"\nID=ubuntu\nID_LIKE=debian\n')
    return world


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
    assert world.fabric.rules() == [f"tcp 22 {TAG}"]
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


def everything_on(world: World) -> tuple[object, ...]:
    """All that a refusal must leave as it is."""
    fabric = world.fabric
    folders = (everything_in(one) for one in (world.places.root, world.places.etc))
    return dict(fabric.files), set(fabric.up), fabric.rules(), dict(world.processes), *folders


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


# --- a service that is no container ----------------------------------------------------------------------------------
def plain(world: World, digest: str = A, **others: Any) -> Bundle:
    fields = {
        "image": Image(""),
        "units": {},
        "packages": {"apt": ("libvirt",)},
        "node_units": ("libvirt.service", "virtlogd.socket"),
        "health": Health(("virsh", "version"), on_node=True, settle=0, timeout=5),
        "busy": ("virsh", "list"),
        "reload": ("virt-admin", "reload"),
        **others,
    }
    return bundle_of(world, digest, {"1.conf": digest.encode()}, **fields)


@pytest.fixture
def virsh(debian: World) -> World:
    debian.fabric.available.add("libvirt")
    debian.fabric.files["virtlogd.socket"] = "disabled"
    debian.refuse.update({name: Result(0) for name in ("virsh version", "virsh list", "virt-admin")})
    debian.images.clear()
    return debian


def test_a_service_of_the_nodes_packages_goes_through_its_whole_life(virsh: World) -> None:
    assert deploy(virsh, plain(virsh)).restarted
    assert virsh.argv("podman") == []
    assert virsh.fabric.up == {"libvirt.service", "virtlogd.socket"}
    assert not deploy(virsh, plain(virsh)).changes.any
    found = told(virsh)
    assert (found["unit"]["name"], found["healthy"], found["drift"]) == ("libvirt.service", True, [])
    virsh.calls.clear()
    deploy(virsh, plain(virsh, B))
    assert virsh.done("restart") == [["systemctl", "restart", "--", "libvirt.service"]]
    assert back(virsh).digest == A
    state = virsh.places.root.parent / "state"
    deploy(virsh, plain(virsh, A, live=(LiveFile(str(state / "ca.pem"), b"PEM"),)))
    assert ["virt-admin", "reload"] in virsh.calls
    virsh.refuse["virsh list"] = Result(0, "guest\n")
    with pytest.raises(NodeError, match="nova_compute is still in use by guest"):
        away(virsh)
    away(virsh, force=True)
    assert (virsh.fabric.up, home(virsh).exists(), state.joinpath("ca.pem").exists()) == (set(), False, False)
    assert virsh.argv("podman") == []


@pytest.mark.parametrize("enabled_before", [True, False])
def test_a_daemon_that_was_masked_for_one_that_cannot_be_had_runs_again(virsh: World, enabled_before: bool) -> None:
    if enabled_before:
        virsh.fabric.packages.add("libvirt")
        virsh.fabric.files["libvirt.service"] = "enabled"
        virsh.fabric.up.add("libvirt.service")
    deploy(virsh, plain(virsh))
    before = everything_on(virsh)
    other = plain(virsh, B, packages={"apt": ("none",)}, node_units=("virtqemud.service",), masked=("libvirt.service",))
    with pytest.raises(NodeError, match="needs none, which apt cannot install") as caught:
        deploy(virsh, other)
    assert "not all given back" not in str(caught.value)
    assert virsh.done("mask") != []
    assert everything_on(virsh) == before
    assert not deploy(virsh, plain(virsh)).changes.any


def test_what_cannot_be_given_back_is_told_with_the_reason_of_the_failure(virsh: World) -> None:
    deploy(virsh, plain(virsh))
    virsh.refuse["systemctl restart"] = Result(1, "", "Job failed")
    with pytest.raises(NodeError) as caught:
        deploy(virsh, plain(virsh, B, packages={"apt": ("none",)}, masked=("libvirt.service",)))
    says = str(caught.value)
    assert "needs none, which apt cannot install" in says
    assert "But what it had taken of the node is not all given back: systemctl restart libvirt.service failed" in says


def test_one_that_was_enabled_before_runs_on_without_us(virsh: World) -> None:
    virsh.fabric.packages.add("libvirt")
    virsh.fabric.files["libvirt.service"] = "enabled"
    virsh.fabric.up.add("libvirt.service")
    deploy(virsh, plain(virsh))
    away(virsh)
    assert virsh.fabric.up == {"libvirt.service"}


def test_a_socket_of_the_service_itself_comes_with_its_restart_and_goes_before_it(virsh: World) -> None:
    virsh.fabric.files["tls.socket"] = "disabled"
    virsh.fabric.triggers["tls.socket"] = "libvirt.service"
    listening = ("libvirt.service", "virtlogd.socket", "tls.socket")
    deploy(virsh, plain(virsh))
    deploy(virsh, plain(virsh, B, node_units=listening))
    assert virsh.fabric.files["tls.socket"] == "enabled"
    assert virsh.done("stop") == [], "its restart is the only one"
    virsh.fabric.up.add("tls.socket")  # by the service's own unit, which wants it
    plug = Plug()
    deploy(virsh, plain(virsh), plug=plug)
    assert plug.names.index("disable tls.socket") < plug.names.index("restart")
    assert virsh.fabric.up == {"libvirt.service", "virtlogd.socket"}


def test_a_socket_that_went_down_alone_is_told_and_costs_no_restart(virsh: World) -> None:
    virsh.fabric.files["tls.socket"] = "disabled"
    virsh.fabric.triggers["tls.socket"] = "libvirt.service"
    made = plain(virsh, node_units=("libvirt.service", "tls.socket"))
    deploy(virsh, made)
    virsh.fabric.up.discard("tls.socket")
    virsh.calls.clear()
    with pytest.raises(NodeError, match=r"systemctl start tls\.socket failed on the node"):
        deploy(virsh, made)
    assert (virsh.done("stop"), virsh.done("restart")) == ([], [])


def test_one_that_does_not_answer_on_the_node_gets_its_units_and_files_back(virsh: World) -> None:
    virsh.fabric.files["tls.socket"] = "disabled"
    folder = virsh.places.root.parent / "state"
    file, drop_in = folder / "libvirtd.conf", folder / "libvirt.service.d" / "edpm.conf"
    deploy(virsh, plain(virsh, node_files=(NodeFile(str(file), b"good", 0o640),)))
    virsh.refuse["virsh version"] = Result(1, "", "no connection")
    virsh.calls.clear()
    more = ("libvirt.service", "virtlogd.socket", "tls.socket")
    fault = r"libvirt.service is up, and its health check fails \(no connection\).*generation aaaaaaa was put back"
    bad = (NodeFile(str(file), b"bad", 0o640), NodeFile(str(drop_in), b"[Service]\n", 0o644))
    with pytest.raises(Failed, match=fault) as failed:
        deploy(virsh, plain(virsh, B, node_units=more, node_files=bad))
    assert failed.value.rolled_back
    assert virsh.done("restart") == 2 * [["systemctl", "restart", "--", "libvirt.service"]]
    assert (told(virsh)["digest"], virsh.fabric.files["tls.socket"]) == (A, "disabled")
    assert (file.read_bytes(), file.stat().st_mode & 0o7777) == (b"good", 0o640)
    assert not drop_in.parent.exists()


def test_files_that_a_program_of_the_node_reads_go_with_their_generation(virsh: World) -> None:
    folder = virsh.places.root.parent / "state"
    first, second = folder / "first.conf", folder / "second.conf"
    one = (NodeFile(str(first), b"password = 1\n", secret=True),)
    deploy(virsh, plain(virsh, node_files=one))
    two = (NodeFile(str(first), b"password = 2\n", secret=True), NodeFile(str(second), b"\xff", 0o644))
    shown = deploy(virsh, plain(virsh, B, node_files=two), check=True).diff
    assert {str(first), str(second)} <= {one["after_header"] for one in shown}
    assert "password" not in str(shown)
    deploy(virsh, plain(virsh, B, node_files=two))
    assert (first.read_bytes(), second.stat().st_mode & 0o7777) == (b"password = 2\n", 0o644)

    second.unlink()
    deploy(virsh, plain(virsh, B, node_files=two))
    first.write_bytes(b"by hand")
    assert told(virsh)["drift"] == [{"name": str(first), "what": "changed"}]
    assert deploy(virsh, plain(virsh, B, node_files=two)).restarted
    assert first.read_bytes() == b"password = 2\n"

    assert back(virsh).digest == A
    assert (first.read_bytes(), second.exists()) == (b"password = 1\n", False)
    away(virsh)
    assert not first.exists()


class TestAFileOfTheNodesOwn:
    """It lay where a service's file is to lie, as a package brought it."""

    @pytest.fixture
    def file(self, virsh: World) -> Path:
        found = virsh.places.root.parent / "state" / "qemu.conf"
        found.parent.mkdir()
        found.write_bytes(b"the package's")
        found.chmod(0o604)
        return found

    def ours(self, file: Path, content: bytes = b"ours") -> dict[str, Any]:
        return {"node_files": (NodeFile(str(file), content, 0o640),)}

    def test_it_is_back_when_the_service_has_gone(self, virsh: World, file: Path) -> None:
        deploy(virsh, plain(virsh, **self.ours(file)))
        deploy(virsh, plain(virsh, B, **self.ours(file, b"ours again")))
        assert file.read_bytes() == b"ours again"
        away(virsh)
        assert (file.read_bytes(), file.stat().st_mode & 0o7777) == (b"the package's", 0o604)

    def test_it_is_back_when_nobody_wants_another_there_and_is_kept_anew(self, virsh: World, file: Path) -> None:
        deploy(virsh, plain(virsh, **self.ours(file)))
        deploy(virsh, plain(virsh, B))
        assert file.read_bytes() == b"the package's"
        file.write_bytes(b"a newer package's")
        back(virsh)
        assert file.read_bytes() == b"ours"
        file.unlink()
        away(virsh)
        assert file.read_bytes() == b"a newer package's"

    def test_it_is_back_after_a_first_deployment_that_failed(self, virsh: World, file: Path) -> None:
        virsh.refuse["virsh version"] = Result(1, "", "no connection")
        with pytest.raises(Failed, match="nothing of this first deployment was left running"):
            deploy(virsh, plain(virsh, **self.ours(file)))
        assert file.read_bytes() == b"the package's"

    def test_a_link_is_back_as_a_link(self, virsh: World, file: Path) -> None:
        link = file.with_name("link.conf")
        link.symlink_to(file.name)
        deploy(virsh, plain(virsh, **self.ours(link)))
        assert (link.is_symlink(), file.read_bytes()) == (False, b"the package's")
        away(virsh)
        assert link.readlink() == Path(file.name)

    def test_a_run_that_was_cut_off_does_not_take_its_own_for_it(self, virsh: World, file: Path) -> None:
        new = file.with_name("new.conf")
        for path in (file, new):
            plug = Plug()
            deploy(virsh, plain(virsh, **self.ours(path)), plug=plug)
            placed = plug.names.index(f"rename to {path.name}")
            away(virsh)
            with pytest.raises(Killed):
                deploy(virsh, plain(virsh, **self.ours(path)), plug=Plug(placed, "after"))
            assert path.read_bytes() == b"ours"
            deploy(virsh, plain(virsh, **self.ours(path)))
            away(virsh)
        assert (file.read_bytes(), new.exists()) == (b"the package's", False)


def test_one_whose_first_start_fails_is_switched_off_again(virsh: World) -> None:
    virsh.refuse["virsh version"] = Result(1, "", "no connection")
    with pytest.raises(Failed, match="nothing of this first deployment was left running"):
        deploy(virsh, plain(virsh))
    assert (virsh.fabric.up, set(virsh.fabric.files.values())) == (set(), {"disabled"})


# --- nftables --------------------------------------------------------------------------------------------------------
def open_for(world: World, *ports: str, digest: str = A) -> Bundle:
    return bundle_of(world, digest, {"1.conf": digest.encode()}, ports=ports)


RULESETS: dict[str, tuple[tuple[str, str, tuple[list[dict[str, Any]], ...]], ...]] = {
    "policy drop": (("INPUT", "drop", ()),),
    "drop at the end": (("INPUT", "accept", ([NO_MATCH, {"accept": None}], DROP)),),
    "iptables' reject": (("INPUT", "accept", (REJECT_OF_IPTABLES,)),),
    "drop in a chain that is called": (
        ("INPUT", "accept", ([NO_MATCH, {"jump": {"target": "DEEP"}}],)),
        ("DEEP", "", ([{"goto": {"target": "DEEPER"}}],)),
        ("DEEPER", "", ([{"log": None}, {"reject": None}],)),
    ),
}


@pytest.mark.parametrize("case", RULESETS)
def test_ports_are_opened_at_the_top_of_a_chain_that_closes_them(world: World, case: str) -> None:
    for name, policy, rules in RULESETS[case]:
        world.fabric.chain(name, policy, rules)
    made = open_for(world, "tcp 5900-6923", "udp 53")
    outcome = deploy(world, made)
    assert outcome.changes.ground == ("port tcp 5900-6923", "port udp 53", "ports at start")
    assert sorted(world.fabric.rules()) == [f"tcp 5900-6923 {TAG}", f"udp 53 {TAG}"]
    assert world.fabric.ruleset is not None
    assert world.fabric.ruleset[0]["rule"]["comment"] == TAG
    assert not deploy(world, made).changes.any


OPEN: dict[str, tuple[list[dict[str, Any]], ...]] = {
    "policy accept": (),
    "only some are dropped": ([NO_MATCH, {"drop": None}],),
    "a circle": ([{"jump": {"target": "INPUT"}}],),
}


@pytest.mark.parametrize("case", OPEN)
def test_a_chain_that_lets_all_pass_is_left_alone(world: World, case: str) -> None:
    world.fabric.chain("INPUT", "accept", OPEN[case])
    before = list(world.fabric.ruleset or ())
    assert deploy(world, open_for(world, "tcp 22")).changes.ground == ()
    assert world.fabric.ruleset == before
    assert not (world.places.etc / "systemd").exists()


def test_a_node_without_a_firewall_needs_nothing(world: World) -> None:
    assert deploy(world, open_for(world, "tcp 22")).changes.ground == ()
    world.calls.clear()
    deploy(world, bundle_of(world, B, SECOND))
    assert world.argv("nft") == []


def test_ports_come_back_with_the_service_and_with_the_next_deployment(world: World) -> None:
    world.fabric.chain("INPUT", "drop")
    made = open_for(world, "tcp 22")
    deploy(world, made)
    dropin = world.places.etc / f"systemd/system/{TAG}.service.d/50-{TAG}-ports.conf"
    assert dropin.read_text().splitlines()[1:] == [
        *("[Unit]", "After=nftables.service", "", "[Service]"),
        f'ExecStartPre=+-/bin/sh -c "nft list ruleset | grep -qF \'comment \\"{TAG}\\"\' || '
        f'{{ nft insert rule inet filter INPUT tcp dport 22 accept comment \'\\"{TAG}\\"\'; }}"',
    ]
    world.fabric.ruleset = None
    world.fabric.chain("INPUT", "drop")
    assert told(world)["drift"] == [{"name": "port tcp 22", "what": "missing"}]
    world.calls.clear()
    outcome = deploy(world, made)
    assert (outcome.changes.ground, outcome.restarted) == (("port tcp 22",), False)
    assert world.fabric.rules() == [f"tcp 22 {TAG}"]
    dropin.unlink()
    assert told(world)["drift"] == [{"name": "ports at start", "what": "missing"}]
    deploy(world, made)
    assert dropin.exists()


def test_ports_that_are_no_longer_needed_are_closed_and_others_stay(world: World) -> None:
    world.fabric.chain("INPUT", "drop")
    theirs = {"family": "inet", "table": "filter", "chain": "INPUT", "handle": 7, "comment": "admin"}
    match = {"op": "==", "left": {"payload": {"protocol": "tcp", "field": "dport"}}, "right": 22}
    assert world.fabric.ruleset is not None
    world.fabric.ruleset.append({"rule": {**theirs, "expr": [{"match": match}, {"accept": None}]}})
    deploy(world, open_for(world, "tcp 22", "tcp 23"))
    deploy(world, open_for(world, "tcp 23", digest=B))
    assert sorted(world.fabric.rules()) == ["tcp 22 admin", f"tcp 23 {TAG}"]
    deploy(world, open_for(world, digest="c" * 64))
    assert world.fabric.rules() == ["tcp 22 admin"]
    assert not (world.places.etc / f"systemd/system/{TAG}.service.d").exists()


def test_a_ruleset_that_nobody_can_read_is_none(world: World) -> None:
    world.refuse["nft --json"] = Result(0, "no JSON")
    assert deploy(world, open_for(world, "tcp 22")).changes.ground == ()


# --- SELinux ---------------------------------------------------------------------------------------------------------
@pytest.fixture
def selinux(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    (world.places.kernel / "fs/selinux").mkdir(parents=True)
    (world.places.kernel / "fs/selinux/enforce").touch()

    def label(path: Path, _name: str, *, follow_symlinks: bool) -> bytes:
        assert not follow_symlinks
        # What is made in a folder has the type of the folder.
        kinds = (world.fabric.kinds.get(str(one)) for one in (path, *path.parents))
        kind = next(filter(None, kinds), "var_lib_t")
        return f"system_u:object_r:{kind}:s0\0".encode()

    monkeypatch.setattr("os.getxattr", label, raising=False)
    return world


def labelled(world: World) -> Bundle:
    state = world.places.root.parent / "state"
    return bundle_of(
        world,
        A,
        FIRST,
        folders=(Folder(str(state / "shared"), setype="container_file_t"), Folder(str(state / "plain"))),
        live=(LiveFile(str(state / "plain/ca.crt"), b"PEM"), LiveFile(str(state / "shared/ca.crt"), b"PEM")),
        seeds=(Seed(str(state / "compute_id")),),
        tmpfiles=("d /run/x",),
    )


def test_what_lies_outside_the_generations_gets_the_label_of_its_place(selinux: World) -> None:
    state = selinux.places.root.parent / "state"
    deploy(selinux, labelled(selinux))
    assert sorted(selinux.fabric.labels) == sorted(
        (
            f"container_file_t {state / 'shared'}",
            *(f"restored {path}" for path in (state / "plain", state / "plain/ca.crt", state / "compute_id")),
            f"restored {selinux.places.etc / 'tmpfiles.d/edpm_nova_compute.conf'}",
            f"restored {selinux.places.units / 'edpm_nova_compute.container'}",
        )
    )
    assert not any(str(selinux.places.root) in line for line in selinux.fabric.labels)
    assert not any("-F" in call for call in selinux.argv("restorecon"))


def test_a_file_in_a_folder_that_containers_share_stays_theirs(selinux: World) -> None:
    """As Debian's policy has it, restorecon would take the file away from them."""
    path = selinux.places.root.parent / "state/shared/ca.crt"
    made = labelled(selinux)
    deploy(selinux, made)
    selinux.fabric.kinds[str(path)] = "var_lib_t"
    renewed = dataclasses.replace(made, live=(made.live[0], LiveFile(str(path), b"renewed PEM")))
    assert deploy(selinux, renewed).changes.live == (str(path),)
    assert selinux.fabric.kinds[str(path)] == "container_file_t"
    assert f"restored {path}" not in selinux.fabric.labels


def test_a_folder_with_another_label_is_set_right(selinux: World) -> None:
    state = selinux.places.root.parent / "state"
    deploy(selinux, labelled(selinux))
    assert not deploy(selinux, labelled(selinux)).changes.any
    selinux.fabric.kinds[str(state / "shared")] = "var_lib_t"
    assert deploy(selinux, labelled(selinux)).changes.ground == (f"folder {state / 'shared'}",)
    assert not deploy(selinux, labelled(selinux)).changes.any


def test_a_run_that_was_cut_off_before_it_set_a_label_is_made_up_for(selinux: World, tmp_path: Path) -> None:
    plug, other = Plug(), tmp_path / "other"
    other.mkdir()
    deploy(world_in(other), labelled(world_in(other)), plug=plug)
    with pytest.raises(Killed):
        deploy(selinux, labelled(selinux), plug=Plug(plug.names.index("rename to ca.crt"), "after"))
    restored = f"restored {selinux.places.root.parent / 'state/plain/ca.crt'}"
    assert restored not in selinux.fabric.labels
    deploy(selinux, labelled(selinux))
    assert restored in selinux.fabric.labels


def test_a_label_that_cannot_be_set_is_told(selinux: World) -> None:
    selinux.refuse["restorecon"] = Result(255, "", "Operation not supported")
    with pytest.raises(NodeError, match=r"The SELinux label of .* cannot be set on the node: Operation not supported"):
        deploy(selinux, labelled(selinux))


def test_without_selinux_no_label_is_asked_for_or_set(world: World) -> None:
    deploy(world, labelled(world))
    assert (world.argv("restorecon"), world.argv("chcon")) == ([], [])
