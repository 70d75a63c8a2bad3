# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run did, or would do, in the words of the module's return values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from .changes import Changes
from .generations import Drift


@dataclass(frozen=True)
class Outcome:
    """The end of a run."""

    service: str
    digest: str
    before: str
    changes: Changes
    drift: tuple[Drift, ...]
    restarted: bool
    pulled: bool
    diff: list[dict[str, str]] = field(repr=False)
    pruned: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    restart_pending: bool = False
    reloaded: bool = False

    def but(self, **changes: Any) -> Outcome:
        """The same with something else in it."""
        return replace(self, **changes)

    def result(self, *, check: bool) -> dict[str, Any]:
        """The return values."""
        changes = self.changes
        image = changes.image
        return {
            "changed": changes.any,
            "service": self.service,
            "digest": self.digest,
            "digest_before": self.before or None,
            "files": {"added": changes.added, "removed": changes.removed, "changed": changes.changed},
            "units": changes.units,
            "live": changes.live,
            "node": changes.ground,
            "image": {"before": image[0] or None, "after": image[1]} if image else None,
            "pulled": self.pulled,
            "drift": [{"name": one.name, "what": one.what} for one in self.drift],
            "unfinished": changes.unfinished,
            "unhealthy": changes.unhealthy or changes.waits or None,
            "restarted": self.restarted,
            "reloaded": self.reloaded,
            "restart_pending": self.restart_pending,
            "pruned": self.pruned,
            "warnings": list(self.warnings),
            "msg": self.sentence(check=check),
        }

    def sentence(self, *, check: bool) -> str:
        """The same for a person."""
        name, short = self.service, self.digest[:7]
        if not self.changes.any:
            return f"{name} {short} is live{'' if self.changes.waits else ' and healthy'}, nothing to do."
        done = ", ".join(self._done())
        return f"{name} {short} {'would be made' if check else 'is'} live: {done}."

    def _done(self) -> list[str]:
        changes = self.changes
        counted = (
            (len(changes.added), "file", "added"),
            (len(changes.removed), "file", "removed"),
            (len(changes.changed), "file", "changed"),
            (len(changes.units), "unit", "changed"),
            (len(changes.live), "live file", "set"),
            (len(changes.ground), "thing", "of the node set right"),
        )
        done = [f"{count} {what}{'s' if count > 1 else ''} {how}" for count, what, how in counted if count]
        if self.drift:
            done.append(f"drift repaired in {', '.join(one.name for one in self.drift)}")
        if changes.unfinished:
            done.append("an unfinished run finished")
        if changes.unhealthy:
            done.append(changes.unhealthy)
        if self.reloaded:
            done.append("read again by the service")
        return [*done, "1 restart" if self.restarted else "no restart"]


@dataclass(frozen=True)
class Prefetch:
    """An image that was brought to the node, or would be."""

    service: str
    digest: str
    image: str
    pulled: bool
    diff: list[dict[str, str]] = field(default_factory=list)

    def result(self, *, check: bool) -> dict[str, Any]:
        """The return values."""
        return {
            "changed": self.pulled,
            "service": self.service,
            "digest": self.digest,
            "pulled": self.pulled,
            "warnings": [],
            "msg": self.sentence(check=check),
        }

    def sentence(self, *, check: bool) -> str:
        """The same for a person."""
        if not self.image:
            return f"{self.service} needs no image."
        if not self.pulled:
            return f"The image {self.image} of {self.service} is on the node, nothing to do."
        return f"The image {self.image} of {self.service} {'would be' if check else 'was'} pulled."


@dataclass(frozen=True)
class Removed:
    """A service that was taken off the node, or would be."""

    service: str
    before: str
    paths: tuple[str, ...]
    node: tuple[str, ...]
    kept: tuple[str, ...]
    busy: tuple[str, ...]
    diff: list[dict[str, str]] = field(repr=False)

    def result(self, *, check: bool) -> dict[str, Any]:
        """The return values."""
        return {
            "changed": bool(self.paths),
            "service": self.service,
            "digest": None,
            "digest_before": self.before or None,
            "removed": self.paths,
            "node": self.node,
            "kept": self.kept,
            "busy": self.busy,
            "warnings": [],
            "msg": self.sentence(check=check),
        }

    def sentence(self, *, check: bool) -> str:
        """The same for a person."""
        if not self.paths:
            return f"{self.service} is not on the node, nothing to do."
        stays = f"; its data stays in {', '.join(self.kept)}" if self.kept else ""
        return f"{self.service} {'would be' if check else 'was'} removed from the node{stays}."
