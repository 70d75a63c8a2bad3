"""A snapshot out of manifests, and what a process keeps of it."""

from __future__ import annotations

import base64
import gc
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.model import Reference
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.plan import resolve
from ansible_collections.edpm.services.plugins.plugin_utils._kube import manifests, snapshot
from ansible_collections.edpm.services.plugins.plugin_utils._kube.connection import Settings
from ansible_collections.edpm.services.plugins.plugin_utils._kube.errors import BadManifestError, KubernetesError
from ansible_collections.edpm.services.plugins.plugin_utils._kube.snapshot import NotTakenError, Source

from .worlds import COMPUTE_CONFIG, DATAPLANE, ROLE, WORLD, Body, from_manifests, node, thing, write

TUTORIAL = Path(__file__).parents[3] / "docs" / "tutorial" / "manifests"


@pytest.fixture(autouse=True)
def _nothing_taken() -> Iterator[None]:
    snapshot.forget()
    yield
    snapshot.forget()


def test_the_tutorials_manifests_give_a_plan_for_each_of_its_nodes() -> None:
    plan = resolve(from_manifests(TUTORIAL))
    assert [(one.name, one.cell, one.ready) for one in plan.nodes] == [
        ("edpm-compute-0", "nova-cell1", True),
        ("edpm-compute-1", "nova-cell2", True),
    ]


def test_only_secrets_that_something_names_are_kept(tmp_path: Path) -> None:
    assert list(from_manifests(write(tmp_path / "m", *WORLD)).stores) == [COMPUTE_CONFIG]


def test_data_stringdata_and_binarydata_are_all_contents(tmp_path: Path) -> None:
    encoded = base64.b64encode(b"\xff\x00").decode()
    service = thing(
        DATAPLANE,
        "OpenStackDataPlaneService",
        "nova",
        spec={"dataSources": [{"configMapRef": {"name": "extra"}}, {"secretRef": {"name": "more"}}]},
    )
    config_map = thing("v1", "ConfigMap", "extra", data={"a.conf": "[a]\n"}, binaryData={"provider1.yaml": encoded})
    secret = thing("v1", "Secret", "more", data={"b.conf": encoded}, stringData={"c.conf": "[c]\n"})
    found = from_manifests(write(tmp_path / "m", *WORLD, service, config_map, secret)).stores
    assert found[Reference("ConfigMap", "openstack", "extra")].data == {
        "a.conf": b"[a]\n",
        "provider1.yaml": b"\xff\x00",
    }
    assert found[Reference("Secret", "openstack", "more")].data == {"b.conf": b"\xff\x00", "c.conf": b"[c]\n"}


def test_folders_files_lists_and_json_all_give_the_same_snapshot(tmp_path: Path) -> None:
    whole = from_manifests(write(tmp_path / "one", *WORLD))
    for number, body in enumerate(WORLD):
        write(tmp_path / "many", body, name=f"{number}.yml")
    listed = {"apiVersion": "v1", "kind": "List", "items": WORLD}
    (tmp_path / "list.json").write_text(json.dumps(listed, indent=1))
    (tmp_path / "deep").mkdir()
    write(tmp_path / "deep" / "er", *WORLD)
    assert from_manifests(tmp_path / "many") == whole
    assert from_manifests(*sorted((tmp_path / "many").iterdir())) == whole
    assert from_manifests(tmp_path / "list.json") == whole
    assert from_manifests(tmp_path / "deep") == whole


def test_a_dash_is_standard_input_read_once_and_for_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    manifests._standard_input.cache_clear()
    piped = SimpleNamespace(buffer=io.BytesIO(yaml.safe_dump_all(WORLD).encode()), isatty=lambda: False)
    monkeypatch.setattr(sys, "stdin", piped)
    source = Source.from_options({"manifests": ["-"]}, tmp_path)
    assert snapshot.take(source) == snapshot.take(source) == from_manifests(write(tmp_path / "m", *WORLD))
    manifests._standard_input.cache_clear()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    with pytest.raises(BadManifestError, match=r"no manifests on standard input; pipe them in"):
        snapshot.take(source)


def test_a_fault_on_standard_input_is_named_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    manifests._standard_input.cache_clear()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"\nhello\n"), isatty=lambda: False))
    with pytest.raises(BadManifestError, match=r"^The document at standard input:2 is not a Kubernetes object"):
        snapshot.read(Source(manifests=("-",)))
    manifests._standard_input.cache_clear()


def test_a_kustomization_among_the_manifests_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path / "m", *WORLD)
    (tmp_path / "m" / "kustomization.yaml").write_text("apiVersion: kustomize.config.k8s.io/v1beta1\nresources: [a]\n")
    assert from_manifests(tmp_path / "m") == from_manifests(tmp_path / "m" / "all.yaml")


def test_other_namespaces_are_passed_over(tmp_path: Path) -> None:
    folder = write(tmp_path / "m", *WORLD, node("far-0", "elsewhere"))
    names = [one.name for one in from_manifests(folder, namespaces=("openstack",)).resources.nodes]
    assert names == ["edpm-compute-0"]
    assert [one.name for one in from_manifests(folder).resources.nodes] == ["far-0", "edpm-compute-0"]


