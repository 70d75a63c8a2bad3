# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One service for one node with everything filled in: what a node is asked to have.

As JSON (see `travel`) the fields have the names that they have here; a file's content is base64, a mode is text such as
`0600`, what has its default may be left out, and a field that is not known is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field

#: A text in a unit that stands for the folder of its generation, where `current` would be a moment too early or late.
GENERATION = "@GENERATION@"
POLICIES = ("off", "warn", "fail")
PULLS = ("missing", "always", "never")
RESTARTS = ("restart", "never")


@dataclass(frozen=True)
class Image:
    """The image, when to pull it, and what the registry wants to see for that.

    `registries` is a registries.conf with mirrors, used for this pull alone. Without a `reference` the service is not a
    container: the first of the bundle's `node_units` is what is watched.
    """

    reference: str
    pull: str = "missing"
    auth: str = field(default="", repr=False)
    certificates: dict[str, str] = field(default_factory=dict, repr=False)
    registries: str = ""

    @property
    def moves(self) -> bool:
        """Whether each pull may bring another image, so that a generation must hold on to the one that it had."""
        return bool(self.reference) and self.pull == "always" and "@" not in self.reference


@dataclass(frozen=True)
class File:
    """A file, at a path below the generation's folder."""

    path: str
    content: bytes = field(repr=False)
    mode: int = 0o600
    secret: bool = False


@dataclass(frozen=True)
class NodeFile:
    """A file of the generation that a program of the node reads, at a path of the node."""

    path: str
    content: bytes = field(repr=False)
    mode: int = 0o600
    secret: bool = False


@dataclass(frozen=True)
class LiveFile:
    """A file at a path of the node, outside the generations: a new content is put in place without a restart.

    It is not covered by the bundle's digest; what was written is remembered, so that it is removed when it is no longer
    wanted, and drift shows.
    """

    path: str
    content: bytes = field(repr=False)
    mode: int = 0o600
    owner: str = ""
    group: str = ""
    secret: bool = False


@dataclass(frozen=True)
class Seed:
    """A file whose content the node makes once, and which is never made anew: a UUID that others know it by."""

    path: str
    mode: int = 0o644
    owner: str = ""
    group: str = ""


@dataclass(frozen=True)
class Group:
    """A group with a number of its own."""

    name: str
    gid: int | None = None


@dataclass(frozen=True)
class User:
    """A user with a number of its own."""

    name: str
    uid: int | None = None
    group: str = ""
    groups: tuple[str, ...] = ()
    home: str = "/nonexistent"
    shell: str = "/usr/sbin/nologin"


@dataclass(frozen=True)
class Folder:
    """A folder on the node; what is not said about it is left as it is."""

    path: str
    mode: int | None = None
    owner: str = ""
    group: str = ""
    setype: str = ""


@dataclass(frozen=True)
class Footing:
    """What a service stands on besides its files."""

    groups: tuple[Group, ...] = ()
    users: tuple[User, ...] = ()
    folders: tuple[Folder, ...] = ()
    packages: dict[str, tuple[str, ...]] = field(default_factory=dict)
    tmpfiles: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    sysctls: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Validation:
    """A command that judges the staged files, run in the image with those files at their places.

    `mounts` says which path of the generation lies where in the container. An exit code in `fatal` fails under the
    policy `warn` too.
    """

    command: tuple[str, ...]
    mounts: dict[str, str]
    policy: str = "fail"
    timeout: int = 120
    fatal: tuple[int, ...] = ()


@dataclass(frozen=True)
class Health:
    """The command, where there is one, succeeds in the container (or on the node) within `timeout` seconds, and again
    after the unit has stayed up for as long again, which is `settle` seconds in all at least. `connected` is a program
    of the unit that must hold a connection.
    """

    command: tuple[str, ...] = ()
    connected: str = ""
    on_node: bool = False
    settle: int = 3
    timeout: int = 60


@dataclass(frozen=True)
class Bundle:
    """All of one service on one node.

    `digest` names the generation; it must cover the image, the units, and the paths, modes and contents of the files.
    `units` are Quadlet files by name: `edpm_<name>.container` is the service, others begin with `edpm_<name>-`. In them
    GENERATION stands for the generation's folder. A unit that mounts from there, instead of from `current`, has one
    point at which the old becomes the new, also on a node that reboots in the middle: where only files change that is a
    link (see `record.link_of`), else the unit's file.
    `files` lie in the generation, for instance at `conf.d/01-nova.conf`; `kolla` becomes `kolla.json` beside them.
    `container` is the name in which the health check runs. `guards` may hold `cell` and `host`. `keep` is the number of
    generations that stay. With `restart` at `never` a service that runs is left to be restarted by somebody else.
    `node_files` belong to the generation and lie at paths of the node, for a service that is no container; they go back
    with it. `live` files change without a restart; where one changed, `reload` runs in the container. `ports` are to
    be open in the node's firewall, such as `tcp 5900-6923`. `packages` are installed where they are missing, by manager
    (`apt`, `dnf`), `node_units` are the node's own units that must be enabled and up, and `masked` those that must not.
    Removal: `busy` runs in the container and tells, one to a line, what must end first; the folders `data` stay unless
    they are asked for.
    """

    service: str
    digest: str
    image: Image
    units: dict[str, str]
    files: tuple[File, ...] = ()
    instance: str = ""
    container: str = ""
    kolla: str = field(default="", repr=False)
    groups: tuple[Group, ...] = ()
    users: tuple[User, ...] = ()
    folders: tuple[Folder, ...] = ()
    tmpfiles: tuple[str, ...] = ()
    sysctls: dict[str, str] = field(default_factory=dict)
    modules: tuple[str, ...] = ()
    validation: Validation | None = None
    health: Health = Health()
    guards: dict[str, str] = field(default_factory=dict)
    keep: int = 3
    restart: str = "restart"
    node_files: tuple[NodeFile, ...] = ()
    live: tuple[LiveFile, ...] = ()
    seeds: tuple[Seed, ...] = ()
    reload: tuple[str, ...] = ()
    ports: tuple[str, ...] = ()
    packages: dict[str, tuple[str, ...]] = field(default_factory=dict)
    node_units: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()
    busy: tuple[str, ...] = ()
    data: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """`<service>` or `<service>@<instance>`."""
        return f"{self.service}@{self.instance}" if self.instance else self.service

    @property
    def footing(self) -> Footing:
        """What the service stands on."""
        people = self.groups, self.users
        return Footing(*people, self.folders, self.packages, self.tmpfiles, self.modules, self.sysctls)

    @property
    def unit(self) -> str:
        """The unit that is started and watched."""
        return f"edpm_{self.name}.service" if self.image.reference else next(iter(self.node_units), "")
