# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports in firewalld: what runs, what is written down, and what belongs to somebody else."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import Bundle
from ansible_collections.edpm.services.plugins.module_utils._node.commands import Result
from ansible_collections.edpm.services.plugins.module_utils._node.errors import NodeError
from ansible_collections.edpm.services.plugins.module_utils._node.port_numbers import numbers, ranges
from hypothesis import given
from hypothesis import strategies as some

from .fakes import away, back, bundle_of, deploy, everything_in, text, told, wipe, world_in
from .plug import Killed, Plug
from .programs import FakeRun, World
from .samples import A, B

TAG, PEER = "edpm_nova_compute", "edpm_peer"


@pytest.fixture
def firewalld(world: World) -> World:
    return with_firewalld(world)


def with_firewalld(world: World) -> World:
    world.fabric.chain("filter_INPUT", "drop", table="firewalld")
    world.fabric.files["firewalld.service"] = "enabled"
    world.fabric.up.add("firewalld.service")
    world.fabric.zones.update({"public": {"ssh", "443/tcp"}, "internal": set()})
    zones = world.places.etc / "firewalld/zones"
    zones.mkdir(parents=True)
    (zones / "public.xml").write_text('<zone>\n  <service name="ssh"/>\n  <port port="443" protocol="tcp"/>\n</zone>\n')
    return world


def open_for(world: World, *ports: str, digest: str = A) -> Bundle:
    return bundle_of(world, digest, {"1.conf": digest.encode()}, ports=ports)


def open_for_peer(world: World, *ports: str) -> Bundle:
    units = {f"{PEER}.container": text(world, "peer")}
    return bundle_of(world, A, {"1.conf": b""}, service="peer", units=units, ports=ports)


def reload(world: World) -> None:
    FakeRun(world, Plug()).reload_firewalld()


def written(world: World, name: str = TAG) -> str:
    return (world.places.etc / f"firewalld/services/{name}.xml").read_text()


def notes(world: World) -> list[Path]:
    return sorted(world.places.run.glob("edpm_firewalld*"))


def test_it_gets_a_service_for_good_and_the_ports_at_once(firewalld: World) -> None:
    made = open_for(firewalld, "tcp 5900-6923", "tcp 443")
    assert deploy(firewalld, made).changes.ground == ("port tcp 5900-6923", "port tcp 443")
    assert firewalld.fabric.zones == {
        "public": {"ssh", "443/tcp", "5900-6923/tcp"},
        "internal": {"443/tcp", "5900-6923/tcp"},
    }
    assert '<port port="5900-6923" protocol="tcp"/>' in written(firewalld)
    assert not deploy(firewalld, made).changes.any
    reload(firewalld)
    assert firewalld.fabric.zones == {"public": {"ssh", "443/tcp", TAG}, "internal": {TAG}}
    assert not deploy(firewalld, made).changes.any
    firewalld.fabric.zones["internal"].clear()
    assert [one["name"] for one in told(firewalld)["drift"]] == ["port tcp 5900-6923", "port tcp 443"]


def test_ports_that_belong_together_are_opened_with_one_command_for_each_zone(firewalld: World) -> None:
    deploy(firewalld, open_for(firewalld, "tcp 1", "tcp 2", "tcp 3"))
    opened = [words[1:] for words in firewalld.argv("firewall-cmd") if "--add-port=2/tcp" in words]
    three = ["--add-port=1/tcp", "--add-port=2/tcp", "--add-port=3/tcp"]
    assert opened == [
        ["--permanent", f"--service={TAG}", *three],
        ["--zone=public", *three],
        ["--zone=internal", *three],
    ]


