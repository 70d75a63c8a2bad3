# SPDX-License-Identifier: GPL-3.0-or-later
"""`make demo`, as a newcomer types it, ends with what OpenStack says of both computes and leaves nothing behind."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from edpm_lab import podman
from edpm_lab.command import run


def test_the_demo_ends_with_a_server_on_each_of_two_computes_in_two_cells() -> None:
    """Through a cluster, which is all that there is to see; from manifests it is the tutorial's way as well."""
    podman.containers_work()

    shown = run([Path(sys.executable).parent / "edpm-lab", "demo", "--source", "cluster"], timeout=900).stdout

    print(shown[shown.rindex("So there is") :])
    assert re.search(r"^edpm-compute-0/.*/conf\.d/02-nova-override\.conf$", shown, re.MULTILINE), shown
    assert "12 created" in shown
    for number, cell in enumerate(("cell1", "cell2")):
        row = rf"^edpm-compute-{number} +{cell} +up, enabled +on-edpm-compute-{number} +ACTIVE +instance-\d+$"
        assert re.search(row, shown, re.MULTILINE), shown
    for command in ("cloud computes", "cloud boot edpm-compute-0 edpm-compute-1", "ssh edpm-compute-1 podman exec"):
        assert re.search(rf"^\$ edpm-lab {command}", shown.replace(" --name demo", ""), re.MULTILINE), shown
    listed = podman.run("ps", "--all", "--quiet", "--filter", "label=edpm.lab=demo").stdout
    assert listed == ""
