# SPDX-License-Identifier: GPL-3.0-or-later
"""A service's life on a real node: files that change while it runs, the way back, and off the node.

The tests build on each other: each leaves the probe live and healthy.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import Bundle, Health, Image, LiveFile, Seed
from ansible_collections.edpm.services.plugins.module_utils._node.travel import written
from edpm_lab import images
from edpm_lab.labs import Lab
from edpm_lab.nodes import Nodes

from .probe import RELOAD, Caller, bundle

FIRST = {"01.conf": b"value = one\n"}
SECOND = {"01.conf": b"value = two\n"}
HOME = "/var/lib/openstack/probe"
STATE = "/var/lib/probe"
SEED = Seed(f"{STATE}/compute_id", owner="probe", group="probe")


@pytest.fixture(scope="module")
def image() -> str:
    return images.image("base")


@pytest.fixture(scope="module")
def caller(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Caller:
    nodes = Nodes(lab)
    nodes.up(["edpm-life-0"])
    return Caller(nodes, "edpm-life-0", tmp_path_factory.mktemp("calls"))


def made(image: str, files: dict[str, bytes] | None = None, certificate: bytes = b"one") -> Bundle:
    live = (
        LiveFile(f"{STATE}/tls/ca.crt", certificate, 0o644),
        LiveFile(f"{STATE}/tls/key", b"marked-5ecret-" + certificate, 0o400, "probe", "probe", secret=True),
    )
    others: dict[str, Any] = {"live": live, "seeds": (SEED,), "reload": RELOAD, "data": (f"{STATE}/instances",)}
    busy = ("sh", "-c", "cat /etc/probe/busy 2>/dev/null; true")
    return bundle(image, files or FIRST, busy=busy, **others)


@pytest.fixture
def live(caller: Caller, image: str) -> Bundle:
    wanted = made(image)
    if not caller.runs(wanted.digest):
        answer = caller.deploy(wanted)
        assert not answer["failed"], answer["shown"]
    return wanted


def test_live_files_and_a_seed_come_with_the_first_deployment(caller: Caller, image: str) -> None:
    first = caller.deploy(made(image), "--diff")
    assert (first["changed"], first["restarted"], first["reloaded"]) == (True, True, False), first["shown"]
    assert "marked-5ecret" not in first["shown"]
    assert caller.sh(f"stat -c '%a %U %G' {STATE}/tls/ca.crt {STATE}/tls/key {SEED.path}").split() == [
        *("644", "root", "root", "400", "probe", "probe", "644", "probe", "probe"),
    ]
    seed = caller.sh(f"cat {SEED.path}")
    assert str(UUID(seed)) == seed
    found = caller.facts()
    assert (found["seeds"], sorted(found["live"])) == ({SEED.path: seed}, [f"{STATE}/tls/ca.crt", f"{STATE}/tls/key"])
    again = caller.deploy(made(image))
    assert again["changed"] is False, again["shown"]


def test_a_renewed_certificate_is_read_by_the_running_service(caller: Caller, image: str, live: Bundle) -> None:
    invocation, reads = caller.invocation(), caller.logged("probe reads again")
    renewed = made(image, certificate=b"two")
    assert renewed.digest == live.digest
    announced = caller.deploy(renewed, "--check", "--diff")
    answer = caller.deploy(renewed, "--diff")
    for one in (announced, answer):
        assert (one["changed"], one["restarted"], one["reloaded"]) == (True, False, True), one["shown"]
        assert one["live"] == [f"{STATE}/tls/ca.crt", f"{STATE}/tls/key"]
        assert "marked-5ecret" not in one["shown"]
    caller.until("journalctl -u edpm_probe.service -o cat --no-pager | grep -q '^probe reads again$'")
    assert (caller.invocation(), caller.logged("probe reads again")) == (invocation, reads + 1)
    assert caller.sh(f"cat {STATE}/tls/ca.crt {STATE}/tls/key") == "twomarked-5ecret-two"


def test_a_live_file_and_a_seed_that_were_lost_come_back(caller: Caller, image: str) -> None:
    wanted, invocation = made(image, certificate=b"two"), caller.invocation()
    seed = caller.sh(f"cat {SEED.path}; rm {SEED.path}; echo edited > {STATE}/tls/ca.crt").splitlines()[0]
    assert caller.facts()["drift"] == [
        {"name": f"{STATE}/tls/ca.crt", "what": "changed"},
        {"name": SEED.path, "what": "missing"},
    ]
    answer = caller.deploy(wanted)
    assert (answer["changed"], answer["restarted"]) == (True, False), answer["shown"]
    assert caller.sh(f"cat {SEED.path} {STATE}/tls/ca.crt").split() == [seed, "two"]
    assert (caller.facts()["drift"], caller.invocation()) == ([], invocation)


def test_a_reload_that_fails_is_told_and_tried_again(caller: Caller, image: str) -> None:
    broken = bundle(image, FIRST, live=(LiveFile(f"{STATE}/tls/ca.crt", b"three"),), reload=("sh", "-c", "exit 3"))
    answer = caller.deploy(broken)
    assert "has new files and cannot be made to read them: exit code 3" in answer["msg"], answer["shown"]
    assert caller.facts()["unfinished"]
    works = caller.deploy(made(image))
    assert (works["changed"], works["reloaded"], works["restarted"]) == (True, True, False), works["shown"]
    assert not caller.facts()["unfinished"]


def test_the_way_back_needs_one_restart_and_nobody_else(caller: Caller, image: str, live: Bundle) -> None:
    second = made(image, SECOND)
    assert caller.deploy(second)["changed"]
    starts = caller.starts()
    announced = caller.go_back("--check", "--diff")
    assert (announced["changed"], announced["digest"], announced["restarted"]) == (True, live.digest, True)
    assert "value = one" in announced["shown"]
    assert caller.starts() == starts
    answer = caller.go_back()
    assert (answer["changed"], answer["files"]["changed"]) == (True, ["conf.d/01.conf"]), answer["shown"]
    assert caller.starts() == starts + 1
    assert caller.runs(live.digest)
    assert caller.sh(f"readlink {HOME}/previous") == f"generations/{second.digest}"
    assert "value = one" in caller.sh("podman exec edpm_probe cat /etc/probe/01.conf")
    assert caller.facts()["identity"] == {"cell": "nova-cell1", "host": "edpm-compute-0"}


def test_a_way_back_to_what_does_not_run_ends_where_it_began(caller: Caller, image: str, live: Bundle) -> None:
    """The generation before was healthy once; since then the node has lost what it needs."""
    needy = bundle(image, SECOND, health=Health(("test", "-e", "/needed"), on_node=True, settle=1, timeout=5))
    caller.sh("touch /needed")
    assert caller.deploy(needy)["changed"]
    assert caller.deploy(live)["changed"]
    caller.sh("rm /needed")
    answer = caller.go_back()
    assert (answer["failed"], answer["rolled_back"]) == (True, True), answer["shown"]
    assert f"generation {live.digest[:7]} runs again as before" in answer["msg"]
    assert caller.runs(live.digest)


def test_a_kill_on_the_way_back_is_finished_by_the_next_run(caller: Caller, image: str, live: Bundle) -> None:
    slow = bundle(image, SECOND, settle=15)
    caller.deploy(bundle(image, SECOND, settle=1))
    caller.sh(f'sed -i \'s/"settle": 1,/"settle": 15,/\' {HOME}/current/bundle.json')
    caller.deploy(live)
    run = caller.begin("service", {"state": "previous", "service": "probe"})
    caller.until(f"test -e {HOME}/intent.json && podman exec edpm_probe grep -q two /etc/probe/01.conf 2>/dev/null")
    caller.kill_the_run()
    assert "Killed" in run()["shown"]
    assert caller.facts()["unfinished"]
    caller.sh(f'sed -i \'s/"settle": 15,/"settle": 1,/\' {HOME}/generations/{slow.digest}/bundle.json')
    answer = caller.go_back()
    assert (answer["digest"], answer["unfinished"]) == (slow.digest, True), answer["shown"]
    assert caller.runs(slow.digest)
    assert caller.sh(f"readlink {HOME}/previous") == f"generations/{live.digest}"


@pytest.mark.usefixtures("live")
def test_what_is_in_use_stays_and_the_rest_goes_with_force(caller: Caller, image: str) -> None:
    busy = made(image, {**FIRST, "busy": b"guest-1\nguest-2\n"})
    assert caller.deploy(busy)["changed"]
    caller.sh(f"mkdir -p {STATE}/instances; echo data > {STATE}/instances/disk")
    tree = caller.tree()
    refused = caller.remove("--check")
    assert (refused["failed"], refused["busy"]) == (True, ["guest-1", "guest-2"]), refused["shown"]
    assert "still in use by guest-1, guest-2" in caller.remove()["msg"]
    caller.sh("systemctl stop edpm_probe.service")
    assert "cannot be asked whether it is still in use" in caller.remove()["msg"]
    assert caller.tree() == tree
    announced = caller.remove("--check", "--diff", force=True)
    assert caller.tree() == tree
    assert "marked-5ecret" not in announced["shown"]
    answer = caller.remove(force=True)
    assert (answer["changed"], answer["removed"]) == (True, announced["removed"]), answer["shown"]
    assert answer["kept"] == [f"{STATE}/instances"]
    places = "/etc/containers/systemd /etc/tmpfiles.d /etc/systemd/system /var/lib/openstack"
    assert caller.sh(f"find {places} -name '*probe*'; podman ps -aq; systemctl list-units -q 'edpm_*'") == ""
    assert caller.sh(f"find {STATE} -type f").split() == [f"{STATE}/instances/disk"]
    assert caller.sh("id -u probe") == "4711"
    again = caller.remove()
    assert (again["changed"], again["removed"]) == (False, []), again["shown"]


def test_the_node_is_free_after_a_removal_and_a_removal_takes_the_data_when_asked(caller: Caller, image: str) -> None:
    elsewhere = bundle(image, FIRST, guards={"cell": "nova-cell2"}, data=(f"{STATE}/instances",))
    assert caller.deploy(elsewhere)["changed"]
    answer = caller.remove(purge_data=True)
    assert f"{STATE}/instances" in answer["removed"], answer["shown"]
    assert caller.sh(f"ls {STATE}") == "tls"


def test_a_removal_that_was_killed_is_finished_by_the_next(caller: Caller, image: str) -> None:
    stubborn = {**FIRST, "program": b"trap '' TERM\necho 'probe started'\nwhile :; do sleep 1; done\n"}
    made_slow = bundle(image, stubborn, busy=("true",))
    assert caller.deploy(made_slow)["changed"]
    run = caller.begin("service", {"state": "absent", "service": "probe"})
    caller.until(f"grep -q away {HOME}/intent.json 2>/dev/null")
    caller.kill_the_run()
    assert "Killed" in run()["shown"]
    answer = caller.remove()
    assert answer["changed"], answer["shown"]
    assert caller.sh("find /etc/containers/systemd /var/lib/openstack -name '*probe*'; podman ps -aq") == ""


def test_a_service_that_is_no_container_lives_and_goes_as_well(caller: Caller) -> None:
    unit = "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"
    caller.nodes.execute(caller.node, "tee", "/etc/systemd/system/probe-plain.service", stdin=unit)
    caller.sh("systemctl daemon-reload")
    plain = Bundle(
        service="plain",
        digest="0" * 64,
        image=Image(""),
        units={},
        packages={"apt": ("hello",), "dnf": ("hello",)},
        node_units=("probe-plain.service",),
        masked=("nftables.service",),
        health=Health(("test", "-e", "/usr/bin/hello"), on_node=True, settle=1, timeout=20),
        live=(LiveFile("/etc/probe-plain/settings", b"x = 1\n", 0o644),),
        reload=("touch", "/run/probe-plain-read"),
        busy=("echo", "-n"),
    )
    first = caller.deploy(plain)
    assert first["node"] == [
        *("package hello", "unit nftables.service, not masked", "unit probe-plain.service, disabled"),
    ], first["shown"]
    assert caller.sh("systemctl is-active probe-plain; systemctl is-enabled probe-plain").split() == [
        "active",
        "enabled",
    ]
    assert caller.sh("systemctl is-enabled nftables", check=False) == "masked"
    assert caller.deploy(plain)["changed"] is False
    found = caller.facts("plain")
    assert (found["unit"]["name"], found["healthy"], found["drift"]) == ("probe-plain.service", True, [])
    other = LiveFile("/etc/probe-plain/settings", b"x = 2\n", 0o644)
    answer = caller.deploy(Bundle(**{**vars(plain), "live": (other,)}))
    assert (answer["reloaded"], answer["restarted"]) == (True, False), answer["shown"]
    assert caller.sh("ls /run/probe-plain-read")
    gone = caller.begin("service", {"state": "absent", "service": "plain"})()
    assert gone["changed"], gone["shown"]
    assert caller.sh("systemctl is-active probe-plain", check=False) == "inactive"
    assert caller.sh("systemctl is-enabled probe-plain nftables", check=False).split() == ["disabled", "disabled"]
    assert caller.sh("ls /etc/probe-plain; hello -g stays") == "stays"


def test_one_round_trip_tells_what_a_rollout_needs(caller: Caller, image: str) -> None:
    answer = caller.look(images=[image, "registry.example.org/none:1"], read=["/etc/os-release", "/none"])
    assert answer["missing_images"] == ["registry.example.org/none:1"]
    assert "trixie" in answer["contents"]["/etc/os-release"]
    assert list(answer["contents"]) == ["/etc/os-release"]
    assert answer["ssh_host_keys"]["ssh-ed25519"] in caller.nodes.known_hosts.read_text()
    secret = caller.begin("service_facts", {"read": ["/etc/shadow"]})()
    assert "/etc/shadow on the node is not a public text" in secret["msg"], secret["shown"]


def test_an_image_can_be_brought_ahead_and_pinned_by_its_digest(caller: Caller, image: str) -> None:
    digest = caller.sh(f"podman image inspect --format '{{{{.Digest}}}}' {image}")
    pinned = f"{image.rpartition(':')[0]}@{digest}"
    wanted = bundle(pinned, FIRST)
    ahead = caller.deploy(wanted, state="pulled")
    assert (ahead["changed"], ahead["pulled"]) == (False, False), ahead["shown"]
    assert caller.deploy(wanted)["restarted"]
    assert caller.sh("podman inspect --format '{{.ImageDigest}}' edpm_probe") == digest
    none = bundle("localhost/not/there:1", FIRST)
    assert caller.deploy(none, "--check", state="pulled")["changed"]
    refused = caller.begin("service", {"state": "pulled", "bundle": written(none)})()
    assert "The image localhost/not/there:1 cannot be pulled" in refused["msg"], refused["shown"]
