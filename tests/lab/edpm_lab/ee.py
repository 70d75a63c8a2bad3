# SPDX-License-Identifier: GPL-3.0-or-later
"""What the images of the execution environment and of the operator are made of besides Debian's packages.

`ee-python` holds Python packages, which the host's pip fetches with the settings that it has; `ee` adds the collection
of this tree. A change of the collection therefore rebuilds the second alone, which takes seconds. `operator` is built
over it by the Containerfile that users get; what that would fetch from an index comes from a folder here.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache as once
from pathlib import Path

from .cache import digest, folder
from .command import run
from .errors import LabError
from .places import SOURCE
from .prerequisites import architecture

TREE = SOURCE.parents[1]

#: Images whose Containerfile is a user's too, with the folder that it is built in.
SHIPPED = {"operator": TREE / "extensions/operator"}

#: Of the tree, what a pod needs; the rest is for people.
PARTS = ("galaxy.yml", "meta", "playbooks", "plugins", "requirements.txt", "roles")

#: Over the collection's own requirements.
TOOLS = ("ansible-core>=2.19,<2.22", "ansible-runner>=2.4,<3", "openstacksdk>=4,<5", "pip")

#: The Python of the images' suite, and what wheels call the two architectures.
PYTHON = "3.13"
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


def inputs(name: str) -> dict[str, str | bytes]:
    """What an image depends on besides its recipe."""
    found: dict[str, str | bytes] = {}
    if name in WHEELS:
        found["wheels"] = "\n".join(WHEELS[name]())
    if name in SHIPPED:
        found |= {file: (SHIPPED[name] / file).read_bytes() for file in ("Containerfile", "requirements.txt")}
    if name == WITH_COLLECTION:
        found["collection"] = digest(_collection_files())
    return found


def volumes(name: str) -> list[str]:
    """Arguments of the build that mount what it installs."""
    mounted: dict[str, Path] = {}
    if name in WHEELS:
        mounted["/srv/wheels"] = _wheels(WHEELS[name]())
    if name in SHIPPED:
        mounted["/etc/pip.conf"] = SOURCE / "images" / name / "pip.conf"
    if name == WITH_COLLECTION:
        mounted["/srv/collection"] = _collection()
    return [word for place, source in mounted.items() for word in ("--volume", f"{source}:{place}:ro")]


def _requirements() -> list[str]:
    return [*TOOLS, *_lines(TREE / "requirements.txt")]


def _operator_requirements() -> list[str]:
    return _lines(SHIPPED["operator"] / "requirements.txt")


def _lines(file: Path) -> list[str]:
    return [line for line in file.read_text().splitlines() if line and not line.startswith("#")]


def _wheels(wanted: list[str]) -> Path:
    """All packages as wheels for the images' Python; none is built, so the host needs no compiler."""
    machine = MACHINES[architecture()]
    platforms = [f"manylinux{tag}_{machine}" for tag in ("2014", "_2_17", "_2_28", "_2_34")]

    def download(place: Path) -> None:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
        chosen = ["--only-binary=:all:", f"--python-version={PYTHON}", "--implementation=cp"]
        chosen += [f"--platform={platform}" for platform in platforms]
        run([*pip, *chosen, "--dest", place, *wanted], timeout=600)

    return folder("ee-wheels", {"machine": machine, "python": PYTHON, "wanted": "\n".join(wanted)}, download)


def _collection() -> Path:
    """The collection's files in a folder of their own."""
    files = _collection_files()

    def copy(place: Path) -> None:
        for name in files:
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(TREE / name, place / name)

    return folder("ee-collection", files, copy)


@once
def _collection_files() -> Mapping[str, bytes]:
    """The files as they are now; asked once, so that one build has one answer while somebody edits."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "-co", "--exclude-standard", *PARTS], cwd=TREE, capture_output=True, check=False
    )
    if listed.returncode != 0:
        raise LabError(f"git cannot list the files of {TREE}: {listed.stderr.decode().strip()}")
    names = sorted(filter(None, listed.stdout.decode().split("\0")))
    return {name: (TREE / name).read_bytes() for name in names if (TREE / name).is_file()}


#: Images with Python packages, and what they are to have; and the one that brings the collection.
WHEELS = {"ee-python": _requirements, "operator": _operator_requirements}
WITH_COLLECTION = "ee"
