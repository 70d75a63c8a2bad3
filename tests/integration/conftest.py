# SPDX-License-Identifier: GPL-3.0-or-later
"""A real API server for the tests, the collection's definitions in it, and its playbooks as users run them."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

import pytest
from edpm_lab.access import Access
from edpm_lab.api import Api
from edpm_lab.api_server import access, api_server
from edpm_lab.labs import Lab

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent


class Playbook(Protocol):
    """Runs a playbook of the collection by its name."""

    def __call__(
        self, name: str, *args: str | Path, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]: ...


@pytest.fixture(scope="session")
def playbook() -> Playbook:
    """`ansible-playbook edpm.services.<name>` with the collection of this tree."""

    def run(name: str, *args: str | Path, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        quiet = {key: value for key, value in os.environ.items() if not key.startswith(("K8S_AUTH_", "ANSIBLE_"))}
        return subprocess.run(
            [BIN / "ansible-playbook", f"edpm.services.{name}", *args],
            cwd=ROOT,
            env={**quiet, "ANSIBLE_FORCE_COLOR": "0", "NO_COLOR": "1", **(env or {})},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def kube(lab: Lab) -> Access:
    """One API server for the whole run, or the cluster that LAB_KUBECONFIG names."""
    return access(lab)


@pytest.fixture(scope="session")
def installed(kube: Access, playbook: Playbook) -> Access:
    """The same server after the collection's playbook has installed the definitions."""
    done = playbook("install_cluster", env={"KUBECONFIG": str(kube.kubeconfig)})
    assert done.returncode == 0, done.stdout + done.stderr
    return kube


@pytest.fixture
def namespace(kube: Access) -> Iterator[str]:
    """A namespace of the test's own."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    api = Api(kube)
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    api.delete("namespace", name)


@pytest.fixture
def fresh_api(lab: Lab) -> Iterator[Access]:
    """An API server that nobody has written to yet."""
    with api_server(lab, f"fresh-{uuid.uuid4().hex[:6]}") as server:
        yield server
