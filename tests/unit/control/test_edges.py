# SPDX-License-Identifier: GPL-3.0-or-later
"""Where things come in and go out: objects of the API, results of a run, the inventory's text, the server's words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._control import report
from ansible_collections.edpm.services.plugins.plugin_utils._control.applying import Applier, Outcome, told
from ansible_collections.edpm.services.plugins.plugin_utils._control.chains import Chain, LetGo, chains
from ansible_collections.edpm.services.plugins.plugin_utils._control.inventories import WriteInventory
from ansible_collections.edpm.services.plugins.plugin_utils._control.inventory_text import digest_of, inventory_text
from ansible_collections.edpm.services.plugins.plugin_utils._control.leaving import Going
from ansible_collections.edpm.services.plugins.plugin_utils._control.names import INVENTORY, KEPT
from ansible_collections.edpm.services.plugins.plugin_utils._control.reconcile import Pass
from ansible_collections.edpm.services.plugins.plugin_utils._control.results import results_of, run_of
from ansible_collections.edpm.services.plugins.plugin_utils._control.source import cluster_of
from ansible_collections.edpm.services.plugins.plugin_utils._control.standing import standing
from ansible_collections.edpm.services.plugins.plugin_utils._control.wanted import Chosen, wanted_objects
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.connections import _connection, _host_variables
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.model import Reference
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import Connection, NodePlan
from ansible_collections.edpm.services.plugins.plugin_utils._kube import snapshot
from ansible_collections.edpm.services.plugins.plugin_utils._kube.client import Client, Resource
from ansible_collections.edpm.services.plugins.plugin_utils._kube.connection import Response
from ansible_collections.edpm.services.plugins.plugin_utils._kube.errors import BadSettingsError, RefusedError
from hypothesis import given
from hypothesis import strategies as st

from .worlds import REST, compute, node, role, steps, world

NODE = Reference("OpenStackDataPlaneNode", "openstack", "node-0")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8", exclude_categories=["C"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=3),
    max_leaves=5,
)
NAMES = st.text("abcdefgh_", min_size=1).filter(lambda name: not name.startswith("ansible_"))


@given(st.dictionaries(NAMES, VALUES, max_size=4), st.integers(1, 65535))
def test_an_inventory_gives_back_the_connection_that_it_was_made_of(variables: dict[str, Any], port: int) -> None:
    connection = Connection("10.0.0.1", "root", port, variables)
    text = inventory_text(NodePlan("node-0", "openstack", "node-0", NODE, connection=connection))
    found = _host_variables(NODE, text.encode(), "node-0")
    assert not isinstance(found, str), found
    assert _connection(found, None) == connection


def test_the_digest_of_an_inventory_tells_texts_apart() -> None:
    assert digest_of("a") != digest_of("b")
    assert digest_of("a") == digest_of("a")


class TestStanding:
    def test_kinds_that_are_only_read_are_passed_over(self) -> None:
        assert [standing(body) for body in REST] == [None] * len(REST)

    def test_a_field_is_ours_only_by_apply(self) -> None:
        body = compute()
        body["metadata"]["managedFields"][0]["operation"] = "Update"
        found = standing(body)
        assert found is not None
        assert found.ours == frozenset()

    def test_what_the_status_holds_is_no_field_of_the_spec(self) -> None:
        body = compute(theirs={"kubectl-edit": ["deploy"]})
        for entry in body["metadata"]["managedFields"]:
            entry["subresource"] = "status"
        found = standing(body)
        assert found is not None
        assert (found.ours, found.theirs) == (frozenset(), {})

    def test_our_other_managers_are_not_persons(self) -> None:
        found = standing(compute(theirs={"edpm.services.images": ["deploy"], "kubectl": ["cellName"]}))
        assert found is not None
        assert found.theirs == {"cellName": "kubectl"}


class TestResults:
    GIVEN: Mapping[str, Any] = {
        "node": "n",
        "service": "nova_compute",
        "namespace": "",
        "state": "absent",
        "digest": "",
        "image": "",
        "changed": True,
        "failed": False,
        "restarted": False,
        "msg": "",
    }

    def test_a_result_is_taken_as_it_is_given(self) -> None:
        (found,) = results_of([self.GIVEN])
        assert (found.node, found.absent, found.changed) == ("n", True, True)

    def test_times_are_written_in_utc(self) -> None:
        now = datetime(2026, 11, 1, 8, tzinfo=UTC)
        run = run_of({"run": "r", "started": "2026-11-01T09:30:00+02:00", "ended": ""}, now)
        assert (run.started, run.ended) == ("2026-11-01T07:30:00Z", "2026-11-01T08:00:00Z")

    def test_what_is_no_time_is_told(self) -> None:
        with pytest.raises(BadSettingsError, match="The time yesterday in started is none"):
            run_of({"run": "r", "started": "yesterday", "ended": ""})


class TestCluster:
    @pytest.fixture(autouse=True)
    def _fresh(self) -> None:
        snapshot.forget()

    def test_a_run_that_has_read_manifests_must_name_its_cluster(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(snapshot, "source", lambda: snapshot.Source(manifests=("m",)))
        with pytest.raises(BadSettingsError, match="read its data plane from manifests"):
            cluster_of({}, {})
        assert cluster_of({"context": "staging"}, {"context"}).settings.context == "staging"

    def test_what_the_run_has_read_is_what_is_written_to(self, monkeypatch: pytest.MonkeyPatch) -> None:
        read = snapshot.Source(namespaces=("openstack",))
        monkeypatch.setattr(snapshot, "source", lambda: read)
        assert cluster_of({"namespaces": None}, {}) is read
        assert cluster_of({"namespaces": ["other"]}, {"namespaces"}).namespaces == ("other",)


class Server:
    """Answers requests one after the other and keeps what was sent."""

    server = "https://kube"

    def __init__(self, *answers: tuple[int, Any]) -> None:
        self.answers = list(answers)
        self.sent: list[tuple[str, str, Any, str]] = []

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        *,
        body: bytes | None = None,
        content_type: str = "application/json",
    ) -> Response:
        if path == "/apis/nova.openstack.org/v1beta1":
            listed = {"kind": "NovaExternalCompute", "name": "novaexternalcomputes", "namespaced": True}
            return Response(200, {}, json.dumps({"resources": [listed]}).encode())
        self.sent.append((method, content_type, json.loads(body) if body else None, query.get("fieldManager", "")))
        status, answer = self.answers.pop(0)
        return Response(status, {}, json.dumps(answer).encode())


def going(server: Server) -> list[Outcome]:
    cluster = world(role(), node(cell=""), compute(status={"conditions": [{"type": "Removed", "status": "True"}]}))
    (one,) = cluster.service_objects()
    chain = Chain("openstack", "node-0", (LetGo(Going(one, (), "", True)),))
    return Applier(Client(server)).run([chain])


LIVE = {**compute(), "metadata": {**compute()["metadata"], "resourceVersion": "7", "finalizers": ["a/b", "x/y"]}}
LIVE["metadata"]["finalizers"].append("edpm.openstack.org/services")


class TestLettingGo:
    def test_it_is_deleted_by_uid_and_loses_our_finalizer_alone(self) -> None:
        server = Server((200, {}), (200, LIVE), (200, {}))
        assert [one.result for one in going(server)] == ["removed"]
        delete, get, patch = server.sent
        assert delete[:2] == ("DELETE", "application/json")
        assert delete[2]["preconditions"] == {"uid": "NovaExternalCompute-node-0"}
        assert get[0] == "GET"
        assert patch[1] == "application/merge-patch+json"
        assert patch[2]["metadata"]["finalizers"] == ["a/b", "x/y"]
        assert patch[2]["metadata"]["resourceVersion"] == "7"

    def test_somebody_who_writes_at_the_same_time_is_waited_for(self) -> None:
        server = Server((200, {}), (200, LIVE), (409, {"message": "modified"}), (200, LIVE), (200, {}))
        assert [one.result for one in going(server)] == ["removed"]

    def test_one_that_is_gone_meanwhile_is_gone(self) -> None:
        server = Server((404, {"message": "not found"}), (404, {"message": "not found"}))
        assert [one.result for one in going(server)] == ["removed"]

    def test_another_object_of_that_name_is_left_alone(self) -> None:
        server = Server((409, {"message": "the UID in the precondition does not match"}))
        (outcome,) = going(server)
        assert outcome.result == "failed"
        assert "run again" in outcome.sentence


KINDS = {"resources": [{"kind": "ConfigMap", "name": "configmaps", "namespaced": True}]}
TAKEN = (409, {"message": "conflict with kubectl"})


def keeping(server: Server) -> list[Outcome]:
    """The inventory of a node where somebody else's ConfigMap is."""
    cluster = world(role(), node(), compute(annotations={INVENTORY: "old"}))
    wanted, _untouched = wanted_objects(cluster, Chosen())
    step, *_rest = chains(cluster, wanted, [], Chosen())[0].steps
    assert isinstance(step, WriteInventory)
    return Applier(Client(server)).run([Chain("openstack", "node-0", (step,))])