@pytest.mark.parametrize("is_loaded", [False, True])
def test_other_ports_count_at_once_also_where_what_runs_has_loaded_the_old_ones(
    firewalld: World, is_loaded: bool
) -> None:
    deploy(firewalld, open_for(firewalld, "tcp 5900", "tcp 22"))
    if is_loaded:
        reload(firewalld)
    other = open_for(firewalld, "tcp 5901", "tcp 22", digest=B)
    ground = deploy(firewalld, other).changes.ground
    assert ground == ("port tcp 5901", "port tcp 5900, no longer needed")
    zones = {"public": {"ssh", "443/tcp", "22/tcp", "5901/tcp"}, "internal": {"22/tcp", "5901/tcp"}}
    assert firewalld.fabric.zones == zones
    assert '"5900"' not in written(firewalld)
    assert not deploy(firewalld, other).changes.any
    back(firewalld)
    assert firewalld.fabric.zones["internal"] == {"22/tcp", "5900/tcp"}
    assert '"5901"' not in written(firewalld)


def test_a_service_that_was_changed_by_hand_and_loaded_is_told_and_set_right(firewalld: World) -> None:
    made = open_for(firewalld, "tcp 22")
    deploy(firewalld, made)
    reload(firewalld)
    firewalld.fabric.loaded[TAG] = ["22/tcp", "23/tcp"]
    assert [one["name"] for one in told(firewalld)["drift"]] == ["port tcp 23, no longer needed"]
    deploy(firewalld, made)
    assert firewalld.fabric.zones == {"public": {"ssh", "443/tcp", "22/tcp"}, "internal": {"22/tcp"}}
    assert told(firewalld)["drift"] == []


def test_ranges_that_overlap_are_joined_and_a_removal_cuts_out_its_own_part(firewalld: World) -> None:
    firewalld.fabric.zones["internal"].add("5905-5910/tcp")
    made = open_for(firewalld, "tcp 5900-5906", "tcp 5911")
    deploy(firewalld, made)
    assert firewalld.fabric.zones["internal"] == {"5900-5910/tcp", "5911/tcp"}
    assert not deploy(firewalld, made).changes.any
    away(firewalld)
    assert firewalld.fabric.zones["internal"] == {"5905-5910/tcp"}


def test_where_no_zone_has_an_interface_the_default_one_counts(firewalld: World) -> None:
    firewalld.fabric.zones_are_active = False
    deploy(firewalld, open_for(firewalld, "tcp 22"))
    assert firewalld.fabric.zones == {"public": {"ssh", "443/tcp", "22/tcp"}, "internal": set()}


def test_the_default_zone_counts_beside_those_that_something_is_bound_to(firewalld: World) -> None:
    firewalld.fabric.zones_are_active = False
    firewalld.fabric.zone_lines["internal"] = {"sources": "10.0.0.0/8"}
    deploy(firewalld, open_for(firewalld, "tcp 22"))
    assert firewalld.fabric.zones == {"public": {"ssh", "443/tcp", "22/tcp"}, "internal": {"22/tcp"}}


@pytest.mark.parametrize(
    ("lines", "is_open"),
    [
        pytest.param({"target": "ACCEPT"}, False, id="it lets everything in"),
        pytest.param({"target": "DROP", "interfaces": "", "sources": "ipset:bad"}, False, id="it shuts some out"),
        pytest.param({"target": "%%REJECT%%", "interfaces": "", "sources": "192.0.2.1"}, False, id="with an answer"),
        pytest.param({"target": "DROP"}, True, id="a network that is closed"),
        pytest.param({"interfaces": "", "sources": "192.0.2.0/24"}, True, id="some who may do more"),
    ],
)
def test_a_port_is_opened_only_in_a_zone_that_would_let_it_in(
    firewalld: World, lines: dict[str, str], is_open: bool
) -> None:
    firewalld.fabric.zone_lines["internal"] = lines
    made = open_for(firewalld, "tcp 22")
    deploy(firewalld, made)
    assert firewalld.fabric.zones["internal"] == ({"22/tcp"} if is_open else set())
    assert not deploy(firewalld, made).changes.any


