# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the programs of a cluster come from. Nothing is compiled here: a stand-in takes the place of Go."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from edpm_lab import binaries as lab_binaries
from edpm_lab import places
from edpm_lab.binaries import API, GROUPS, binaries
from edpm_lab.errors import LabError


@pytest.fixture
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a machine that has none of the programs."""
    monkeypatch.setenv("EDPM_LAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def go(cache_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:  # noqa: ARG001 - PATH is set after it
    """A Go that writes the name of what it builds, and fails at the package that the file `broken` names."""
    root = tmp_path / "goroot"
    (root / "bin").mkdir(parents=True)
    program = root / "bin" / "go"
    program.write_text(
        "#!/bin/sh\nPATH=/usr/bin:/bin\n"
        f'case "$1 $2" in "env GOVERSION") echo go1.99.0; exit;; "env GOROOT") echo {root}; exit;; esac\n'
        'while [ "$1" != -o ]; do shift; done\n'
        f'if [ "$3" = "$(cat {tmp_path}/broken 2>/dev/null)" ]; then echo cannot find "$3"; exit 1; fi\n'
        'mkdir -p "$GOMODCACHE"; echo "$3" > "$2"; chmod +x "$2"; echo "$3" >> ' + f"{tmp_path}/built\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(root / "bin"))
    return program


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_kubebuilder_assets_come_first(cache_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {name: executable(tmp_path / "assets" / name) for name in API.names}
    executable(tmp_path / "bin" / "etcd")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    assert binaries(*API.names) == given
    assert not cache_folder.exists()


def test_path_serves_where_the_assets_lack_one(
    cache_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executable(tmp_path / "assets" / "etcd")
    on_path = {name: executable(tmp_path / "bin" / name) for name in API.names}
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    assert binaries(*API.names) == on_path
    assert not cache_folder.exists()


def test_programs_of_two_places_are_not_mixed(cache_folder: Path, go: Path) -> None:
    executable(go.parent / "etcd")

    found = binaries(*API.names)

    assert {place.parent.parent for place in found.values()} == {cache_folder}


def test_a_command_that_shares_its_name_with_a_cni_plugin_is_not_taken_for_it(cache_folder: Path, go: Path) -> None:
    executable(go.parent / "bridge")

    assert cache_folder in binaries("cni/bridge")["cni/bridge"].parents


@pytest.mark.usefixtures("go")
def test_what_is_built_once_is_not_built_again(tmp_path: Path) -> None:
    first = binaries("kubectl")
    second = binaries("etcd", "kubectl")

    assert second["kubectl"] == first["kubectl"]
    assert (tmp_path / "built").read_text().split().count("k8s.io/kubernetes/cmd/kubectl") == 1


@pytest.mark.usefixtures("go")
def test_a_build_that_fails_half_way_leaves_nothing_that_is_believed(cache_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "broken").write_text("k8s.io/kubernetes/cmd/kubectl")
    with pytest.raises(LabError, match=r"cannot find k8s\.io/kubernetes/cmd/kubectl"):
        binaries(*API.names)
    assert not list(cache_folder.glob("kube-api*"))

    (tmp_path / "broken").unlink()
    assert binaries("kubectl")["kubectl"].read_text().strip() == "k8s.io/kubernetes/cmd/kubectl"


@pytest.mark.usefixtures("go")
def test_sources_stay_until_everything_is_built(cache_folder: Path) -> None:
    for group in GROUPS[:-1]:
        binaries(*group.names)
    assert (cache_folder / "go-work").is_dir()

    binaries(*GROUPS[-1].names)
    assert not (cache_folder / "go-work").exists()


def test_an_unknown_program_is_refused_by_its_name() -> None:
    with pytest.raises(LabError, match="does not build minikube"):
        binaries("kubectl", "minikube")


@pytest.mark.usefixtures("go")
def test_a_changed_module_is_built_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = binaries("pause")["pause"]
    shutil.copytree(places.SOURCE / "kube", tmp_path / "source" / "kube")
    monkeypatch.setattr(places, "SOURCE", tmp_path / "source")
    assert binaries("pause")["pause"] == before

    (tmp_path / "source" / "kube" / "pause" / "main.go").write_text("package main\n")

    assert binaries("pause")["pause"] != before


@pytest.mark.usefixtures("go")
def test_too_little_space_is_told_before_anything_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2**20))

    with pytest.raises(LabError, match="building pause needs 1 GiB"):
        binaries("pause")
    assert not (tmp_path / "built").exists()


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_every_programs_package_is_pinned_in_its_module(group: lab_binaries.Group) -> None:
    for program in group.programs:
        module = places.SOURCE / "kube" / program.module
        assert (module / "go.mod").is_file()
        if program.package != ".":
            assert f'"{program.package}"' in (module / "tools.go").read_text()


def test_the_go_that_would_be_fetched_is_new_enough_for_every_module() -> None:
    fetched = lab_binaries._version(lab_binaries.GO_PACKAGE)

    for group in GROUPS:
        for program in group.programs:
            assert lab_binaries._go_directive(places.SOURCE / "kube" / program.module) <= fetched
