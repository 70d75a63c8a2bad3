# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects as they stand in the cluster, with what a writer must know of them: who they are, whose fields are whose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .._dataplane.model import Reference
from .names import MANAGER, MANAGERS, OWNING_PREFIX

_OURS = "edpm.openstack.org/"


@dataclass(frozen=True, slots=True)
class Owner:
    """Who an object belongs to."""

    api_version: str
    kind: str
    name: str
    uid: str

    def body(self) -> dict[str, str]:
        """As an owner reference. It does not block its owner: that would need a right on it."""
        return {"apiVersion": self.api_version, "kind": self.kind, "name": self.name, "uid": self.uid}


@dataclass(frozen=True, slots=True)
class Standing:
    """One object. `ours` are the fields of its spec that we apply, `theirs` those of others and who holds them.

    Of annotations only those of this collection are kept; `spec` and `status` are there for service objects alone.
    """

    ref: Reference
    api_version: str
    uid: str
    version: str = ""
    generation: int = 0
    created: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    owners: tuple[Owner, ...] = ()
    deleting: bool = False
    spec: Mapping[str, Any] = field(default_factory=dict)
    status: Mapping[str, Any] = field(default_factory=dict)
    ours: frozenset[str] = frozenset()
    theirs: Mapping[str, str] = field(default_factory=dict)

    @property
    def node(self) -> str:
        """The node that a service object is for."""
        return str(self.spec.get("dataplaneNodeName") or self.ref.name)

    @property
    def instance(self) -> str:
        """The instance of the service, "" for the plain one."""
        return str(self.spec.get("instance") or "")

    @property
    def by_hand(self) -> bool:
        """Whether a person made it and no Node has taken it over."""
        return not any(owner.kind.startswith(OWNING_PREFIX) for owner in self.owners)

    @property
    def observed(self) -> int:
        """The generation that its status tells of, 0 where it tells of none."""
        found = self.status.get("observedGeneration")
        return found if isinstance(found, int) else 0

    def condition(self, name: str) -> Mapping[str, Any]:
        """One condition of the status, empty where it is not there."""
        found = self.status.get("conditions")
        for one in found if isinstance(found, list) else ():
            if isinstance(one, Mapping) and one.get("type") == name:
                return one
        return {}

    def owner(self) -> Owner:
        """This object as the owner of others."""
        return Owner(self.api_version, self.ref.kind, self.ref.name, self.uid)


def standing(body: Mapping[str, Any]) -> Standing | None:
    """What is kept of an object; None for kinds that are only read."""
    kind, meta = str(body.get("kind", "")), body.get("metadata") or {}
    spec = body.get("spec") or {}
    service = isinstance(spec, Mapping) and "dataplaneNodeName" in spec
    if not service and not kind.startswith(OWNING_PREFIX):
        return None
    held = _holders(meta) if service else {}
    return Standing(
        ref=Reference(kind, meta.get("namespace", ""), meta.get("name", "")),
        api_version=str(body.get("apiVersion", "")),
        uid=meta.get("uid", ""),
        version=meta.get("resourceVersion", ""),
        generation=meta.get("generation", 0),
        created=str(meta.get("creationTimestamp") or ""),
        annotations={name: value for name, value in (meta.get("annotations") or {}).items() if name.startswith(_OURS)},
        finalizers=tuple(meta.get("finalizers") or ()),
        owners=tuple(_owners(meta)),
        deleting="deletionTimestamp" in meta,
        spec=spec if service else {},
        status=(body.get("status") or {}) if service else {},
        ours=frozenset(name for name, holders in held.items() if MANAGER in holders),
        theirs={
            name: min(others) for name, holders in held.items() if (others := [h for h in holders if h not in MANAGERS])
        },
    )


def _owners(meta: Mapping[str, Any]) -> Iterator[Owner]:
    for one in meta.get("ownerReferences") or ():
        yield Owner(one.get("apiVersion", ""), one.get("kind", ""), one.get("name", ""), one.get("uid", ""))


def _holders(meta: Mapping[str, Any]) -> dict[str, set[str]]:
    """Who holds which field of the spec. Our own manager holds what it applied, not what came in another way."""
    found: dict[str, set[str]] = {}
    for entry in meta.get("managedFields") or ():
        if entry.get("subresource"):
            continue
        manager = str(entry.get("manager", ""))
        if manager == MANAGER and entry.get("operation") != "Apply":
            continue
        for name in (entry.get("fieldsV1") or {}).get("f:spec") or {}:
            if name.startswith("f:"):
                found.setdefault(name.removeprefix("f:"), set()).add(manager)
    return found
