# SPDX-License-Identifier: GPL-3.0-or-later
"""What is on the platter when, and how often the disk is waited for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import Bundle, File, Image
from ansible_collections.edpm.services.plugins.module_utils._node.disk import Disk, New
from ansible_collections.edpm.services.plugins.module_utils._node.errors import DiskFault
from ansible_collections.edpm.services.plugins.module_utils._node.generations import Home
from ansible_collections.edpm.services.plugins.module_utils._node.record import Places, contents, recorded

from .programs import IMAGE


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What is brought to the platter and renamed, in order."""
    found: list[str] = []
    replace = Path.replace

    def renamed(self: Path, target: Path) -> Path:
        found.append(f"rename {target.name}")
        return replace(self, target)

    def fsync(number: int) -> None:
        path = Path(f"/proc/self/fd/{number}").readlink()
        found.append(f"sync {path.relative_to(tmp_path)}")

    monkeypatch.setattr(Path, "replace", renamed)
    monkeypatch.setattr("os.fsync", fsync)
    return found


def test_a_file_is_on_the_platter_before_it_gets_its_name_and_its_name_is_there_too(
    steps: list[str], tmp_path: Path
) -> None:
    Disk().write(tmp_path / "a", b"1", 0o640)
    assert steps == ["sync .a.edpm-new", "rename a", "sync ."]
    assert ((tmp_path / "a").read_bytes(), (tmp_path / "a").stat().st_mode & 0o777) == (b"1", 0o640)


def test_of_many_files_none_gets_its_name_before_all_are_on_the_platter_and_a_folder_is_waited_for_once(
    steps: list[str], tmp_path: Path
) -> None:
    (tmp_path / "b").mkdir()
    Disk().write_all([New(tmp_path / name, b"1") for name in ("b/1", "b/2", "3")])
    assert steps == [
        *("sync b/.1.edpm-new", "sync b/.2.edpm-new", "sync .3.edpm-new"),
        *("rename 1", "rename 2", "rename 3", "sync b", "sync ."),
    ]


def test_all_that_is_staged_is_waited_for_once_and_before_it_becomes_a_generation(
    steps: list[str], tmp_path: Path
) -> None:
    places = Places(root=tmp_path)
    home = Home(Disk(), places, "nova_compute")
    bundle = Bundle("nova_compute", "a" * 64, Image(IMAGE), {}, (File("conf.d/1", b"1"), File("conf.d/2", b"2")))
    files = contents(bundle, home.folder)
    record = recorded(bundle, files, places)
    home.stage(files, record)
    home.adopt(record)
    staged = steps[steps.index("sync nova_compute") + 1 : -2]
    folder = "sync nova_compute/generations/.staging"
    assert sorted(staged) == [
        folder,
        *(f"{folder}/{name}" for name in ("bundle.json", "conf.d", "conf.d/1", "conf.d/2")),
    ]
    assert steps[-2:] == [f"rename {bundle.digest}", "sync nova_compute/generations"]


def test_of_many_files_nothing_is_left_when_one_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"0")
    with pytest.raises(DiskFault):
        Disk().write_all([New(tmp_path / "a", b"1"), New(tmp_path / "no/b", b"1")])
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("a", b"0")]


def test_a_pipe_in_a_files_place_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    Disk().settle(tmp_path / "pipe")


def test_a_units_folder_of_drop_ins_goes_with_its_last_file_and_no_other_folder_does(tmp_path: Path) -> None:
    ours = tmp_path / "libvirtd.service.d/edpm.conf"
    shared, systems = tmp_path / "sshd.service.d/edpm.conf", tmp_path / "sysctl.d/edpm.conf"
    settings = tmp_path / "nova.conf.d/edpm.conf"
    for one in (ours, shared, shared.with_name("theirs.conf"), systems, settings):
        one.parent.mkdir(exist_ok=True)
        one.write_text("x")
    for one in (ours, shared, systems, settings):
        Disk().take(one)
    assert sorted(str(one.relative_to(tmp_path)) for one in tmp_path.rglob("*")) == [
        *("nova.conf.d", "sshd.service.d", "sshd.service.d/theirs.conf", "sysctl.d")
    ]