def test_where_everything_is_let_in_nothing_is_done(firewalld: World) -> None:
    firewalld.fabric.zone_lines = {zone: {"target": "ACCEPT"} for zone in firewalld.fabric.zones}
    before = everything_in(firewalld.places.etc / "firewalld")
    assert deploy(firewalld, open_for(firewalld, "tcp 22")).changes.ground == ()
    assert everything_in(firewalld.places.etc / "firewalld") == before


@pytest.mark.parametrize("is_loaded", [False, True])
def test_removal_closes_what_nobody_else_opened_and_leaves_nothing(firewalld: World, is_loaded: bool) -> None:
    before = everything_in(firewalld.places.etc / "firewalld/zones")
    deploy(firewalld, open_for(firewalld, "tcp 5900", "tcp 443"))
    if is_loaded:
        reload(firewalld)
    assert everything_in(firewalld.places.etc / "firewalld/zones") != before
    # What it was bound to has gone meanwhile.
    firewalld.fabric.zone_lines["internal"] = {"interfaces": ""}
    away(firewalld)
    assert firewalld.fabric.zones == {"public": {"ssh", "443/tcp"}, "internal": set()}
    assert list((firewalld.places.etc / "firewalld/services").iterdir()) == []
    assert TAG not in "".join(path.read_text() for path in (firewalld.places.etc / "firewalld").rglob("*.xml"))
    assert notes(firewalld) == []


def test_removal_leaves_a_port_that_was_open_by_hand(firewalld: World) -> None:
    firewalld.fabric.zones["internal"].add("5900/tcp")
    made = open_for(firewalld, "tcp 5900", "tcp 5901")
    deploy(firewalld, made)
    assert not deploy(firewalld, made).changes.any
    deploy(firewalld, open_for(firewalld, "tcp 5900", "tcp 5902", digest=B))
    away(firewalld)
    assert firewalld.fabric.zones == {"public": {"ssh", "443/tcp"}, "internal": {"5900/tcp"}}
    assert notes(firewalld) == []


def test_what_was_open_by_hand_is_forgotten_with_the_next_start(firewalld: World) -> None:
    firewalld.fabric.zones["internal"].add("5900/tcp")
    deploy(firewalld, open_for(firewalld, "tcp 5900"))
    reload(firewalld)
    deploy(firewalld, open_for(firewalld, "tcp 5900", "tcp 5901", digest=B))
    assert firewalld.fabric.zones["internal"] == {"5900/tcp", "5901/tcp"}
    away(firewalld)
    assert firewalld.fabric.zones["internal"] == set()


def test_removal_leaves_a_port_that_came_by_hand_after_the_service_was_loaded(firewalld: World) -> None:
    deploy(firewalld, open_for(firewalld, "tcp 5900"))
    reload(firewalld)
    firewalld.fabric.zones["internal"].add("5900/tcp")
    away(firewalld)
    assert firewalld.fabric.zones == {"public": {"ssh", "443/tcp"}, "internal": {"5900/tcp"}}


@pytest.mark.parametrize("loaded", ["neither", "one", "both"])
def test_removal_leaves_a_port_that_another_service_needs_and_the_last_one_closes_it(
    firewalld: World, loaded: str
) -> None:
    deploy(firewalld, open_for(firewalld, "tcp 5900", "tcp 5901"))
    if loaded == "one":
        reload(firewalld)
    peer = open_for_peer(firewalld, "tcp 5900")
    deploy(firewalld, peer)
    if loaded == "both":
        reload(firewalld)
    away(firewalld)
    assert firewalld.fabric.zones["internal"] == ({PEER} if loaded == "both" else {"5900/tcp"})
    assert not deploy(firewalld, peer).changes.any
    away(firewalld, "peer")
    assert firewalld.fabric.zones == {"public": {"ssh", "443/tcp"}, "internal": set()}


