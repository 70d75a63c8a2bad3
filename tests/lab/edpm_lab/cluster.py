# SPDX-License-Identifier: GPL-3.0-or-later
"""A whole Kubernetes cluster that runs pods, in one system container beside the EDPM nodes.

The container sees the lab's folder and the programs at the paths that they have on the host, so one
command line serves both. Its first process starts each component again when it dies. The kubelet needs
the host's cgroups; which of them are its pods' is known in the lab's folder, so that they go with the lab.
Names of services are not resolved: pods find the API server by the address in their environment.
"""

from __future__ import annotations

import os
import shlex
import shutil
import tarfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from . import cache, images, labs, places, podman
from .access import OwnAccess
from .binaries import API, NODE, RUNTIME, binaries
from .components import NAME, SOCKET, STATE, commands, create_identities, write_settings
from .control_plane import ControlPlane, last_lines
from .errors import LabError
from .labs import Lab
from .progress import say, step

#: The cluster's place in the lab's network.
ADDRESS_NUMBER = 2

#: Seconds until a cluster that does not get ready is given up; it takes twenty on an idle machine.
READY_WITHIN = 150.0

_CGROUPS = Path("/sys/fs/cgroup")

#: Starts what `$1` names whenever it ends; dumb-init, above, collects what components leave behind.
_FIRST_PROCESS = """mount --make-rshared /
for command in "$1"/*; do
    name=${command##*/}
    while :; do
        sh "$command" >> "$2/$name.log" 2>&1
        echo "$name ended ($?), starting it again" >> "$2/$name.log"
        sleep 1
    done &
done
wait"""


@dataclass(frozen=True)
class Cluster(OwnAccess):
    """A cluster of a lab; as a context manager it is removed at the end, else it ends with its lab."""

    lab: Lab
    address: str

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def logs(self) -> Path:
        """A folder with what each component prints."""
        return self.folder / "logs"

    def load(self, reference: str) -> None:
        """Give an image of the lab's podman to the cluster, where pods use it with `imagePullPolicy: Never`."""
        archive = self.folder / f"{cache.digest({'reference': reference})}.tar"
        try:
            podman.run("save", "--quiet", "--output", archive, reference, timeout=600)
            ctr = binaries(*RUNTIME.names)["ctr"]
            self._inside(ctr, "--address", SOCKET, "--namespace", "k8s.io", "images", "import", archive, timeout=600)
        finally:
            archive.unlink(missing_ok=True)

    def stop(self) -> None:
        """Remove the cluster with all that ran in it."""
        podman.run("rm", "--force", "--ignore", "--time", "0", "--volumes", _container(self.lab.name), timeout=120)
        remove_cgroups(self.lab.name)

    def _inside(self, *words: str | Path, timeout: float = 60) -> None:
        podman.execute(_container(self.lab.name), *words, timeout=timeout)

    def _wait(self) -> None:
        """Wait until pods can be created and will be run."""
        limit = time.monotonic() + READY_WITHIN
        self._wait_for("the API server", "kube-apiserver", limit, lambda: self._answers("get", "--raw", "/readyz"))
        self._let_the_server_reach_the_kubelet()
        self._wait_for("containerd", "containerd", limit, self._has_containerd)
        self.load(pause_image())
        self._wait_for("the node", "kubelet", limit, self._has_a_node)
        account = ("get", "serviceaccount", "default")
        self._wait_for("accounts", "kube-controller-manager", limit, lambda: self._answers(*account))

    def _wait_for(self, what: str, component: str, limit: float, condition: Callable[[], bool]) -> None:
        while not condition():
            if time.monotonic() > limit:
                raise LabError(
                    f"{what} of the cluster was not ready within {READY_WITHIN:.0f} s: "
                    f"{last_lines(self.logs / f'{component}.log')}"
                )
            time.sleep(0.3)

    def _answers(self, *words: str) -> bool:
        return self.kubectl(*words, "--request-timeout=5s", check=False).returncode == 0

    def _has_containerd(self) -> bool:
        ctr = binaries(*RUNTIME.names)["ctr"]
        asked = (ctr, "--address", SOCKET, "version")
        return podman.execute(_container(self.lab.name), *asked, check=False).returncode == 0

    def _has_a_node(self) -> bool:
        ready = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'
        return self.kubectl("get", "node", NAME, "-o", ready, check=False).stdout == "True"

    def _let_the_server_reach_the_kubelet(self) -> None:
        """Logs and exec go from the API server to the kubelet, which asks RBAC whether it may."""
        role, user = "--clusterrole=system:kubelet-api-admin", "--user=kube-apiserver-kubelet-client"
        self.kubectl("create", "clusterrolebinding", "kube-apiserver-kubelet-client", role, user)


def cluster(lab: Lab) -> Cluster:
    """Start a cluster with empty data in `lab`; the start is tried again once."""
    if (running := found_cluster(lab)) is not None:
        raise LabError(f"the lab {lab.name} already runs a cluster at {running.url}; take it down first")
    podman.containers_work()
    programs = {**binaries(*API.names, *NODE.names), **binaries(*RUNTIME.names)}
    image = images.image("node")
    pause_image()
    whole = _at(lab)
    try:
        return _started(whole, programs, image)
    except LabError as error:
        say(f"{error}; trying once more")
    return _started(whole, programs, image)


