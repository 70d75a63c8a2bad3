# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs as OpenStackAnsibleEEs, on a server that has the kind, has another version of it, or has not got it."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import yaml
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.results import State
from ansible_collections.edpm.services.plugins.plugin_utils._kube.errors import KindNotServedError
from edpm_lab.access import Access

from .conftest import ACCOUNT, Desk, answered, start_of

KIND = "openstackansibleees.ansibleee.openstack.org"


def crd(version: str) -> str:
    """As much of their definition as a server needs to take and keep such objects."""
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": free, "status": free}}}
    served = {"name": version, "served": True, "storage": True, "subresources": {"status": {}}, "schema": schema}
    names = {"kind": "OpenStackAnsibleEE", "plural": "openstackansibleees", "singular": "openstackansibleee"}
    spec = {"group": "ansibleee.openstack.org", "names": names, "scope": "Namespaced", "versions": [served]}
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return str(yaml.safe_dump({**kind, "metadata": {"name": KIND}, "spec": spec}))


def install(server: Access, version: str) -> None:
    server.kubectl("apply", "--server-side", "-f", "-", stdin=crd(version))
    server.kubectl("wait", f"crd/{KIND}", "--for=condition=Established", "--timeout=30s")


@pytest.fixture
def apart(fresh_api: Access, playbook: Callable[..., subprocess.CompletedProcess[str]]) -> Desk:
    """A server of the test's own, since a CRD is there for everybody."""
    done = playbook("install_cluster", env={"KUBECONFIG": str(fresh_api.kubeconfig)})
    assert done.returncode == 0, done.stdout + done.stderr
    fresh_api.kubectl("create", "namespace", "runs")
    fresh_api.kubectl("create", "serviceaccount", ACCOUNT, "--namespace=runs")
    words = (f"--clusterrole={ACCOUNT}", f"--serviceaccount=runs:{ACCOUNT}", "--namespace=runs")
    fresh_api.kubectl("create", "rolebinding", "runner", *words)
    return Desk(fresh_api, "runs")


def await_resources(desk: Desk, count: int) -> list[str]:
    limit = time.monotonic() + 60
    while len(items := desk.all(KIND)) < count:
        assert time.monotonic() < limit, desk.said
        time.sleep(0.2)
    return sorted(one["metadata"]["name"] for one in items)


def test_where_the_kind_is_installed_each_shard_is_one_and_no_more_than_asked_at_once(
    apart: Desk, beside: ThreadPoolExecutor
) -> None:
    install(apart.kube, "v1beta1")
    order = apart.order(nodes=("a", "b", "c"), shard_size=1, parallel=2, network_attachments=("ctlplane",))

    def tell(index: int, state: str) -> None:
        patch = json.dumps({"status": {"JobStatus": state}})
        words = ("patch", KIND, f"{order.run_name}-{index}", "--namespace=runs", "--subresource=status", "--type=merge")
        apart.kube.kubectl(*words, "-p", patch)

    waiting = beside.submit(apart.carry_out, order, engine="auto")
    assert await_resources(apart, 2) == [f"{order.run_name}-0", f"{order.run_name}-1"]
    first = apart.get(KIND, f"{order.run_name}-0")
    assert first["spec"]["networkAttachments"] == ["ctlplane"]
    tell(0, "Succeeded")
    tell(1, "Running")
    assert await_resources(apart, 3)[2] == f"{order.run_name}-2"
    for index in range(3):
        apart.store(order, start_of(first), index, State.OK)
        tell(index, "Succeeded")

    outcome = answered(waiting)

    assert outcome.engine == "OpenStackAnsibleEE"
    assert [node.node for node in outcome.nodes if node.state is State.OK] == ["a", "b", "c"]
    assert apart.all("jobs") == []


def test_a_server_without_the_kind_gets_a_job_unless_the_kind_was_asked_for(desk: Desk) -> None:
    order = desk.order(nodes=("a",))

    assert desk.carry_out(order, engine="auto", wait=False).engine == "Job"
    with pytest.raises(
        KindNotServedError, match=r"does not serve OpenStackAnsibleEE \(ansibleee.openstack.org/v1beta1\)"
    ):
        desk.carry_out(order, engine="openstackansibleee", wait=False)


def test_a_server_with_another_version_of_the_kind_is_told(apart: Desk) -> None:
    install(apart.kube, "v1alpha1")

    with pytest.raises(KindNotServedError, match=r"serves OpenStackAnsibleEE as ansibleee.openstack.org/v1alpha1 only"):
        apart.carry_out(apart.order(nodes=("a",)), engine="auto", wait=False)
