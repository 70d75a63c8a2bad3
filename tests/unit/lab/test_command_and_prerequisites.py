# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that fail, hang or are missing are told about in one sentence."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from edpm_lab import cli, command, prerequisites
from edpm_lab.errors import LabError, NotOnThisHost
from edpm_lab.prerequisites import Tool

NOWHERE = Tool("no-such-program", "no-such-package")


def test_a_failure_is_told_with_its_code_and_last_lines() -> None:
    with pytest.raises(LabError, match=r"^sh -c .* failed \(3\): first / last$"):
        command.run(["sh", "-c", "echo first >&2; echo last >&2; exit 3"])


def test_a_failure_that_went_to_a_log_says_where_the_log_is(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=rf"\(all of it is in {tmp_path}/log\)$"):
        command.run(["sh", "-c", "exit 1"], log=tmp_path / "log")


def test_a_full_disk_in_a_programs_output_is_said_as_such() -> None:
    with pytest.raises(LabError, match=r"^the disk is full while .*; free some space and run it again$"):
        command.run(["sh", "-c", "echo 'write x: No space left on device' >&2; exit 1"])


def test_a_program_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="did not end within 1 s"):
        command.run(["sh", "-c", f"sleep 300 & echo $! > {tmp_path}/child; wait"], timeout=1)
    child = int((tmp_path / "child").read_text())
    limit = time.monotonic() + 5
    while Path(f"/proc/{child}/cmdline").exists() and Path(f"/proc/{child}/cmdline").read_bytes():
        assert time.monotonic() < limit
        time.sleep(0.02)


def test_a_program_dies_with_the_process_that_ran_it(tmp_path: Path) -> None:
    program = f"from edpm_lab.command import run; run(['sh', '-c', 'echo $$ > {tmp_path}/pid; exec sleep 300'])"
    with subprocess.Popen([sys.executable, "-c", program]) as parent:
        limit = time.monotonic() + 20
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            assert time.monotonic() < limit
            time.sleep(0.02)
        child = int((tmp_path / "pid").read_text())
        parent.kill()
    while Path(f"/proc/{child}/cmdline").exists() and Path(f"/proc/{child}/cmdline").read_bytes():
        assert time.monotonic() < limit
        time.sleep(0.02)


def test_a_missing_program_is_named() -> None:
    with pytest.raises(LabError, match="no-such-program is not there; is it installed"):
        command.run(["no-such-program"])


def test_without_root_a_missing_tool_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prerequisites, "is_root", lambda: False)
    with pytest.raises(LabError, match=r"^nodes needs no-such-program: install no-such-package \(as root on Debian"):
        prerequisites.require("nodes", Tool("sh", "dash"), NOWHERE)


def test_as_root_on_debian_a_missing_tool_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(prerequisites, "is_root", lambda: True)
    monkeypatch.setattr(prerequisites, "is_debian", lambda: True)
    monkeypatch.setattr(prerequisites, "run", lambda argv, **_: asked.append(argv))
    with pytest.raises(LabError, match="which installing no-such-package did not bring"):
        prerequisites.require("nodes", NOWHERE)
    assert [argv[-1] for argv in asked] == ["-qq", "no-such-package"]


def test_what_is_there_is_not_installed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prerequisites, "run", lambda *_, **__: pytest.fail("nothing was missing"))
    prerequisites.require("anything", Tool("sh", "dash"))


def test_without_root_nodes_are_not_for_this_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prerequisites, "is_root", lambda: False)
    monkeypatch.setenv("USER", "someone")
    with pytest.raises(NotOnThisHost, match=r"^nodes needs root, and this is the user someone$"):
        prerequisites.require_root("nodes")


def test_the_command_line_tells_a_fault_in_one_line_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["ssh", "--name", "none", "edpm-compute-0"]) == 1
    shown = capsys.readouterr().err
    assert shown == "edpm-lab: no lab none runs; start one with: edpm-lab up 2 --name none\n"


def test_a_list_without_labs_says_how_to_start_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list"]) == 0
    assert capsys.readouterr().out == "no lab runs; start one with: edpm-lab up 2\n"
    assert cli.main(["list", "--json"]) == 0
    assert capsys.readouterr().out == "[]\n"


def test_building_what_is_unknown_names_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["build", "minikube"]) == 1
    assert "there is no minikube to build; there are api, cluster, images" in capsys.readouterr().err
