# SPDX-License-Identifier: GPL-3.0-or-later
"""Every move of a compute is refused by the API server itself, whichever way it comes, and a node may leave.

A policy sees one object; the mark that reconcile sets tells it where computes are deployed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from edpm_lab.command import Result

from .conftest import CELL, DATAPLANE, MARK, Body, Site, data_plane, node, role, thing, until

WHY = "Nova does not move computes between cells"
Change = Callable[[Body], None]
Way = Callable[..., Result]


def by_replace(site: Site, kind: str, name: str, change: Change, *args: str) -> Result:
    """What `kubectl get -o yaml`, an editor and `kubectl replace` do."""
    body = site.get(kind, name)
    change(body)
    return site.kubectl("replace", "-f", "-", *args, stdin=json.dumps(body), check=False)


def by_patch(site: Site, kind: str, name: str, change: Change, *args: str) -> Result:
    before = site.get(kind, name)
    after = json.loads(json.dumps(before))
    change(after)
    return site.patch(kind, name, _merge(before, after), *args, check=False)


def by_apply(site: Site, kind: str, name: str, change: Change, *args: str) -> Result:
    """A manifest that was applied before, changed and applied again."""
    found = site.get(kind, name)
    meta = {key: found["metadata"][key] for key in ("name", "namespace", "annotations") if key in found["metadata"]}
    meta["annotations"] = {name: text for name, text in meta["annotations"].items() if "kubectl" not in name}
    bare = {"apiVersion": found["apiVersion"], "kind": found["kind"], "metadata": meta, "spec": found["spec"]}
    site.kubectl("apply", "-f", "-", stdin=json.dumps(bare))
    changed = json.loads(json.dumps(bare))
    change(changed)
    return site.kubectl("apply", "-f", "-", *args, stdin=json.dumps(changed), check=False)


WAYS = pytest.mark.parametrize("way", [by_replace, by_patch, by_apply], ids=["replace", "patch", "apply"])


def says(cell: str | None) -> Change:
    """Set the annotation, or take it away."""

    def change(body: Body) -> None:
        annotations = body["metadata"].setdefault("annotations", {})
        if cell is None:
            annotations.pop(CELL, None)
        else:
            annotations[CELL] = cell

    return change


def spec(**fields: Any) -> Change:
    return lambda body: body["spec"].update(fields)


def both(*changes: Change) -> Change:
    def change(body: Body) -> None:
        for one in changes:
            one(body)

    return change


@pytest.fixture
def deployed(guarded: Site) -> Site:
    return deploy(guarded)


@pytest.fixture(scope="module")
def settled(shared_site: Site) -> Site:
    """The same for all tests that change nothing: the server judges a dry run like the real one."""
    return deploy(shared_site)


def deploy(guarded: Site) -> Site:
    """node-0 inherits nova-cell1 from its Role, node-own says nova-cell2 itself; both have their objects."""
    guarded.create(*data_plane(1), role("far", "nova-cell2"), role("near", "nova-cell1"), node("own", "nova-cell2"))
    assert {one.result for one in guarded.reconcile().outcomes} <= {"created", "written", "marked"}
    return guarded


OLDER = {"nova": {"cellName": "cell2"}}
MOVES = {
    "another value": ("osdpnode", "node-own", says("nova-cell1")),
    "one added against the Role's": ("osdpnode", "node-0", says("nova-cell2")),
    "one removed so that the Role's counts": ("osdpnode", "node-own", says(None)),
    "another role": ("osdpnode", "node-0", spec(role="far")),
    "another role even of the same cell": ("osdpnode", "node-0", spec(role="near")),
    "another role and its cell": ("osdpnode", "node-0", both(spec(role="far"), says("nova-cell2"))),
    "the Role's value": ("osdprole", "edpm", says("nova-cell2")),
    "the Role's value removed": ("osdprole", "edpm", says(None)),
    "an older section": ("osdprole", "edpm", both(says(None), lambda b: b["spec"]["nodeTemplate"].update(OLDER))),
    "the object's own cell": ("nec", "node-0", spec(cellName="nova-cell2")),
}
LEGAL = {
    "leaving": ("osdpnode", "node-own", says("")),
    "leaving against the Role's": ("osdpnode", "node-0", says("")),
    "all that inherit leave": ("osdprole", "edpm", says("")),
    "the same said by the node itself": ("osdpnode", "node-0", says("nova-cell1")),
    "another role with the cell said by the node": (
        "osdpnode",
        "node-0",
        both(spec(role="far"), says("nova-cell1")),
    ),
    "another address": ("osdpnode", "node-0", spec(ansibleHost="10.0.0.7")),
    "another role for a node that says its cell": ("osdpnode", "node-own", spec(role="near")),
    "a Role's other fields": ("osdprole", "edpm", spec(networkAttachments=["ctlplane"])),
    "a Role that no compute depends on": ("osdprole", "near", says(None)),
    "an object's snippet": ("nec", "node-0", spec(customServiceConfig="[DEFAULT]\n")),
}


@WAYS
@pytest.mark.parametrize("move", MOVES)
def test_a_move_is_refused_with_the_reason_and_the_remedy(settled: Site, move: str, way: Way) -> None:
    kind, name, change = MOVES[move]
    before = settled.get(kind, name)
    told = way(settled, kind, name, change)
    assert told.returncode != 0, told.stdout
    assert WHY in told.stderr
    assert f"{settled.namespace}/{name}" in told.stderr or "spec.cellName" in told.stderr
    assert 'to ""' in told.stderr
    after = settled.get(kind, name)
    assert after["spec"] == before["spec"]
    assert [after["metadata"]["annotations"].get(key) for key in (CELL, MARK)] == [
        before["metadata"]["annotations"].get(key) for key in (CELL, MARK)
    ]


@pytest.mark.parametrize("move", ["another value", "one added against the Role's", "another role", "the Role's value"])
def test_a_move_by_server_side_apply_is_refused(settled: Site, move: str) -> None:
    kind, name, change = MOVES[move]
    body = settled.get(kind, name)
    change(body)
    meta = {"name": name, "annotations": {CELL: body["metadata"]["annotations"].get(CELL, "")}}
    bare = {"apiVersion": body["apiVersion"], "kind": body["kind"], "metadata": meta, "spec": body["spec"]}
    if CELL not in body["metadata"]["annotations"]:
        del meta["annotations"]
    told = settled.send("apply", bare, "--server-side", "--force-conflicts", "--field-manager=person", check=False)
    assert told.returncode != 0, told.stdout
    assert WHY in told.stderr


@WAYS
@pytest.mark.parametrize("change", LEGAL)
def test_a_legal_change_is_let_through(settled: Site, change: str, way: Way) -> None:
    kind, name, made = LEGAL[change]
    told = way(settled, kind, name, made, "--dry-run=server")
    assert told.returncode == 0, told.stderr


def test_a_node_that_has_left_is_free(deployed: Site) -> None:
    deployed.annotate("osdpnode", "node-own", f"{CELL}=")
    deployed.reconcile()
    early = deployed.annotate("osdpnode", "node-own", f"{CELL}=nova-cell1", check=False)
    assert WHY in early.stderr, "its services are still there"
    deployed.annotate("nec", "node-own", "edpm.openstack.org/abandon=true")
    deployed.reconcile()
    deployed.annotate("osdpnode", "node-own", f"{CELL}=nova-cell1")
    deployed.reconcile()
    assert deployed.get("nec", "node-own")["spec"]["cellName"] == "nova-cell1"
    assert deployed.get("osdpnode", "node-own")["metadata"]["annotations"][MARK] == "nova-cell1"


def test_a_role_is_free_once_no_compute_depends_on_it(deployed: Site) -> None:
    deployed.annotate("osdprole", "edpm", f"{CELL}=")
    deployed.reconcile()
    assert WHY in deployed.annotate("osdprole", "edpm", f"{CELL}=nova-cell2", check=False).stderr
    deployed.annotate("nec", "node-0", "edpm.openstack.org/abandon=true")
    deployed.reconcile()
    assert deployed.get("osdprole", "edpm")["metadata"]["annotations"][MARK] == ""
    deployed.annotate("osdprole", "edpm", f"{CELL}=nova-cell2")
    deployed.reconcile()
    assert deployed.get("nec", "node-0")["spec"]["cellName"] == "nova-cell2"


def test_a_node_set_is_guarded_like_a_role(guarded: Site) -> None:
    members = {"nodes": {"one": {"hostName": "one"}}, "nodeTemplate": {"ansibleSSHPrivateKeySecret": "ssh-key"}}
    guarded.create(
        *data_plane(0), thing(DATAPLANE, "OpenStackDataPlaneNodeSet", "set", {CELL: "nova-cell1"}, spec=members)
    )
    guarded.reconcile()
    for cell in ("nova-cell2", None):
        told = by_patch(guarded, "osdpns", "set", says(cell))
        assert WHY in told.stderr
    assert by_patch(guarded, "osdpns", "set", says("")).returncode == 0


class TestTheMark:
    def test_it_cannot_be_removed_or_changed_while_a_compute_is_there(self, deployed: Site) -> None:
        removed = deployed.annotate("osdpnode", "node-0", f"{MARK}-", check=False)
        assert "a replace must carry it along" in removed.stderr
        changed = deployed.annotate("osdpnode", "node-0", f"{MARK}=nova-cell2", check=False)
        assert 'cannot be changed from "nova-cell1" to "nova-cell2"' in changed.stderr

    def test_only_those_who_may_release_or_set_it(self, deployed: Site) -> None:
        deployed.kubectl("create", "role", "editor", "--verb=get,patch,update", "--resource=openstackdataplanenodes")
        deployed.kubectl("create", "rolebinding", "editor", "--role=editor", "--user=editor")
        asked = ("auth", "can-i", "patch", "openstackdataplanenodes", "--as=editor")
        until(lambda: deployed.kubectl(*asked, check=False).returncode == 0, "the role binding is in force")
        release = ("annotate", "--overwrite", "osdpnode", "node-0", f"{MARK}=")
        told = deployed.kubectl(*release, "--as=editor", check=False)
        assert "is not for editor to change" in told.stderr
        assert "needs the verb mark-cell" in told.stderr
        deployed.kubectl("annotate", "osdpnode", "node-0", "rack=7", "--as=editor")
        deployed.kubectl(*release)
        assert deployed.reconcile().outcomes[0].result == "marked", "it is set again"

    def test_an_object_from_before_the_policies_can_be_written_back(self, deployed: Site) -> None:
        assert by_replace(deployed, "osdpnode", "node-0", lambda _body: None).returncode == 0
        deployed.kubectl("label", "osdpnode", "node-0", "rack=7")
        deployed.kubectl("delete", "osdpnode", "node-0")


class TestSectionsInsideADataPlane:
    def plane(self, **nodes: Body) -> Body:
        roles = {
            "one": {"nodeTemplate": {"nova": {"cellName": "cell1", "novaInstance": "nova"}}},
            "two": {"nodeTemplate": {"nova": {"cellName": "cell2"}}},
            "none": {"nodeTemplate": {}},
        }
        return thing(DATAPLANE, "OpenStackDataPlane", "edpm", spec={"roles": roles, "nodes": nodes})

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ({"role": "one"}, {"role": "two"}),
            ({"role": "none", "node": {"nova": {"cellName": "cell3"}}}, {"role": "two"}),
            (
                {"role": "one", "node": {"nova": {"cellName": "cell3"}}},
                {"role": "one", "node": {"nova": {"cellName": "cell4"}}},
            ),
            ({"role": "one"}, {"role": "one", "node": {"novaTemplate": {"cellName": "cell3"}}}),
            ({"role": "one"}, {"role": "one", "node": {"nova": {"novaInstance": "other"}}}),
        ],
    )
    def test_a_move_is_refused_by_name(self, guarded: Site, before: Body, after: Body) -> None:
        guarded.create(self.plane(n=before, other={"role": "one"}))
        until(
            lambda: WHY in guarded.send("replace", self.plane(n=after), "--dry-run=server", check=False).stderr,
            "the move is refused",
        )
        told = guarded.send("replace", self.plane(n=after), check=False)
        assert f"OpenStackDataPlane {guarded.namespace}/edpm, field spec.nodes.n:" in told.stderr

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ({"role": "one"}, {"role": "one", "node": {"nova": {"cellName": "cell1", "novaInstance": "nova"}}}),
            ({"role": "two"}, {"role": "two", "node": {"nova": {"cellName": "cell1"}}}),
            ({"role": "two"}, {"role": "none"}),
            ({"role": "none"}, {"role": "two"}),
            ({"role": "one"}, {"role": "one", "ansibleHost": "10.0.0.1"}),
        ],
    )
    def test_what_moves_nobody_is_let_through(self, guarded: Site, before: Body, after: Body) -> None:
        guarded.create(self.plane(n=before, gone={"role": "one"}))
        guarded.send("replace", self.plane(n=after, new={"role": "two"}))

    def test_a_large_data_plane_can_be_judged(self, guarded: Site) -> None:
        nodes = {f"n{number}": {"role": "one", "node": {"nova": {}}} for number in range(1000)}
        guarded.create(self.plane(**nodes))
        guarded.send("replace", self.plane(**nodes, one_more={"role": "one"}))


def _merge(before: Any, after: Any) -> Any:
    """The merge patch from one to the other."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after
    gone = {name: None for name in before if name not in after}
    changed = {name: _merge(before.get(name), value) for name, value in after.items() if before.get(name) != value}
    return {**gone, **changed}
