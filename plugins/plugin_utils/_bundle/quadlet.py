# SPDX-License-Identifier: GPL-3.0-or-later
"""The Quadlet text of a service: same definition and image, same bytes.

Only keys that podman 4.4 knows are used, since an unknown key makes Quadlet drop the whole unit; what has no key there
is in `PodmanArgs`. Images are never pulled by a unit: the node has them before anything is touched.

SELinux: a confined container's own paths are relabelled for containers (`:z`); one that works with paths of the node's
own programs runs without a label of its own, so that those paths keep theirs. A privileged one has none anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType

from ...module_utils._node import bundle as node
from .running import Companion, Instance, Mount, Running

#: Where a container finds its generation.
GENERATION = "/var/lib/openstack/config"
_KOLLA = "/var/lib/kolla/config_files/config.json"
_STOP_MARGIN = 15
#: The end of a program that was asked to stop, as its container tells it: 128 and the number of SIGTERM.
_STOPPED = "143"

Section = list[tuple[str, str]]


# Thousands of nodes run the same image in the same way.
@lru_cache(maxsize=512)
def units(running: Running, who: Instance, image: str) -> Mapping[str, str]:
    """The texts of the service's units by the names of their files, its own first."""
    texts = {f"edpm_{who.name}.container": unit(running, who, image)}
    for one in running.companions:
        texts[f"edpm_{who.name}-{one.name}.container"] = unit(running, who, image, one)
    return MappingProxyType(texts)


def unit(running: Running, who: Instance, image: str, companion: Companion | None = None) -> str:
    """One unit: the service's own, or that of a companion."""
    title = f"{running.title}{f' {who.instance}' if who.instance else ''}"
    # A companion is started without kolla, so it needs neither the files nor what is around them; nor what is the
    # service's own and comes and goes, such as certificates: a change there would restart it.
    mounts = [one for one in running.mounts if not (companion and one.own)]
    sections: dict[str, Section] = {
        "Unit": [("Description", companion.title)] if companion else [("Description", title), *_order(running)],
        "Container": [
            ("Image", image),
            ("ContainerName", f"{who.container}-{companion.name}" if companion else who.container),
            ("User", "root" if companion else running.user),
            ("Network", "host"),
            *([("Exec", companion.command)] if companion else _kolla(running, who)),
            *_privileges(running),
            *(("Volume", _volume(running, who, one)) for one in mounts),
            *(("PodmanArgs", _quoted(one)) for one in _podman_options(running)),
        ],
        "Service": [
            ("Restart", "always"),
            ("RestartSec", "5"),
            ("TimeoutStopSec", str(running.stop_seconds + _STOP_MARGIN)),
            ("SuccessExitStatus", _STOPPED),
            *(_parted(line) for line in (() if companion else running.service_lines)),
        ],
        "Install": [("WantedBy", "multi-user.target")],
    }
    return _text(sections, who)


def _order(running: Running) -> Iterator[tuple[str, str]]:
    if running.wants:
        yield "Wants", " ".join(running.wants)
    yield "After", " ".join(("network-online.target", *running.after))


def _kolla(running: Running, who: Instance) -> Iterator[tuple[str, str]]:
    for key, value in sorted({"KOLLA_CONFIG_STRATEGY": "COPY_ALWAYS", **dict(running.environment)}.items()):
        yield "Environment", _quoted(f"{key}={value}")
    yield "Volume", _volume(running, who, Mount(f"{node.GENERATION}/kolla.json", _KOLLA, ("ro",), own=True))
    yield "Volume", _volume(running, who, Mount(node.GENERATION, GENERATION, ("ro",), own=True))
    if running.log_folder:
        yield "Volume", _volume(running, who, Mount(who.logs, running.log_folder, own=True))


def _privileges(running: Running) -> Iterator[tuple[str, str]]:
    for capability in running.capabilities:
        yield "AddCapability", capability
    if not (running.confined or running.privileged):
        yield "SecurityLabelDisable", "true"


def _podman_options(running: Running) -> tuple[str, ...]:
    privileged = ("--privileged",) if running.privileged else ()
    return ("--pull=never", f"--stop-timeout={running.stop_seconds}", *privileged, *running.podman_options)


def _volume(running: Running, who: Instance, mount: Mount) -> str:
    options = (*mount.options, *(("z",) if running.confined and mount.own else ()))
    source, target = who.filled(mount.source), who.filled(mount.target or mount.source)
    return ":".join((source, target, *([",".join(options)] if options else [])))


def _quoted(word: str) -> str:
    return f'"{word}"' if " " in word else word


def _parted(line: str) -> tuple[str, str]:
    key, _equals, value = line.partition("=")
    return key, value


def _text(sections: Mapping[str, Section], who: Instance) -> str:
    blocks = ["\n".join([f"[{name}]", *(f"{key}={value}" for key, value in lines)]) for name, lines in sections.items()]
    return f"# {who.name}, written by edpm.services: a change here is undone by the next deployment\n" + (
        "\n\n".join(blocks) + "\n"
    )
