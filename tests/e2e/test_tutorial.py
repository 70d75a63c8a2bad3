# SPDX-License-Identifier: GPL-3.0-or-later
"""The tutorial's commands, typed one after the other into one shell, do what the tutorial says."""

from __future__ import annotations

import os
import re
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


def test_every_command_of_the_tutorial_works_as_it_is_written(elsewhere: dict[str, str]) -> None:
    podman.containers_work()
    script = "".join(f"{command}\necho {MARK} $?\n" for command in commands())

    shell = subprocess.run(
        ["bash"],
        input=script,
        cwd=TREE,
        env={**os.environ, **elsewhere, "ANSIBLE_NOCOLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )

    *answers, _rest = re.split(rf"{MARK} (?=\d+\n)", shell.stdout)
    codes = [int(code) for code in re.findall(rf"{MARK} (\d+)", shell.stdout)]
    told = dict(zip(commands(), zip(codes, answers, strict=True), strict=True))
    refused = {command: answer for command, (code, answer) in told.items() if code != 0}
    assert len(refused) == 1, refused
    [(move, answer)] = refused.items()
    assert "patch novaexternalcompute" in move
    assert "Nova does not move computes between cells" in answer
    assert "12 created" in shell.stdout
    assert "26 definitions: 26 unchanged." in shell.stdout
    assert re.search(r"^edpm-compute-0 +edpm-compute-0 +nova-cell1", shell.stdout, re.MULTILINE), shell.stdout
