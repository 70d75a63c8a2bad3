# SPDX-License-Identifier: GPL-3.0-or-later
"""A pod finds its cluster by itself: the address in its environment, the token and the authority in its files."""

from __future__ import annotations

import base64
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.plan import resolve
from ansible_collections.edpm.services.plugins.plugin_utils._kube import live
from ansible_collections.edpm.services.plugins.plugin_utils._kube.connection import Settings
from edpm_lab import places
from edpm_lab.access import Access
from kubernetes.config import incluster_config

from .test_live import nodes


@pytest.fixture
def inside(installed: Access, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Access:
    """This process in a pod's place: an account's token and the authority in files, the address in the environment."""
    installed.kubectl("-n", namespace, "create", "serviceaccount", "reader")
    role, account = "--clusterrole=edpm-services-reader", f"--serviceaccount={namespace}:reader"
    installed.kubectl("-n", namespace, "create", "rolebinding", "reader", role, account)
    token, authority = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text(installed.kubectl("-n", namespace, "create", "token", "reader").stdout.strip())
    cluster = yaml.safe_load(installed.kubeconfig.read_text())["clusters"][0]["cluster"]
    authority.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
    address = urlsplit(installed.url)
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(authority))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", str(address.hostname))
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(address.port))
    # A kubeconfig in the home folder would count first; the lab's cache stays where it is.
    monkeypatch.setenv("EDPM_LAB_CACHE", str(places.cache()))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    return installed


def test_a_pods_account_reads_its_cluster_without_any_setting(inside: Access, namespace: str) -> None:
    inside.kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all(nodes(namespace, 2)))

    plan = resolve(live.read_cluster(Settings(), (namespace,), {}))

    assert [(node.name, node.cell) for node in plan.nodes] == [("node-0", "nova-cell1"), ("node-1", "nova-cell1")]
