# SPDX-License-Identifier: GPL-3.0-or-later
"""A partner's kind on a real API server that cannot be listed: a right is given late, or its webhook is down."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._control.conditions import Run
from ansible_collections.edpm.services.plugins.plugin_utils._control.status import Reported, report_status
from ansible_collections.edpm.services.plugins.plugin_utils._control.wanted import Chosen
from ansible_collections.edpm.services.plugins.plugin_utils._kube import client
from ansible_collections.edpm.services.plugins.plugin_utils._kube.client import Retry
from ansible_collections.edpm.services.plugins.plugin_utils._kube.errors import NotAllowedError

from .conftest import DATAPLANE, Body, Site, data_plane, node, results, role, thing, until
from .operating import Operator, Pods, prepare

READY = "edpm.openstack.org/services-ready"
MESSAGE = "edpm.openstack.org/services-message"


@dataclass(frozen=True)
class Partner:
    """A site with a partner's kind `Probe`, on which its account has no right yet."""

    site: Site
    group: str

    @property
    def plural(self) -> str:
        return f"probes.{self.group}"

    @property
    def user(self) -> str:
        return f"operator-{self.site.namespace}"

    def allow(self, name: str, *verbs: str, resource: str = "") -> None:
        asked = f"--resource={resource or self.plural}"
        self.site.kubectl("create", "role", name, f"--verb={','.join(verbs)}", asked)
        self.site.kubectl("create", "rolebinding", name, f"--role={name}", f"--user={self.user}")
        can = ("auth", "can-i", verbs[-1], resource or self.plural, f"--as={self.user}")
        until(lambda: self.site.kubectl(*can, check=False).returncode == 0, "the right is in force")

    def allow_to_write(self) -> None:
        self.allow("writes", "create", "patch", "delete")
        self.allow("tells", "get", "patch", resource=f"{self.plural}/status")

    def tell(self) -> Reported:
        run = Run("deploy", "2026-11-01T08:00:00Z", "2026-11-01T08:00:30Z")
        return report_status(self.site.settings, [self.site.namespace], [], run, chosen=Chosen(), check=False)

    def said(self, name: str) -> Body:
        found: Body = self.site.get("osdpnode", name)["metadata"]["annotations"]
        return found


@pytest.fixture
def partner(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Partner]:
    """node-0 asks for nova and the probe, node-1 for nova, node-2 for the probe."""
    for service in ("COMPUTE", "LIBVIRT"):
        monkeypatch.setenv(f"RELATED_IMAGE_NOVA_{service}_IMAGE_URL_DEFAULT", f"{service.lower()}:1")
    found = Partner(site, f"{site.namespace}.example.com")
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    names = {"kind": "Probe", "plural": "probes", "singular": "probe"}
    spec = {"group": found.group, "scope": "Namespaced", "names": names, "versions": [version]}
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}
    site.kubectl("create", "-f", "-", stdin=json.dumps({**crd, "metadata": {"name": found.plural}}))
    site.kubectl("wait", "--for=condition=Established", f"crd/{found.plural}")
    cr = {"api_version": f"{found.group}/v1", "kind": "Probe"}
    definition = {"version": 1, "image": "probe:1", "command": "probe", "user": "probe", "service_cr": cr}
    probing = {"edpm.openstack.org/service-probe": "true"}
    nodes = [node(0), node(1), node(2, role="plain")]
    for number in (0, 2):
        nodes[number]["metadata"]["annotations"] |= probing
    site.create(
        *data_plane(0),
        role("plain", None),
        *nodes,
        thing("v1", "ConfigMap", "probe", data={"edpm-service.yaml": json.dumps(definition)}),
        thing(DATAPLANE, "OpenStackDataPlaneService", "probe", spec={"configMaps": ["probe"]}),
    )
    yield found
    site.kubectl("delete", "crd", found.plural, "--ignore-not-found", "--wait=false")


def test_what_may_not_be_listed_waits_and_everything_else_goes_on(partner: Partner) -> None:
    site = partner.site
    done = site.reconcile()
    assert {name for name, result in results(done).items() if result == "created"} == {
        "NovaExternalCompute/node-0",
        "NovaExternalCompute/node-1",
    }
    [warning] = done.warnings
    assert warning.startswith(f"{partner.user} may not list {partner.plural} on ")
    assert f"what helps is a ClusterRole that may get and list {partner.plural}" in warning
    assert site.there(partner.plural) == []

    told = partner.tell()
    assert told.warnings == done.warnings
    assert partner.said("node-0")[READY] == "False"
    assert partner.said("node-0")[MESSAGE].startswith("0 of 2 service objects are ready. NovaExternalCompute node-0")
    assert partner.said("node-1")[MESSAGE].startswith("0 of 1 service objects")
    assert partner.said("node-2")[MESSAGE].startswith(f"0 of 1 service objects are ready. {partner.user} may not list")
    assert partner.tell().outcomes == (), "nothing of it is news"

    partner.allow("reads", "get", "list")
    partner.allow_to_write()
    again = site.reconcile()
    assert again.warnings == ()
    assert site.there(partner.plural) == ["node-0", "node-2"]
    partner.tell()
    assert partner.said("node-2")[MESSAGE].startswith("0 of 1 service objects are ready. Probe node-2")


