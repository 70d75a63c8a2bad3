# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbooks in real pods over real nodes: sharded, failing, killed, and told why when they cannot even start."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from .conftest import NODES, Site


def command(words: str, **more: Any) -> dict[str, Any]:
    return {"name": "Do it", "ansible.builtin.shell": words, "changed_when": True, **more}


def on_nodes(site: Site, *words: str) -> dict[str, str]:
    return {name: site.nodes.execute(name, *words, check=False).stdout.strip() for name in NODES}


def test_the_plan_is_made_in_a_pod_by_the_pods_own_account(site: Site) -> None:
    done = site.in_cluster("edpm.services.plan", edpm_run_shard_size=0)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 shards done" in done.stdout
    job = json.loads(site.kubectl("get", "jobs", "-o", "json"))["items"][0]
    log = site.kubectl("logs", f"job/{job['metadata']['name']}")
    assert "3 nodes: 3 ready" in log
    for name in NODES:
        assert name in log


def test_a_play_runs_over_all_nodes_in_shards_with_the_key_from_the_secret(site: Site, tmp_path: Path) -> None:
    found = site.play(tmp_path, [command("hostname > /var/tmp/seen")], shard_size=2, name="shards")

    assert found["msg"].endswith(": 3 changed."), found["shown"]
    assert {name: node["shard"] for name, node in found["nodes"].items()} == dict(zip(NODES, (0, 0, 1), strict=True))
    assert on_nodes(site, "cat", "/var/tmp/seen") == {name: name for name in NODES}
    assert "3 nodes in 2 pods" in found["shown"]


def test_a_finished_run_is_run_again_unless_its_results_are_enough(site: Site, tmp_path: Path) -> None:
    tasks = [command("date +%N > /var/tmp/again")]
    first = site.play(tmp_path, tasks, name="again")
    before = on_nodes(site, "cat", "/var/tmp/again")

    kept = site.play(tmp_path, tasks, name="again", rerun=False)
    assert (kept["run"], kept["started"], kept["summary"]) == (first["run"], False, first["summary"])
    assert on_nodes(site, "cat", "/var/tmp/again") == before

    anew = site.play(tmp_path, tasks, name="again")
    assert (anew["run"], anew["started"]) == (first["run"], True)
    assert not before.items() & on_nodes(site, "cat", "/var/tmp/again").items()


def test_a_failing_and_an_unreachable_node_are_named_and_the_other_shards_go_on(site: Site, tmp_path: Path) -> None:
    site.nodes.kill(NODES[1])
    try:
        bad = {
            "name": "Refuse",
            "ansible.builtin.fail": {"msg": "as asked"},
            "when": f"inventory_hostname == '{NODES[0]}'",
        }
        found = site.play(
            tmp_path,
            [command("true"), bad],
            shard_size=1,
            name="failing",
            environment={"ANSIBLE_TIMEOUT": "5"},
        )
    finally:
        site.nodes.start(NODES[1])

    states = {name: node["state"] for name, node in found["nodes"].items()}
    assert states == dict(zip(NODES, ("failed", "unreachable", "changed"), strict=True)), found["shown"]
    assert found["failed_nodes"] == NODES[:2]
    assert f"2 of 3 nodes failed, {NODES[0]} (failed, Refuse: as asked); {NODES[1]} (unreachable" in found["msg"]
    pods = json.loads(site.kubectl("get", "pods", "-l", f"edpm.openstack.org/run={found['run']}", "-o", "json"))[
        "items"
    ]
    assert len(pods) == 3, "a real failure is not tried again"


def test_a_pod_that_is_killed_in_the_middle_is_finished_by_the_next(site: Site, tmp_path: Path) -> None:
    answer: dict[str, Any] = {}
    tasks = [command("echo x >> /var/tmp/killed; sleep 20; echo done > /var/tmp/finished")]
    running = threading.Thread(target=lambda: answer.update(site.play(tmp_path, tasks, name="killed")))
    running.start()
    limit = time.monotonic() + 200
    while "x" not in on_nodes(site, "cat", "/var/tmp/killed").values():
        assert time.monotonic() < limit
        time.sleep(1)
    pod = site.kubectl("get", "pods", "--field-selector=status.phase=Running", "-o", "name").split()[0]
    site.kubectl("delete", pod, "--grace-period=0", "--force", timeout=120)
    running.join(timeout=400)

    assert answer["msg"].endswith(": 3 changed."), answer.get("shown")
    assert set(on_nodes(site, "cat", "/var/tmp/finished").values()) == {"done"}


def test_an_image_that_does_not_exist_is_told_at_once_and_nothing_is_left(site: Site, tmp_path: Path) -> None:
    began = time.monotonic()
    found = site.play(tmp_path, [command("true")], image="localhost/edpm-lab/nope:1", name="nope")

    assert found["failed"]
    assert "cannot get its image localhost/edpm-lab/nope:1 (ErrImageNeverPull" in found["msg"]
    assert time.monotonic() - began < 100
    # The server takes the Job away once its pods are gone.
    while "nope-" in site.kubectl("get", "jobs", "-o", "name"):
        assert time.monotonic() - began < 160
        time.sleep(1)


