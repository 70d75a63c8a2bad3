# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a generation is made of, in names and digests: its `bundle.json`, which holds no contents."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .bundle import GENERATION, Bundle, File, Folder, Footing, Group, Health, NodeFile, User

FILE = "bundle.json"
UNITS = "units"
GENERATIONS, MOUNTED = "generations", "mounted"
#: Names of the node's own for images, each behind the digest of the generation that starts from it.
KEPT_IMAGES = "localhost/edpm_generation"
PLACED_MODE = 0o644
_FILES = "node/files"
#: A mount of the generation that podman is to label.
_LABELLED = re.compile(rf"{GENERATION}.*(?:[:,][zZ](?![^,\s\"'])|relabel=)|relabel=.*{GENERATION}")
_LISTS = ("reload", "ports", "node_units", "masked", "busy", "data")


@dataclass(frozen=True)
class Places:
    """Where things lie on a node; a test moves all of it into a folder of its own."""

    root: Path = Path("/var/lib/openstack")
    units: Path = Path("/etc/containers/systemd")
    etc: Path = Path("/etc")
    run: Path = Path("/run")
    proc: Path = Path("/proc")
    kernel: Path = Path("/sys")

    @property
    def settings(self) -> Path:
        """The kernel's settings."""
        return self.proc / "sys"

    @property
    def lock(self) -> Path:
        """The lock of the whole node, where nobody but root can get in its way."""
        return self.run / "edpm_services.lock"

    @property
    def scratch(self) -> Path:
        """A folder in memory for what is needed for a moment."""
        return self.run / "edpm_services"

    @property
    def podman(self) -> Path:
        """Which podman was found to be new enough, until the node starts anew."""
        return self.run / "edpm_services.podman"


@dataclass(frozen=True)
class Recorded:
    """A file of the generation."""

    path: str
    mode: int
    sha256: str
    secret: bool = False


@dataclass(frozen=True)
class Placed:
    """A file of the generation that also lies elsewhere, for systemd or another program of the node to find."""

    source: str
    path: str
    sha256: str
    mode: int = PLACED_MODE

    @property
    def unit(self) -> str:
        """The name of the Quadlet file, empty when it is something else."""
        folder, _slash, name = self.source.partition("/")
        return name if folder == UNITS else ""

    @property
    def is_file(self) -> bool:
        """Whether the place is one that a file of the node may have had before."""
        return self.source.startswith(f"{_FILES}/")


@dataclass(frozen=True)
class Record:
    """A generation without its contents."""

    service: str
    instance: str
    digest: str
    image: str
    container: str
    files: tuple[Recorded, ...]
    placed: tuple[Placed, ...]
    health: Health
    restart: str = "restart"
    reload: tuple[str, ...] = ()
    ports: tuple[str, ...] = ()
    node_units: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()
    busy: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    footing: Footing = field(default_factory=Footing)
    #: The node's own name for the image, where the one that it was pulled by may come to mean another.
    kept: str = ""
    #: The name of the link in `mounted` by which its units mount it; without one they name its own folder.
    link: str = ""

    @property
    def settings(self) -> str:
        """The digest of what a generation's own digest leaves out, since no change of it needs a restart."""
        lists = {name: getattr(self, name) for name in _LISTS}
        named = {"health": asdict(self.health), "footing": asdict(self.footing), **lists}
        return sha256(json.dumps(named, sort_keys=True).encode())

    @property
    def name(self) -> str:
        """`<service>` or `<service>@<instance>`."""
        return f"{self.service}@{self.instance}" if self.instance else self.service

    @property
    def unit(self) -> str:
        """The unit that is started and watched."""
        return f"edpm_{self.name}.service" if self.contained else self.node_units[0]

    @property
    def sockets(self) -> tuple[str, ...]:
        """Those of the node's own units that are sockets."""
        return tuple(unit for unit in self.node_units if unit.endswith(".socket"))

    @property
    def contained(self) -> bool:
        """Whether it is a container; a service of the node's packages has no image."""
        return bool(self.image or not self.node_units)

    @property
    def units(self) -> dict[str, str]:
        """The digests of the Quadlet files, by name."""
        return {one.unit: one.sha256 for one in self.placed if one.unit}

    @property
    def starts_from(self) -> str:
        """The name of the image that its unit has."""
        return self.kept or self.image

    def text(self) -> bytes:
        """The bytes of bundle.json."""
        return (json.dumps(asdict(self), indent=1, sort_keys=True) + "\n").encode()


def kept_image(bundle: Bundle) -> str:
    """The node's own name for the image of a new generation; empty where the image's name always means the same."""
    return f"{KEPT_IMAGES}:{bundle.digest}" if bundle.image.moves else ""


def link_of(bundle: Bundle, kept: str = "") -> str:
    """The name of the link by which the bundle's units mount their generation; empty where they name its own folder.

    It is the same for as long as the units are: then a change of files moves the link, and systemd, which would read
    all units of the node again for the sake of one path, need not know. podman labels a link and not what it leads to,
    so units that want labels do without.
    """
    texts = bundle.units.values()
    if not any(GENERATION in text for text in texts) or any(_LABELLED.search(text) for text in texts):
        return ""
    return sha256(json.dumps([sorted(bundle.units.items()), kept]).encode())[:16]


