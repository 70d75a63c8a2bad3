# SPDX-License-Identifier: GPL-3.0-or-later
"""The tutorial's commands, typed one after the other into one shell, do what the tutorial says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from edpm_lab import labs, podman

TREE = Path(__file__).resolve().parents[2]
TUTORIAL = TREE / "docs/tutorial/index.md"
MARK = "::ended with"


def commands() -> list[str]:
    """What stands behind a prompt, with the lines of a here-document below it; `make demo` has a test of its own."""
    blocks = re.findall(r"^```console\n(.*?)^```", TUTORIAL.read_text(), re.MULTILINE | re.DOTALL)
    found = [command for block in blocks for command in re.split(r"^\$ ", block, flags=re.MULTILINE) if command]
    return [command.rstrip() for command in found if not command.startswith("make demo")]


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Labs of the test's own, so that a lab that somebody left running is not touched."""
    environment = {"EDPM_LAB_STATE": str(tmp_path)}
    yield environment
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EDPM_LAB_STATE", str(tmp_path))
        for name in labs.names():
            labs.close(name)
    (TREE / "sample.dataplane.yml").unlink(missing_ok=True)
    shutil.rmtree(TREE / "site", ignore_errors=True)


def test_every_command_of_the_tutorial_works_as_it_is_written(elsewhere: dict[str, str], tmp_path: Path) -> None:
    podman.containers_work()
    script = tmp_path / "typed.sh"
    script.write_text("".join(f"{command}\necho {MARK} $?\n" for command in commands()))

    shell = subprocess.run(
        ["bash", script],
        # ssh would read what stands behind it.
        stdin=subprocess.DEVNULL,
        cwd=TREE,
        env={**os.environ, **elsewhere, "ANSIBLE_NOCOLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1500,
        check=False,
    )

    *answers, _rest = re.split(rf"{MARK} (?=\d+\n)", shell.stdout)
    codes = [int(code) for code in re.findall(rf"{MARK} (\d+)", shell.stdout)]
    told = list(zip(commands(), codes, answers, strict=True))
    refused = {command: answer for command, code, answer in told if code != 0}
    assert len(refused) == 2, shell.stdout
    (move, moved), (remove, removed) = refused.items()
    assert "patch novaexternalcompute" in move
    assert "Nova does not move computes between cells" in moved
    assert "edpm.services.remove" in remove
    assert "1 server" in removed
    computes = [answer for command, _code, answer in told if command.endswith("cloud computes")]
    assert "edpm-compute" not in computes[0]
    for number, cell in enumerate(("cell1", "cell2")):
        assert re.search(rf"^edpm-compute-{number} +{cell} +up +enabled +QEMU$", computes[1], re.MULTILINE), computes
    domains = [answer for command, _code, answer in told if command.endswith("virsh list")]
    assert len(set(domains)) == 1, "the server runs on"
    assert re.search(r"instance-\d+ +running", domains[0]), domains
    deployed = [answer for command, _code, answer in told if "edpm.services.deploy" in command]
    summaries = [re.findall(r"^\d nodes? changed, \d unchanged.* · \d+ restarts?", one, re.M) for one in deployed]
    assert [one[0].split(" · ")[1] for one in summaries] == ["4 restarts", "1 restart", "0 restarts"]
    assert "12 created" in shell.stdout
    assert "26 definitions: 26 unchanged." in shell.stdout
