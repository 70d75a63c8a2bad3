# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ipaddress
import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from edpm_lab import command, podman
from edpm_lab.errors import LabError
from edpm_lab.labs import Lab
from edpm_lab.nodes import Nodes, default_names
from edpm_lab.podman import Network

NETWORK = Network("edpm-quiet", ipaddress.IPv4Network("10.213.7.0/24"))


def container(name: str, address: str, state: str = "running") -> dict[str, object]:
    labels = {"edpm.lab": "quiet", "edpm.node": name, "edpm.address": address}
    return {"Labels": labels, "State": state, "Image": "localhost/edpm-lab/node:1"}


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nodes:
    """Nodes of a lab whose podman answers with two containers."""
    listed = [container("edpm-compute-10", "10.213.7.11", "exited"), container("edpm-compute-9", "10.213.7.10")]
    monkeypatch.setattr(podman, "run", answering(json.dumps(listed)))
    return Nodes(Lab("quiet", tmp_path, kept=False))


def answering(text: str) -> Callable[..., command.Result]:
    return lambda *words, **_: command.Result(words, 0, text, "")


def test_nodes_are_listed_in_the_order_that_people_count_in(nodes: Nodes) -> None:
    assert [(node.name, node.state) for node in nodes.list()] == [
        ("edpm-compute-9", "running"),
        ("edpm-compute-10", "exited"),
    ]


def test_the_inventory_names_each_node_and_trusts_only_known_host_keys(nodes: Nodes) -> None:
    inventory = yaml.safe_load(nodes.inventory())["all"]
    assert inventory["hosts"] == {
        "edpm-compute-9": {"ansible_host": "10.213.7.10"},
        "edpm-compute-10": {"ansible_host": "10.213.7.11"},
    }
    assert inventory["vars"]["ansible_user"] == "root"
    assert inventory["vars"]["ansible_ssh_private_key_file"] == str(nodes.private_key)
    options = shlex.split(inventory["vars"]["ansible_ssh_common_args"])
    assert "StrictHostKeyChecking=yes" in options
    assert f"UserKnownHostsFile={nodes.known_hosts}" in options


def test_ssh_goes_to_the_nodes_address_with_the_labs_key(nodes: Nodes) -> None:
    words = nodes.ssh_argv("edpm-compute-9")
    assert words[-1] == "root@10.213.7.10"
    assert words[words.index("-i") + 1] == str(nodes.private_key)


@pytest.mark.parametrize("name", ["", "-a", "a.b", "Upper", "a b", "a" * 64])
def test_a_name_that_no_host_can_have_is_refused_before_anything_starts(nodes: Nodes, name: str) -> None:
    with pytest.raises(LabError, match="cannot name a node"):
        nodes.up([name])


def test_nodes_are_named_as_deployments_name_them() -> None:
    assert default_names(3) == ["edpm-compute-0", "edpm-compute-1", "edpm-compute-2"]


def test_an_address_comes_with_a_mac_of_its_own() -> None:
    first, second = NETWORK.at(NETWORK.address(10)), NETWORK.at(NETWORK.address(11))
    assert first == ["--network", "edpm-quiet", "--ip", "10.213.7.10", "--mac-address", "02:ed:0a:d5:07:0a"]
    assert first[-1] != second[-1]


@pytest.mark.parametrize("number", [0, 255])
def test_a_network_gives_out_no_address_that_a_host_cannot_have(number: int) -> None:
    with pytest.raises(LabError, match="it holds 1 to 254"):
        NETWORK.address(number)


def test_a_lab_that_never_used_podman_ends_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDPM_LAB_CACHE", str(tmp_path))
    monkeypatch.setattr(command, "run", lambda *_, **__: pytest.fail("podman was called"))
    podman.remove("quiet")


def test_a_limit_that_would_end_the_lab_at_twenty_machines_is_raised_and_a_higher_one_stays(tmp_path: Path) -> None:
    limit = tmp_path / "max_user_instances"
    for before, after in (("128\n", 1024), ("8192\n", 8192)):
        limit.write_text(before)
        podman._allow_many_machines(limit)
        assert int(limit.read_text()) == after
    podman._allow_many_machines(tmp_path / "not-there")