def test_what_may_be_listed_and_not_written_fails_alone(partner: Partner) -> None:
    site = partner.site
    partner.allow("reads", "list")
    done = site.reconcile()
    assert results(done)["NovaExternalCompute/node-0"] == results(done)["NovaExternalCompute/node-1"] == "created"
    failed = [one for one in done.outcomes if one.result == "failed"]
    assert {str(one.ref) for one in failed} == {f"Probe {site.namespace}/node-0", f"Probe {site.namespace}/node-2"}
    for one in failed:
        assert one.sentence.startswith(f"{partner.user} may not patch {partner.plural} on ")
        assert "what helps is a ClusterRole with the verbs of edpm-services-writer on this kind" in one.sentence
    again = site.reconcile()
    assert {one.result for one in again.outcomes} == {"failed"}, "what could be written is in step"

    partner.allow("writes", "create", "patch", "delete")
    assert {name for name, result in results(site.reconcile()).items() if result == "created"} == {
        "Probe/node-0",
        "Probe/node-2",
    }
    told = {one.ref: one for one in partner.tell().outcomes}
    lacking = [one.sentence for one in told.values() if one.result == "failed"]
    assert len(lacking) == 2
    assert all(f"may not patch {partner.plural}/status" in sentence for sentence in lacking)
    assert partner.said("node-1")[MESSAGE].startswith("0 of 1 service objects are ready. NovaExternalCompute node-1")
    partner.allow("tells", "get", "patch", resource=f"{partner.plural}/status")
    assert {one.result for one in partner.tell().outcomes} <= {"updated", "marked"}


def test_a_right_that_is_taken_away_leaves_objects_and_their_inventory_as_they_are(partner: Partner) -> None:
    site = partner.site
    partner.allow("reads", "get", "list")
    partner.allow_to_write()
    site.reconcile()
    partner.tell()
    before = site.all(partner.plural)
    site.kubectl("delete", "rolebinding", "reads")
    can = ("auth", "can-i", "list", partner.plural, f"--as={partner.user}")
    until(lambda: site.kubectl(*can, check=False).returncode != 0, "the right is gone")
    for name in ("node-0", "node-2"):
        site.patch("osdpnode", name, {"spec": {"ansibleHost": "another.example.com"}})
    site.annotate("osdpnode", "node-2", "edpm.openstack.org/service-probe=false")
    done = site.reconcile()
    assert results(done)["ConfigMap/dataplanenode-node-0"] == "written"
    owners = site.get("configmap", "dataplanenode-node-0")["metadata"]["ownerReferences"]
    assert {one["kind"] for one in owners} == {"NovaExternalCompute", "Probe"}
    partner.tell()
    assert partner.said("node-2")[MESSAGE].startswith(f"0 of 1 service objects are ready. {partner.user} may not list")
    assert site.all(partner.plural) == before


def test_a_kind_whose_webhook_is_down_waits_and_everything_else_goes_on(
    partner: Partner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "Retry", lambda: Retry(attempts=2))
    site = partner.site
    partner.allow("reads", "get", "list")
    partner.allow_to_write()
    versions = site.get("crd", partner.plural)["spec"]["versions"]
    newer = [{**versions[0], "storage": False}, {**versions[0], "name": "v2"}]
    nowhere = {"url": "https://127.0.0.1:9/convert"}
    webhook = {"strategy": "Webhook", "webhook": {"clientConfig": nowhere, "conversionReviewVersions": ["v1"]}}
    site.patch("crd", partner.plural, {"spec": {"versions": newer, "conversion": webhook}})
    stored = json.dumps(site.here(thing(f"{partner.group}/v2", "Probe", "by-hand")))
    until(lambda: site.kubectl("create", "-f", "-", stdin=stored, check=False).returncode == 0, "v2 is served")

    done = site.reconcile()
    assert results(done)["NovaExternalCompute/node-0"] == results(done)["NovaExternalCompute/node-1"] == "created"
    assert not [name for name in results(done) if name.startswith("Probe/")]
    [warning] = done.warnings
    assert "conversion webhook for " in warning
    assert f"look at its CRD {partner.plural} and the webhook in it first. Until then its services wait" in warning

    site.patch("crd", partner.plural, {"spec": {"conversion": {"strategy": "None", "webhook": None}}})
    until(lambda: not site.reconcile().warnings, "the kind is listed again")
    assert site.there(partner.plural) == ["by-hand", "node-0", "node-2"]


def test_a_right_on_a_kind_of_ours_is_needed_by_all(partner: Partner) -> None:
    partner.site.kubectl("delete", "rolebinding", f"edpm-services-reader-{partner.user}")
    with pytest.raises(NotAllowedError, match="a RoleBinding to the ClusterRole edpm-services-reader in namespace"):
        until(lambda: not partner.site.reconcile(), "the right is gone")


def test_the_operator_deploys_what_it_sees_and_the_rest_once_it_may(partner: Partner, tmp_path: Path) -> None:
    site = partner.site
    prepare(site)
    pods = Pods(site)
    with Operator(site, tmp_path, {"resync": 2}) as operator:
        until(lambda: len(pods.unfinished()) == 1, "what it sees is deployed")
        [job] = pods.unfinished()
        assert pods.nodes(job) == ["node-0", "node-1"]
        pods.deploy(job)
        until(lambda: partner.said("node-1").get(READY) == "True", "a node that does not ask for it is ready")
        until(lambda: partner.said("node-0").get(MESSAGE, "").startswith("1 of 2 service objects"), "the other is not")
        until(lambda: operator.passes() >= 4, "it goes on")
        assert operator.log.read_text().count("Until then its services wait") == 1, "it is told once"
        partner.allow_to_write()
        partner.allow("reads", "get", "list", "watch")
        until(lambda: site.there(partner.plural) == ["node-0", "node-2"], "the objects are made")
        until(lambda: len(pods.unfinished()) == 1, "and deployed")
        [job] = pods.unfinished()
        assert pods.nodes(job) == ["node-0", "node-2"]
        pods.deploy(job)
        until(lambda: {partner.said(f"node-{number}")[READY] for number in range(3)} == {"True"}, "all are ready")
        assert operator.process is not None
        assert operator.process.poll() is None, "it is the same process all the time"