def test_a_port_that_was_open_by_hand_outlives_both_services_that_need_it(firewalld: World) -> None:
    firewalld.fabric.zones["internal"].add("5900/tcp")
    deploy(firewalld, open_for(firewalld, "tcp 5900"))
    deploy(firewalld, open_for_peer(firewalld, "tcp 5900"))
    away(firewalld)
    away(firewalld, "peer")
    assert firewalld.fabric.zones == {"public": {"ssh", "443/tcp"}, "internal": {"5900/tcp"}}


def test_a_rich_rule_or_a_comment_does_not_make_a_port_an_administrators(firewalld: World) -> None:
    rule = '<rule family="ipv4"><source address="192.0.2.1"/><port port="5900" protocol="tcp"/><accept/></rule>'
    comment = '<!-- <port port="5901" protocol="tcp"/> -->'
    zone = firewalld.places.etc / "firewalld/zones/public.xml"
    zone.write_text(f"<zone>\n{rule}\n{comment}\n<port protocol='tcp' port='5902'/>\n</zone>\n")
    firewalld.fabric.zones["public"].add("5902/tcp")
    deploy(firewalld, open_for(firewalld, "tcp 5900-5902"))
    away(firewalld)
    assert firewalld.fabric.zones["public"] == {"ssh", "443/tcp", "5902/tcp"}


def test_a_refusal_is_told(firewalld: World) -> None:
    firewalld.refuse["firewall-cmd --permanent"] = Result(1, "", "Error: ACCESS_DENIED")
    with pytest.raises(NodeError, match=f"firewall-cmd --permanent --new-service={TAG} failed on the node: Error: ACC"):
        deploy(firewalld, open_for(firewalld, "tcp 22"))


@pytest.mark.parametrize("runs", [True, False])
def test_services_are_told_with_one_question_to_systemd_whichever_firewall_counts(firewalld: World, runs: bool) -> None:
    if not runs:
        firewalld.fabric.up.discard("firewalld.service")
    deploy(firewalld, open_for(firewalld, "tcp 22"))
    deploy(firewalld, open_for_peer(firewalld, "tcp 23"))
    firewalld.calls.clear()
    assert told(firewalld)["drift"] == []
    assert [call[1] for call in firewalld.calls if call[0] == "systemctl"] == ["show"]
    assert bool(firewalld.argv("firewall-cmd")) is runs


def test_a_check_changes_nothing(firewalld: World) -> None:
    deploy(firewalld, open_for(firewalld, "tcp 22"))
    state = (everything_in(firewalld.places.etc), {zone: set(said) for zone, said in firewalld.fabric.zones.items()})
    outcome = deploy(firewalld, open_for(firewalld, "tcp 23", digest=B), check=True)
    assert outcome.changes.ground == ("port tcp 23", "port tcp 22, no longer needed")
    assert (everything_in(firewalld.places.etc), firewalld.fabric.zones) == state


# --- while it is down ------------------------------------------------------------------------------------------------
@pytest.fixture
def down(firewalld: World) -> World:
    firewalld.fabric.up.discard("firewalld.service")
    firewalld.fabric.ruleset = []
    return firewalld


def start(world: World) -> None:
    world.fabric.up.add("firewalld.service")
    reload(world)


def test_one_that_is_down_opens_the_ports_when_it_is_started(down: World) -> None:
    down.fabric.zones_are_active = False
    made = open_for(down, "tcp 22")
    assert deploy(down, made).changes.ground == ("port tcp 22 in firewalld",)
    assert not deploy(down, made).changes.any
    deploy(down, open_for(down, "tcp 23", digest=B))
    assert down.argv("firewall-cmd") == []
    start(down)
    assert (down.fabric.zones["public"], down.fabric.loaded[TAG]) == ({"ssh", "443/tcp", TAG}, ["23/tcp"])
    assert told(down)["drift"] == []


