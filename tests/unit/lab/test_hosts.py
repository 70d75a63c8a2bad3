# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from edpm_lab import hosts
from edpm_lab.labs import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab("quiet", tmp_path, kept=False)


def names(lab: Lab) -> dict[str, str]:
    lines = [line.split() for line in (lab.folder / "hosts").read_text().splitlines()]
    return {name: address for address, *found in lines for name in found}


def test_a_name_that_comes_later_is_added_to_the_file_that_is_mounted_already(lab: Lab) -> None:
    mounted = hosts.mounted(lab)[-1].partition(":")[0]
    inode = Path(mounted).stat().st_ino
    hosts.remember(lab, {"edpm-compute-0": "10.0.0.10"})
    hosts.remember(lab, {"edpm-compute-1": "10.0.0.11"})
    assert Path(mounted).stat().st_ino == inode
    assert {"edpm-compute-0": "10.0.0.10", "edpm-compute-1": "10.0.0.11"}.items() <= names(lab).items()


def test_a_name_whose_address_changes_has_the_new_one_only(lab: Lab) -> None:
    hosts.remember(lab, {"a-long-name": "10.0.0.100", "b": "10.0.0.5"})
    hosts.remember(lab, {"a-long-name": "10.0.0.1"})
    assert (lab.folder / "hosts").read_text().splitlines()[2:] == ["10.0.0.1 a-long-name", "10.0.0.5 b"]


def test_names_that_come_at_once_are_all_kept(lab: Lab) -> None:
    wanted = {f"node-{number}": f"10.0.0.{number}" for number in range(1, 40)}
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(hosts.remember, lab, {name: address}) for name, address in wanted.items()]:
            done.result()
    assert wanted.items() <= names(lab).items()


def test_every_machine_knows_itself(lab: Lab) -> None:
    hosts.remember(lab, {})
    assert names(lab)["localhost"] in ("127.0.0.1", "::1")
