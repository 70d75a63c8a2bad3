# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The disk, in the few ways in which it is changed: each of them is whole or has not happened.

A file is written beside its place, brought to the platter and renamed, so that a power cut leaves the old or the new.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from .errors import DiskFault, disk_faults

_UNFINISHED = ".edpm-new"
#: Of a unit, such as libvirtd.service.d; another, such as sysctl.d or nova.conf.d, is not ours to remove.
_DROP_INS = re.compile(r"\.(?:service|socket|container|pod|kube|network|volume|mount|timer|target)\.d$")
#: The user and the group that a file has by itself.
KEPT = (-1, -1)


@dataclass(frozen=True)
class New:
    """A file to be written. `owner` is a user's and a group's number."""

    path: Path
    content: bytes = field(repr=False)
    mode: int = 0o600
    owner: tuple[int, int] = KEPT


class Disk:
    """The node's file systems."""

    def read(self, path: Path) -> bytes | None:
        """A file's bytes, None when it is not there."""
        with disk_faults(path):
            try:
                return path.read_bytes()
            except (FileNotFoundError, NotADirectoryError):
                return None

    def target(self, path: Path) -> str:
        """Where a symbolic link points, empty when it is none."""
        try:
            return os.readlink(path)  # noqa: PTH115 -- a text is compared, not a path
        except OSError:
            return ""

    def mounts(self) -> list[Path]:
        """Where file systems are mounted."""
        try:
            lines = Path("/proc/self/mounts").read_text(errors="surrogateescape").splitlines()
        except OSError:
            return []
        written = (line.split(" ")[1] for line in lines if line.count(" ") > 1)
        return [Path(re.sub(r"\\([0-7]{3})", lambda code: chr(int(code.group(1), 8)), one)) for one in written]

    def write(self, path: Path, content: bytes, mode: int = 0o600, owner: tuple[int, int] = KEPT) -> None:
        """Put a file at its place, whole, over the one that is there."""
        self.write_all([New(path, content, mode, owner)])

    def write_all(self, files: Sequence[New]) -> None:
        """Put files at their places, each of them whole. The disk takes them together, and is waited for once."""
        try:
            for file in files:
                self.remove(self._beside(file.path))
                self.create(New(self._beside(file.path), file.content, file.mode, file.owner))
            for file in files:
                self.settle(self._beside(file.path))
            for file in files:
                self.rename(self._beside(file.path), file.path, settle=False)
            for folder in dict.fromkeys(file.path.parent for file in files):
                self.settle(folder)
        except Exception:
            for file in files:
                self.remove(self._beside(file.path))
            raise

    def link(self, path: Path, target: str) -> None:
        """Point a symbolic link somewhere, in one step."""
        beside = self._beside(path)
        self.remove(beside)
        self.symlink(beside, target)
        self.rename(beside, path)

    def sweep(self, path: Path) -> None:
        """Remove what a killed run left beside a file."""
        self.remove(self._beside(path))

    def create(self, new: New) -> None:
        """Write a file that is not there yet; until it is settled, a power cut may take it."""
        with disk_faults(new.path), open(new.path, "xb", opener=_private) as file:
            file.write(new.content)
            file.flush()
            if new.owner != KEPT:
                os.fchown(file.fileno(), *new.owner)
            os.fchmod(file.fileno(), new.mode)

    def settle(self, path: Path) -> None:
        """Bring a file, or the names in a folder, to the platter."""
        with disk_faults(path):
            # Whoever owns the folder could put a pipe there, on which opening would wait.
            number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
            try:
                os.fsync(number)
            finally:
                os.close(number)

    def refuse_detours(self, path: Path) -> None:
        """Refuse a path that leads through a link of somebody other than root: root would write where they say."""
        for folder in path.parents:
            with suppress(FileNotFoundError, NotADirectoryError):
                status = folder.lstat()
                if stat.S_ISLNK(status.st_mode) and status.st_uid not in (0, os.geteuid()):
                    raise DiskFault(
                        f"{path}: the link {folder} on the way belongs to the user with the number {status.st_uid}, "
                        "who could send root's files anywhere; make it a folder, or give it to root."
                    )

    def make_folder(self, path: Path, mode: int = 0o700, above: int = 0o700, *, settle: bool = True) -> None:
        """Make a folder where there is none, and those above it; until it is settled, a power cut may take it."""
        if path.is_dir():
            return
        with disk_faults(path):
            if not path.parent.is_dir():
                self.make_folder(path.parent, above, above, settle=settle)
            path.mkdir(mode, exist_ok=True)
            path.chmod(mode)
            if settle:
                self.settle(path.parent)

    def settle_all(self, folder: Path) -> None:
        """Bring a folder with all that is in it to the platter."""
        for place, _folders, files in os.walk(folder):
            for path in (*(Path(place) / name for name in files), Path(place)):
                self.settle(path)

    def rename(self, source: Path, target: Path, *, settle: bool = True) -> None:
        """Put something at another place of the same file system."""
        with disk_faults(target):
            source.replace(target)
        if settle:
            self.settle(target.parent)

    def symlink(self, path: Path, target: str) -> None:
        """Make a symbolic link where there is none."""
        with disk_faults(path):
            path.symlink_to(target)

    def remove(self, path: Path) -> None:
        """Remove a file or a link; one that is not there is fine."""
        if not os.path.lexists(path):
            return
        with disk_faults(path):
            path.unlink(missing_ok=True)
        self.settle(path.parent)

    def take(self, path: Path) -> None:
        """Remove a file with what a killed run left beside it, and a unit's folder of drop-ins that is empty then."""
        self.sweep(path)
        self.remove(path)
        if _DROP_INS.search(path.parent.name):
            self.remove_empty(path.parent)

    def remove_tree(self, path: Path) -> None:
        """Remove a folder with all that is in it; one that is not there is fine."""
        with disk_faults(path), suppress(FileNotFoundError):
            shutil.rmtree(path)

    def remove_empty(self, path: Path) -> None:
        """Remove a folder unless something is in it."""
        with suppress(OSError):
            path.rmdir()

    def set_value(self, path: Path, value: str) -> None:
        """Give a kernel setting a value; such a file is written in place, there is no other way."""
        with disk_faults(path):
            path.write_text(f"{value}\n")

    @staticmethod
    def _beside(path: Path) -> Path:
        return path.with_name(f".{path.name}{_UNFINISHED}")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
