# SPDX-License-Identifier: GPL-3.0-or-later
"""What `deploy` and `remove` leave in the cluster that their data plane was read from, whatever became of the nodes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import CELL, Body, Site, data_plane, node

Run = subprocess.CompletedProcess[str]
IMAGES = {f"RELATED_IMAGE_NOVA_{name}_IMAGE_URL_DEFAULT": "image:1" for name in ("COMPUTE", "LIBVIRT")}


@pytest.fixture
def play(site: Site, playbook: Callable[..., Run], tmp_path: Path) -> Callable[..., Run]:
    """A data plane with one node that refuses every connection."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "key"], check=True, timeout=60)
    closed = node(0, ansibleHost="127.0.0.1", node={"ansiblePort": 9})
    site.create(*(_with_key(one, tmp_path / "key") for one in data_plane(0)), closed)
    site.reconcile()
    inventory = tmp_path / "site.dataplane.yml"
    inventory.write_text(json.dumps({"plugin": "edpm.services.dataplane", "namespaces": [site.namespace]}))

    def run(name: str, *args: str | Path, account: Path | None = None) -> Run:
        env = {"KUBECONFIG": str(account or site.account), **IMAGES}
        return playbook(name, "-i", inventory, "-e", f"edpm_retry_file={tmp_path}/retry", *args, env=env)

    return run


def _with_key(body: Body, key: Path) -> Body:
    if body["metadata"]["name"] != "ssh-key":
        return body
    return {**body, "stringData": {"ssh-privatekey": key.read_text()}}


def conditions(site: Site) -> dict[str, Body]:
    return {one["type"]: one for one in site.get("nec", "node-0")["status"]["conditions"]}


def test_a_deployment_that_fails_says_so_on_the_service_object_and_in_an_event(
    site: Site, play: Callable[..., Run]
) -> None:
    done = play("deploy")

    assert done.returncode != 0
    found = conditions(site)
    assert (found["Ready"]["status"], found["Ready"]["reason"]) == ("False", "Failed"), done.stdout
    assert "libvirt: " in found["Ready"]["message"]
    status = site.get("nec", "node-0")["status"]
    assert (status["lastRun"]["name"], status["lastRun"]["result"]) == ("deploy", "Failed")
    events = [one for one in site.all("events").values() if one["involvedObject"]["name"] == "node-0"]
    assert [(one["type"], one["reason"]) for one in events] == [("Warning", "Failed")]


def test_an_account_that_may_only_read_deploys_all_the_same_and_is_told_what_is_missing(
    site: Site, play: Callable[..., Run]
) -> None:
    user = f"reader-{site.namespace}"
    site.kubectl("create", "rolebinding", "reads", "--clusterrole=edpm-services-reader", f"--user={user}")
    site.patch("nec", "node-0", {"spec": {"deploy": False}})
    kept = site.version()
    done = play("deploy", account=site.kube.client_certificate(user))

    assert done.returncode == 0, done.stdout + done.stderr
    assert site.version() == kept
    failing = play("remove", "-e", "node=node-0", account=site.kube.client_certificate(user))
    said = " ".join((failing.stdout + failing.stderr).split())
    assert f"{user} may not patch novaexternalcomputes.nova.openstack.org/status" in said
    assert "a RoleBinding to the ClusterRole edpm-services-writer" in said
    assert site.version() == kept


def test_a_removal_that_fails_keeps_the_service_object_and_says_why(site: Site, play: Callable[..., Run]) -> None:
    site.annotate("osdpnode", "node-0", f"{CELL}=")
    site.reconcile()
    second = Path(site.account).with_suffix(".yml")
    second.write_text(json.dumps({"all": {"hosts": {"node-0": {"ansible_host": "127.0.0.1", "ansible_port": 9}}}}))
    done = play("remove", "-i", second, "-e", "node=node-0")

    assert done.returncode != 0
    found = conditions(site)["Removed"]
    assert (found["status"], found["reason"]) == ("False", "RemovalFailed"), done.stdout
    assert site.there("nec") == ["node-0"]
