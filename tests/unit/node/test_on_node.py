# SPDX-License-Identifier: GPL-3.0-or-later
"""A service that is no container: its program comes from the node's packages, its files lie where that reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import (
    Bundle,
    Health,
    Image,
    LiveFile,
    NodeFile,
)
from ansible_collections.edpm.services.plugins.module_utils._node.commands import Result
from ansible_collections.edpm.services.plugins.module_utils._node.errors import Failed, NodeError

from .fakes import away, back, bundle_of, deploy, everything_on, told
from .plug import Killed, Plug
from .programs import World
from .samples import A, B, home


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