def theirs(*owners: str) -> dict[str, Any]:
    named = {"name": "dataplanenode-node-0", "namespace": "openstack", "resourceVersion": "7"}
    return {"metadata": {**named, "ownerReferences": [{"uid": owner} for owner in owners]}}


class TestAnothersInventory:
    def test_it_gets_our_objects_as_owners_beside_its_own(self) -> None:
        server = Server((200, KINDS), TAKEN, (200, theirs("a")), (409, {}), (200, theirs("a", "b")), (200, {}))
        (outcome,) = keeping(server)
        assert (outcome.result, outcome.changed) == ("kept", True)
        sent = server.sent[-1][2]["metadata"]
        assert [one["uid"] for one in sent["ownerReferences"]] == ["a", "b", "NovaExternalCompute-node-0"]
        assert sent["resourceVersion"] == "7"

    def test_an_object_that_says_it_was_kept_without_our_owners_is_dealt_with_again(self) -> None:
        before, now = (steps(role(), node(), compute(annotations={INVENTORY: said})) for said in ("kept", KEPT))
        assert "WriteInventory ConfigMap/dataplanenode-node-0" in before
        assert "WriteInventory ConfigMap/dataplanenode-node-0" not in now

    @pytest.mark.parametrize("owners", [(), ("a", "NovaExternalCompute-node-0")])
    def test_one_that_nobody_owns_or_that_is_held_already_is_left_as_it_is(self, owners: tuple[str, ...]) -> None:
        server = Server((200, KINDS), TAKEN, (200, theirs(*owners)))
        (outcome,) = keeping(server)
        assert (outcome.result, outcome.changed) == ("kept", False)


