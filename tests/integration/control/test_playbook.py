# SPDX-License-Identifier: GPL-3.0-or-later
"""`edpm.services.reconcile` as a user runs it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import CELL, Site, data_plane

Run = subprocess.CompletedProcess[str]
IMAGES = {f"RELATED_IMAGE_NOVA_{name}_IMAGE_URL_DEFAULT": "image:1" for name in ("COMPUTE", "LIBVIRT")}


@pytest.fixture
def run(site: Site, playbook: Callable[..., Run]) -> Callable[..., Run]:
    def reconcile(*args: str | Path, account: Path | None = None) -> Run:
        chosen = ("-e", json.dumps({"edpm_namespaces": [site.namespace]}))
        env = {"KUBECONFIG": str(account or site.account), **IMAGES}
        return playbook("reconcile", *chosen, *args, env=env)

    return reconcile


def changed(done: Run) -> int:
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"changed=(\d+)", done.stdout)
    assert found is not None
    return int(found.group(1))


def test_it_announces_writes_and_then_rests(site: Site, run: Callable[..., Run]) -> None:
    site.create(*data_plane(2))
    before = site.version()
    announced = run("--check", "--diff")
    assert changed(announced) == 1
    assert "2 would be created" in announced.stdout
    assert "+  cellName: nova-cell1" in announced.stdout
    assert site.version() == before

    first = run()
    assert changed(first) == 2
    assert "2 created" in first.stdout
    row = site.kubectl("get", "nec", "node-0", "--no-headers").stdout.split()
    assert row[:4] == ["node-0", "node-0", "nova-cell1", "False"]
    kept = site.version()

    again = run("--diff")
    assert changed(again) == 0
    assert "2 unchanged." in again.stdout
    assert site.version() == kept


def test_what_leaves_is_told_in_a_line(site: Site, run: Callable[..., Run]) -> None:
    site.create(*data_plane(1))
    run()
    site.annotate("osdpnode", "node-0", f"{CELL}=")
    told = run("--diff")
    assert changed(told) >= 1
    expected = f"NovaExternalCompute {site.namespace}/node-0: leaving, NovaExternalCompute {site.namespace}/node-0:"
    assert expected in " ".join(told.stdout.split())


def test_an_account_without_rights_is_told_what_is_missing(site: Site, run: Callable[..., Run]) -> None:
    site.create(*data_plane(1))
    user = f"reader-{site.namespace}"
    site.kubectl("create", "rolebinding", "reads", "--clusterrole=edpm-services-reader", f"--user={user}")
    told = run(account=site.kube.client_certificate(user))
    assert told.returncode != 0
    assert "Traceback" not in told.stdout + told.stderr
    said = " ".join(told.stdout.split())
    assert f"{user} may not patch novaexternalcomputes.nova.openstack.org" in said
    assert "a RoleBinding to the ClusterRole edpm-services-writer" in said


def test_a_run_that_has_read_manifests_does_not_write_to_whatever_cluster_is_near(
    site: Site, tmp_path: Path, playbook: Callable[..., Run]
) -> None:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "all.json").write_text(json.dumps({"kind": "List", "items": data_plane(1)}))
    (tmp_path / "my.dataplane.yml").write_text("plugin: edpm.services.dataplane\nmanifests: manifests\n")
    told = playbook("reconcile", "-i", tmp_path / "my.dataplane.yml", env={"KUBECONFIG": str(site.account)})
    assert told.returncode != 0
    assert "has read its data plane from manifests" in " ".join(told.stdout.split())
