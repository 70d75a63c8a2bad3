# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""SELinux labels, on nodes that have them; on others nothing is asked and nothing is run.

A file that was written beside its place and renamed has the label of its folder, which is right only by chance, so what
is put outside the generations gets the label that the node's policy has for its place, except in a folder that podman
has labelled for containers. The generations themselves are left alone: podman labels them for the container that mounts
them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from .commands import Run
from .errors import NodeRefused

_ATTRIBUTE = "security.selinux"
#: The type of what containers share.
_SHARED = "container_file_t"


class Labels:
    """The labels of the node's files."""

    def __init__(self, run: Run, kernel: Path) -> None:
        self._run = run
        self._sign = kernel / "fs/selinux/enforce"

    @property
    def used(self) -> bool:
        """Whether SELinux is on, enforcing or not."""
        return self._sign.exists()

    def kind(self, path: Path) -> str:
        """The type in a file's label, empty where it has none."""
        try:
            label = os.getxattr(path, _ATTRIBUTE, follow_symlinks=False).rstrip(b"\0").decode("ascii", "replace")
        except OSError:
            return ""
        return [*label.split(":"), "", "", ""][2]

    def differs(self, path: Path, kind: str) -> bool:
        """Whether a path has another type than it should have."""
        return bool(kind) and self.used and self.kind(path) != kind

    def give(self, path: Path, kind: str) -> None:
        """Set a path's type. What is made in a folder later takes the folder's, so its contents are not walked."""
        if self.differs(path, kind):
            self._do(["chcon", f"--type={kind}", "--", str(path)], path)

    def restore(self, paths: Iterable[Path]) -> None:
        """Give paths the labels of the node's policy; what lies in a folder that containers share stays theirs.

        Only some policies keep restorecon from taking such a file away from them, so it is not asked about these.
        """
        if not self.used:
            return
        listed = list(paths)
        shared = [path for path in listed if self.kind(path.parent) == _SHARED]
        for path in shared:
            self.give(path, _SHARED)
        others = [str(path) for path in listed if path not in shared]
        if others:
            self._do(["restorecon", "--", *others], Path(others[0]))

    def _do(self, argv: list[str], path: Path) -> None:
        answer = self._run(argv, {})
        if not answer.ok:
            raise NodeRefused(
                f"The SELinux label of {path} cannot be set on the node: {answer.said}; see to it there, then run "
                "again."
            )