def test_while_it_is_down_the_default_zone_is_told_by_its_files(down: World) -> None:
    folder = down.places.etc / "firewalld"
    (folder / "firewalld.conf").write_text("# DefaultZone=work\nDefaultZone=internal\n")
    (folder / "zones/dmz.xml").write_text('<zone>\n  <interface name="eth1"/>\n</zone>\n')
    deploy(down, open_for(down, "tcp 22"))
    assert sorted(path.stem for path in (folder / "zones").iterdir() if TAG in path.read_text()) == ["dmz", "internal"]


def test_a_removal_while_it_is_down_leaves_nothing_that_it_would_open(firewalld: World) -> None:
    deploy(firewalld, open_for(firewalld, "tcp 22"))
    assert TAG in (firewalld.places.etc / "firewalld/zones/public.xml").read_text()
    firewalld.fabric.up.discard("firewalld.service")
    away(firewalld)
    assert list((firewalld.places.etc / "firewalld/services").iterdir()) == []
    start(firewalld)
    assert firewalld.fabric.zones == {"public": {"ssh", "443/tcp"}, "internal": set()}


def test_one_that_is_switched_off_gets_nothing_new(down: World) -> None:
    down.fabric.files["firewalld.service"] = "disabled"
    assert deploy(down, open_for(down, "tcp 22")).changes.ground == ()
    assert not (down.places.etc / "firewalld/services").exists()


def test_one_that_is_no_longer_installed_is_not_asked(firewalld: World) -> None:
    deploy(firewalld, open_for(firewalld, "tcp 22"))
    firewalld.fabric.up.discard("firewalld.service")
    del firewalld.fabric.files["firewalld.service"]
    firewalld.calls.clear()
    away(firewalld)
    assert firewalld.argv("firewall-offline-cmd") == []


def test_rules_that_were_made_without_it_go_when_it_has_come(world: World) -> None:
    world.fabric.chain("INPUT", "drop")
    made = open_for(world, "tcp 22")
    deploy(world, made)
    assert world.fabric.rules() == [f"tcp 22 {TAG}"]
    with_firewalld(world)
    deploy(world, made)
    assert world.fabric.rules() == []
    assert world.fabric.zones["internal"] == {"22/tcp"}
    assert not deploy(world, made).changes.any


# --- killed runs -----------------------------------------------------------------------------------------------------
def test_a_change_that_is_killed_anywhere_is_finished_by_the_next_run(tmp_path: Path) -> None:
    for moment in range(200):
        wipe(tmp_path)
        world = with_firewalld(world_in(tmp_path))
        world.fabric.zones["internal"].add("5902/tcp")
        deploy(world, open_for(world, "tcp 5900", "tcp 5902"))
        wanted = open_for(world, "tcp 5901", "tcp 5902", digest=B)
        plug = Plug(moment)
        try:
            deploy(world, wanted, plug=plug)
        except Killed:
            deploy(world, wanted)
        assert world.fabric.zones["internal"] == {"5901/tcp", "5902/tcp"}, plug
        away(world)
        assert world.fabric.zones == {"public": {"ssh", "443/tcp"}, "internal": {"5902/tcp"}}, plug
        if not plug.dead:
            return
    raise AssertionError("there are more moments than were tried")


# --- ports as numbers ------------------------------------------------------------------------------------------------
def test_ports_are_numbers_and_numbers_are_ranges() -> None:
    assert numbers(["tcp 22", "udp 5-6", "None None", "ah"]) == {("tcp", 22), ("udp", 5), ("udp", 6)}
    assert ranges(numbers(["tcp 3", "tcp 1-2", "tcp 9", "udp 10"])) == ["tcp 1-3", "tcp 9", "udp 10"]


@given(some.frozensets(some.tuples(some.sampled_from(["tcp", "udp"]), some.integers(1, 65535)), max_size=30))
def test_no_number_is_lost_on_the_way(found: frozenset[tuple[str, int]]) -> None:
    assert numbers(ranges(found)) == found