def contents(bundle: Bundle, home: Path, kept: str = "", link: str = "") -> tuple[File, ...]:
    """Every file of the generation but its record; `home` is the service's folder on the node."""
    generation = home / MOUNTED / link if link else home / GENERATIONS / bundle.digest
    name = f"# {bundle.name}, written by edpm.services\n"
    sysctls = "".join(f"{key} = {value}\n" for key, value in bundle.sysctls.items())
    texts = {
        "kolla.json": bundle.kolla,
        "node/tmpfiles.conf": name + "".join(f"{line}\n" for line in bundle.tmpfiles) if bundle.tmpfiles else "",
        "node/sysctl.conf": name + sysctls if sysctls else "",
        "node/modules.conf": name + "".join(f"{one}\n" for one in bundle.modules) if bundle.modules else "",
        **{f"{UNITS}/{unit}": _settled(text, bundle, generation, kept) for unit, text in bundle.units.items()},
    }
    theirs = (File(_source(one), one.content, secret=one.secret) for one in bundle.node_files)
    own = (File(path, text.encode()) for path, text in texts.items() if text or path.startswith(f"{UNITS}/"))
    return tuple(sorted((*bundle.files, *theirs, *own), key=lambda file: file.path))


def _source(file: NodeFile) -> str:
    """Where in the generation it lies."""
    return f"{_FILES}{file.path}"


def recorded(bundle: Bundle, files: tuple[File, ...], places: Places, kept: str = "", link: str = "") -> Record:
    """The record of a bundle with these contents."""
    listed = tuple(Recorded(file.path, file.mode, sha256(file.content), file.secret) for file in files)
    targets = {
        "node/tmpfiles.conf": places.etc / "tmpfiles.d" / f"edpm_{bundle.name}.conf",
        "node/sysctl.conf": places.etc / "sysctl.d" / f"60-edpm_{bundle.name}.conf",
        "node/modules.conf": places.etc / "modules-load.d" / f"edpm_{bundle.name}.conf",
        **{f"{UNITS}/{unit}": places.units / unit for unit in bundle.units},
        **{_source(one): Path(one.path) for one in bundle.node_files},
    }
    modes = {_source(one): one.mode for one in bundle.node_files}
    return Record(
        service=bundle.service,
        instance=bundle.instance,
        digest=bundle.digest,
        image=bundle.image.reference,
        container=bundle.container,
        files=listed,
        placed=tuple(
            Placed(one.path, str(targets[one.path]), one.sha256, modes.get(one.path, PLACED_MODE))
            for one in listed
            if one.path in targets
        ),
        health=bundle.health,
        restart=bundle.restart,
        reload=bundle.reload,
        ports=bundle.ports,
        node_units=bundle.node_units,
        masked=bundle.masked,
        busy=bundle.busy,
        data=bundle.data,
        footing=bundle.footing,
        kept=kept,
        link=link,
    )


def settings(bundle: Bundle) -> str:
    """The digest of what the generation's own digest leaves out."""
    return recorded(bundle, (), Places()).settings


def read_record(text: bytes) -> Record | None:
    """The record in a bundle.json, None when somebody has spoilt it."""
    try:
        data = json.loads(text)
        return Record(
            **{
                **data,
                "files": tuple(Recorded(**one) for one in data["files"]),
                "placed": tuple(Placed(**one) for one in data["placed"]),
                "health": _health(data["health"]),
                "footing": _footing(data.get("footing") or {}),
                **{name: tuple(data[name]) for name in _LISTS if name in data},
            }
        )
    except (ValueError, TypeError, KeyError):
        return None


def sha256(content: bytes) -> str:
    """The digest of a file."""
    return hashlib.sha256(content).hexdigest()


def _settled(text: str, bundle: Bundle, generation: Path, kept: str) -> str:
    """A unit's text on the node: with the path of its generation, and with the image that the generation keeps."""
    if kept:
        text = re.sub(rf"^Image={re.escape(bundle.image.reference)}$", f"Image={kept}", text, flags=re.MULTILINE)
    return text.replace(GENERATION, str(generation))


def _health(data: Mapping[str, Any]) -> Health:
    return Health(**{**data, "command": tuple(data["command"])})


def _footing(data: Mapping[str, Any]) -> Footing:
    return Footing(
        groups=tuple(Group(**one) for one in data.get("groups", ())),
        users=tuple(User(**{**one, "groups": tuple(one["groups"])}) for one in data.get("users", ())),
        folders=tuple(Folder(**one) for one in data.get("folders", ())),
        packages={manager: tuple(names) for manager, names in data.get("packages", {}).items()},
        tmpfiles=tuple(data.get("tmpfiles", ())),
        modules=tuple(data.get("modules", ())),
        sysctls=dict(data.get("sysctls", {})),
    )
