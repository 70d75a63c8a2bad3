# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bring a cluster to hold a set of definitions: CRDs first, then what may need them.

An object is ours when it carries our label and nobody has taken it over since. Whatever else
has one of our names came from somebody else, mostly another operator's CRD, and is never written to.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from .client import FIELD_MANAGER, Client, Object, Resource
from .connection import Connection, Settings
from .errors import BadManifestError, KindNotServedError, NotEstablishedError, NotFoundError, one_line
from .manifests import Manifest, load

LABEL = "app.kubernetes.io/managed-by"
OWNER = "edpm.services"
CRD = "CustomResourceDefinition"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
CONTROLLER_GEN = "controller-gen.kubebuilder.io/version"
POLL = 0.25

Result = Literal["created", "updated", "unchanged", "kept"]


@dataclass(frozen=True)
class Outcome:
    """What became of one definition."""

    manifest: Manifest
    result: Result
    reason: str
    warning: str | None = None
    before: Object | None = field(default=None, repr=False)
    after: Object | None = field(default=None, repr=False)

    @property
    def changed(self) -> bool:
        return self.result in ("created", "updated")


def install_definitions(
    settings: Settings, paths: Iterable[Path], *, check: bool, wait_timeout: float
) -> tuple[Outcome, ...]:
    """Read the files, then write what the cluster lacks. With `check` the server only judges."""
    manifests = load(paths)
    with Connection(settings) as connection:
        return Installation(Client(connection, dry_run=check), manifests, wait_timeout).run()


