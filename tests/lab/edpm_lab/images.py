# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's images, built from Debian's packages, one of them from Debian's source too, and from nothing else.

An image is a recipe in tests/lab/images: `<name>.packages` (what Debian brings), `<name>.Containerfile`
(what is done with it, on top of its parent) and a folder `<name>` with files. The base has no parent; it
is made by mmdebstrap from the host's own apt sources, turned to the suite below. An image's tag is the
digest of its recipe, of its parent and of the architecture, so an image that is there is the right one.
An image that users build themselves, the operator's, has its Containerfile where they find it (`ee.SHIPPED`).
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import sys
import threading
import zipfile
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from . import apt, ee, podman
from .cache import building, digest, folder, require_space
from .command import run
from .errors import LabError
from .places import SOURCE, cache
from .prerequisites import Tool, architecture, require
from .progress import say, step

RECIPES = SOURCE / "images"
SUITE = "trixie"
KOLLA = "23.0.0"

#: Each image and the one it is built on.
PARENTS = {
    "base": None,
    "node": "base",
    "node-ovn": "node",
    "node-modular": "node-ovn",
    "node-firewalld": "node",
    "machine": "base",
    "kolla": "base",
    "libvirt": "kolla",
    "nova-compute": "libvirt",
    "neutron": "kolla",
    "cinder-volume": "kolla",
    "control-plane": "kolla",
    "registry": "base",
    "ceph": "base",
    "guest": "base",
    "ee-python": "base",
    "ee": "ee-python",
    "operator": "ee",
}

#: The images of EDPM services; the others are below them or are nodes.
SERVICES = ("libvirt", "nova-compute", "neutron", "cinder-volume")

#: Before a command: its children and theirs end when it is ended.
_ALL_OF_IT = ("unshare", "--pid", "--mount-proc", "--fork", "--kill-child=KILL", "--")

#: Builds that run side by side; more than two only wait for each other's disk and processor.
_SLOTS = threading.BoundedSemaphore(2)


def image(name: str) -> str:
    """The reference of an image, which is built first, with those below it, when it is not there yet."""
    return build_all([name])[name]


def build_all(names: Sequence[str]) -> dict[str, str]:
    """References of several images; what is missing is built side by side, each after its parent."""
    chain = _with_parents(names)
    missing = [name for name in chain if not _present(reference(name))]
    if missing:
        _require_tools()
        with _no_one_cleans():
            _build_in_order(missing)
    return {name: reference(name) for name in names}


def reference(name: str) -> str:
    """What the image is called, built or not."""
    return f"localhost/edpm-lab/{name}:{image_digest(name)}"


def image_digest(name: str, recipes: Path = RECIPES, arch: str | None = None) -> str:
    """The digest of an image's recipe, of all below it and of the architecture."""
    arch = arch or architecture()
    parent = _parent(name)
    inputs: dict[str, str | bytes] = {"architecture": arch, "suite": SUITE}
    if parent:
        inputs["parent"] = image_digest(parent, recipes, arch)
    if name == "kolla":
        inputs["kolla"] = KOLLA
    inputs |= ee.inputs(name)
    inputs["packages"] = "\n".join(packages(name, recipes, arch))
    own = recipes / f"{name}.Containerfile"
    files = [own] if own.exists() else []
    files += [file for file in sorted((recipes / name).rglob("*")) if file.is_file()]
    for file in files:
        mode = "x" if os.access(file, os.X_OK) else "-"
        inputs[f"{file.relative_to(recipes)} {mode}"] = file.read_bytes()
    return digest(inputs)


def packages(name: str, recipes: Path = RECIPES, arch: str | None = None) -> list[str]:
    """The Debian packages of an image on an architecture; a line may be bound to one: `ovmf [amd64]`."""
    arch = arch or architecture()
    found = []
    for line in (recipes / f"{name}.packages").read_text().splitlines():
        words = line.partition("#")[0].split()
        if words and words[1:] in ([], [f"[{arch}]"]):
            found.append(words[0])
    return found