def found_cluster(lab: Lab) -> Cluster | None:
    """The cluster of a lab, if one runs: for a later process than the one that started it."""
    if not (lab.folder / NAME).is_dir():
        return None
    asked = ("container", "inspect", "--format", "{{.State.Running}}", _container(lab.name))
    return _at(lab) if podman.run(*asked, check=False).stdout.strip() == "true" else None


def pause_image() -> str:
    """The image of the process that holds a pod's namespaces: one static program and nothing else."""
    program = binaries("pause")["pause"]
    reference = f"localhost/edpm-lab/pause:{cache.digest({'program': program.read_bytes()})}"
    if podman.run("image", "exists", reference, check=False).returncode != 0:
        archive = podman.storage().parent / f".pause-{os.getpid()}.tar"
        try:
            with tarfile.open(archive, "w") as tar:
                tar.add(program, "pause", filter=_owned_by_root)
            podman.run("import", "--quiet", "--change", 'ENTRYPOINT ["/pause"]', archive, reference)
        finally:
            archive.unlink(missing_ok=True)
    return reference


def remove_cgroups(lab: str) -> None:
    """Remove the cgroups of a lab's pods that still ran when the cluster went; nobody else's are touched."""
    tasks = _tasks(places.labs() / lab / NAME)
    if not tasks.is_dir():
        return
    known = [task.name for task in tasks.glob("k8s.io/*")]
    for parent in [*_CGROUPS.glob("*/k8s.io"), _CGROUPS / "k8s.io"]:
        for name in known:
            for folder, _, _ in os.walk(parent / name, topdown=False):
                _remove_cgroup(Path(folder))
        with suppress(OSError):
            parent.rmdir()


labs.REMOVERS.append(remove_cgroups)


def _container(lab: str) -> str:
    return f"edpm-{lab}-{NAME}"


def _tasks(folder: Path) -> Path:
    """Where containerd keeps a folder for each container that runs, named like the container's cgroup."""
    return folder / "tasks"


def _remove_cgroup(folder: Path) -> None:
    """The kernel needs a moment to see that the last process of a cgroup is gone."""
    limit = time.monotonic() + 5
    while folder.is_dir():
        try:
            folder.rmdir()
        except OSError:
            if time.monotonic() > limit:
                say(f"the cgroup {folder} is still in use and stays")
                return
            time.sleep(0.05)


def _owned_by_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = "root"
    entry.mode = 0o755
    return entry


def _at(lab: Lab) -> Cluster:
    plane = _plane(lab)
    return Cluster(plane.kubeconfig, plane.url, plane.folder, plane.authority, lab, plane.address)


def _plane(lab: Lab) -> ControlPlane:
    address = podman.network(lab.name).address(ADDRESS_NUMBER)
    return ControlPlane(lab.folder / NAME, address, port=6443, etcd_port=2379)


def _started(whole: Cluster, programs: dict[str, Path], image: str) -> Cluster:
    try:
        with step("the cluster"):
            _begin(whole, programs, image)
            whole._wait()
    except BaseException:
        whole.stop()
        raise
    return whole


def _begin(whole: Cluster, programs: dict[str, Path], image: str) -> None:
    """Write everything that the components read, and start the container."""
    shutil.rmtree(whole.folder, ignore_errors=True)
    whole.folder.mkdir(mode=0o700)
    whole.logs.mkdir()
    _tasks(whole.folder).mkdir()
    plane = _plane(whole.lab)
    plane.create_certificates()
    create_identities(plane)
    write_settings(plane, programs, pause_image())
    (whole.folder / "commands").mkdir()
    for name, command in commands(plane, programs).items():
        (whole.folder / "commands" / name).write_text(f"exec {shlex.join(command)}\n")
    podman.run("rm", "--force", "--ignore", "--time", "0", "--volumes", _container(whole.lab.name), timeout=120)
    podman.run(
        *("run", "--detach", "--name", _container(whole.lab.name), "--hostname", NAME),
        *podman.labels(whole.lab.name),
        *("--privileged", "--cgroupns=host", "--systemd=false", "--volume", f"{_CGROUPS}:{_CGROUPS}:rw"),
        *podman.network(whole.lab.name).at(whole.address),
        *("--tmpfs", "/run:rw,exec,mode=755", "--tmpfs", "/tmp:rw,exec,mode=1777"),
        *("--volume", str(STATE), "--volume", f"{whole.folder}:{whole.folder}"),
        *("--volume", f"{_tasks(whole.folder)}:{STATE}/containerd/io.containerd.runtime.v2.task"),
        *(word for path in programs.values() for word in ("--volume", f"{path}:{path}:ro")),
        *("--env", f"PATH={_path(programs)}"),
        *(image, "/usr/bin/dumb-init", "/bin/sh", "-c", _FIRST_PROCESS),
        *("sh", whole.folder / "commands", whole.logs),
    )


def _path(programs: dict[str, Path]) -> str:
    """containerd finds its shim on PATH."""
    folders = dict.fromkeys(str(path.parent) for path in programs.values())
    return ":".join([*folders, "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"])
