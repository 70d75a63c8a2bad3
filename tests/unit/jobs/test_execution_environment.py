# SPDX-License-Identifier: GPL-3.0-or-later
"""The execution environment's definition, the rights of its pods, and the options and documents that must agree."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.edpm.services.plugins.modules.ee_job import DOCUMENTATION
from ansible_collections.edpm.services.plugins.plugin_utils._jobs.options import SPEC
from edpm_lab import ee

ROOT = Path(__file__).resolve().parents[3]
RBAC = ROOT / "roles/cluster/files/rbac"


def verbs(role: str) -> dict[str, set[str]]:
    rules = yaml.safe_load((RBAC / f"{role}.yaml").read_text())["rules"]
    return {resource: set(rule["verbs"]) for rule in rules for resource in rule["resources"]}


def test_ansible_builder_takes_the_definition(tmp_path: Path) -> None:
    definition = ROOT / "extensions/ee/execution-environment.yml"
    builder = Path(sys.executable).parent / "ansible-builder"

    subprocess.run(
        [builder, "create", "-f", definition, "-c", tmp_path, "--output-filename", "Containerfile"],
        check=True,
        capture_output=True,
        timeout=120,
    )

    made = (tmp_path / "Containerfile").read_text()
    assert "USER 1001:0" in made
    assert "/run/edpm/extrausers" in made


def test_the_labs_image_holds_what_the_definition_names_and_no_more() -> None:
    named = yaml.safe_load((ROOT / "extensions/ee/execution-environment.yml").read_text())["dependencies"]
    tools = [named["ansible_core"]["package_pip"], named["ansible_runner"]["package_pip"], *named["python"]]

    assert {*ee.TOOLS} == {*tools, "pip"}


def test_the_collection_tells_ansible_builder_what_it_needs() -> None:
    told = yaml.safe_load((ROOT / "meta/execution-environment.yml").read_text())["dependencies"]

    assert "kubernetes" in (ROOT / told["python"]).read_text()
    assert "openssh-client" in (ROOT / told["system"]).read_text()


def test_pods_may_store_results_and_nothing_else() -> None:
    assert verbs("runner") == {"configmaps": {"create"}}


def test_who_starts_runs_sees_no_secret_and_logs_into_no_pod() -> None:
    granted = verbs("jobs")

    assert "secrets" not in granted
    assert not any("/" in resource for resource in granted)
    assert granted["jobs"] == {"get", "create", "delete"}


def _documented(options: dict[str, Any]) -> dict[str, Any]:
    return {name: (option.get("type", "str"), option.get("default")) for name, option in options.items()}


def test_every_option_is_documented_with_its_type_and_default() -> None:
    assert _documented(yaml.safe_load(DOCUMENTATION)["options"]) == _documented(SPEC)


def test_the_playbook_hands_every_option_but_the_plays_own_on() -> None:
    task = yaml.safe_load((ROOT / "playbooks/run_in_cluster.yml").read_text())[0]["tasks"][0]["edpm.services.ee_job"]

    assert set(SPEC) - set(task) == {"play", "name", "nodes", "ca_secret", "run_as_user"}
