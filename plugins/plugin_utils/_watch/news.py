# SPDX-License-Identifier: GPL-3.0-or-later
"""Which of the things that a cluster tells are news: a status is none, unless a plan depends on it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from .._control.names import SERVICES_MESSAGE, SERVICES_READY

#: Annotations that say what has become of something; nobody acts upon them.
_TOLD = frozenset((SERVICES_READY, SERVICES_MESSAGE, "kubectl.kubernetes.io/last-applied-configuration"))
#: Parts of objects without a generation.
_PARTS = ("data", "stringData", "binaryData", "immutable")

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """Something that happened to an object. Contents are no part of it.

    `what` is `listed` for one that was there from the beginning, `added`, `modified` or `deleted`.
    """

    what: str
    api_version: str
    kind: str
    namespace: str
    name: str
    annotations: Mapping[str, str]

    def data(self) -> dict[str, Any]:
        """For a program."""
        return {
            "what": self.what,
            "apiVersion": self.api_version,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "annotations": dict(self.annotations),
        }


class Memory:
    """Remembers of every object a fingerprint, so that only what makes a difference is a change."""

    def __init__(self, begun: datetime | None = None) -> None:
        self._known: dict[str, str] = {}
        self._begun = begun or datetime.now(UTC)

    def change(self, type_: str | None, body: Body) -> Change | None:
        """What an event means; None where it means nothing. An event of a first or a repeated list has no type."""
        meta = body.get("metadata") or {}
        uid = str(meta.get("uid", ""))
        if type_ == "DELETED":
            self._known.pop(uid, None)
            return _change("deleted", body)
        print_ = fingerprint(body)
        before = self._known.get(uid)
        self._known[uid] = print_
        if before == print_:
            return None
        if before is not None:
            return _change("modified", body)
        # A list that is repeated, since the server had forgotten where the watch was, holds what came meanwhile.
        return _change("listed" if type_ is None and not self._is_new(meta) else "added", body)

    def _is_new(self, meta: Body) -> bool:
        try:
            return datetime.fromisoformat(str(meta.get("creationTimestamp"))) > self._begun
        except (ValueError, TypeError):
            return False


def fingerprint(body: Body) -> str:
    """A digest over all that a plan, a reconciler or the operator may depend on."""
    meta, status = body.get("metadata") or {}, body.get("status") or {}
    annotations = {name: value for name, value in (meta.get("annotations") or {}).items() if name not in _TOLD}
    parts: list[Any] = [meta.get("generation"), annotations, bool(meta.get("deletionTimestamp"))]
    parts.append(None if "dataplaneNodeName" in (body.get("spec") or {}) else _conditions(status))
    parts.append({name: body[name] for name in _PARTS if name in body})
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def _conditions(status: Body) -> list[tuple[str, str]]:
    """Of objects that others run: phase 0, a cell, a Job. Our own service objects' status is ours."""
    found = status.get("conditions")
    listed = [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []
    return sorted((str(one.get("type")), str(one.get("status"))) for one in listed)


def _change(what: str, body: Body) -> Change:
    meta = body.get("metadata") or {}
    return Change(
        what=what,
        api_version=str(body.get("apiVersion", "")),
        kind=str(body.get("kind", "")),
        namespace=str(meta.get("namespace", "")),
        name=str(meta.get("name", "")),
        annotations={name: value for name, value in (meta.get("annotations") or {}).items() if name not in _TOLD},
    )
