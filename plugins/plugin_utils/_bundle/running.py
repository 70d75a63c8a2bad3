# SPDX-License-Identifier: GPL-3.0-or-later
"""How a service runs on a node, as data: what its unit says, and what the node must have for it.

In paths `{name}` stands for `<service>[@<instance>]`, and `{suffix}` for `-<instance>`, which is nothing for the plain
one. A partner's definition is one more value of the same type.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mount:
    """A path of the node in the container, at the same place unless `target` says otherwise.

    `own` is true for what only this collection's containers use: on an SELinux host such a path takes their label
    (`:z`), which would cut off the node's own programs from any other.
    """

    source: str
    target: str = ""
    options: tuple[str, ...] = ()
    own: bool = False


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that the node must have; what is not said about it stays as it is found."""

    path: str
    owner: str = ""
    mode: int | None = None
    setype: str = ""


@dataclass(frozen=True, slots=True)
class Account:
    """A user with a group of the same name and number: those that the images have."""

    name: str
    number: int
    home: str
    shell: str = "/usr/sbin/nologin"
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """A group that the node must have; without a number any is right."""

    name: str
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Seed:
    """A file with a UUID that the node makes once and never anew."""

    path: str
    owner: str = ""
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class OwnFile:
    """A file that the service needs and nobody has to write; one from the cluster at the same path replaces it."""

    directory: str
    name: str
    text: str
    mode: int = 0o600


@dataclass(frozen=True, slots=True)
class Companion:
    """A second unit from the same image that the service needs beside it; it lives on when the service restarts."""

    name: str
    title: str
    command: str


@dataclass(frozen=True, slots=True)
class Health:
    """A command that succeeds once the service does its work, or the program that holds a connection then, and how long
    that may take. The command runs in the container, or on the node where there is none.
    """

    command: tuple[str, ...] = ()
    connected: str = ""
    settle: int = 3
    timeout: int = 60


@dataclass(frozen=True, slots=True)
class Running:
    """One service. `command` is what kolla starts, `user` runs it and owns its files in the container.

    Privileges are what is listed and no more. `confined` says whether SELinux may label the container: one that works
    with paths of the node's own programs cannot be. Paths in `public` may be read by other users of the container too.
    `reload` runs where a live file changed, `busy` tells what keeps the service from being removed, `data` are folders
    that outlive it. `validates` has the image's own options judge what oslo.config reads, `validation` is a command of
    the service's own in the image, with its files at their places. With `on_node` it is no container: packages of the
    node bring it, and `node_units` are its units, the first of which is watched.
    """

    service: str
    title: str
    command: str
    user: str
    mounts: tuple[Mount, ...] = ()
    log_folder: str = ""
    privileged: bool = False
    confined: bool = False
    capabilities: tuple[str, ...] = ()
    podman_options: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    wants: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    stop_seconds: int = 15
    service_lines: tuple[str, ...] = ()
    files: tuple[OwnFile, ...] = ()
    public: tuple[str, ...] = ()
    accounts: tuple[Account, ...] = ()
    groups: tuple[Group, ...] = ()
    folders: tuple[Folder, ...] = ()
    tmpfiles: tuple[str, ...] = ()
    sysctls: tuple[tuple[str, str], ...] = ()
    modules: tuple[str, ...] = ()
    seeds: tuple[Seed, ...] = ()
    companions: tuple[Companion, ...] = ()
    health: Health | None = None
    validates: bool = False
    validation: tuple[str, ...] = ()
    reload: tuple[str, ...] = ()
    ports: tuple[str, ...] = ()
    packages: tuple[tuple[str, tuple[str, ...]], ...] = ()
    node_units: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()
    busy: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    on_node: bool = False


@dataclass(frozen=True, slots=True)
class Instance:
    """Names that belong to one service on one node, or to one of its instances."""

    service: str
    instance: str = ""

    @property
    def name(self) -> str:
        """`<service>` or `<service>@<instance>`."""
        return f"{self.service}@{self.instance}" if self.instance else self.service

    @property
    def container(self) -> str:
        """The container's name; podman allows no `@` in it."""
        return f"edpm_{self.service}{self.suffix}"

    @property
    def suffix(self) -> str:
        """What its own paths end with."""
        return f"-{self.instance}" if self.instance else ""

    @property
    def home(self) -> str:
        """The folder of its generations on the node."""
        return f"/var/lib/openstack/{self.name}"

    @property
    def live(self) -> str:
        """The folder of what changes on the node without a new generation."""
        return f"{self.home}/live"

    @property
    def logs(self) -> str:
        """The folder of its logs on the node."""
        return f"/var/log/containers/{self.name}"

    def filled(self, text: str) -> str:
        """The text with this instance's names in it."""
        return text.replace("{name}", self.name).replace("{suffix}", self.suffix)
