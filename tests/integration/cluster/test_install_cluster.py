"""`edpm.services.install_cluster` against a real API server, as a user runs it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from edpm_lab.access import Access

FILES = Path(__file__).parents[3] / "roles" / "cluster" / "files"
DEFINITIONS = [
    document for file in sorted(FILES.rglob("*.yaml")) for document in yaml.safe_load_all(file.read_text()) if document
]
KINDS = "crd,validatingadmissionpolicies,validatingadmissionpolicybindings,clusterroles"
OURS = "app.kubernetes.io/managed-by=edpm.services"
NOVA = "nova.nova.openstack.org"
POLICY = "edpm-services-external-compute-cell"

Run = subprocess.CompletedProcess[str]
Install = Callable[..., Run]


@pytest.fixture
def install(playbook: Callable[..., Run]) -> Install:
    """Runs the playbook on a server, or with other connection settings."""

    def run(server: Access | None, *args: str, **variables: str) -> Run:
        env = {"KUBECONFIG": str(server.kubeconfig)} if server is not None else {"KUBECONFIG": ""}
        return playbook("install_cluster", *args, env={**env, **variables})

    return run


def objects(server: Access) -> dict[str, dict[str, Any]]:
    listed = json.loads(server.kubectl("get", KINDS, "-l", OURS, "-o", "json").stdout)["items"]
    return {f"{item['kind']}/{item['metadata']['name']}": item for item in listed}


def versions(server: Access) -> dict[str, str]:
    return {name: item["metadata"]["resourceVersion"] for name, item in objects(server).items()}


def changed(run: Run) -> int:
    assert run.returncode == 0, run.stdout + run.stderr
    found = re.search(r"changed=(\d+)", run.stdout)
    assert found is not None, run.stdout
    return int(found.group(1))


def test_it_installs_into_an_empty_cluster_truthfully_announced_and_only_once(
    fresh_api: Access, install: Install
) -> None:
    announced = install(fresh_api, "--check", "--diff")
    assert changed(announced) == 1
    assert f"{len(DEFINITIONS)} would be created." in announced.stdout
    for definition in DEFINITIONS:
        assert f"+++ after: {definition['kind']} {definition['metadata']['name']} (" in announced.stdout
    assert "managedFields" not in announced.stdout
    assert objects(fresh_api) == {}

    first = install(fresh_api)
    assert changed(first) == 1
    assert f"{len(DEFINITIONS)} definitions: {len(DEFINITIONS)} created." in first.stdout
    assert set(objects(fresh_api)) == {f"{d['kind']}/{d['metadata']['name']}" for d in DEFINITIONS}
    before = versions(fresh_api)

    again = install(fresh_api, "--diff")
    assert changed(again) == 0
    assert f"{len(DEFINITIONS)} definitions: {len(DEFINITIONS)} unchanged." in again.stdout
    assert "+++" not in again.stdout
    assert versions(fresh_api) == before


def test_drift_is_shown_exactly_and_repaired(fresh_api: Access, install: Install) -> None:
    changed(install(fresh_api))
    path = "/spec/versions/0/schema/openAPIV3Schema/description"
    patch = json.dumps([{"op": "replace", "path": path, "value": "drifted"}])
    fresh_api.kubectl("patch", "crd", NOVA, "--type=json", "-p", patch)
    fresh_api.kubectl("delete", "validatingadmissionpolicy", POLICY)
    drifted = versions(fresh_api)

    shown = install(fresh_api, "--check", "--diff")
    assert changed(shown) == 1
    assert re.findall(r"^\+\+\+ after: (\S+ \S+)", shown.stdout, re.MULTILINE) == [
        f"CustomResourceDefinition {NOVA}",
        f"ValidatingAdmissionPolicy {POLICY}",
    ]
    assert re.findall(r"^-(?!--)\s*(.*)", shown.stdout, re.MULTILINE) == ["description: drifted"]
    assert versions(fresh_api) == drifted

    assert changed(install(fresh_api)) == 1
    repaired = objects(fresh_api)
    schema = repaired[f"CustomResourceDefinition/{NOVA}"]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema["description"] != "drifted"
    assert f"ValidatingAdmissionPolicy/{POLICY}" in repaired
    assert changed(install(fresh_api, "--check")) == 0


def test_a_crd_of_somebody_else_is_kept_byte_for_byte_and_reported(fresh_api: Access, install: Install) -> None:
    foreign = yaml.safe_load((FILES / "crds" / f"{NOVA}.yaml").read_text())
    foreign["metadata"].pop("labels")
    foreign["spec"]["versions"][0]["name"] = "v1alpha1"
    fresh_api.kubectl("create", "-f", "-", stdin=yaml.safe_dump(foreign))
    fresh_api.kubectl("wait", "--for=condition=Established", f"crd/{NOVA}")
    before = fresh_api.kubectl("get", "crd", NOVA, "-o", "json", "--show-managed-fields").stdout

    for arguments in (["--check"], [], []):
        told = install(fresh_api, *arguments)
        text = " ".join((told.stdout + told.stderr).split())
        assert told.returncode == 0
        assert f"CustomResourceDefinition {NOVA}: kept, it came from somebody else" in text
        assert f"CustomResourceDefinition {NOVA} on https://" in text
        assert "does not serve v1beta1, which edpm.services reads; upgrade the operator that it belongs to." in text
    assert fresh_api.kubectl("get", "crd", NOVA, "-o", "json", "--show-managed-fields").stdout == before
    assert len(objects(fresh_api)) == len(DEFINITIONS) - 1


def test_an_operator_that_is_installed_over_ours_keeps_its_crd(fresh_api: Access, install: Install) -> None:
    changed(install(fresh_api))
    theirs = yaml.safe_load((FILES / "crds" / f"{NOVA}.yaml").read_text())
    theirs["metadata"].pop("labels")
    theirs["spec"]["names"]["shortNames"] = ["their"]
    fresh_api.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=yaml.safe_dump(theirs))
    told = install(fresh_api)
    assert changed(told) == 0
    assert f"CustomResourceDefinition {NOVA}: kept, somebody else's installer has taken it over" in told.stdout
    kept = objects(fresh_api)[f"CustomResourceDefinition/{NOVA}"]
    assert kept["spec"]["names"]["shortNames"] == ["their"]


def the_sentence(run: Run) -> str:
    assert run.returncode != 0, run.stdout
    assert "Traceback" not in run.stdout + run.stderr
    found = re.search(r'FAILED! => .*?"msg": "((?:[^"\\]|\\.)*)"', run.stdout, re.DOTALL)
    assert found is not None, run.stdout + run.stderr
    return str(json.loads(f'"{found.group(1)}"'))


def test_an_unusable_kubeconfig_is_told_in_one_sentence(kube: Access, install: Install, tmp_path: Path) -> None:
    broken = tmp_path / "kubeconfig"
    broken.write_text("users: [\n")
    missing = tmp_path / "missing"
    cases = [
        ({"KUBECONFIG": str(broken)}, rf"The kubeconfig {broken} cannot be used: it is not YAML \(line 2: .*\); .*"),
        ({"KUBECONFIG": str(missing)}, rf"The kubeconfig {missing} does not exist; correct the path in KUBECONFIG\."),
        ({"K8S_AUTH_CONTEXT": "moon"}, r"The kubeconfig \S+ has no context moon; it has \S+: choose one of them\."),
        (
            {"K8S_AUTH_HOST": "https://127.0.0.1:9"},
            r"https://127\.0\.0\.1:9 cannot be reached: Connection refused; check the address .*\.",
        ),
    ]
    for variables, sentence in cases:
        assert re.fullmatch(sentence, the_sentence(install(kube, **variables)))


def test_credentials_that_do_not_suffice_are_told_in_one_sentence(
    kube: Access, install: Install, namespace: str, tmp_path: Path
) -> None:
    kube.kubectl("create", "serviceaccount", "nobody", "-n", namespace)
    token = kube.kubectl("create", "token", "nobody", "-n", namespace).stdout.strip()
    config = yaml.safe_load(kube.kubectl("config", "view", "--raw", "--minify", "-o", "yaml").stdout)
    for name, api_key, sentence in (
        (
            "without-rights",
            token,
            rf"system:serviceaccount:{namespace}:nobody may not list customresourcedefinitions\.apiextensions\.k8s\.io"
            r" on https://\S+ \(.*\); give the account that right or use another account\.",
        ),
        ("bad-token", "nonsense", r"https://\S+ does not accept the credentials; log in again, or hand over .*\."),
    ):
        config["users"] = [{"name": config["users"][0]["name"], "user": {"token": api_key}}]
        file = tmp_path / name
        file.write_text(yaml.safe_dump(config))
        run = install(kube, "-vvv", KUBECONFIG=str(file))
        assert re.fullmatch(sentence, the_sentence(run))
        assert api_key not in run.stdout + run.stderr
