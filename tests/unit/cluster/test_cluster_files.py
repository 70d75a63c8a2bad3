# SPDX-License-Identifier: GPL-3.0-or-later
"""What can be said of the cluster's files without a cluster.

Whether an API server takes them is shown by tests/integration/cluster; here is what it would not notice: a field
without a description, a policy without a binding, a Secret that is more than a placeholder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
FILES = ROOT / "roles" / "cluster" / "files"
SAMPLES = ROOT / "docs" / "tutorial" / "manifests"
FIXTURES = ROOT / "tests" / "fixtures"

OURS = {
    "NovaExternalCompute",
    "OVNMetadataAgent",
    "NeutronSriovAgent",
    "CinderExternalVolume",
    "ServiceProfile",
}
OTHERS = {
    "OpenStackDataPlane",
    "OpenStackDataPlaneRole",
    "OpenStackDataPlaneNode",
    "OpenStackDataPlaneNodeSet",
    "OpenStackDataPlaneService",
    "Nova",
    "NovaCell",
}
SERVICES = OURS - {"ServiceProfile"}
LABELS = {"app.kubernetes.io/managed-by": "edpm.services", "app.kubernetes.io/part-of": "edpm.services"}
PRESERVE = "x-kubernetes-preserve-unknown-fields"

Manifest = dict[str, Any]


def documents(*folders: Path) -> list[Manifest]:
    return [
        document
        for folder in folders
        for file in sorted(folder.glob("*.yaml"))
        for document in yaml.safe_load_all(file.read_text(encoding="utf-8"))
    ]


DEFINITIONS: dict[str, Manifest] = {crd["spec"]["names"]["kind"]: crd for crd in documents(FILES / "crds")}
POLICIES = documents(FILES / "policies")
ROLES: dict[str, Manifest] = {role["metadata"]["name"]: role for role in documents(FILES / "rbac")}


def version(kind: str) -> Manifest:
    (only,) = DEFINITIONS[kind]["spec"]["versions"]
    assert isinstance(only, dict)
    return only


def schema(kind: str) -> Manifest:
    found = version(kind)["schema"]["openAPIV3Schema"]
    assert isinstance(found, dict)
    return found


def fields(node: Manifest, path: str = "") -> Iterator[tuple[str, Manifest]]:
    """Every schema inside ``node``, itself included, with a path that a person can find."""
    yield path or ".", node
    for name, child in node.get("properties", {}).items():
        yield from fields(child, f"{path}.{name}")
    if isinstance(node.get("additionalProperties"), dict):
        yield from fields(node["additionalProperties"], f"{path}.*")
    if "items" in node:
        yield from fields(node["items"], f"{path}[]")


def field(kind: str, *path: str) -> Manifest:
    node = schema(kind)
    for name in path:
        node = node["properties"][name]
    return node


def rules(node: Manifest) -> str:
    return " ".join(f"{rule['rule']} {rule['message']}" for rule in node.get("x-kubernetes-validations", []))


def allowed(role: str) -> dict[tuple[str, str], set[str]]:
    verbs: dict[tuple[str, str], set[str]] = {}
    for rule in ROLES[role]["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                verbs.setdefault((group, resource), set()).update(rule["verbs"])
    return verbs


def test_there_is_one_definition_for_every_kind_of_the_design() -> None:
    assert set(DEFINITIONS) == OURS | OTHERS


@pytest.mark.parametrize("file", sorted((FILES / "crds").iterdir()), ids=lambda file: file.name)
def test_a_definitions_file_is_named_like_the_definition_and_holds_nothing_else(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.startswith("---\n")
    (crd,) = yaml.safe_load_all(text)
    names = crd["spec"]["names"]
    assert file.name == f"{crd['metadata']['name']}.yaml"
    assert crd["metadata"]["name"] == f"{names['plural']}.{crd['spec']['group']}"
    assert names["singular"] == names["kind"].lower()
    assert names["listKind"] == f"{names['kind']}List"


@pytest.mark.parametrize("kind", sorted(OURS | OTHERS))
def test_every_field_has_a_description(kind: str) -> None:
    without = [path for path, node in fields(schema(kind)) if not node.get("description", "").strip()]
    assert without == []


@pytest.mark.parametrize("kind", sorted(OURS | OTHERS))
def test_a_description_ends_like_a_sentence(kind: str) -> None:
    unfinished = [path for path, node in fields(schema(kind)) if not node["description"].endswith(".")]
    assert unfinished == []


@pytest.mark.parametrize("kind", sorted(OURS | OTHERS))
def test_a_kind_is_namespaced_has_a_status_of_its_own_and_columns_for_readers(kind: str) -> None:
    assert DEFINITIONS[kind]["spec"]["scope"] == "Namespaced"
    only = version(kind)
    assert (only["name"], only["served"], only["storage"]) == ("v1beta1", True, True)
    assert only["subresources"] == {"status": {}}
    assert "status" in schema(kind)["properties"]
    assert "Age" in [column["name"] for column in only["additionalPrinterColumns"]]


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        ("NovaExternalCompute", ["Node", "Cell", "Ready", "Digest", "Age"]),
        ("OVNMetadataAgent", ["Node", "Cell", "Ready", "Digest", "Age"]),
        ("NeutronSriovAgent", ["Node", "Ready", "Digest", "Age"]),
        ("CinderExternalVolume", ["Node", "Ready", "Digest", "Age"]),
        ("ServiceProfile", ["Service", "Ready", "Age"]),
    ],
)
def test_the_columns_of_our_kinds_fit_a_terminal(kind: str, columns: list[str]) -> None:
    shown = [column["name"] for column in version(kind)["additionalPrinterColumns"] if not column.get("priority")]
    assert shown == columns


@pytest.mark.parametrize("kind", sorted(OURS | OTHERS))
def test_a_column_points_at_a_field_that_the_schema_has(kind: str) -> None:
    for column in version(kind)["additionalPrinterColumns"]:
        path = column["jsonPath"].lstrip(".")
        if path.startswith("metadata."):
            continue
        node = schema(kind)
        for name in re.sub(r"\[[^\]]*\]", "[]", path).split("."):
            node = node["properties"][name.removesuffix("[]")]
            node = node["items"] if name.endswith("[]") else node
        assert node["type"] == column["type"], column


def test_no_two_kinds_share_a_name_that_users_type() -> None:
    typed = [
        name
        for crd in DEFINITIONS.values()
        for name in {crd["spec"]["names"][key] for key in ("plural", "singular")}
        | set(crd["spec"]["names"].get("shortNames", []))
    ]
    assert len(typed) == len(set(typed))


@pytest.mark.parametrize(
    "document", [*DEFINITIONS.values(), *POLICIES, *ROLES.values()], ids=lambda d: d["metadata"]["name"]
)
def test_everything_that_is_installed_says_who_manages_it(document: Manifest) -> None:
    assert LABELS.items() <= document["metadata"]["labels"].items()


@pytest.mark.parametrize("kind", sorted(OURS | OTHERS))
def test_a_schema_is_structural(kind: str) -> None:
    for path, node in fields(schema(kind)):
        assert "type" in node or node.get(PRESERVE), path
        assert ("items" in node) == (node.get("type") == "array"), path
        assert not ("properties" in node and "additionalProperties" in node), path
        for word in ("$ref", "definitions", "oneOf", "anyOf", "patternProperties"):
            assert word not in node, path
        assert set(node.get("required", [])) <= set(node.get("properties", {})), path


@pytest.mark.parametrize("kind", sorted(OURS))
def test_our_kinds_keep_no_unknown_field(kind: str) -> None:
    assert [path for path, node in fields(schema(kind)) if PRESERVE in node] == []


@pytest.mark.parametrize("kind", sorted(OTHERS))
def test_a_kind_of_another_operator_loses_no_field_at_any_depth(kind: str) -> None:
    closed = [
        path
        for path, node in fields(schema(kind))
        if path != "."
        and node.get("type") == "object"
        and "additionalProperties" not in node
        and not node.get(PRESERVE)
    ]
    assert closed == []


@pytest.mark.parametrize("kind", sorted(OTHERS))
def test_a_kind_of_another_operator_gets_no_default_and_needs_no_field(kind: str) -> None:
    spec = field(kind, "spec")
    assert [path for path, node in fields(spec) if "default" in node or "required" in node] == []


@pytest.mark.parametrize(
    "path",
    [
        ("OpenStackDataPlaneRole", "spec", "nodeTemplate", "ansibleVars"),
        ("OpenStackDataPlaneNode", "spec", "node", "ansibleVars"),
        ("OpenStackDataPlaneNodeSet", "spec", "nodeTemplate", "ansible", "ansibleVars"),
    ],
    ids=lambda path: path[0],
)
def test_ansible_vars_may_be_a_mapping_or_a_text(path: tuple[str, ...]) -> None:
    node = field(*path)
    assert "type" not in node
    assert node[PRESERVE] is True


@pytest.mark.parametrize("kind", sorted(SERVICES))
def test_a_service_has_the_fields_that_reconcile_writes(kind: str) -> None:
    spec = field(kind, "spec")
    assert {
        "dataplaneNodeName",
        "sshKeySecretName",
        "inventoryConfigMapName",
        "networkAttachments",
        "deploy",
        "customServiceConfig",
        "defaultConfigOverwrite",
        "ansibleEEContainerImage",
    } <= set(spec["properties"])
    assert "dataplaneNodeName" in spec["required"]
    assert spec["properties"]["deploy"]["default"] is True
    assert spec["properties"]["customServiceConfig"]["nullable"] is True
    assert any(name.endswith("ontainerImage") and name != "ansibleEEContainerImage" for name in spec["properties"])


def test_a_compute_has_no_node_selector_since_it_runs_outside_pods() -> None:
    assert "nodeSelector" not in field("NovaExternalCompute", "spec")["properties"]


def test_a_compute_must_name_its_cell_and_the_others_need_none() -> None:
    needing = {kind for kind in SERVICES if "cellName" in field(kind, "spec")["required"]}
    assert needing == {"NovaExternalCompute"}


@pytest.mark.parametrize("kind", ["NovaExternalCompute", "OVNMetadataAgent"])
def test_a_cell_is_immutable_and_the_message_says_why_and_what_to_do(kind: str) -> None:
    said = rules(field(kind, "spec", "cellName"))
    assert "self == oldSelf" in said
    assert "Nova does not move computes between cells" in said
    assert "nova.openstack.org/cell" in said
    assert "cell0" in said


def test_an_optional_cell_cannot_be_removed_once_it_is_set() -> None:
    assert "!has(oldSelf.cellName) || has(self.cellName)" in rules(field("OVNMetadataAgent", "spec"))


@pytest.mark.parametrize("kind", sorted(SERVICES))
def test_the_node_of_a_service_is_immutable(kind: str) -> None:
    assert "self == oldSelf" in rules(field(kind, "spec", "dataplaneNodeName"))


@pytest.mark.parametrize("kind", sorted(OURS))
def test_conditions_have_the_form_that_kubectl_wait_knows(kind: str) -> None:
    conditions = field(kind, "status", "conditions")
    assert conditions["x-kubernetes-list-type"] == "map"
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]
    assert set(conditions["items"]["required"]) == {"type", "status", "lastTransitionTime", "reason", "message"}
    assert "observedGeneration" in conditions["items"]["properties"]
    assert "observedGeneration" in field(kind, "status")["properties"]


@pytest.mark.parametrize("kind", sorted(SERVICES))
def test_the_status_of_a_service_tells_what_is_deployed(kind: str) -> None:
    assert {"hash", "deployedDigest", "deployedDigests", "deployedSettings", "deployedImages", "lastRun"} <= set(
        field(kind, "status")["properties"]
    )


def test_every_policy_is_bound_once_denies_and_fails_closed() -> None:
    policies = {p["metadata"]["name"]: p for p in POLICIES if p["kind"] == "ValidatingAdmissionPolicy"}
    bindings = [p for p in POLICIES if p["kind"] == "ValidatingAdmissionPolicyBinding"]
    assert len(policies) + len(bindings) == len(POLICIES)
    assert sorted(binding["spec"]["policyName"] for binding in bindings) == sorted(policies)
    assert all(binding["spec"]["validationActions"] == ["Deny"] for binding in bindings)
    assert all(name.startswith("edpm-services-") for name in policies)
    assert all(policy["spec"]["failurePolicy"] == "Fail" for policy in policies.values())


def test_every_refusal_of_a_policy_is_a_sentence_that_names_the_object() -> None:
    for policy in POLICIES:
        for validation in policy["spec"].get("validations", []):
            assert validation["message"].endswith(".")
            assert validation["messageExpression"].startswith("variables.subject")


def test_policies_judge_only_kinds_that_are_defined_here() -> None:
    defined = {(crd["spec"]["group"], crd["spec"]["names"]["plural"]) for crd in DEFINITIONS.values()}
    judged = {
        (group, resource)
        for policy in POLICIES
        for rule in policy["spec"].get("matchConstraints", {}).get("resourceRules", [])
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert judged
    assert judged <= defined


def test_a_reader_sees_every_kind_and_cannot_list_secrets() -> None:
    verbs = allowed("edpm-services-reader")
    for crd in DEFINITIONS.values():
        assert verbs.pop((crd["spec"]["group"], crd["spec"]["names"]["plural"])) == {"get", "list"}
    assert verbs == {("", "secrets"): {"get"}, ("", "configmaps"): {"get"}}


def test_a_writer_touches_no_secret_and_of_other_operators_kinds_only_those_that_are_marked() -> None:
    verbs = allowed("edpm-services-writer")
    marked = {"openstackdataplanenodes", "openstackdataplaneroles", "openstackdataplanenodesets"}
    assert {resource for group, resource in verbs if group == "dataplane.openstack.org"} == marked
    for (_, resource), granted in verbs.items():
        if resource in marked:
            assert granted == {"patch", "mark-cell"}, resource
        elif resource.endswith("/status"):
            assert granted == {"get", "patch"}, resource
        elif resource == "events":
            assert granted == {"create"}
        else:
            assert granted == {"create", "patch", "delete"}, resource
    assert {resource for group, resource in verbs if not group} == {"configmaps", "events"}
    plurals = {DEFINITIONS[kind]["spec"]["names"]["plural"] for kind in SERVICES}
    ours = {resource for group, resource in verbs if group not in ("", "dataplane.openstack.org")}
    assert ours == plurals | {f"{plural}/status" for plural in plurals} | {"serviceprofiles/status"}


@pytest.mark.parametrize(("role", "audience"), [("view", ["view", "edit", "admin"]), ("edit", ["edit", "admin"])])
def test_users_of_the_built_in_roles_get_our_kinds_with_them(role: str, audience: list[str]) -> None:
    labels = ROLES[f"edpm-services-{role}"]["metadata"]["labels"]
    prefix = "rbac.authorization.k8s.io/aggregate-to-"
    assert sorted(key.removeprefix(prefix) for key in labels if key.startswith(prefix)) == sorted(audience)
    plurals = {DEFINITIONS[kind]["spec"]["names"]["plural"] for kind in OURS}
    assert {resource.removesuffix("/status") for _, resource in allowed(f"edpm-services-{role}")} == plurals


def test_nobody_gets_everything_by_a_wildcard() -> None:
    for role in ROLES.values():
        for rule in role["rules"]:
            assert "*" not in rule["apiGroups"] + rule["resources"] + rule["verbs"]


@pytest.mark.parametrize("folder", ["specification", "today"])
def test_the_fixtures_are_objects_of_kinds_that_are_defined_here(folder: str) -> None:
    objects = documents(FIXTURES / folder)
    assert objects
    for found in objects:
        crd = DEFINITIONS[found["kind"]]
        assert found["apiVersion"] == f"{crd['spec']['group']}/v1beta1"


def test_the_specifications_examples_are_all_there() -> None:
    names = {(found["kind"], found["metadata"]["name"]) for found in documents(FIXTURES / "specification")}
    assert names == {
        ("NovaCell", "nova-cell1"),
        ("OpenStackDataPlaneRole", "edpm-compute"),
        ("OpenStackDataPlaneNode", "edpm-compute-0"),
        ("OpenStackDataPlaneNode", "edpm-compute-1"),
        ("NovaExternalCompute", "edpm-compute-0"),
    }


def test_the_specifications_snippet_is_empty_since_its_only_line_is_a_yaml_comment() -> None:
    (compute,) = [found for found in documents(FIXTURES / "specification") if found["kind"] == "NovaExternalCompute"]
    assert compute["spec"]["customServiceConfig"] == ""
    assert compute["spec"]["sshKeySecretName"] == "dataplane-ansible-ssh-private-key-secret"


def test_todays_fixtures_hold_fields_that_the_schemas_do_not_name() -> None:
    for found in documents(FIXTURES / "today"):
        unknown = set(found["spec"]) - set(field(found["kind"], "spec")["properties"])
        assert unknown or found["metadata"]["name"] == "earlier-service", found["kind"]


def test_the_sample_has_two_cells_a_role_annotation_and_a_node_override() -> None:
    samples = {(found["kind"], found["metadata"]["name"]): found for found in documents(SAMPLES)}
    annotation = "nova.openstack.org/cell"
    assert ("NovaCell", "nova-cell1") in samples
    assert ("NovaCell", "nova-cell2") in samples
    role = samples["OpenStackDataPlaneRole", "edpm-compute"]
    assert role["metadata"]["annotations"][annotation] == "nova-cell1"
    assert "annotations" not in samples["OpenStackDataPlaneNode", "edpm-compute-0"]["metadata"]
    override = samples["OpenStackDataPlaneNode", "edpm-compute-1"]
    assert override["metadata"]["annotations"][annotation] == "nova-cell2"
    profile = role["metadata"]["annotations"]["edpm.openstack.org/profile-nova_compute"]
    assert samples["ServiceProfile", profile]["spec"]["service"] == "nova_compute"
    for cell in ("nova-cell1", "nova-cell2"):
        assert "01-nova.conf" in samples["Secret", f"{cell}-compute-config"]["stringData"]


def test_the_sample_says_of_every_file_what_it_is() -> None:
    told = (SAMPLES / "README.md").read_text(encoding="utf-8")
    assert [file.name for file in SAMPLES.glob("*.yaml") if f"`{file.name}`" not in told] == []


def test_the_samples_objects_live_in_one_namespace() -> None:
    assert {found["metadata"].get("namespace", found["metadata"]["name"]) for found in documents(SAMPLES)} == {
        "openstack"
    }


def test_a_sample_secret_holds_no_key_and_only_placeholders_for_passwords() -> None:
    for found in documents(SAMPLES):
        if found["kind"] != "Secret":
            continue
        assert "data" not in found, "base64 hides what it holds from a reader"
        for key, text in found["stringData"].items():
            assert "PRIVATE KEY" not in text, key
            passwords = re.findall(r"^(?:\w*password|\w*secret) = (.*)$", text, re.MULTILINE)
            passwords += re.findall(r"://[^:/]+:([^@]+)@", text)
            assert passwords, key
            assert set(passwords) == {"not-a-real-password"}, key
