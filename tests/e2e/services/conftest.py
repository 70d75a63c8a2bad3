# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from edpm_lab.labs import Lab
from edpm_lab.nodes import Nodes

from .machine import Machine

Bring = Callable[..., Machine]
_CLEARED = """podman exec edpm_libvirt virsh destroy guest
virsh destroy guest
systemctl stop 'edpm_*'
rm -f /etc/containers/systemd/edpm_*"""


@pytest.fixture(scope="module")
def bring(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bring]:
    """Brings a node up, by its name; the module's nodes are cleared of services at its end."""
    nodes, brought = Nodes(lab), dict[str, Machine]()

    def up(name: str, image: str = "node") -> Machine:
        if name not in brought:
            nodes.up([name], image)
            brought[name] = Machine(nodes, name, tmp_path_factory.mktemp(name))
        return brought[name]

    yield up
    for machine in brought.values():
        machine.sh(_CLEARED, check=False)