def containerfile(name: str) -> Path:
    """What is done in an image; the base has none."""
    return ee.SHIPPED[name] / "Containerfile" if name in ee.SHIPPED else RECIPES / f"{name}.Containerfile"


def sizes() -> dict[str, int]:
    """The images that are there, with their sizes in bytes; what they share is counted in each."""
    listed = podman.run("images", "--filter", "reference=localhost/edpm-lab/*", "--format", "{{.Repository}}:{{.Tag}}")
    found = {}
    for line in sorted(set(listed.stdout.split())):
        found[line] = int(podman.run("image", "inspect", "--format", "{{.Size}}", line).stdout)
    return found


def _parent(name: str) -> str | None:
    try:
        return PARENTS[name]
    except KeyError:
        raise LabError(f"there is no image {name}; there are {', '.join(PARENTS)}") from None


def _with_parents(names: Sequence[str]) -> list[str]:
    """All that the named images need, parents first."""
    chain: list[str] = []
    for name in names:
        line: list[str] = []
        step_down: str | None = name
        while step_down and step_down not in chain:
            line.insert(0, step_down)
            step_down = _parent(step_down)
        chain += line
    return chain


def _present(ref: str) -> bool:
    return podman.run("image", "exists", ref, check=False).returncode == 0


def _require_tools() -> None:
    require("building images", Tool("mmdebstrap", "mmdebstrap"), Tool("gpgv", "gpgv"))
    if not apt.KEYRING.exists():
        raise LabError(f"building images needs Debian's keys in {apt.KEYRING}: install debian-archive-keyring")
    require_space(8, "building images")


def _build_in_order(missing: Sequence[str]) -> None:
    under_way: dict[str, Future[None]] = {}
    stopped = threading.Event()

    def after_its_parent(name: str) -> None:
        parent = _parent(name)
        if parent in under_way:
            under_way[parent].result()
        with _SLOTS:
            if not stopped.is_set():
                _build(name)

    with ThreadPoolExecutor(len(missing), thread_name_prefix="image") as pool:
        try:
            for name in missing:
                under_way[name] = pool.submit(after_its_parent, name)
            for finished in under_way.values():
                finished.result()
        except BaseException:
            stopped.set()
            _end_own_builds()
            raise