def test_objects_without_a_namespace_are_in_the_only_one_that_is_asked_for(tmp_path: Path) -> None:
    folder = write(tmp_path / "m", node(namespace=None))
    assert from_manifests(folder).resources.nodes[0].namespace == "default"
    assert from_manifests(folder, namespaces=("openstack",)).resources.nodes[0].namespace == "openstack"


@pytest.mark.parametrize(
    "other",
    [node(namespace=None), node() | {"apiVersion": "dataplane.openstack.org/v1"}],
    ids=["a namespace left out", "another version"],
)
def test_the_same_object_twice_is_an_error_that_names_both_places(tmp_path: Path, other: Body) -> None:
    write(tmp_path / "m", node(), name="a.yaml")
    write(tmp_path / "m", ROLE, other, name="b.yaml")
    with pytest.raises(BadManifestError, match=r"edpm-compute-0 is in .*a\.yaml:1 and in .*b\.yaml:\d+; remove one"):
        from_manifests(tmp_path / "m", namespaces=("openstack",))


def test_relative_paths_begin_at_the_inventory_and_variables_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPOSITORY", "/srv/git")
    monkeypatch.setenv("HOME", "/home/someone")
    options = {"manifests": ["m", "../n", "/abs", "~/o", "$REPOSITORY/p", "-"]}
    assert Source.from_options(options, "/inv").manifests == (
        "/inv/m",
        "/inv/../n",
        "/abs",
        "/home/someone/o",
        "/srv/git/p",
        "-",
    )


def test_the_environments_images_are_part_of_the_snapshot(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RELATED_IMAGE_NOVA_COMPUTE_IMAGE_URL_DEFAULT", "example.com/nova-compute:30")
    monkeypatch.setenv("RELATED_IMAGE_NOVA_LIBVIRT_IMAGE_URL_DEFAULT", "")
    images = from_manifests(write(tmp_path / "m", *WORLD)).images
    assert images["RELATED_IMAGE_NOVA_COMPUTE_IMAGE_URL_DEFAULT"] == "example.com/nova-compute:30"
    assert "RELATED_IMAGE_NOVA_LIBVIRT_IMAGE_URL_DEFAULT" not in images
    assert not any(name.startswith("PATH") for name in images)


def test_what_the_parent_has_taken_every_fork_has(tmp_path: Path) -> None:
    assert snapshot.taken() is None
    taken = snapshot.take(Source(manifests=(str(write(tmp_path / "m", *WORLD)),)))
    child = os.fork()
    if child == 0:
        os._exit(0 if snapshot.taken() is taken and len(snapshot.plan().nodes) == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_what_is_taken_is_frozen_for_the_garbage_collector_which_goes_on(tmp_path: Path) -> None:
    gc.unfreeze()
    snapshot.take(Source(manifests=(str(write(tmp_path / "m", *WORLD)),)))
    assert gc.get_freeze_count() > 0
    assert gc.isenabled()


def test_taking_again_reads_anew(tmp_path: Path) -> None:
    source = Source(manifests=(str(write(tmp_path / "m", *WORLD)),))
    snapshot.take(source)
    write(tmp_path / "m", node("edpm-compute-9"), name="more.yaml")
    snapshot.take(source)
    assert [one.name for one in snapshot.plan().nodes] == ["edpm-compute-0", "edpm-compute-9"]


def test_a_second_source_in_one_run_is_refused(tmp_path: Path) -> None:
    snapshot.take(Source(manifests=(str(write(tmp_path / "m", *WORLD)),)))
    with pytest.raises(NotTakenError, match="a run deploys one data plane; name all manifests or namespaces in one"):
        snapshot.take(Source(settings=Settings(kubeconfig={"clusters": []})))
    assert len(snapshot.plan().nodes) == 1


def test_without_a_snapshot_the_plan_says_what_to_do() -> None:
    with pytest.raises(NotTakenError, match=r"No data plane was read in this run; name an inventory .* with -i"):
        snapshot.plan()


def test_an_attempt_that_fails_is_remembered_until_it_succeeds(tmp_path: Path) -> None:
    source = Source(manifests=(str(tmp_path / "m"),))
    with pytest.raises(KubernetesError), snapshot.attempt("a.dataplane.yml"):
        snapshot.take(source)
    sentence = f"The manifest {tmp_path}/m cannot be read: No such file or directory; correct the path."
    assert snapshot.failure() == sentence
    assert snapshot.taken() is None
    with pytest.raises(NotTakenError) as caught:
        snapshot.plan()
    assert str(caught.value) == sentence
    write(tmp_path / "m", *WORLD)
    with snapshot.attempt("a.dataplane.yml"):
        snapshot.take(source)
    assert snapshot.failure() is None
    assert len(snapshot.plan().nodes) == 1


def test_neither_kubernetes_nor_oslo_is_imported_for_manifests(tmp_path: Path) -> None:
    write(tmp_path / "m", *WORLD)
    code = (
        "import sys\n"
        "from ansible_collections.edpm.services.plugins.plugin_utils._kube import snapshot\n"
        f"snapshot.take(snapshot.Source(manifests=({str(tmp_path / 'm')!r},)))\n"
        "sys.exit(any(name in sys.modules for name in ('kubernetes', 'oslo_config')))\n"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
