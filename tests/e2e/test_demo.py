# SPDX-License-Identifier: GPL-3.0-or-later
"""`make demo`, as a newcomer types it, ends with what runs where and leaves nothing behind."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from edpm_lab import podman
from edpm_lab.command import run


@pytest.mark.parametrize("source", ["manifests", "cluster"])
def test_the_demo_ends_with_a_table_of_what_answers_on_which_node(source: str) -> None:
    podman.containers_work()

    shown = run([Path(sys.executable).parent / "edpm-lab", "demo", "--source", source], timeout=900).stdout

    for node in ("edpm-compute-0", "edpm-compute-1"):
        assert re.search(rf"^{node} +10\.\S+ +libvirt +\S+ +QEMU \d", shown, re.MULTILINE), shown
    assert len(re.findall(r"^ +nova_compute +\S+ +nova-compute \d", shown, re.MULTILINE)) == 2
    assert re.search(r"^edpm-compute-0/.*/conf\.d/02-nova-override\.conf$", shown, re.MULTILINE), shown
    if source == "cluster":
        assert "12 created" in shown
        assert "Nova does not move computes between cells" in shown
    listed = podman.run("ps", "--all", "--quiet", "--filter", "label=edpm.lab=demo").stdout
    assert listed == ""
