# SPDX-License-Identifier: GPL-3.0-or-later
"""What may not be written of a partner's kind, or is refused there, holds up nothing else."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._control.applying import Applier, Outcome
from ansible_collections.edpm.services.plugins.plugin_utils._control.conditions import Run
from ansible_collections.edpm.services.plugins.plugin_utils._control.status import status_over
from ansible_collections.edpm.services.plugins.plugin_utils._control.wanted import Chosen
from ansible_collections.edpm.services.plugins.plugin_utils._kube.client import Object, Resource
from ansible_collections.edpm.services.plugins.plugin_utils._kube.errors import (
    KindNotServedError,
    KubernetesError,
    NotAllowedError,
    RefusedError,
)

from .worlds import Body, compute, judged, node, partner, role, thing, world

ROLE = role(services=["probe"])
FORBIDDEN = NotAllowedError("jane may not patch probes; give her that right.")
HELPS = (
    "jane may not patch probes; give her that right; what helps is a ClusterRole with the verbs of "
    "edpm-services-writer on this kind, bound to the account in namespace openstack: the kind comes from a "
    "partner's definition."
)


class Cluster:
    """Takes what it is given, and counts it; one kind it does not take."""

    dry_run = False

    def __init__(self, error: KubernetesError, kind: str = "Probe", verbs: tuple[str, ...] = ("apply",)) -> None:
        self.error, self.kind, self.verbs = error, kind, verbs
        self.asked: Counter[str] = Counter()
        self.stored: dict[tuple[str, str], Body] = {}

    def resource(self, api_version: str, kind: str) -> Resource:
        return Resource(api_version, kind, f"{kind.lower()}s", namespaced=True)

    def apply(self, resource: Resource, body: Body, **_how: Any) -> Object:
        self._ask("apply", resource)
        name = body["metadata"]["name"]
        metadata = {"uid": f"{resource.kind}-{name}", **body["metadata"]}
        self.stored[resource.kind, name] = {**body, "metadata": metadata}
        return self.stored[resource.kind, name]

    def create(self, resource: Resource, body: Body) -> Object:
        self._ask("create", resource)
        return body

    def get(self, resource: Resource, name: str, _namespace: str | None = None) -> Object | None:
        self._ask("get", resource)
        return self.stored.get((resource.kind, name))

    def _ask(self, verb: str, resource: Resource) -> None:
        self.asked[f"{verb} {resource.kind}"] += 1
        if resource.kind == self.kind and verb in self.verbs:
            raise self.error


def probe(name: str = "node-0") -> Body:
    fields = {"dataplaneNodeName": name, "inventoryConfigMapName": f"dataplanenode-{name}", "deploy": True}
    return thing("probe.example.com/v1", "Probe", name, spec=fields)


def carried_out(cluster: Cluster, *bodies: Body) -> list[Outcome]:
    chains, _untouched = judged(world(*bodies))
    return Applier(cluster).run(chains)  # type: ignore[arg-type]  # stands in for a client


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (FORBIDDEN, HELPS),
        (RefusedError("The CRD refuses it."), "The CRD refuses it."),
        (KindNotServedError("The CRD is not installed."), "The CRD is not installed."),
    ],
    ids=["forbidden", "refused", "not served"],
)
def test_the_other_objects_of_the_node_are_made_whole(error: KubernetesError, sentence: str) -> None:
    cluster = Cluster(error)
    found = {one.ref.kind: (one.result, one.sentence) for one in carried_out(cluster, *partner(), ROLE, node())}
    assert found["Probe"] == ("failed", sentence)
    assert [found[kind][0] for kind in ("NovaExternalCompute", "ConfigMap", "OpenStackDataPlaneNode")] == [
        "created",
        "written",
        "marked",
    ]
    owners = cluster.stored["ConfigMap", "dataplanenode-node-0"]["metadata"]["ownerReferences"]
    assert [one["kind"] for one in owners] == ["NovaExternalCompute"]


def test_a_right_that_is_missing_is_asked_for_few_times_for_many_nodes() -> None:
    nodes = [node(f"node-{number}") for number in range(100)]
    cluster = Cluster(FORBIDDEN)
    found = Counter((one.ref.kind, one.result) for one in carried_out(cluster, *partner(), ROLE, *nodes))
    assert (found["Probe", "failed"], found["NovaExternalCompute", "created"]) == (100, 100)
    assert cluster.asked["apply Probe"] <= 8, "once for each of those that work at the same time"


def test_where_all_else_is_in_step_nothing_is_written_again() -> None:
    in_step = [role(services=["probe"], mark="nova-cell1"), node(mark="nova-cell1"), compute()]
    cluster = Cluster(FORBIDDEN)
    assert [(one.ref.kind, one.result) for one in carried_out(cluster, *partner(), *in_step)] == [("Probe", "failed")]
    assert set(cluster.asked) == {"apply Probe"}


def test_a_compute_of_a_partner_that_could_not_be_made_is_not_marked() -> None:
    only = role(cell=None, services=["probe"])
    asked = node(cell="nova-cell1")
    asked["metadata"]["annotations"] |= {"edpm.openstack.org/service-nova_compute": "false"}
    asked["metadata"]["annotations"] |= {"edpm.openstack.org/service-libvirt": "false"}
    found = carried_out(Cluster(FORBIDDEN), *partner(needs_cell=True), only, asked)
    assert [(one.ref.kind, one.result) for one in found] == [("Probe", "failed")]


def test_a_missing_right_on_a_kind_of_ours_ends_all() -> None:
    with pytest.raises(NotAllowedError, match="a RoleBinding to the ClusterRole edpm-services-writer in namespace"):
        carried_out(Cluster(FORBIDDEN, "NovaExternalCompute"), *partner(), ROLE, node())


def test_the_status_of_others_is_told() -> None:
    bodies = [ROLE, node(), node("node-1"), compute(), compute("node-1"), probe(), probe("node-1")]
    cluster = Cluster(FORBIDDEN, verbs=("apply", "get"))
    run = Run("deploy", "2026-11-01T08:00:00Z", "2026-11-01T08:00:00Z")
    done = status_over(cluster, world(*bodies, *partner()), [], run, chosen=Chosen())  # type: ignore[arg-type]  # ditto
    found = Counter((one.ref.kind, one.result) for one in done.outcomes)
    assert found == {
        ("Probe", "failed"): 2,
        ("NovaExternalCompute", "updated"): 2,
        ("OpenStackDataPlaneNode", "marked"): 2,
    }
    assert {one.sentence for one in done.outcomes if one.result == "failed"} == {HELPS}
    with pytest.raises(NotAllowedError):
        status_over(
            Cluster(FORBIDDEN, "NovaExternalCompute"),  # type: ignore[arg-type]  # ditto
            world(*bodies, *partner()),
            [],
            run,
            chosen=Chosen(),
        )
