# SPDX-License-Identifier: GPL-3.0-or-later
"""What a real API server makes of the collection's definitions, policies and roles.

Every claim is a request: the objects of the specification, of today's users and of the tutorial come back with every
field, and what must be refused is refused in words that name the field and say what to do.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import pytest
import yaml

ROOT = Path(__file__).parents[3]
FIXTURES = ROOT / "tests" / "fixtures"
SAMPLES = ROOT / "docs" / "tutorial" / "manifests"
CELL = "nova.openstack.org/cell"
WHY = "Nova does not move computes between cells"
PATIENCE = 30.0

Manifest = dict[str, Any]
Result = subprocess.CompletedProcess[str]


class Kube(Protocol):
    def kubectl(self, *args: str, stdin: str | None = None, check: bool = True) -> Result: ...


pytestmark = pytest.mark.usefixtures("installed")


def documents(*files: Path) -> list[Manifest]:
    return [document for file in files for document in yaml.safe_load_all(file.read_text(encoding="utf-8")) if document]


def named(document: Manifest) -> str:
    return f"{document['kind']}/{document['metadata']['name']}"


SPECIFICATION = documents(*sorted((FIXTURES / "specification").glob("*.yaml")))
TODAY = documents(*sorted((FIXTURES / "today").glob("*.yaml")))
TUTORIAL = documents(*sorted(SAMPLES.glob("*.yaml")))


class Namespace:
    """One namespace of the cluster, spoken to in manifests."""

    def __init__(self, kube: Kube, name: str) -> None:
        self.kube = kube
        self.name = name

    def kubectl(self, *args: str, stdin: str | None = None, check: bool = True) -> Result:
        return self.kube.kubectl("-n", self.name, *args, stdin=stdin, check=check)

    def send(self, verb: str, document: Manifest, *args: str, check: bool = True) -> Result:
        here = {**document, "metadata": {**document["metadata"], "namespace": self.name}}
        return self.kubectl(verb, "-f", "-", *args, stdin=json.dumps(here), check=check)

    def get(self, document: Manifest) -> Manifest:
        resource = f"{document['kind'].lower()}.{document['apiVersion'].partition('/')[0]}"
        found = json.loads(self.kubectl("get", resource, document["metadata"]["name"], "-o", "json").stdout)
        assert isinstance(found, dict)
        return found

    def refused(self, verb: str, document: Manifest, *args: str) -> str:
        return refusal(self.send(verb, document, *args, check=False))


def refusal(result: Result) -> str:
    assert result.returncode != 0, f"the server took it: {result.stdout}"
    return result.stderr


def until(what: Callable[[], bool], wanted: str) -> None:
    """The API server takes up new policies and schemas a moment after it has stored them."""
    deadline = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < deadline, f"not within {PATIENCE:.0f} s: {wanted}"
        time.sleep(0.25)


@pytest.fixture
def here(kube: Kube, namespace: str) -> Namespace:
    return Namespace(kube, namespace)


@pytest.fixture
def guarded(here: Namespace) -> Namespace:
    """A namespace in which the policies are known to be in force."""
    here.send("create", role("canary", "nova-cell1"))
    move = ("annotate", "--overwrite", "--dry-run=server", "openstackdataplanerole", "canary", f"{CELL}=nova-cell2")
    until(lambda: here.kubectl(*move, check=False).returncode != 0, "the policies are in force")
    return here


def dataplane(kind: str, name: str, cell: str | None, spec: Manifest) -> Manifest:
    annotations = {} if cell is None else {CELL: cell}
    metadata = {"name": name, "annotations": annotations}
    return {"apiVersion": "dataplane.openstack.org/v1beta1", "kind": kind, "metadata": metadata, "spec": spec}


def role(name: str, cell: str | None) -> Manifest:
    return dataplane("OpenStackDataPlaneRole", name, cell, {"nodeTemplate": {"ansiblePort": 22}})


def node(name: str, cell: str | None) -> Manifest:
    return dataplane("OpenStackDataPlaneNode", name, cell, {"role": "edpm-compute", "ansibleHost": "192.168.122.100"})


def nodeset(name: str, cell: str | None) -> Manifest:
    return dataplane("OpenStackDataPlaneNodeSet", name, cell, {"nodes": {}})


def compute(**spec: Any) -> Manifest:
    return {
        "apiVersion": "nova.openstack.org/v1beta1",
        "kind": "NovaExternalCompute",
        "metadata": {"name": "edpm-compute-0"},
        "spec": {"dataplaneNodeName": "edpm-compute-0", "cellName": "nova-cell1", **spec},
    }


def agent(**spec: Any) -> Manifest:
    return {
        "apiVersion": "neutron.openstack.org/v1beta1",
        "kind": "OVNMetadataAgent",
        "metadata": {"name": "edpm-compute-0"},
        "spec": {"dataplaneNodeName": "edpm-compute-0", **spec},
    }


def ready(message: str) -> Manifest:
    return {
        "type": "Ready",
        "status": "True",
        "reason": "Deployed",
        "message": message,
        "observedGeneration": 1,
        "lastTransitionTime": "2026-11-01T08:00:00Z",
    }


class TestNothingIsLost:
    @pytest.mark.parametrize("example", SPECIFICATION, ids=named)
    def test_the_specifications_example_comes_back_with_every_field(self, here: Namespace, example: Manifest) -> None:
        here.send("apply", example, "--validate=strict")
        found = here.get(example)
        defaults = {"deploy": True} if example["kind"] == "NovaExternalCompute" else {}
        assert found.get("spec", {}) == {**defaults, **example.get("spec", {})}
        annotations = example["metadata"].get("annotations", {})
        assert annotations.items() <= found["metadata"]["annotations"].items()

    @pytest.mark.parametrize("manifest", TODAY, ids=named)
    def test_an_object_of_todays_users_comes_back_with_every_field(self, here: Namespace, manifest: Manifest) -> None:
        here.send("apply", manifest, "--validate=strict")
        assert here.get(manifest)["spec"] == manifest["spec"]

    @pytest.mark.parametrize("manifest", [m for m in TODAY if "status" in m], ids=named)
    def test_a_status_of_another_operator_comes_back_with_every_field(
        self, here: Namespace, manifest: Manifest
    ) -> None:
        here.send("apply", manifest)
        patch = json.dumps({"status": manifest["status"]})
        resource = f"{manifest['kind'].lower()}.{manifest['apiVersion'].partition('/')[0]}"
        name = manifest["metadata"]["name"]
        here.kubectl("patch", resource, name, "--subresource=status", "--type=merge", "-p", patch)
        assert here.get(manifest)["status"] == manifest["status"]

    @pytest.mark.parametrize(
        "variables",
        [{"port": 22, "text": "24", "nested": {"list": [1, "two", None]}}, "port: 22\ntext: '24'\n"],
        ids=["a mapping", "a text"],
    )
    def test_ansible_vars_keep_their_form_and_types(self, here: Namespace, variables: object) -> None:
        manifest = role("edpm-compute", None)
        manifest["spec"]["nodeTemplate"]["ansibleVars"] = variables
        here.send("apply", manifest, "--validate=strict")
        assert here.get(manifest)["spec"]["nodeTemplate"]["ansibleVars"] == variables

    def test_a_data_plane_may_embed_its_roles_and_nodes(self, here: Namespace) -> None:
        spec = {
            "deployStrategy": {"deploy": False, "ansibleTags": "", "later": 1},
            "roles": {"edpm-compute": {**role("", None)["spec"], "later": {"a": [1]}}},
            "nodes": {"edpm-compute-0": {**node("", None)["spec"], "node": {"novaTemplate": {"later": True}}}},
        }
        manifest = dataplane("OpenStackDataPlane", "openstack-edpm", None, spec)
        here.send("apply", manifest, "--validate=strict")
        assert here.get(manifest)["spec"] == spec

    def test_a_snippet_comes_back_byte_for_byte(self, here: Namespace) -> None:
        snippet = '# {{ not a template }} – größer\r\n[DEFAULT]\n\tdebug = True  \n\n[pci]\ndevice_spec = {"a": "*"}'
        here.send("apply", compute(customServiceConfig=snippet), "--validate=strict")
        assert here.get(compute())["spec"]["customServiceConfig"] == snippet

    @pytest.mark.parametrize("snippet", ["", None])
    def test_a_snippet_may_be_empty(self, here: Namespace, snippet: str | None) -> None:
        here.send("create", compute(customServiceConfig=snippet), "--validate=strict")
        assert here.get(compute())["spec"].get("customServiceConfig") == snippet

    def test_a_compute_takes_every_field_of_its_interface(self, here: Namespace) -> None:
        spec = {
            "dataplaneNodeName": "edpm-compute-0",
            "instance": "second",
            "cellName": "nova-cell1",
            "customServiceConfig": "[DEFAULT]\n",
            "defaultConfigOverwrite": {"policy.yaml": "{}\n"},
            "inventoryConfigMapName": "dataplanenode-edpm-compute-0",
            "sshKeySecretName": "dataplane-ansible-ssh-private-key-secret",
            "networkAttachments": ["ctlplane", "internalapi"],
            "deploy": False,
            "novaComputeContainerImage": "nova-compute:30",
            "novaLibvirtContainerImage": "nova-libvirt:30",
            "ansibleEEContainerImage": "ansible-ee:1",
            "dnsConfig": {
                "nameservers": ["192.168.122.80"],
                "searches": ["example.com"],
                "options": [{"name": "ndots", "value": "2"}, {"name": "rotate"}],
            },
        }
        here.send("create", {**compute(), "spec": spec}, "--validate=strict")
        assert here.get(compute())["spec"] == spec

    def test_the_tutorials_manifests_apply(self, here: Namespace, kube: Kube) -> None:
        for manifest in TUTORIAL:
            if manifest["kind"] == "Namespace":
                kube.kubectl("apply", "--dry-run=server", "-f", "-", stdin=json.dumps(manifest))
                continue
            here.send("apply", manifest, "--validate=strict")
            if manifest["kind"] == "Secret":
                continue
            defaults = {"deploy": True} if manifest["kind"] == "NovaExternalCompute" else {}
            assert here.get(manifest)["spec"] == {**defaults, **manifest["spec"]}


class TestAComputeNeverMovesBetweenCells:
    @pytest.mark.parametrize(
        "change",
        [("apply",), ("replace",), ("apply", "--server-side", "--force-conflicts")],
        ids=["apply", "replace", "server-side apply"],
    )
    def test_a_changed_cell_name_is_refused_whichever_way_it_comes(
        self, here: Namespace, change: tuple[str, ...]
    ) -> None:
        here.send("apply", compute())
        said = here.refused(change[0], compute(cellName="nova-cell2"), *change[1:])
        assert "spec.cellName" in said
        assert "nova-cell2" in said
        assert WHY in said
        assert f'set the annotation {CELL} to ""' in said
        assert here.get(compute())["spec"]["cellName"] == "nova-cell1"

    def test_a_patched_cell_name_is_refused(self, here: Namespace) -> None:
        here.send("create", compute())
        patch = '{"spec": {"cellName": "nova-cell2"}}'
        said = refusal(here.kubectl("patch", "nec", "edpm-compute-0", "--type=merge", "-p", patch, check=False))
        assert WHY in said

    def test_a_removed_cell_name_is_refused(self, here: Namespace) -> None:
        here.send("create", compute())
        patch = '[{"op": "remove", "path": "/spec/cellName"}]'
        said = refusal(here.kubectl("patch", "nec", "edpm-compute-0", "--type=json", "-p", patch, check=False))
        assert "spec.cellName" in said

    def test_an_optional_cell_name_may_be_added_and_then_neither_changed_nor_removed(self, here: Namespace) -> None:
        here.send("create", agent())
        here.send("replace", agent(cellName="nova-cell1"))
        assert WHY in here.refused("replace", agent(cellName="nova-cell2"))
        said = here.refused("replace", agent())
        assert "cellName cannot be removed" in said
        assert WHY in said

    def test_a_service_stays_with_its_node(self, here: Namespace) -> None:
        here.send("create", agent())
        assert "spec.dataplaneNodeName" in here.refused("replace", agent(dataplaneNodeName="edpm-compute-1"))

    def test_an_instance_is_named_at_creation_only(self, here: Namespace) -> None:
        here.send("create", agent())
        assert "instance can be set at creation only" in here.refused("replace", agent(instance="second"))

    def test_everything_else_of_a_compute_may_change(self, here: Namespace) -> None:
        here.send("create", compute())
        here.send("replace", compute(deploy=False, customServiceConfig="[DEFAULT]\n", sshKeySecretName="other"))
        assert here.get(compute())["spec"]["deploy"] is False

    @pytest.mark.parametrize("cell", ["cell0", "nova-cell0"])
    def test_cell0_is_refused_as_a_compute_cell(self, here: Namespace, cell: str) -> None:
        said = here.refused("create", compute(cellName=cell))
        assert "spec.cellName" in said
        assert "cell0" in said

    @pytest.mark.parametrize("made", [role, node, nodeset], ids=["a Role", "a Node", "a NodeSet"])
    def test_an_annotation_that_moves_to_another_cell_is_refused(
        self, guarded: Namespace, made: Callable[[str, str | None], Manifest]
    ) -> None:
        guarded.send("apply", made("edpm-compute", "nova-cell1"))
        said = guarded.refused("apply", made("edpm-compute", "nova-cell2"))
        kind = made("", None)["kind"]
        assert f"{kind} {guarded.name}/edpm-compute" in said
        assert 'from "nova-cell1" to "nova-cell2"' in said
        assert WHY in said
        assert "To use another cell" in said

    def test_a_node_may_leave_its_cell_by_an_empty_value(self, guarded: Namespace) -> None:
        guarded.send("create", node("edpm-compute-0", "nova-cell1"))
        guarded.send("replace", node("edpm-compute-0", ""))
        assert guarded.get(node("edpm-compute-0", ""))["metadata"]["annotations"][CELL] == ""

    def test_a_role_may_let_go_of_its_annotation(self, guarded: Namespace) -> None:
        guarded.send("create", role("edpm-compute", "nova-cell1"))
        guarded.send("replace", role("edpm-compute", None))
        assert CELL not in guarded.get(role("edpm-compute", None))["metadata"].get("annotations", {})

    def test_an_object_with_a_cell_may_change_otherwise(self, guarded: Namespace) -> None:
        guarded.send("create", node("edpm-compute-0", "nova-cell1"))
        guarded.kubectl("label", "osdpnode", "edpm-compute-0", "rack=7")
        guarded.kubectl("annotate", "osdpnode", "edpm-compute-0", "note=moved to another rack")
        guarded.kubectl("delete", "osdpnode", "edpm-compute-0")

    @pytest.mark.parametrize("cell", ["cell0", "nova-cell0"])
    def test_an_annotation_that_names_cell0_is_refused(self, guarded: Namespace, cell: str) -> None:
        said = guarded.refused("create", node("edpm-compute-0", cell))
        assert f'"{cell}"' in said
        assert "cell0 holds no computes" in said


class TestBadInput:
    @pytest.mark.parametrize(
        ("manifest", "named_field"),
        [
            (compute(deploy="perhaps"), "spec.deploy"),
            (compute(networkAttachments="ctlplane"), "spec.networkAttachments"),
            (compute(defaultConfigOverwrite={"policy.yaml": 7}), "spec.defaultConfigOverwrite.policy.yaml"),
            (compute(defaultConfigOverwrite={"../../etc/passwd": ""}), "spec.defaultConfigOverwrite"),
            (compute(cellName="Nova Cell 1"), "spec.cellName"),
            (compute(cellName=""), "spec.cellName"),
            (compute(novaComputeContainerImage=""), "spec.novaComputeContainerImage"),
            (agent(instance="no_underscore"), "spec.instance"),
            (role("edpm-compute", None) | {"spec": {"nodeTemplate": {"ansiblePort": "22"}}}, "ansiblePort"),
            (node("edpm-compute-0", None) | {"spec": {"deployStrategy": {"deploy": "no"}}}, "deployStrategy.deploy"),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_a_wrong_value_is_refused_with_the_fields_name(
        self, here: Namespace, manifest: Manifest, named_field: str
    ) -> None:
        assert named_field in here.refused("create", manifest)

    @pytest.mark.parametrize("field", ["dataplaneNodeName", "cellName"])
    def test_a_missing_field_is_named(self, here: Namespace, field: str) -> None:
        manifest = compute()
        del manifest["spec"][field]
        said = here.refused("create", manifest)
        assert f"spec.{field}: Required value" in said

    def test_a_misspelt_field_is_named_under_strict_validation(self, here: Namespace) -> None:
        said = here.refused("create", compute(customServiceConfg="[DEFAULT]"), "--validate=strict")
        assert 'unknown field "spec.customServiceConfg"' in said

    def test_a_profile_must_say_which_service_it_is_for(self, here: Namespace) -> None:
        manifest = {
            "apiVersion": "edpm.openstack.org/v1beta1",
            "kind": "ServiceProfile",
            "metadata": {"name": "defaults"},
            "spec": {"customServiceConfig": "[DEFAULT]\n"},
        }
        assert "spec.service: Required value" in here.refused("create", manifest)


class TestWhatAPersonSees:
    def test_the_columns_of_a_compute_show_where_it_is_and_how_it_does(self, here: Namespace) -> None:
        here.send("create", compute())
        status = {"conditions": [ready("All is well")], "deployedDigest": "3f9c21e", "observedGeneration": 1}
        patch = json.dumps({"status": status})
        here.kubectl("patch", "nec", "edpm-compute-0", "--subresource=status", "--type=merge", "-p", patch)
        heading, row = here.kubectl("get", "novaexternalcomputes").stdout.splitlines()
        assert heading.split() == ["NAME", "NODE", "CELL", "READY", "DIGEST", "AGE"]
        assert row.split()[:5] == ["edpm-compute-0", "edpm-compute-0", "nova-cell1", "True", "3f9c21e"]
        assert "All is well" in here.kubectl("get", "novaexternalcomputes", "-o", "wide").stdout

    def test_the_columns_of_roles_and_nodes_show_the_annotated_cell(self, here: Namespace) -> None:
        here.send("create", role("edpm-compute", "nova-cell1"))
        here.send("create", node("edpm-compute-1", "nova-cell2"))
        assert "nova-cell1" in here.kubectl("get", "osdprole").stdout
        assert "nova-cell2" in here.kubectl("get", "osdpnode").stdout

    def test_one_word_lists_all_that_belongs_to_the_data_plane(self, here: Namespace) -> None:
        here.send("create", compute())
        here.send("create", role("edpm-compute", "nova-cell1"))
        listed = here.kubectl("get", "edpm", "-o", "name").stdout.split()
        assert listed == [
            "openstackdataplanerole.dataplane.openstack.org/edpm-compute",
            "novaexternalcompute.nova.openstack.org/edpm-compute-0",
        ]

    def test_the_description_of_a_field_is_explained(self, kube: Kube) -> None:
        def explained() -> bool:
            told = kube.kubectl("explain", "novaexternalcompute.spec.customServiceConfig", check=False)
            return "byte for byte" in " ".join(told.stdout.split())

        until(explained, "kubectl explain tells what customServiceConfig is")


class TestStatus:
    def test_a_status_is_written_beside_the_spec_and_waited_for(self, here: Namespace) -> None:
        here.send("create", compute())
        status = {
            "conditions": [ready("Deployed")],
            "observedGeneration": 1,
            "hash": {"nova-cell1-compute-config": "n5c8h5d7"},
            "deployedDigest": "3f9c21e",
            "deployedImages": {"nova_compute": "nova-compute:30", "libvirt": "nova-libvirt:30"},
            "lastRun": {
                "name": "deploy-1",
                "startTime": "2026-11-01T08:00:00Z",
                "completionTime": "2026-11-01T08:00:41Z",
                "result": "Succeeded",
                "message": "2 services changed",
            },
        }
        patch = json.dumps({"spec": {"deploy": False}, "status": status})
        here.kubectl("patch", "nec", "edpm-compute-0", "--subresource=status", "--type=merge", "-p", patch)
        found = here.get(compute())
        assert found["status"] == status
        assert found["spec"]["deploy"] is True, "the status is all that its subresource writes"
        assert found["metadata"]["generation"] == 1
        here.kubectl("wait", "--for=condition=Ready", "--timeout=10s", "nec/edpm-compute-0")

    def test_a_status_does_not_come_in_with_the_object(self, here: Namespace) -> None:
        here.send("create", {**compute(), "status": {"deployedDigest": "made-up"}})
        assert "status" not in here.get(compute())

    def test_a_condition_without_a_reason_is_refused(self, here: Namespace) -> None:
        here.send("create", compute())
        condition = ready("")
        del condition["reason"]
        patch = json.dumps({"status": {"conditions": [condition]}})
        change = ("patch", "nec", "edpm-compute-0", "--subresource=status", "--type=merge", "-p", patch)
        assert "status.conditions[0].reason" in refusal(here.kubectl(*change, check=False))

    def test_a_cell_is_told_ready_the_way_the_tutorial_does_it(self, here: Namespace) -> None:
        (cell,) = [m for m in TUTORIAL if named(m) == "NovaCell/nova-cell1"]
        here.send("create", cell)
        patch = '{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}'
        assert patch in (SAMPLES / "README.md").read_text(encoding="utf-8")
        here.kubectl("patch", "novacell", "nova-cell1", "--subresource=status", "--type=merge", "-p", patch)
        here.kubectl("wait", "--for=condition=Ready", "--timeout=10s", "novacell/nova-cell1")


class TestRoles:
    @pytest.fixture
    def reader(self, here: Namespace) -> tuple[str, ...]:
        here.kubectl("create", "rolebinding", "plan", "--clusterrole=edpm-services-reader", "--user=planner")
        asked = ("auth", "can-i", "list", "novacells.nova.openstack.org", "--as=planner")
        until(lambda: here.kubectl(*asked, check=False).returncode == 0, "the role binding is in force")
        return ("--as=planner",)

    def test_a_reader_lists_objects_and_gets_secrets_only_by_name(
        self, here: Namespace, reader: tuple[str, ...]
    ) -> None:
        here.kubectl("create", "secret", "generic", "nova-cell1-compute-config", "--from-literal=01-nova.conf=")
        here.kubectl("get", "osdpnode,osdprole,osdpns,osdps,osdp,nova,novacell,nec,serviceprofile", *reader)
        here.kubectl("get", "ovnmetadataagent,neutronsriovagent,cinderexternalvolume", *reader)
        here.kubectl("get", "secret", "nova-cell1-compute-config", *reader)
        assert "cannot list resource" in refusal(here.kubectl("get", "secrets", *reader, check=False))

    def test_a_reader_writes_nothing(self, here: Namespace, reader: tuple[str, ...]) -> None:
        assert "forbidden" in here.refused("create", compute(), *reader)

    def test_a_writer_with_a_readers_rights_applies_and_reports(self, here: Namespace, reader: tuple[str, ...]) -> None:
        here.kubectl("create", "rolebinding", "reconcile", "--clusterrole=edpm-services-writer", "--user=planner")
        asked = ("auth", "can-i", "create", "novaexternalcomputes.nova.openstack.org", *reader)
        until(lambda: here.kubectl(*asked, check=False).returncode == 0, "the role binding is in force")
        here.send("apply", compute(), "--server-side", "--field-manager=edpm.services", *reader)
        patch = json.dumps({"status": {"deployedDigest": "3f9c21e"}})
        status = ("patch", "nec", "edpm-compute-0", "--subresource=status", "--type=merge", "-p", patch, *reader)
        here.kubectl(*status)
        assert here.get(compute())["status"] == {"deployedDigest": "3f9c21e"}
        here.kubectl("delete", "nec", "edpm-compute-0", *reader)

    def test_a_writer_neither_makes_nor_deletes_what_it_only_marks(
        self, here: Namespace, reader: tuple[str, ...]
    ) -> None:
        here.kubectl("create", "rolebinding", "reconcile", "--clusterrole=edpm-services-writer", "--user=planner")
        asked = ("auth", "can-i", "patch", "openstackdataplanenodes.dataplane.openstack.org", *reader)
        until(lambda: here.kubectl(*asked, check=False).returncode == 0, "the role binding is in force")
        here.send("create", node("edpm-compute-0", "nova-cell1"))
        assert "forbidden" in here.refused("create", node("edpm-compute-1", "nova-cell1"), *reader)
        assert "forbidden" in refusal(here.kubectl("delete", "osdpnode", "edpm-compute-0", *reader, check=False))
        assert "forbidden" in refusal(here.kubectl("delete", "secret", "any", *reader, check=False))
