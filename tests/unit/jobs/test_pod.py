# SPDX-License-Identifier: GPL-3.0-or-later
"""The pod's side: the real ansible-runner over local hosts, in folders that stand for a pod's."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.edpm.services.plugins.plugin_utils._jobs import manifests
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.pod import main
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.pod.places import Places
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.results import NodeResult, ShardResult, State

from .orders import order

LOCAL = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    made = Places(str(tmp_path / "work"), str(tmp_path / "root"))
    made.prepare()
    for name, value in made.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    return made


def mount(places: Places, folder: str, **files: str) -> None:
    place = places.read(folder)
    place.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (place / name.replace("__", ".")).write_text(text)


def part(places: Places, tasks: list[dict[str, Any]], *, index: int = 0, **fields: Any) -> main.Part:
    """A shard of a run over three local hosts, read as the pod reads it."""
    play = yaml.safe_dump([{"hosts": "all", "gather_facts": False, "tasks": tasks}])
    made = order(nodes=("a", "b", "c"), shard_size=2, playbook="", play=play, **fields)
    for name, text in manifests.settings(made, "5eed00")["data"].items():
        mount(places, manifests.SETTINGS, **{name.replace(".", "__"): text})
    inventory = {"all": {"hosts": dict.fromkeys(("a", "b", "c"), LOCAL)}}
    mount(places, manifests.INVENTORY, hosts__yml=yaml.safe_dump(inventory))
    return main.Part.read(places, {"JOB_COMPLETION_INDEX": str(index), "EDPM_POD": f"run-{index}-x"})


def test_a_shard_plays_on_its_own_nodes_and_no_others(places: Places, tmp_path: Path) -> None:
    path = f"{tmp_path}/seen-{{{{ first }}}}-{{{{ second }}}}-{{{{ inventory_hostname }}}}"
    touch = {"name": "Touch", "ansible.builtin.file": {"path": path, "state": "touch"}}
    mount(places, f"{manifests.VARIABLES}/0", more__yml="first: secret\nsecond: secret\n")

    result = main.play(part(places, [touch], extra_vars={"second": "order"}), places)

    assert result is not None
    assert [(node.node, node.state.value, node.changed) for node in result.nodes] == [
        ("a", "changed", 1),
        ("b", "changed", 1),
    ]
    assert (result.code, main.exit_code(result)) == (0, manifests.DONE)
    assert sorted(file.name for file in tmp_path.glob("seen-*")) == ["seen-secret-order-a", "seen-secret-order-b"]


def test_a_node_that_fails_ends_the_pod_with_the_code_that_is_not_tried_again(places: Places) -> None:
    fail = {"name": "Refuse", "ansible.builtin.fail": {"msg": "as asked"}, "when": "inventory_hostname == 'c'"}

    result = main.play(part(places, [fail], index=1), places)

    assert result is not None
    assert [(node.node, node.state, node.task, node.message) for node in result.nodes] == [
        ("c", State.FAILED, "Refuse", "as asked")
    ]
    assert main.exit_code(result) == manifests.NODES_FAILED


def test_a_playbook_that_cannot_be_read_is_told_in_ansibles_words(places: Places) -> None:
    broken = part(places, [{"name": "Odd", "no.such.module": {}}])

    result = main.play(broken, places)

    assert result is not None
    assert "no.such.module" in result.reason
    assert main.exit_code(result) == manifests.NOT_PLAYED
    assert {node.state for node in result.nodes} == {State.NOT_RUN}


def test_tags_and_more_arguments_reach_ansible(places: Places, tmp_path: Path) -> None:
    touch = {"ansible.builtin.file": {"path": f"{tmp_path}/touched", "state": "touch"}}
    tasks = [{"name": "One", **touch, "tags": ["one"]}, {"name": "Two", "ansible.builtin.fail": {}, "tags": ["two"]}]

    result = main.play(part(places, tasks, tags=("one",), arguments=("--check",)), places)

    assert result is not None
    assert result.code == 0
    assert not (tmp_path / "touched").exists()


def test_without_config_maps_the_data_plane_is_read_by_the_pods_account(places: Places) -> None:
    shard = part(places, [])
    (places.read(manifests.INVENTORY) / "hosts.yml").unlink()
    places.read(manifests.INVENTORY).rmdir()

    told = json.loads(Path(main.inventories(shard, places)[0]).read_text())

    assert told == {"plugin": "edpm.services.dataplane", "namespaces": ["openstack"], "ssh_keys": "secrets"}
    mount(places, manifests.SSH, **{"ssh-privatekey": "key"})
    assert json.loads(Path(main.inventories(shard, places)[0]).read_text())["ssh_keys"] == "own"


def test_host_keys_are_insisted_on_where_they_are_known(places: Places) -> None:
    assert "StrictHostKeyChecking=accept-new" in places.environment()["ANSIBLE_SSH_COMMON_ARGS"]

    mount(places, manifests.KNOWN_HOSTS, known_hosts="host key")

    assert "StrictHostKeyChecking=yes" in places.environment()["ANSIBLE_SSH_COMMON_ARGS"]


def test_an_authority_counts_only_where_it_is_mounted(places: Places) -> None:
    assert "REQUESTS_CA_BUNDLE" not in places.environment()

    mount(places, manifests.CA, **{"tls-ca-bundle.pem": "certificates"})

    assert places.environment()["REQUESTS_CA_BUNDLE"].endswith("/etc/edpm/ca/tls-ca-bundle.pem")


def test_the_results_carry_the_runs_labels_and_go_with_the_job(places: Places) -> None:
    shard = part(places, [], index=1)
    owned = main.Part(shard.told, 1, shard.nodes, "run-1-x", "run", "u-1")

    made = main.result_map(owned, ShardResult(1, 0, 1.0, (NodeResult("c", State.OK),)))

    assert made["metadata"]["name"] == "run-1-x-result"
    assert made["metadata"]["labels"]["edpm.openstack.org/result"] == "1"
    assert made["metadata"]["labels"]["edpm.openstack.org/start"] == "5eed00"
    assert made["metadata"]["ownerReferences"][0]["uid"] == "u-1"


STOPPED = """
import sys
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.pod import main
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.pod.places import Places
places = Places(sys.argv[1], sys.argv[2])
sys.exit(17 if main.play(main.Part.read(places, {}), places) is None else 0)
"""


def test_a_pod_that_is_told_to_go_ends_its_playbook_and_stores_nothing(places: Places, tmp_path: Path) -> None:
    waiting = f"echo $$ > {tmp_path}/begun-{{{{ inventory_hostname }}}}; exec sleep 300"
    part(places, [{"name": "Wait", "ansible.builtin.shell": waiting}])
    argv = [sys.executable, "-c", STOPPED, str(places.work), str(tmp_path / "root")]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, env=dict(os.environ))
    try:
        limit = time.monotonic() + 90
        while len(list(tmp_path.glob("begun-*"))) < 2:
            assert time.monotonic() < limit
            time.sleep(0.2)
        process.send_signal(signal.SIGTERM)

        assert process.wait(timeout=60) == 17
    finally:
        process.kill()
        # Ansible's workers are sessions of their own: in a pod they end with it, here by the end of what they wait for.
        for begun in tmp_path.glob("begun-*"):
            os.kill(int(begun.read_text()), signal.SIGKILL)