def test_a_secret_that_is_missing_is_told_before_a_pod_is_made(site: Site, tmp_path: Path) -> None:
    found = site.play(tmp_path, [command("true")], ssh_key_secret="gone", name="gone")

    assert (
        found["msg"] == "Secret openstack/gone of ssh_key_secret does not exist; create it, or correct ssh_key_secret."
    )


def test_an_inventory_config_map_and_a_mounted_key_do_without_the_data_plane(site: Site, tmp_path: Path) -> None:
    hosts = {name: {"ansible_host": site.nodes.address(name), "ansible_user": "root"} for name in NODES}
    text = yaml.safe_dump({"all": {"hosts": hosts}})
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "by-hand"}, "data": {"inventory": text}}
    site.kubectl("apply", "-f", "-", stdin=json.dumps(made))

    found = site.play(
        tmp_path,
        [command("hostname")],
        inventory="config_maps",
        inventory_config_maps=["by-hand"],
        ssh_key_secret="dataplane-ssh",
        run_as_user=123456,
        name="by-hand",
    )

    assert found["msg"].endswith(": 3 changed."), found["shown"]


@pytest.mark.parametrize("name", ["no.such.playbook"])
def test_a_playbook_that_is_not_in_the_image_is_told_in_ansibles_words(site: Site, name: str) -> None:
    done = site.in_cluster(name)

    assert done.returncode != 0
    assert "could not be found" in done.stdout, done.stdout
    assert "not run" in done.stdout


def test_the_results_of_2000_nodes_come_back_and_no_object_is_large(site: Site, tmp_path: Path) -> None:
    """Hosts without machines: what counts is how many there are, and that every tenth fails with much to say."""
    hosts = {f"edpm-compute-{number}": {"ansible_connection": "local"} for number in range(2000)}
    text = json.dumps({"all": {"hosts": hosts}})
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "many"}, "data": {"inventory": text}}
    site.kubectl("apply", "-f", "-", stdin=json.dumps(made))
    tenth = {"ansible.builtin.fail": {"msg": "much to say " * 300}, "when": "inventory_hostname is match('.*7$')"}

    found = site.play(
        tmp_path,
        [{"name": "Talk", **tenth}],
        inventory="config_maps",
        inventory_config_maps=["many"],
        shard_size=500,
        parallel=2,
        name="many",
    )

    assert (found["summary"]["ok"], found["summary"]["failed"]) == (1800, 200), found["shown"][-2000:]
    assert len(found["failed_nodes"]) == 200
    assert "; and 180 more;" in found["msg"]
    chosen = f"edpm.openstack.org/run={found['run']}"
    objects = json.loads(site.kubectl("get", "configmaps,jobs,pods", "-l", chosen, "-o", "json"))["items"]
    assert len(objects) == 1 + 4 + 1 + 4, "settings, results, Job, pods"
    assert max(len(json.dumps(one)) for one in objects) < 200_000


def test_a_job_deploys_a_service_to_a_real_node_and_a_second_one_changes_nothing(site: Site) -> None:
    first = site.in_cluster("edpm.services.deploy", node=NODES[0])

    assert first.returncode == 0, first.stdout + first.stderr
    assert "1 changed" in first.stdout
    assert site.nodes.execute(NODES[0], "systemctl", "is-active", "edpm_libvirt.service").stdout.strip() == "active"
    assert site.nodes.execute(NODES[1], "ls", "/var/lib/openstack", check=False).stdout == ""

    second = site.in_cluster("edpm.services.deploy", node=NODES[0])
    assert second.returncode == 0, second.stdout + second.stderr
    assert "1 ok" in second.stdout


def test_a_job_restarts_the_service_of_the_node_that_is_named(site: Site) -> None:
    invocation = ("systemctl", "show", "--property=InvocationID", "edpm_libvirt.service")
    before = site.nodes.execute(NODES[0], *invocation).stdout

    done = site.in_cluster("edpm.services.restart", node=NODES[0], service="libvirt")

    assert done.returncode == 0, done.stdout + done.stderr
    assert site.nodes.execute(NODES[0], *invocation).stdout != before


def test_a_namespace_goes_although_a_machine_was_lost_before_its_services_left(site: Site) -> None:
    lost = {
        "apiVersion": "nova.openstack.org/v1beta1",
        "kind": "NovaExternalCompute",
        "metadata": {"name": "lost", "namespace": "leaving", "finalizers": ["edpm.openstack.org/services"]},
        "spec": {"dataplaneNodeName": "lost", "cellName": "nova-cell1"},
    }
    kubectl = site.cluster.kubectl
    kubectl("create", "namespace", "leaving")
    kubectl("apply", "-f", "-", stdin=yaml.safe_dump(lost))
    kubectl("delete", "namespace", "leaving", "--wait=false")
    kubectl("wait", "--for=jsonpath={.metadata.deletionTimestamp}", "--namespace=leaving", "nec/lost", "--timeout=60s")
    waits = kubectl("wait", "--for=delete", "namespace/leaving", "--timeout=3s", check=False)
    assert waits.returncode != 0, "it waits for the services to be taken off"

    kubectl("annotate", "--namespace=leaving", "nec", "lost", "edpm.openstack.org/abandon=true")
    done = site.run("edpm.services.reconcile", "-e", json.dumps({"edpm_namespaces": ["leaving"]}))

    assert done.returncode == 0, done.stdout + done.stderr
    kubectl("wait", "--for=delete", "namespace/leaving", "--timeout=60s")
