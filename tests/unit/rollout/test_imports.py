# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run reads before its first task: Ansible compiles a collection's files anew in every run, so each counts."""

from __future__ import annotations

import subprocess
import sys

import pytest

ROOM = "ansible_collections.edpm.services.plugins.plugin_utils"
CASES = {
    "the roles need no data plane": (
        ["_rollout.asking"],
        [
            *("_dataplane.plan", "_dataplane.nodes", "_dataplane.partners", "_dataplane.shapes"),
            *("_kube.connection", "_kube.live", "_kube.manifests", "_report.page"),
        ],
    ),
    "a deployment needs no variables of roles and no pages": (
        ["_rollout.steps", "_rollout.turns", "_rollout.looking"],
        ["_bundle.plain", "_report.page", "_report.explained"],
    ),
}


@pytest.mark.parametrize(("used", "spared"), CASES.values(), ids=CASES)
def test_what_is_not_needed_is_not_read(used: list[str], spared: list[str]) -> None:
    lines = [*(f"import {ROOM}.{name}" for name in used), "import sys", "print(*sys.modules, sep='\\n')"]
    run = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    read = set(run.stdout.splitlines())
    assert {f"{ROOM}.{name}" for name in used} <= read
    assert read.isdisjoint({"kubernetes", "urllib3", "oslo_config", *(f"{ROOM}.{name}" for name in spared)})
