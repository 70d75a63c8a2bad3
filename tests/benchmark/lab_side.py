# SPDX-License-Identifier: GPL-3.0-or-later
"""What the lab and the installation cost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from edpm_lab.api_server import api_server
from edpm_lab.labs import Lab
from edpm_lab.nodes import Nodes, default_names

from .figures import TREE, Figure, best, timed

BIN = Path(sys.executable).parent


def definitions(lab: Lab) -> Iterator[Figure]:
    """A second run of install_cluster has nothing to write; an empty playbook is what Ansible itself costs."""
    with api_server(lab, "bench") as server, empty_playbook(lab) as empty:
        floor = best(lambda: ansible(empty, server.environment()))
        first = timed(lambda: ansible("edpm.services.install_cluster", server.environment()))
        again = best(lambda: ansible("edpm.services.install_cluster", server.environment()))
    yield Figure("install_cluster, nothing to change", again, "the first install_cluster", first)
    yield Figure("install_cluster, nothing to change: over Ansible itself", again, "an empty playbook", floor)


def nodes(lab: Lab) -> Iterator[Figure]:
    """Four nodes start side by side."""
    several = Nodes(lab)
    one = timed(lambda: several.up(default_names(1)))
    four = timed(lambda: several.up([f"bench-{number}" for number in range(4)]))
    again = best(lambda: several.up(default_names(1)))
    yield Figure("start of four nodes", four, "start of one node", one)
    yield Figure("a node that runs already", again, "start of one node", one)


@contextmanager
def empty_playbook(lab: Lab) -> Iterator[str]:
    """A playbook with one play and no task."""
    path = lab.folder / "empty.yml"
    path.write_text("- hosts: localhost\n  gather_facts: false\n")
    yield str(path)


def ansible(playbook: str, environment: dict[str, str]) -> None:
    """Run a playbook; one that fails is no measurement."""
    subprocess.run(
        [BIN / "ansible-playbook", playbook],
        cwd=TREE,
        env={**os.environ, **environment},
        check=True,
        capture_output=True,
        timeout=300,
    )
