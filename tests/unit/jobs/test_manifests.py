# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects of a run, whole against files, and the rules that hold for each of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.edpm.services.plugins.plugin_utils._jobs import ansibleee, manifests
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.order import BadOrderError, Mount, Order

from .orders import names, order

GOLDEN = Path(__file__).resolve().parents[2] / "fixtures/jobs"
START = "5eed00"
FULL = {
    "nodes": names(120),
    "tags": ("configure",),
    "extra_vars": {"edpm_deploy_batch": 5},
    "extra_vars_secrets": ("site-vars",),
    "environment": {"ANSIBLE_TIMEOUT": "30"},
    "image_pull_secrets": ("registry",),
    "inventory_config_maps": ("dataplanerole-edpm-compute",),
    "ssh_key_secret": "dataplane-ssh",
    "known_hosts": "edpm-known-hosts",
    "ca_secret": "combined-ca-bundle",
    "mounts": (Mount("ConfigMap", "openstack-config", "/etc/openstack", True),),
    "network_attachments": ("ctlplane", "internalapi"),
    "dns_config": {"nameservers": ["192.0.2.53"], "options": [{"name": "ndots", "value": "2"}]},
    "parallel": 2,
    "deadline": 7200,
    "run_as_user": 123456,
}


@pytest.mark.parametrize(("name", "fields"), [("plain", {}), ("full", FULL)])
def test_the_job_is_as_in_the_file(name: str, fields: dict[str, Any]) -> None:
    """A change here changes what runs in users' clusters: read the difference before the file is written anew."""
    wanted = yaml.safe_load((GOLDEN / f"{name}.yaml").read_text())

    assert json.loads(json.dumps(manifests.job(order(**fields), START))) == wanted


def test_the_openstackansibleee_is_as_in_the_file() -> None:
    wanted = yaml.safe_load((GOLDEN / "openstackansibleee.yaml").read_text())

    assert json.loads(json.dumps(ansibleee.resource(order(**FULL), START, 2))) == wanted


def pod(made: Order) -> dict[str, Any]:
    found: dict[str, Any] = manifests.job(made, START)["spec"]["template"]["spec"]
    return found


def test_no_more_pods_run_at_once_than_there_are_shards() -> None:
    assert manifests.job(order(nodes=names(3), parallel=10), START)["spec"]["parallelism"] == 1
    assert manifests.job(order(nodes=names(300), parallel=4), START)["spec"]["parallelism"] == 4


def test_every_volume_is_mounted_once_and_one_alone_can_be_written() -> None:
    made = pod(order(**FULL))
    mounts = made["containers"][0]["volumeMounts"]

    assert [one["name"] for one in mounts] == [one["name"] for one in made["volumes"]]
    assert len({one["mountPath"] for one in mounts}) == len(mounts)
    assert [one["mountPath"] for one in mounts if not one.get("readOnly")] == ["/run/edpm"]


def test_servers_for_dns_take_the_place_of_the_clusters_and_domains_come_beside_its_own() -> None:
    """A resolver asks the next server where one is silent, and not where one has said that there is no such name."""
    with_servers = pod(order(dns_config={"nameservers": ["192.0.2.53"]}))
    with_domains = pod(order(dns_config={"searches": ["example.com"]}))

    assert (with_servers["dnsPolicy"], with_servers["dnsConfig"]) == ("None", {"nameservers": ["192.0.2.53"]})
    assert with_domains["dnsConfig"] == {"searches": ["example.com"]}
    assert "dnsPolicy" not in with_domains
    assert {"dnsPolicy", "dnsConfig"}.isdisjoint(pod(order()))


def test_what_the_pods_know_is_in_one_config_map_that_goes_with_the_job() -> None:
    made = order(nodes=names(3), shard_size=2, play="- hosts: all\n", playbook="", tags=("a",))
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": made.run_name, "uid": "u-1"}}

    config_map = manifests.settings(made, START, job)

    assert config_map["metadata"]["ownerReferences"] == [
        {"apiVersion": "batch/v1", "kind": "Job", "name": made.run_name, "uid": "u-1"}
    ]
    assert json.loads(config_map["data"]["shards.json"]) == [["edpm-compute-0", "edpm-compute-1"], ["edpm-compute-2"]]
    assert config_map["data"]["play.yml"] == "- hosts: all\n"
    told = json.loads(config_map["data"]["run.json"])
    assert (told["run"], told["tags"], told["labels"]["edpm.openstack.org/start"]) == (made.run_name, ["a"], START)


def test_10000_nodes_fit_and_what_does_not_is_told() -> None:
    manifests.settings(order(nodes=names(10_000)), START)

    with pytest.raises(BadOrderError, match=r"takes \d+ bytes, and a ConfigMap holds 1000000"):
        manifests.settings(order(extra_vars={"big": "x" * 1_000_000}), START)


def test_no_secret_is_readable_by_all() -> None:
    for volume in pod(order(**FULL))["volumes"]:
        if "secret" in volume:
            assert volume["secret"]["defaultMode"] == 0o440