class Installation:
    """One pass over the definitions."""

    def __init__(
        self,
        client: Client,
        manifests: Sequence[Manifest],
        wait_timeout: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._manifests = manifests
        self._wait_timeout = wait_timeout
        self._clock = clock
        self._sleep = sleep
        self._live: dict[tuple[Resource, str | None], dict[str, Object]] = {}

    def run(self) -> tuple[Outcome, ...]:
        foundations = [m for m in self._manifests if m.kind in (CRD, "Namespace")]
        first = [self._converge(m, self._client.resource(m.api_version, m.kind)) for m in foundations]
        if not self._client.dry_run:
            self._await_established([outcome.after for outcome in first if outcome.after is not None])
        rest = [m for m in self._manifests if m not in foundations]
        return tuple(first + [self._follow(m, _announced(first)) for m in rest])

    def _follow(self, manifest: Manifest, announced: frozenset[tuple[str, str]]) -> Outcome:
        """One that may need a CRD or namespace of this pass: not made in a check, perhaps not served yet in a run."""
        needs = {(manifest.api_version, manifest.kind), ("Namespace", manifest.namespace or "")}
        deadline = self._clock() + self._wait_timeout
        while True:
            try:
                return self._converge(manifest, self._client.resource(manifest.api_version, manifest.kind))
            except (KindNotServedError, NotFoundError):
                if not needs & announced or self._clock() >= deadline:
                    raise
            if self._client.dry_run:
                return Outcome(manifest, "created", "the cluster does not have it", after=_labelled(manifest))
            self._sleep(POLL)

    def _converge(self, manifest: Manifest, resource: Resource) -> Outcome:
        if resource.namespaced and manifest.namespace is None:
            raise BadManifestError(f"{manifest} at {manifest.source} has no metadata.namespace; add it.")
        live = self._objects(resource, manifest.namespace).get(manifest.name)
        if live is not None and (reason := _is_somebody_elses(live)):
            return _keep(manifest, live, reason, self._client.server)
        # Force only over what is ours: should somebody else create it this very moment, that is a conflict.
        after = self._client.apply(resource, _labelled(manifest), force=live is not None)
        if live is None:
            return Outcome(manifest, "created", "the cluster does not have it", after=after)
        if essence(live) == essence(after):
            return Outcome(manifest, "unchanged", "the cluster has it", before=live, after=after)
        return Outcome(manifest, "updated", "the cluster has another version of it", before=live, after=after)

    def _objects(self, resource: Resource, namespace: str | None) -> dict[str, Object]:
        """What the cluster has of a kind, read once for all definitions of it."""
        key = (resource, namespace)
        if key not in self._live:
            found = self._client.get_all(resource, namespace)
            self._live[key] = {item["metadata"]["name"]: item for item in found}
        return self._live[key]

    def _await_established(self, applied: Iterable[Object]) -> None:
        waiting = {item["metadata"]["name"] for item in applied if item["kind"] == CRD and not _is_established(item)}
        deadline = self._clock() + self._wait_timeout
        while waiting:
            resource = self._client.resource("apiextensions.k8s.io/v1", CRD)
            found = self._client.get_all(resource, labels=f"{LABEL}={OWNER}")
            late = {item["metadata"]["name"]: item for item in found if not _is_established(item)}
            waiting &= late.keys()
            if waiting and self._clock() >= deadline:
                name = min(waiting)
                raise NotEstablishedError(
                    f"{CRD} {name} is not served by {self._client.server} after {self._wait_timeout:g} s"
                    f"{_complaint(late[name])}; resolve that, or give it more time with wait_timeout."
                )
            if waiting:
                self._sleep(POLL)


def essence(item: Object) -> dict[str, Any]:
    """The object without what only the server writes."""
    kept = {key: value for key, value in item.items() if key != "status"}
    noise = ("managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "selfLink")
    kept["metadata"] = {key: value for key, value in item["metadata"].items() if key not in noise}
    return kept


def _labelled(manifest: Manifest) -> dict[str, Any]:
    metadata = dict(manifest.body["metadata"])
    metadata["labels"] = {**(metadata.get("labels") or {}), LABEL: OWNER}
    return {**{key: value for key, value in manifest.body.items() if key != "status"}, "metadata": metadata}


def _is_somebody_elses(live: Object) -> str | None:
    """Why an object is not ours to write, or None when it is."""
    metadata = live["metadata"]
    if (metadata.get("labels") or {}).get(LABEL) != OWNER:
        return f"it came from somebody else (no label {LABEL}={OWNER}) and stays as it is"
    if live["kind"] == CRD and _is_taken_over(metadata):
        return "somebody else's installer has taken it over, so it stays as it is"
    return None


def _is_taken_over(metadata: Object) -> bool:
    """Whether an operator was installed over a CRD of ours: most tools leave our label where it was."""
    annotations = metadata.get("annotations") or {}
    applied = [
        json.dumps(entry.get("fieldsV1"))
        for entry in metadata.get("managedFields") or ()
        if entry.get("operation") == "Apply" and entry.get("manager") != FIELD_MANAGER and not entry.get("subresource")
    ]
    if LAST_APPLIED in annotations:
        applied.append(annotations[LAST_APPLIED])
    # Who applies one of our files by other means brings the label along, and it stays ours.
    return CONTROLLER_GEN in annotations or any(LABEL not in text for text in applied)


def _keep(manifest: Manifest, live: Object, reason: str, server: str) -> Outcome:
    missing = sorted(_served(manifest.body) - _served(live)) if manifest.kind == CRD else []
    warning = None
    if missing:
        warning = (
            f"{manifest} on {server} came from somebody else and does not serve {', '.join(missing)}, "
            "which edpm.services reads; upgrade the operator that it belongs to."
        )
    return Outcome(manifest, "kept", reason, warning)


def _served(crd: Object) -> set[str]:
    return {version["name"] for version in crd["spec"].get("versions") or () if version.get("served")}


def _conditions(crd: Object) -> Mapping[str, Mapping[str, str]]:
    return {condition["type"]: condition for condition in (crd.get("status") or {}).get("conditions") or ()}


def _is_established(crd: Object) -> bool:
    return _conditions(crd).get("Established", {}).get("status") == "True"


def _complaint(crd: Object) -> str:
    names = _conditions(crd).get("NamesAccepted", {})
    return f": {one_line(names.get('message', ''))}" if names.get("status") == "False" else ""


def _announced(outcomes: Iterable[Outcome]) -> frozenset[tuple[str, str]]:
    """What a real run would have made by now: the kinds of new CRDs, and new namespaces."""
    made: set[tuple[str, str]] = set()
    for outcome in outcomes:
        if outcome.manifest.kind == "Namespace" and outcome.result == "created":
            made.add(("Namespace", outcome.manifest.name))
        elif outcome.manifest.kind == CRD and outcome.changed:
            spec = outcome.manifest.body["spec"]
            made |= {
                (f"{spec['group']}/{version}", spec["names"]["kind"]) for version in _served(outcome.manifest.body)
            }
    return frozenset(made)
