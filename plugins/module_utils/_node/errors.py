# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What can go wrong on a node, one type per thing that a user can do something about.

The text of each is for a person: the object, the fault, the remedy.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class NodeError(Exception):
    """Base of all of them; its text can be shown as it is."""

    #: What is to be told besides, of a run that came further.
    warnings: tuple[str, ...] = ()


class BadBundle(NodeError):
    """What came in is no bundle that this version understands."""


class NotPrepared(NodeError):
    """The node lacks podman, Quadlet or systemd, or has too old ones."""


class Busy(NodeError):
    """Another run works on this node."""


class Guarded(NodeError):
    """The node belongs to another cell, or the service goes by another host name."""


class ImageMissing(NodeError):
    """The image is not on the node and cannot be brought there."""


class DiskFault(NodeError):
    """A file cannot be read or written."""


class Invalid(NodeError):
    """The image's own validator refuses the configuration."""


class UnitRefused(NodeError):
    """Quadlet makes no unit of the text."""


class NodeRefused(NodeError):
    """A user, a folder, a kernel setting or a kernel module cannot be had."""


class Unhealthy(NodeError):
    """The unit does not come up, or does not stay up."""

    def __init__(self, message: str, *, waits: bool = False) -> None:
        super().__init__(message)
        #: Whether it lacks only what it works with.
        self.waits = waits


class NothingBefore(NodeError):
    """There is no generation to go back to, or it is no longer what it was."""


class InUse(NodeError):
    """A service that still does something for somebody is to be removed."""

    def __init__(self, message: str, lines: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.lines = lines


class Failed(NodeError):
    """A switch that did not work, with what became of the service."""

    def __init__(
        self, message: str, *, log: tuple[str, ...] = (), rolled_back: bool = False, changed: bool = False
    ) -> None:
        super().__init__(message)
        self.log = log
        self.rolled_back = rolled_back
        #: Whether something on the node is not as it was.
        self.changed = changed or rolled_back


def one_line(text: object) -> str:
    """The text without line breaks and without a full stop at its end."""
    return " ".join(str(text).split()).rstrip(".;")


@contextmanager
def disk_faults(path: Path) -> Iterator[None]:
    """Tell of a disk's fault in a sentence that names the file."""
    try:
        yield
    except OSError as error:
        raise DiskFault(f"{path}: {one_line(error.strerror or error)}; {_remedy(error.errno)}.") from error


def _remedy(number: int | None) -> str:
    if number in (errno.ENOSPC, errno.EDQUOT):
        return "make room on that file system, then run again: what was live still is"
    if number == errno.EROFS:
        return "that file system is read-only, mount it writable, then run again"
    if number in (errno.EACCES, errno.EPERM):
        return "run as root (become), and look for what forbids root to write there"
    return "look at that path on the node, then run again"
