# SPDX-License-Identifier: GPL-3.0-or-later
"""What operators and deployers write about a lab, and how it gets into a cluster; nothing of it runs here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from edpm_lab import cloud_manifests, data_plane, servers
from edpm_lab.access import Access
from edpm_lab.cloud import Cloud
from edpm_lab.cloud_settings import Passwords, Site
from edpm_lab.data_plane import DataPlane
from edpm_lab.errors import LabError
from edpm_lab.labs import Lab

SITE = Site("10.213.7.3", Passwords.new())


class Kubectl:
    """Remembers what kubectl was asked for."""

    def __init__(self) -> None:
        self.calls: list[tuple[tuple[str, ...], str | None]] = []

    def kubectl(self, *words: str, stdin: str | None = None, **_rest: Any) -> None:
        self.calls.append((words, stdin))


class TwoNodes:
    """The nodes of a lab without the lab."""

    def __init__(self, lab: Lab) -> None:
        self.private_key = lab.folder / "key"
        self.private_key.write_text("private")

    def address(self, name: str) -> str:
        return {"a": "10.0.0.10", "b": "10.0.0.11"}[name]

    def inventory(self) -> str:
        return yaml.safe_dump({"all": {"vars": {"ansible_user": "root", "ansible_ssh_common_args": "-F none"}}})


@pytest.fixture
def plane(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DataPlane:
    monkeypatch.setattr(data_plane, "Nodes", TwoNodes)
    for name in ("id_migration", "id_migration.pub"):
        (tmp_path / name).write_text("key")
    return DataPlane(Lab("lab", tmp_path, kept=False), {"a": "cell1", "b": ""}, snippets={"a": "[DEFAULT]\n"})


def test_a_status_is_written_after_its_object_as_a_controller_does() -> None:
    server = Kubectl()
    cloud_manifests.apply(cast(Access, server), cloud_manifests.manifests(SITE))
    (words, text), *patches = server.calls
    assert words[0] == "apply"
    applied = list(yaml.safe_load_all(text or ""))
    assert applied[0] == {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "openstack"}}
    assert not any("status" in one for one in applied)
    assert [words[3:5] for words, _text in patches] == [
        ("nova", "nova"),
        ("novacell", "nova-cell1"),
        ("novacell", "nova-cell2"),
    ]
    assert all("--subresource=status" in words for words, _text in patches)
    assert json.loads(patches[0][0][-1])["status"]["conditions"][0]["type"] == "Ready"


def test_a_node_is_in_its_cell_or_in_none(plane: DataPlane) -> None:
    nodes = {one["metadata"]["name"]: one for one in plane.manifests() if one["kind"] == "OpenStackDataPlaneNode"}
    cells = {name: one["metadata"]["annotations"]["nova.openstack.org/cell"] for name, one in nodes.items()}
    assert cells == {"a": "nova-cell1", "b": ""}
    assert nodes["b"]["spec"]["ansibleHost"] == "10.0.0.11"


def test_it_is_one_file_that_only_its_owner_reads(plane: DataPlane, tmp_path: Path) -> None:
    path = plane.write(tmp_path / "site")
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(yaml.safe_load_all(path.read_text())) == plane.manifests()


def test_a_guest_is_heard_when_it_got_its_metadata_after_a_moment_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    told = "GUEST metadata at 9: none\r\nGUEST metadata at 12: one\r\nGUEST metadata at 30: two\r\n"
    monkeypatch.setattr(Cloud, "openstack", lambda *_words: {"output": told})
    cloud = object.__new__(Cloud)
    assert servers.metadata(cloud, "uuid") == (12, "one")
    assert servers.metadata(cloud, "uuid", after=12) == (30, "two")
    assert servers.uptime(cloud, "uuid") == 30
    monkeypatch.setattr(servers, "_BOOT_LIMIT", 0)
    with pytest.raises(LabError, match="got no metadata"):
        servers.metadata(cloud, "uuid", after=30)
