# SPDX-License-Identifier: GPL-3.0-or-later
"""What a container may, as podman tells it, beside what its definition gives it.

podman's description does not tell everything, and some versions leave out more than others; what it was asked for when
it made the container counts as well.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from ansible_collections.edpm.services.plugins.module_utils._node.record import link_of
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.bundle import Bundle, bundle
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.parcel import parcel
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.running import Mount, Running
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import ServicePlan

from .machine import Machine

_GIVEN = ("--security-opt", "--device-cgroup-rule")
_SPACES = ("pid", "ipc", "uts", "cgroupns", "userns")


@dataclass(frozen=True)
class May:
    """All by which a container gets at its node. A mount is its two paths, and how it may be written and seen."""

    user: str
    privileged: bool
    read_only: bool
    capabilities: frozenset[str]
    mounts: frozenset[tuple[str, str, str]]
    devices: frozenset[str]
    options: frozenset[str]
    of_the_node: frozenset[str]


def check(machine: Machine, *plans: ServicePlan) -> None:
    """Every container of these services may what its definition says, and no more."""
    for plan in plans:
        made = bundle(plan)
        parcelled = parcel(plan, made)
        assert parcelled is not None
        link = link_of(parcelled)
        generation = f"mounted/{link}" if link else f"generations/{made.digest}"
        for name, wanted in defined(made, f"{made.who.home}/{generation}").items():
            assert found(machine, name) == wanted, name


def found(machine: Machine, container: str) -> May:
    """What a container of the node may."""
    return told(json.loads(machine.sh(f"podman inspect {shlex.quote(container)}"))[0])


def told(inspected: Mapping[str, Any]) -> May:
    """What podman's description of a container says."""
    host, command = inspected["HostConfig"], inspected["Config"]["CreateCommand"]
    # One that is privileged has no security options of its own.
    security = () if host["Privileged"] else (f"--security-opt={one}" for one in host["SecurityOpt"] or ())
    modes = {
        "pid": host["PidMode"],
        "ipc": host["IpcMode"],
        "uts": host["UTSMode"],
        "cgroupns": host["CgroupMode"],
        "userns": host["UsernsMode"],
        "network": host["NetworkMode"],
    }
    return May(
        user=inspected["Config"]["User"],
        privileged=host["Privileged"],
        read_only=host["ReadonlyRootfs"],
        capabilities=frozenset(
            one.upper().removeprefix("CAP_") for one in (*(host["CapAdd"] or ()), *_values(command, "--cap-add"))
        ),
        mounts=frozenset(_told_mount(one) for one in inspected["Mounts"]),
        devices=frozenset(one["PathOnHost"] for one in host["Devices"] or ()),
        options=frozenset((*security, *_given(command))),
        of_the_node=frozenset(name for name, mode in modes.items() if "host" in (mode, *_values(command, f"--{name}"))),
    )


def defined(made: Bundle, generation: str) -> dict[str, May]:
    """What the definition of a service gives to its containers, by their names."""
    running, who = made.running, made.who
    assert running is not None
    shared = [one for one in running.mounts if not one.own]
    companions = {f"{who.container}-{one.name}": _may(made, "root", shared) for one in running.companions}
    own = _may(made, running.user, (*running.mounts, *_kolla(running, who.logs, generation)))
    return {who.container: own, **companions}


def _may(made: Bundle, user: str, seen: Iterable[Mount]) -> May:
    running, who = made.running, made.who
    assert running is not None
    label = () if running.confined or running.privileged else ("--security-opt=label=disable",)
    mounts = ((who.filled(one.source), who.filled(one.target or one.source), one) for one in seen)
    spaces = {space for space in _SPACES if f"--{space}=host" in running.podman_options}
    return May(
        user=user,
        privileged=running.privileged,
        read_only="--read-only" in running.podman_options,
        capabilities=frozenset(running.capabilities),
        mounts=frozenset((source, target, _way("ro" in one.options, one.options)) for source, target, one in mounts),
        devices=frozenset(),
        options=frozenset((*label, *_given(running.podman_options))),
        of_the_node=frozenset({"network", *spaces}),
    )


def _kolla(running: Running, logs: str, generation: str) -> Iterator[Mount]:
    yield Mount(f"{generation}/kolla.json", "/var/lib/kolla/config_files/config.json", ("ro",))
    yield Mount(generation, "/var/lib/openstack/config", ("ro",))
    if running.log_folder:
        yield Mount(logs, running.log_folder)


def _told_mount(one: Mapping[str, Any]) -> tuple[str, str, str]:
    return one["Source"], one["Destination"], _way(not one["RW"], [one["Propagation"].removeprefix("r")])


def _way(read_only: bool, options: Sequence[str]) -> str:
    return " ".join(("read" if read_only else "write", *(["shared"] if "shared" in options else [])))


def _given(words: Sequence[str]) -> Iterator[str]:
    return (f"{option}={value}" for option in _GIVEN for value in _values(words, option))


def _values(words: Sequence[str], option: str) -> Iterator[str]:
    """What an option was given, in one word or in two."""
    for word, after in zip_longest(words, words[1:], fillvalue=""):
        if word == option:
            yield after
        elif word.startswith(f"{option}="):
            yield word.partition("=")[2]
