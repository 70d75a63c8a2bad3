"""Objects out of files and folders."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._kube.errors import BadManifestError
from ansible_collections.edpm.services.plugins.plugin_utils._kube.manifests import load

CELL = "apiVersion: nova.openstack.org/v1beta1\nkind: NovaCell\nmetadata: {name: nova-cell1, namespace: openstack}\n"
ROLE = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: reader}\n"


def test_a_folder_is_read_in_the_order_of_its_files_names_with_all_documents_and_lists(tmp_path: Path) -> None:
    (tmp_path / "deeper").mkdir()
    (tmp_path / "b.yml").write_text(f"{CELL}---\n---\n{ROLE}")
    (tmp_path / "a.json").write_text(
        '{"kind": "List", "apiVersion": "v1", "items":'
        ' [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one"}}]}'
    )
    (tmp_path / "deeper" / "c.yaml").write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: openstack}\n")
    (tmp_path / "notes.txt").write_text("not read")
    found = load([tmp_path])
    assert [str(manifest) for manifest in found] == [
        "Secret one",
        "NovaCell openstack/nova-cell1",
        "ClusterRole reader",
        "Namespace openstack",
    ]
    assert found[2].source == f"{tmp_path}/b.yml:6"
    assert found[1].api_version == "nova.openstack.org/v1beta1"


def test_values_keep_their_types_and_a_date_is_text(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(f'{CELL}spec: {{port: 22, size: "24", since: 2026-11-15}}')
    assert load([tmp_path])[0].body["spec"] == {"port": 22, "size": "24", "since": "2026-11-15"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [1,\n", "a.yaml:2 is not YAML: "),
        (f"{CELL}---\n- 1\n", "a.yaml:5 is not a Kubernetes object but a list"),
        ("hello\n", "a.yaml:1 is not a Kubernetes object but text"),
        ("kind: Node\nmetadata: {name: a}\n", "a.yaml:1 has no apiVersion; add it"),
        ("apiVersion: v1\nkind: Node\nmetadata: {}\n", "a.yaml:1 has no metadata.name; add it"),
        ("apiVersion: v1\nkind: Node\nmetadata: {name: 7}\n", "a.yaml:1 has no metadata.name; add it"),
        (CELL + "---\n" + CELL, "NovaCell openstack/nova-cell1 is in "),
        ("\x00", "a.yaml is not YAML: "),
    ],
)
def test_a_file_that_holds_no_objects_is_named_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(BadManifestError) as caught:
        load([tmp_path])
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadManifestError, match=r"nowhere\.yaml cannot be read: No such file or directory"):
        load([tmp_path / "nowhere.yaml"])
