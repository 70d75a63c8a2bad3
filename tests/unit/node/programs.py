# SPDX-License-Identifier: GPL-3.0-or-later
"""A systemd and a podman of a few lines, as far as the collection speaks with them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.edpm.services.plugins.module_utils._node.accounts import Accounts
from ansible_collections.edpm.services.plugins.module_utils._node.commands import Result
from ansible_collections.edpm.services.plugins.module_utils._node.record import Places
from ansible_collections.edpm.services.plugins.module_utils._node.systemd import service_of

from .node_programs import Fabric, NodePrograms
from .plug import Killed, Plug

IMAGE = "registry.example.org/nova-compute:30"
UNIT = "edpm_nova_compute.service"
QUADLET = "edpm_nova_compute.container"


@dataclass(frozen=True)
class Process:
    """What a started unit runs with: its text as systemd had read it, and the files that it found then."""

    text: str
    files: Mapping[str, bytes]
    invocation: str
    fails: bool
    #: What its image's name meant when it was started.
    image: str = ""


@dataclass
class World:
    """The part of a node that outlives a run."""

    places: Places
    images: set[str] = field(default_factory=lambda: {IMAGE})
    registry: set[str] = field(default_factory=set)
    #: What names of images mean here and in the registry, where it is not what the names say.
    means: dict[str, str] = field(default_factory=dict)
    pushed: dict[str, str] = field(default_factory=dict)
    loaded: dict[str, str] = field(default_factory=dict)
    processes: dict[str, Process] = field(default_factory=dict)
    calls: list[list[str]] = field(default_factory=list)
    #: What a service says of its files; one that dies says `die`, one that does not answer says `mute`.
    refuse: dict[str, Result] = field(default_factory=dict)
    #: What a service dies of when it stands in one of its files.
    poison: bytes = b"die"
    #: What a validator that finds nothing wrong says all the same.
    remarks: str = ""
    started: int = 0
    containers: set[str] = field(default_factory=set)
    #: The registries.conf of each pull that had one of its own.
    mirrors: list[str] = field(default_factory=list)
    version: str = "podman version 5.4.2"
    accounts: dict[str, int] = field(default_factory=dict)
    fabric: Fabric = field(default_factory=Fabric)
    seconds: float = 0.0
    #: The number of the main process of every unit that is up.
    main: int = 0

    def argv(self, program: str) -> list[list[str]]:
        return [call for call in self.calls if call[0] == program]

    def done(self, verb: str) -> list[list[str]]:
        return [call for call in self.calls if call[:2] == ["systemctl", verb]]

    def reload(self) -> None:
        self.loaded = {service_of(one.name): one.read_text() for one in self.places.units.glob("edpm_*.*")}

    def stop(self, units: list[str]) -> None:
        for unit in units:
            self.processes.pop(unit, None)
            self.fabric.up.discard(unit)

    def start(self, unit: str) -> Process | None:
        if unit not in self.loaded:
            return None
        text = self.loaded[unit]
        named = re.search(r"Volume=(\S+?)/conf.d:", text)
        folder = Path(named.group(1)) if named else self.places.root / "nowhere"
        files = {one.name: one.read_bytes() for one in sorted((folder / "conf.d").glob("*"))}
        self.started += 1
        died = any(self.poison in content for content in files.values())
        image = "".join(re.findall(r"^Image=(\S+)", text, re.MULTILINE))
        means = self.means.get(image, image) if image in self.images else ""
        self.processes[unit] = Process(text, files, f"run-{self.started}", died or not folder.is_dir(), means)
        return self.processes[unit]


class FakeRun(NodePrograms):
    """systemctl, podman and the like, as far as this collection speaks with them."""

    def __init__(self, world: World, plug: Plug) -> None:
        self.world = world
        self.plug = plug
        self.fabric = world.fabric
        self.etc = world.places.etc

    def __call__(self, argv: Sequence[str], environment: Mapping[str, str]) -> Result:
        if self.plug.dead:
            raise Killed
        words = list(argv[3:] if argv[0] == "timeout" else argv)
        self.world.calls.append(words)
        for start, answer in self.world.refuse.items():
            if " ".join(words).startswith(start):
                return answer
        name = Path(words[0]).name.replace("-", "_")
        answer = getattr(self, f"_{name}")(words[1:], environment)
        assert isinstance(answer, Result)
        return answer

    def _systemctl(self, words: list[str], _: Mapping[str, str]) -> Result:
        verb, units = words[0], [word for word in words[1:] if not word.startswith("--")]
        if verb == "show":
            return Result(0, "\n".join(self._shown(unit) for unit in units))
        if verb in ("enable", "disable", "mask", "unmask", "start"):
            return self.change_unit(verb, units[0], now="--now" in words)
        if verb == "daemon-reload":
            self.plug.around(verb, self.world.reload)
        elif verb == "restart":
            self.plug.around(verb, lambda: self._restart(units))
            bad = [unit for unit in units if unit in self.world.processes and self.world.processes[unit].fails]
            return Result(1, "", f"Job for {bad[0]} failed.") if bad else Result(0)
        elif verb == "stop":
            self.plug.around(verb, lambda: self.world.stop(units))
        return Result(0)

    def _restart(self, units: list[str]) -> None:
        for unit in units:
            if unit in self.fabric.files:
                self.fabric.up.add(unit)
                self.fabric.early.discard(unit)
            self.world.start(unit)

    def _shown(self, unit: str) -> str:
        process = self.world.processes.get(unit)
        active = "inactive" if process is None else "failed" if process.fails else "active"
        values = {
            "ActiveState": active,
            "SubState": "running" if active == "active" else "dead",
            "LoadState": "loaded" if unit in self.world.loaded else "not-found",
            "InvocationID": process.invocation if process else "",
            "NRestarts": "0",
            "MainPID": str(self.world.main if process else 0),
            "Result": "exit-code" if active == "failed" else "success",
            "NeedDaemonReload": "yes" if self._stale(unit) else "no",
            "UnitFileState": "generated" if unit in self.world.loaded else "",
            **(self.unit_values(unit) if unit in self.fabric.files else {}),
        }
        return "".join(f"{key}={value}\n" for key, value in values.items())

    def _stale(self, unit: str) -> bool:
        path = self.world.places.units / unit.replace(".service", ".container")
        return unit in self.world.loaded and path.exists() and path.read_text() != self.world.loaded[unit]

    def _journalctl(self, _words: list[str], _: Mapping[str, str]) -> Result:
        return Result(0, "starting\nERROR cannot read password = hunter2hunter2\n")

    def _podman(self, words: list[str], environment: Mapping[str, str]) -> Result:
        self.world.mirrors += filter(None, [environment.get("CONTAINERS_REGISTRIES_CONF")])
        if words == ["--version"]:
            return Result(0, self.world.version)
        if words[0] == "rm":
            self.world.containers -= set(words)
            return Result(0)
        kinds = {
            **{"image": self._image, "pull": self._pull, "run": self._validator, "tag": self._tag},
            **{"images": self._images, "rmi": self._untag},
        }
        return kinds.get(words[0], self._execute)(words)

    def _image(self, words: list[str]) -> Result:
        asked = {"exists": words[2:], "inspect": words[3:]}[words[1]]
        return Result(0 if set(asked) <= self.world.images else 125)

    def _execute(self, _words: list[str]) -> Result:
        if UNIT not in self.world.processes:
            return Result(125, "", "no such container")
        files = self.world.processes[UNIT].files.values()
        return Result(1, "", "no answer") if any(b"mute" in content for content in files) else Result(0)

    def _pull(self, words: list[str]) -> Result:
        reference = words[-1]
        if reference not in self.world.registry:
            return Result(125, "", f"Trying to pull {reference}\nError: initializing source: unauthorized\n")
        self.plug.around("pull", lambda: self._mean(reference, self.world.pushed.get(reference, reference)))
        return Result(0)

    def _mean(self, reference: str, image: str) -> None:
        self.world.images.add(reference)
        self.world.means[reference] = image

    def _tag(self, words: list[str]) -> Result:
        old, new = words[1:]
        self.plug.around("tag", lambda: self._mean(new, self.world.means.get(old, old)))
        return Result(0)

    def _images(self, words: list[str]) -> Result:
        """All names of the images that have one of this repository."""
        means = {name: self.world.means.get(name, name) for name in self.world.images}
        asked = {image for name, image in means.items() if name.startswith(f"{words[-1]}:")}
        return Result(0, "".join(f"{name}\n" for name, image in sorted(means.items()) if image in asked))

    def _untag(self, words: list[str]) -> Result:
        assert set(words[1:]) <= self.world.images
        self.plug.around("rmi", lambda: self.world.images.difference_update(words[1:]))
        return Result(0)

    def _validator(self, words: list[str]) -> Result:
        mounts = [word.split("=", 1)[1].split(":") for word in words if word.startswith("--volume=")]
        for source, _target, mode in mounts:
            assert mode == "ro"
            for file in Path(source).rglob("*"):
                if file.is_file() and b"unknown_option" in file.read_bytes():
                    return Result(1, "", f"{file.name}: unknown_option\npassword = hunter2hunter2")
                if file.is_file() and b"not oslo" in file.read_bytes():
                    return Result(2, "", f"{file.name}: cannot be parsed")
        return Result(0, self.world.remarks, "a word of podman's own")

    def _generator(self, _words: list[str], environment: Mapping[str, str]) -> Result:
        out, err = [], []
        seen: set[str] = set()
        for folder in environment["QUADLET_UNIT_DIRS"].split(":"):
            for file in sorted(Path(folder).glob("edpm_*.*")):
                if file.name in seen:
                    continue
                if "unreadable" not in file.read_text():
                    seen.add(file.name)
                if "Nonsense=" in file.read_text() or "unreadable" in file.read_text():
                    err.append(f'quadlet-generator[9]: converting "{file.name}": unsupported key Nonsense')
                else:
                    out.append(f"---{service_of(file.name)}---\n[Unit]\nSourcePath={file}\n")
        return Result(1 if err else 0, "\n".join(out), "\n".join(err))

    def _groupadd(self, words: list[str], _: Mapping[str, str]) -> Result:
        self.world.accounts[f"group {words[-1]}"] = int(words[0].split("=")[1])
        return Result(0)

    def _useradd(self, words: list[str], _: Mapping[str, str]) -> Result:
        self.world.accounts[f"user {words[-1]}"] = int(words[0].split("=")[1])
        return Result(0)

    def _usermod(self, words: list[str], _: Mapping[str, str]) -> Result:
        self.world.accounts[f"{words[-1]} in {words[1].split('=')[1]}"] = 1
        return Result(0)

    def _systemd_tmpfiles(self, words: list[str], _: Mapping[str, str]) -> Result:
        assert Path(words[-1]).is_file()
        return Result(0)

    def _modprobe(self, words: list[str], _: Mapping[str, str]) -> Result:
        (self.world.places.kernel / "module" / words[0]).mkdir(parents=True)
        return Result(0)


class FakeAccounts(Accounts):
    def __init__(self, run: FakeRun) -> None:
        super().__init__(run)
        self.known = run.world.accounts

    def uid(self, name: str) -> int | None:
        return self.known.get(f"user {name}")

    def gid(self, name: str) -> int | None:
        return self.known.get(f"group {name}")

    def members(self, group: str) -> tuple[str, ...]:
        return tuple(one.split(" in ")[0] for one in self.known if one.endswith(f" in {group}"))
