# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The node's podman: images, commands in them, and its age."""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Sequence
from pathlib import Path

from .bundle import Image, Validation
from .commands import NOT_FOUND, Result, Run, bounded
from .disk import Disk, New
from .errors import ImageMissing, NotPrepared

#: The first with Quadlet.
OLDEST = (4, 4)


class Podman:
    """podman, and a folder in memory for what a registry wants to see.

    `noted` is a file in memory that tells which podman was found to be new enough.
    """

    def __init__(self, run: Run, disk: Disk, scratch: Path, noted: Path | None = None) -> None:
        self._run = run
        self._disk = disk
        self._scratch = scratch
        self._noted = noted

    def require(self, *, note: bool = False) -> None:
        """Refuse a node without a podman that knows Quadlet; to ask it costs as much as all files of a service.

        So it is asked no more for as long as its file is the same. Nothing is noted unless `note` says so.
        """
        there = self._there() if self._noted else b""
        if self._noted and there and self._disk.read(self._noted) == there:
            return
        self._ask()
        if self._noted and there and note:
            self._disk.write(self._noted, there)

    def _ask(self) -> None:
        answer = self._run(["podman", "--version"], {})
        if answer.rc == NOT_FOUND:
            raise NotPrepared("The node has no podman; install podman 4.4 or newer.")
        found = re.search(r"(\d+)\.(\d+)", answer.out)
        if not answer.ok or found is None:
            raise NotPrepared(f"podman does not work on the node: {answer.said}; repair it, then run again.")
        if (int(found.group(1)), int(found.group(2))) < OLDEST:
            raise NotPrepared(
                f"The node's podman {found.group()} is too old; install 4.4 or newer, which brings Quadlet."
            )

    @staticmethod
    def _there() -> bytes:
        """The program's file with all that tells it from another one, empty where there is none."""
        path = shutil.which("podman")
        try:
            found = Path(path).stat() if path else None
        except OSError:
            found = None
        if found is None:
            return b""
        return f"{path} {found.st_dev} {found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}".encode()

    def has(self, reference: str) -> bool:
        """Whether the image is on the node."""
        return self._run(["podman", "image", "exists", reference], {}).ok

    def missing(self, references: Sequence[str]) -> list[str]:
        """The images that are not on the node; one question where all of them are."""
        if not references or self._run(["podman", "image", "inspect", "--format={{.Id}}", *references], {}).ok:
            return []
        return [reference for reference in references if not self.has(reference)]

    def keep(self, reference: str, name: str) -> None:
        """Give an image a name of the node's own, which keeps it when the first name comes to mean another."""
        answer = self._run(["podman", "tag", reference, name], {})
        if not answer.ok:
            raise ImageMissing(
                f"The image {reference} cannot be kept as {name} on the node: {answer.said}; see to its podman"
            )

    def release(self, repository: str, tags: Collection[str]) -> None:
        """Take names of the node's own away from images, but for these; an image without any name goes."""
        # The answer has the other names of these images too.
        found = self._run(["podman", "images", "--format={{.Repository}}:{{.Tag}}", repository], {}).out.split()
        parted = (name.rpartition(":") for name in found)
        spare = [f"{place}:{tag}" for place, _colon, tag in parted if place == repository and tag not in tags]
        if spare:
            self._run(["podman", "rmi", *spare], {})

    def remove(self, containers: Sequence[str]) -> None:
        """Remove containers; those that are not there are fine."""
        if containers:
            self._run(["podman", "rm", "--force", "--ignore", "--time=10", *containers], {})

    def forget(self) -> None:
        """Remove what a registry was shown, also where a run was killed while it did so."""
        self._disk.remove_tree(self._scratch)

    def needs(self, image: Image) -> bool:
        """Whether the image must be pulled; refused where that is switched off."""
        if not image.reference:
            return False
        there = self.has(image.reference)
        if not there and image.pull == "never":
            raise ImageMissing(
                f"The image {image.reference} is not on the node and pulling is switched off; "
                "load it there (podman load), then run again. Nothing was touched."
            )
        return not there or image.pull == "always"

    def provide(self, image: Image) -> bool:
        """Have the image on the node; True when it was pulled. A node that has it never reaches out, unless told to."""
        if not self.needs(image):
            return False
        answer = self._pull(image)
        if not answer.ok:
            raise ImageMissing(
                f"The image {image.reference} cannot be pulled: {_last_line(answer)}; see to its name, the registry, "
                "and the credentials, or load it on the node. Nothing was touched."
            )
        return True

    def judge(self, name: str, image: str, validation: Validation, staged: Path) -> Result:
        """Run the validator in the image, with the staged files at their places and no network."""
        mounts = [f"--volume={staged / source}:{target}:ro" for source, target in validation.mounts.items()]
        program, *words = validation.command
        argv = [
            *("podman", "run", "--rm", "--replace", f"--name={name}", "--pull=never", "--network=none", "--user=0"),
            # The files are this run's own; relabelling them would be a change.
            *("--security-opt=label=disable", "--log-driver=none", *mounts, f"--entrypoint={program}", image, *words),
        ]
        return self._run(bounded(validation.timeout, argv), {})

    def execute(self, container: str, command: Sequence[str], seconds: float) -> Result:
        """Run a command in a running container."""
        return self._run(bounded(seconds, ["podman", "exec", container, *command]), {})

    def _pull(self, image: Image) -> Result:
        """Credentials lie in memory, for root alone, while the pull lasts."""
        self.forget()
        words, environment = [], {}
        try:
            if image.auth:
                self._keep("auth.json", image.auth)
                words.append(f"--authfile={self._scratch / 'auth.json'}")
            if image.certificates:
                for name, text in image.certificates.items():
                    self._keep(f"certificates/{name}", text)
                words.append(f"--cert-dir={self._scratch / 'certificates'}")
            if image.registries:
                self._keep("registries.conf", image.registries)
                environment["CONTAINERS_REGISTRIES_CONF"] = str(self._scratch / "registries.conf")
            return self._run(["podman", "pull", "--quiet", *words, image.reference], environment)
        finally:
            self.forget()

    def _keep(self, name: str, text: str) -> None:
        self._disk.make_folder((self._scratch / name).parent)
        self._disk.create(New(self._scratch / name, text.encode()))


def _last_line(answer: Result) -> str:
    lines = [line for line in answer.err.splitlines() if line.strip()]
    return Result(answer.rc, "", lines[-1] if lines else "").said.replace("Error: ", "")