def _end_own_builds() -> None:
    """End the builds of this process: the threads that wait for them cannot be interrupted otherwise."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = (process / "stat").read_text().rsplit(")", 1)[1].split()[1]
            if int(parent) == os.getpid() and str(_workshop()) in (process / "cmdline").read_text():
                os.killpg(int(process.name), signal.SIGKILL)


def _build(name: str) -> None:
    with building(f"image-{name}"):
        if _present(reference(name)):
            return
        log = _fresh_log(name)
        with step(f"image {name}"):
            if _parent(name) is None:
                _build_base(name, log)
            else:
                _build_on_parent(name, log)
        _remove_superseded(name)


def _fresh_log(name: str) -> Path:
    log = cache() / "logs" / f"image-{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    return log


def _build_base(name: str, log: Path) -> None:
    work = _workshop() / name
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    sources, host_settings, archive = work / "sources.list", work / "host-apt.conf", work / "base.tar"
    sources.write_text(apt.sources(SUITE))
    host_settings.write_text(apt.host_settings())
    files = RECIPES / name
    keep_lists = "--skip=cleanup/apt/lists"
    try:
        run(
            [
                *(
                    *podman.MORTAL,
                    "mmdebstrap",
                    "--mode=root",
                    "--variant=minbase",
                    f"--architectures={architecture()}",
                    keep_lists,
                ),
                *(f"--dpkgopt={files / 'dpkg.cfg'}", f"--aptopt={host_settings}", f"--aptopt={files / 'apt.conf'}"),
                f"--include={','.join(packages(name))}",
                # The host's settings were for this build; the image keeps its own alone.
                f'--customize-hook=cp {files / "apt.conf"} "$1/etc/apt/apt.conf.d/99mmdebstrap"',
                f'--customize-hook=install -m 0755 {files / "install-packages"} "$1/usr/local/sbin/install-packages"',
                *(SUITE, archive, sources),
            ],
            timeout=1800,
            log=log,
            env={"TMPDIR": str(work), "LC_ALL": "C.UTF-8"},
        )
        podman.run("import", "--quiet", archive, reference(name), timeout=300, log=log)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _build_on_parent(name: str, log: Path) -> None:
    parent = _parent(name)
    assert parent is not None
    with ExitStack() as ending:
        context = ee.SHIPPED.get(name, RECIPES / name)
        if not context.is_dir():
            context = _workshop() / f"{name}-context"
            context.mkdir(parents=True, exist_ok=True)
        settings = _workshop() / f"{name}-apt.conf"
        settings.parent.mkdir(parents=True, exist_ok=True)
        ending.callback(settings.unlink, missing_ok=True)
        settings.write_text(apt.host_settings(certificates="/run/host-ca.crt"))
        podman.build(
            *("--isolation=chroot", "--layers=false", "--pull=never", "--format=oci"),
            *("--volume", f"{settings}:/etc/apt/apt.conf.d/98host:ro"),
            *(["--volume", f"{apt.CERTIFICATES}:/run/host-ca.crt:ro"] if apt.CERTIFICATES.exists() else []),
            *(["--volume", f"{_kolla()}:/srv/kolla:ro"] if "kolla" in _with_parents([name]) else []),
            *ee.volumes(name),
            *_arguments(name, parent),
            *("--file", containerfile(name), "--tag", reference(name), context),
            scratch=_workshop() / "scratch",
            log=log,
        )


def _arguments(name: str, parent: str) -> list[str]:
    """What the Containerfile asks for, by its own names for it."""
    asked = {"PARENT": reference(parent), "PACKAGES": " ".join(packages(name))}
    if name in ee.SHIPPED:
        asked = {"BASE": reference(parent)}
    return [word for key, value in asked.items() for word in ("--build-arg", f"{key}={value}")]


def _kolla() -> Path:
    """The published package `kolla`, unpacked; only its scripts are wanted, so none of what it depends on."""

    def download(place: Path) -> None:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
        run([*pip, "--only-binary=:all:", "--dest", place, f"kolla=={KOLLA}"], timeout=300)
        wheel = next(place.glob("kolla-*.whl"))
        with zipfile.ZipFile(wheel) as content:
            content.extractall(place)
        wheel.unlink()

    return folder("kolla", {"version": KOLLA}, download)


def _remove_superseded(name: str) -> None:
    """Remove older builds of an image, unless a lab runs: its nodes may use them without podman knowing."""
    if podman.run("ps", "--quiet", "--filter", "label=edpm.lab").stdout.split():
        return
    listed = podman.run("images", "--filter", f"reference=localhost/edpm-lab/{name}", "--format", "{{.Tag}}")
    for tag in listed.stdout.split():
        old = f"localhost/edpm-lab/{name}:{tag}"
        if old != reference(name):
            podman.run("rmi", old, check=False)


def _workshop() -> Path:
    return cache() / "images-being-built"


@contextmanager
def _no_one_cleans() -> Iterator[None]:
    """Builders share a lock; the first of them, alone with it, removes what interrupted builds left."""
    cache().mkdir(parents=True, exist_ok=True)
    lock = os.open(cache() / ".images.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass
        else:
            _clean()
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield
    finally:
        os.close(lock)


def _clean() -> None:
    _end_abandoned()
    listed = podman.run("ps", "--all", "--external", "--format", "{{.ID}} {{.Status}}").stdout.splitlines()
    if abandoned := [line.split()[0] for line in listed if line.split()[-1].lower() in ("storage", "buildah")]:
        say("removing image builds that were interrupted")
        podman.run("rm", "--force", *abandoned, check=False)
    podman.run("image", "prune", "--force", check=False)
    podman.unmount_below(_workshop())
    shutil.rmtree(_workshop(), ignore_errors=True)


def _end_abandoned() -> None:
    """End what a killed build left running; it is known by its root folder, which lies in the workshop."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if str((process / "root").readlink()).startswith(f"{_workshop()}/"):
                os.kill(int(process.name), signal.SIGKILL)
