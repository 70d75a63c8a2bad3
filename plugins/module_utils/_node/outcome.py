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
            "node": changes.ground,
            "image": {"before": image[0] or None, "after": image[1]} if image else None,
            "pulled": self.pulled,
            "drift": [{"name": one.name, "what": one.what} for one in self.drift],
            "unfinished": changes.unfinished,
            "unhealthy": changes.unhealthy or None,
            "restarted": self.restarted,
            "restart_pending": self.restart_pending,
            "pruned": self.pruned,
            "warnings": list(self.warnings),
            "msg": self.sentence(check=check),
        }

    def sentence(self, *, check: bool) -> str:
        """The same for a person."""
        name, short = self.service, self.digest[:7]
        if not self.changes.any:
            return f"{name} {short} is live and healthy, nothing to do."
        done = ", ".join(self._done())
        return f"{name} {short} {'would be made' if check else 'is'} live: {done}."

    def _done(self) -> list[str]:
        changes = self.changes
        counted = (
            (len(changes.added), "file", "added"),
            (len(changes.removed), "file", "removed"),
            (len(changes.changed), "file", "changed"),
            (len(changes.units), "unit", "changed"),
            (len(self.changes.ground), "thing of the node", "set right"),
        )
        done = [f"{count} {what}{'s' if count > 1 else ''} {how}" for count, what, how in counted if count]
        if self.drift:
            done.append(f"drift repaired in {', '.join(one.name for one in self.drift)}")
        if changes.unfinished:
            done.append("an unfinished run finished")
        if changes.unhealthy:
            done.append(changes.unhealthy)
        return [*done, "1 restart" if self.restarted else "no restart"]
