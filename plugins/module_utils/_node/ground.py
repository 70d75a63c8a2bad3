# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a service stands on besides its files: accounts, packages, folders, kernel modules and settings.

All of it only ever adds to the node, so a service that is rolled back finds its old ground unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .bundle import Folder, Footing
from .errors import NodeRefused, disk_faults
from .generations import Drift
from .node import Node


@dataclass(frozen=True)
class Ground:
    """The ground of one service on one node."""

    node: Node
    service: str
    footing: Footing

    def lacking(self) -> tuple[str, ...]:
        """What is not as the service asks, by name."""
        missing = self.node.packages.missing(self.service, self.footing.packages)
        return (*(one.name for one in self.drift()), *(f"package {one}" for one in missing))

    def drift(self) -> Iterator[Drift]:
        """The same, for a service that has had all of it; packages are told by the units that they bring."""
        accounts, footing = self.node.accounts, self.footing
        yield from (Drift(f"group {one.name}", "changed") for one in footing.groups if accounts.lacks_group(one))
        yield from (Drift(f"user {one.name}", "changed") for one in footing.users if accounts.lacks_user(one))
        yield from (Drift(f"folder {one.path}", "changed") for one in footing.folders if self._differs(one))
        yield from (Drift(f"kernel module {one}", "unloaded") for one in footing.modules if not self._has_module(one))
        settings = footing.sysctls.items()
        changed = (key for key, value in settings if self._setting(key) != _words(value))
        yield from (Drift(f"kernel setting {key}", "changed") for key in changed)

    def lacks_packages(self) -> bool:
        """Whether packages are still to be installed."""
        return bool(self.node.packages.missing(self.service, self.footing.packages))

    def people(self) -> None:
        """Have the accounts. Packages come later: one that makes an account must find it with its number."""
        for group in self.footing.groups:
            self.node.accounts.have_group(group)
        for user in self.footing.users:
            self.node.accounts.have_user(user)

    def prepare(self, tmpfiles: Path) -> None:
        """Have the rest; `tmpfiles` is the file with those lines."""
        self.node.packages.have(self.service, self.footing.packages)
        for folder in self.footing.folders:
            if self._differs(folder):
                self._have_folder(folder)
        self.settle(tmpfiles)

    def settle(self, tmpfiles: Path) -> None:
        """Have what a start of the node would bring, too: runtime folders, kernel modules and kernel settings."""
        if self.footing.tmpfiles:
            self._run("tmpfiles lines", ["systemd-tmpfiles", "--create", str(tmpfiles)])
        for module in self.footing.modules:
            if not self._has_module(module):
                self._run(f"kernel module {module}", ["modprobe", module])
        for key, value in self.footing.sysctls.items():
            if self._setting(key) != _words(value):
                self._set(key, value)

    def _differs(self, folder: Folder) -> bool:
        try:
            status = Path(folder.path).stat()
        except OSError:
            return True
        owner = folder.owner and status.st_uid != self.node.accounts.uid(folder.owner)
        group = folder.group and status.st_gid != self.node.accounts.gid(folder.group)
        mode = folder.mode is not None and status.st_mode & 0o7777 != folder.mode
        return bool(owner or group or mode) or self.node.labels.differs(Path(folder.path), folder.setype)

    def _have_folder(self, folder: Folder) -> None:
        path = Path(folder.path)
        uid, gid = self.node.accounts.numbers(f"A folder of {self.service}", folder.owner, folder.group)
        new = not path.is_dir()
        self.node.disk.make_folder(path, 0o755 if folder.mode is None else folder.mode, 0o755)
        with disk_faults(path):
            os.chown(path, uid, gid)
            if folder.mode is not None:
                path.chmod(folder.mode)
        if folder.setype:
            self.node.labels.give(path, folder.setype)
        elif new:
            self.node.labels.restore([path])

    def _has_module(self, module: str) -> bool:
        return (self.node.places.kernel / "module" / module.replace("-", "_")).exists()

    def _setting(self, key: str) -> list[str] | None:
        try:
            return _words(self._file(key).read_text())
        except OSError:
            return None

    def _set(self, key: str, value: str) -> None:
        if not self._file(key).exists():
            raise NodeRefused(
                f"The node's kernel has no setting {key}; load the module that brings it, or take it out "
                f"of the definition of {self.service}. The service was not touched."
            )
        self.node.disk.set_value(self._file(key), value)

    def _file(self, key: str) -> Path:
        # As sysctl reads it: dots part the words, and a slash stands for a dot in one, unless slashes part them.
        path = key if "/" in key.partition(".")[0] else key.translate(str.maketrans("./", "/."))
        return self.node.places.settings / path

    def _run(self, what: str, argv: list[str]) -> None:
        answer = self.node.run(argv, {})
        if not answer.ok:
            raise NodeRefused(
                f"The {what} of {self.service} cannot be had on the node: {answer.said}; see to it "
                "there, or change the definition. The service was not touched."
            )


def _words(text: str) -> list[str]:
    return text.split()