def test_a_field_that_the_clusters_crd_lacks_is_no_reason_to_ask_again() -> None:
    server = Server((500, {"message": ".spec.instance: field not declared in schema"}))
    resource = Resource("nova.openstack.org/v1beta1", "NovaExternalCompute", "novaexternalcomputes", True)
    with pytest.raises(RefusedError, match=r"refuses to patch NovaExternalCompute openstack/node-0: \.spec\.instance"):
        Client(server).apply(resource, compute(), force=False)


def test_a_field_that_the_clusters_crd_lacks_is_told_with_the_remedy() -> None:
    error = RefusedError("it refuses: .spec.instance: field not declared in schema; correct the object.")
    said = told(error, Reference("NovaExternalCompute", "openstack", "node-0"))
    assert "The CRD of NovaExternalCompute in this cluster is of another version" in said
    assert told(RefusedError("It is refused."), NODE) == "It is refused."


class TestReport:
    def outcome(self, result: Any, **rest: Any) -> Outcome:
        return Outcome(NODE, "node-0", result, "that is so", **rest)

    def test_failures_fail_and_refusals_warn(self) -> None:
        done = Pass((self.outcome("failed", changed=False), self.outcome("refused", changed=False)), (), 3)
        said = report.as_result(done, check=False, diff=False)
        assert said["failed"] is True
        assert said["changed"] is False
        assert said["msg"] == "Service objects: 1 failed, 1 refused, 3 unchanged. that is so"
        assert said["warnings"] == [f"{NODE}: that is so"]

    def test_check_mode_says_would(self) -> None:
        done = Pass((self.outcome("created"),), (), 0)
        said = report.sentence(done, check=True)
        assert said == "Service objects (check mode, nothing is written): 1 would be created, 0 unchanged."

    def test_of_many_differences_the_first_are_shown(self) -> None:
        shown = report.differences([self.outcome("marked", before={"a": 1}, after={"a": 2})] * 100)
        assert len(shown) == report.MOST + 1
        assert (shown[0]["before"], shown[0]["after"]) == ("a: 1\n", "a: 2\n")
        assert shown[-1] == {"prepared": f"… and {100 - report.MOST} more objects"}

    def test_a_removal_learns_all_that_is_known_of_a_node_that_is_gone(self) -> None:
        cluster = world(compute(sshKeySecretName="key"))
        (one,) = cluster.service_objects()
        done = Pass((), (Going(one, ("nova_compute", "libvirt"), "gone", True),), 0)
        (entry,) = report.as_result(done, check=False, diff=False)["leaving"]
        assert entry["node"] == "node-0"
        assert report.table(done, check=False).splitlines() == [
            "NovaExternalCompute openstack/node-0: waits until nova_compute and libvirt are off node-0",
            "Service objects: 0 unchanged.",
        ]
        assert entry["services"] == ["nova_compute", "libvirt"]
        assert (entry["ssh_key_secret"], entry["inventory_config_map"]) == ("key", "dataplanenode-node-0")
