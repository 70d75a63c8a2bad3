# SPDX-License-Identifier: GPL-3.0-or-later
"""A data plane in a real API server, and an account that may do what reconcile needs and nothing else."""

from __future__ import annotations

import functools
import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._control.applying import Outcome
from ansible_collections.edpm.services.plugins.plugin_utils._control.names import FINALIZER
from ansible_collections.edpm.services.plugins.plugin_utils._control.reconcile import Pass, reconcile
from ansible_collections.edpm.services.plugins.plugin_utils._control.wanted import Chosen
from ansible_collections.edpm.services.plugins.plugin_utils._kube.connection import Settings
from edpm_lab.access import Access
from edpm_lab.api import Api
from edpm_lab.command import Result

DATAPLANE = "dataplane.openstack.org/v1beta1"
NOVA = "nova.openstack.org/v1beta1"
NEUTRON = "neutron.openstack.org/v1beta1"
RBAC = "rbac.authorization.k8s.io"
CELL = "nova.openstack.org/cell"
MARK = "edpm.openstack.org/deployed-cell"
PATIENCE = 30.0

Body = dict[str, Any]


def thing(api_version: str, kind: str, name: str, annotations: Mapping[str, str] | None = None, **rest: Any) -> Body:
    metadata = {"name": name, "annotations": dict(annotations or {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


def role(name: str = "edpm", cell: str | None = "nova-cell1", **spec: Any) -> Body:
    template = {"ansibleUser": "root", "ansibleSSHPrivateKeySecret": "ssh-key"}
    said = {CELL: cell} if cell is not None else {}
    return thing(DATAPLANE, "OpenStackDataPlaneRole", name, said, spec={"nodeTemplate": template, **spec})


def node(number: int | str = 0, cell: str | None = None, **spec: Any) -> Body:
    name = f"node-{number}"
    said = {CELL: cell} if cell is not None else {}
    spec = {"role": "edpm", "hostName": name, "ansibleHost": f"host-{number}.example.com", **spec}
    return thing(DATAPLANE, "OpenStackDataPlaneNode", name, said, spec=spec)


def data_plane(nodes: int = 1) -> list[Body]:
    """A role in a cell with all that it names, and so many nodes."""
    return [
        role(),
        *(thing(NOVA, "NovaCell", f"nova-cell{number}", spec={"cellName": f"cell{number}"}) for number in (1, 2)),
        thing("v1", "Secret", "nova-cell1-compute-config", stringData={"01-nova.conf": "[DEFAULT]\n"}),
        thing("v1", "Secret", "nova-cell2-compute-config", stringData={"01-nova.conf": "[DEFAULT]\n"}),
        thing("v1", "Secret", "ssh-key", stringData={"ssh-privatekey": "not a key"}),
        *(node(number) for number in range(nodes)),
    ]


@dataclass(frozen=True)
class Site:
    """One namespace, spoken to as its administrator, and reconciled by the account with the least rights."""

    kube: Access
    namespace: str
    account: Path

    @functools.cached_property
    def api(self) -> Api:
        return Api(self.kube)

    def kubectl(self, *args: str, stdin: str | None = None, check: bool = True, timeout: float = 60) -> Result:
        return self.kube.kubectl("-n", self.namespace, *args, stdin=stdin, check=check, timeout=timeout)

    def create(self, *bodies: Body) -> None:
        for body in bodies:
            self.api.create(self.here(body))

    def send(self, verb: str, body: Body, *args: str, check: bool = True) -> Result:
        return self.kubectl(verb, "-f", "-", *args, stdin=json.dumps(self.here(body)), check=check)

    def here(self, body: Body) -> Body:
        return {**body, "metadata": {**body["metadata"], "namespace": self.namespace}}

    def get(self, kind: str, name: str) -> Body:
        return self.api.get(kind, name, self.namespace)

    def all(self, kind: str) -> dict[str, Body]:
        return {item["metadata"]["name"]: item for item in self.api.all(kind, self.namespace)}

    def there(self, kind: str) -> list[str]:
        return sorted(self.all(kind))

    def annotate(self, kind: str, name: str, *words: str, check: bool = True) -> Result:
        return self.kubectl("annotate", "--overwrite", kind, name, *words, check=check)

    def patch(self, kind: str, name: str, body: Body, *args: str, check: bool = True) -> Result:
        return self.kubectl("patch", kind, name, "--type=merge", "-p", json.dumps(body), *args, check=check)

    @property
    def settings(self) -> Settings:
        return Settings(kubeconfig=str(self.account))

    def reconcile(self, *, check: bool = False, nodes: tuple[str, ...] = (), services: tuple[str, ...] = ()) -> Pass:
        chosen = Chosen(frozenset(nodes), frozenset(services))
        return reconcile(self.settings, [self.namespace], chosen, check=check)

    def version(self) -> str:
        """Changes with every write to the objects that reconcile may write."""
        kinds = "osdpnode,osdprole,osdpns,nec,ovnmetadataagent,neutronsriovagent,cinderexternalvolume,configmap"
        listed = [one for kind in kinds.split(",") for one in self.api.all(kind, self.namespace)]
        return json.dumps(sorted((o["kind"], o["metadata"]["name"], o["metadata"]["resourceVersion"]) for o in listed))


def results(done: Pass) -> dict[str, str]:
    """Kind/name to result, of all that was dealt with."""
    return {f"{one.ref.kind}/{one.ref.name}": one.result for one in done.outcomes}


def the(done: Pass, result: str) -> Outcome:
    (found,) = [one for one in done.outcomes if one.result == result]
    return found


def until(what: Callable[[], bool], wanted: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < deadline, f"not within {PATIENCE:.0f} s: {wanted}"
        time.sleep(0.1)


def settle(server: Access, namespace: str) -> Site:
    """An account of the namespace's own with the two roles, and nothing else."""
    user = f"operator-{namespace}"
    place = Site(server, namespace, server.client_certificate(user))
    for clusterrole in ("edpm-services-reader", "edpm-services-writer"):
        role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": clusterrole}
        subject = {"apiGroup": RBAC, "kind": "User", "name": user}
        place.create(thing(f"{RBAC}/v1", "RoleBinding", f"{clusterrole}-{user}", roleRef=role, subjects=[subject]))
    asked = (user, "patch", "nova.openstack.org", "novaexternalcomputes", namespace)
    until(lambda: place.api.allowed(*asked), "the role bindings are in force")
    return place


def await_policies(site: Site) -> None:
    """The API server takes up new policies a moment after it has stored them."""
    site.create(thing(DATAPLANE, "OpenStackDataPlaneRole", "canary", {MARK: "nova-cell1"}, spec={}))
    until(
        lambda: site.annotate("osdprole", "canary", f"{MARK}=x", "--dry-run=server", check=False).returncode != 0,
        "the policies are in force",
    )
    site.kubectl("delete", "osdprole", "canary")


@pytest.fixture
def site(installed: Access, namespace: str) -> Site:
    return settle(installed, namespace)


@pytest.fixture
def guarded(site: Site) -> Site:
    """A site in which the policies are known to be in force."""
    await_policies(site)
    return site


@pytest.fixture(scope="module")
def shared_site(installed: Access) -> Iterator[Site]:
    """One for all tests of a module that leave nothing behind."""
    name = f"shared-{uuid.uuid4().hex[:8]}"
    api = Api(installed)
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    place = settle(installed, name)
    await_policies(place)
    yield place
    api.delete("namespace", name)


def finalized(body: Body) -> bool:
    return FINALIZER in (body["metadata"].get("finalizers") or ())


def managers(body: Body, field: str) -> tuple[str, ...]:
    """Who holds a field of the spec."""
    return tuple(
        entry["manager"]
        for entry in body["metadata"]["managedFields"]
        if f"f:{field}" in entry.get("fieldsV1", {}).get("f:spec", {})
    )
