# SPDX-License-Identifier: GPL-3.0-or-later
"""Carries out chains of steps, many nodes at a time. What fails on one object does not stop the other nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from .._dataplane.model import Reference
from .._kube.client import Client, Object, Resource
from .._kube.errors import (
    ConflictError,
    KindNotServedError,
    KubernetesError,
    NotAllowedError,
    NotFoundError,
    RefusedError,
)
from .._kube.live import is_partners
from .chains import Apply, Chain, Create, LetGo, RequestRemoval, SetMark, Step, taken_over
from .inventories import WriteInventory
from .marks import Compute
from .names import (
    DEPLOYED_CELL,
    FINALIZER,
    IMAGES_MANAGER,
    KEPT,
    MARKS_MANAGER,
    REMOVAL,
    REMOVAL_MANAGER,
    REQUESTED,
    WRITER,
)
from .standing import Standing, standing

AT_ONCE = 8
ATTEMPTS = 3
#: What concerns one object; all else, such as a missing right, would fail for the next one too.
OF_ONE_OBJECT = (RefusedError, ConflictError, NotFoundError, KindNotServedError)

Result = Literal[
    "created", "updated", "written", "kept", "marked", "leaving", "returned", "removed", "refused", "failed"
]  # fmt: skip
_Asked = TypeVar("_Asked")
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one object."""

    ref: Reference
    node: str
    result: Result
    sentence: str
    changed: bool = True
    before: Mapping[str, Any] | None = field(default=None, repr=False)
    after: Mapping[str, Any] | None = field(default=None, repr=False)
    compute: Compute | None = None


@dataclass
class _Way:
    """How far a chain has come: what the steps before have found out."""

    node: str
    uids: dict[Reference, str] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)
    outcomes: list[Outcome] = field(default_factory=list)
    failed: dict[Reference, Step] = field(default_factory=dict)

    def fail(self, step: Step, sentence: str) -> None:
        """What relies on this step is not done either."""
        self.outcomes.append(Outcome(step.ref, self.node, "failed", sentence, changed=False))
        self.failed[step.ref] = step

    def spares(self, step: Step) -> bool:
        """Whether a step relies on one that has failed: another of that object, or one that was for its sake alone."""
        if not self.failed:
            return False
        if isinstance(step, SetMark):
            return any(one.is_compute for one in self.failed.values())
        return step.ref in self.failed or (isinstance(step, WriteInventory) and step.due <= self.failed.keys())


class Applier:
    """Writes to one cluster."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._missing: dict[tuple[str, str], KindNotServedError] = {}
        #: What may not be done to partners' kinds, by namespace and kind of step: asked for once, not for every node.
        self._forbidden: dict[tuple[str, str, str, str], str] = {}

    def run(self, chains: Iterable[Chain]) -> list[Outcome]:
        """All chains, a few at a time, and every outcome in their order."""
        return [outcome for outcomes in at_once(self._chain, chains) for outcome in outcomes]

    def marks(self, steps: Iterable[SetMark]) -> list[Outcome]:
        """Marks that belong to no node's chain."""
        return self.run(Chain(step.ref.namespace, "", (step,)) for step in steps)

    def _chain(self, chain: Chain) -> list[Outcome]:
        """What fails on a partner's object concerns that object alone; all else ends the chain."""
        way = _Way(chain.node)
        for step in chain.steps:
            if way.spares(step):
                continue
            if sentence := self._tried(step, way):
                way.fail(step, sentence)
                if not is_partners(step.api_version, step.ref.kind):
                    break
        return way.outcomes

    def _tried(self, step: Step, way: _Way) -> str:
        """Do it. The answer is what failed, if anything did; a missing right on a kind of ours concerns everything."""
        key = (step.ref.namespace, step.api_version, step.ref.kind, type(step).__name__)
        if key not in self._forbidden:
            try:
                self._do(step, way)
            except OF_ONE_OBJECT as error:
                return told(error, step.ref)
            except NotAllowedError as error:
                sentence = lacking(error, step.api_version, step.ref)
                if not is_partners(step.api_version, step.ref.kind):
                    raise NotAllowedError(sentence) from error
                self._forbidden[key] = sentence
        return self._forbidden.get(key, "")

    def _resource(self, step: Step) -> Resource:
        """Where the kind is served; one that is not is asked for once, not for every node."""
        key = (step.api_version, step.ref.kind)
        if key in self._missing:
            raise self._missing[key]
        try:
            return self._client.resource(*key)
        except KindNotServedError as error:
            self._missing[key] = error
            raise

    def _do(self, step: Step, way: _Way) -> None:
        match step:
            case Create():
                self._create(step, way)
            case WriteInventory():
                self._write_inventory(step, way)
            case Apply():
                self._apply(step, way)
            case RequestRemoval():
                self._request_removal(step, way)
            case LetGo():
                self._let_go(step, way)
            case SetMark():
                self._set_mark(step, way)

    def _create(self, step: Create, way: _Way) -> None:
        resource = self._resource(step)
        try:
            made: Object | None = self._client.apply(resource, step.body(), force=False, manager=IMAGES_MANAGER)
        except ConflictError:  # somebody makes it this very moment, with images of their own
            made = self._client.get(resource, step.ref.name, step.ref.namespace)
        way.uids[step.ref] = str((made or {}).get("metadata", {}).get("uid", ""))

    def _write_inventory(self, step: WriteInventory, way: _Way) -> None:
        resource = self._resource(step)
        kept = list(self._unseen_owners(step, resource)) if step.unseen else []
        try:
            after = self._client.apply(resource, step.body(way.uids, kept), force=False)
        except ConflictError:
            way.kept.add(step.ref.name)
            held = self._hold(step, way)
            sentence = "the data plane operator's, or another's, is there"
            sentence += "; it stays until the node's service objects have gone" if held else ""
            way.outcomes.append(Outcome(step.ref, way.node, "kept", sentence, changed=held))
            return
        after = {name: after[name] for name in ("apiVersion", "kind", "data")}
        way.outcomes.append(Outcome(step.ref, way.node, "written", "how the node is reached", after=after))

    def _unseen_owners(self, step: WriteInventory, resource: Resource) -> Iterator[Mapping[str, Any]]:
        """Service objects that cannot be seen and that the inventory belongs to: it must not go before them."""
        live = self._client.get(resource, step.ref.name, step.ref.namespace) or {}
        for owner in live.get("metadata", {}).get("ownerReferences") or ():
            if (str(owner.get("apiVersion")).rpartition("/")[0], owner.get("kind")) in step.unseen:
                yield owner

    def _hold(self, step: WriteInventory, way: _Way) -> bool:
        """Make the node's service objects owners too, so that another's inventory does not go with the Node.

        One that nobody owns stays by itself, and must not go with our objects. What others write meanwhile is kept.
        """
        resource = self._resource(step)
        ours = step.body(way.uids)["metadata"]["ownerReferences"]
        for attempt in range(ATTEMPTS):
            live = self._client.get(resource, step.ref.name, step.ref.namespace) or {}
            owners = list(live.get("metadata", {}).get("ownerReferences") or ())
            missing = [one for one in ours if one["uid"] not in {owner["uid"] for owner in owners}]
            if not owners or not missing:
                return False
            named = {name: live["metadata"][name] for name in ("name", "namespace", "resourceVersion")}
            try:
                self._client.merge(resource, {"metadata": {**named, "ownerReferences": [*owners, *missing]}})
            except ConflictError:
                if attempt + 1 == ATTEMPTS:
                    raise
            else:
                break
        return True

    def _apply(self, step: Apply, way: _Way) -> None:
        resource = self._resource(step)
        said = KEPT if step.wanted.spec["inventoryConfigMapName"] in way.kept else step.inventory
        uid = step.stands.uid if step.stands is not None else way.uids.get(step.ref)
        if self._client.dry_run and step.stands is None:
            uid = None  # nothing was made that could have one
        stands = step.stands
        try:
            after = self._client.apply(resource, step.body(stands, said, uid), force=False)
        except ConflictError:
            # Somebody holds one of our fields. What a person may take over is theirs, the rest follows Node and Role.
            live = self._client.get(resource, step.ref.name, step.ref.namespace)
            stands = standing(live) if live is not None else None
            if stands is None or stands.deleting or (uid and stands.uid != uid):
                raise
            after = self._client.apply(resource, step.body(stands, said, stands.uid), force=True)
        cell = step.wanted.cell
        compute = Compute(step.ref.namespace, way.node, cell) if cell and step.wanted.is_compute else None
        way.outcomes.append(
            Outcome(
                step.ref,
                way.node,
                "created" if step.stands is None else "updated",
                _note(step, stands) or ("its node asks for it" if step.stands is None else "Node and Role say so"),
                before=shown(step.stands),
                after=shown(standing(after)),
                compute=compute,
            )
        )

    def _request_removal(self, step: RequestRemoval, way: _Way) -> None:
        resource = self._resource(step)
        self._client.apply(resource, step.body(), force=True, manager=REMOVAL_MANAGER)
        result: Result = "leaving" if step.requested else "returned"
        known, meant = {REMOVAL: step.stands.annotations.get(REMOVAL)}, {REMOVAL: REQUESTED if step.requested else None}
        way.outcomes.append(Outcome(step.ref, way.node, result, step.sentence, before=known, after=meant))

    def _let_go(self, step: LetGo, way: _Way) -> None:
        stands = step.going.stands
        resource = self._resource(step)
        if not stands.deleting:
            with suppress(NotFoundError):
                self._client.delete(resource, step.ref.name, step.ref.namespace, uid=stands.uid)
        self._release(resource, stands)
        sentence = "a person has abandoned it" if step.going.abandoned else "its services are off the node"
        way.outcomes.append(Outcome(step.ref, way.node, "removed", sentence, before=shown(stands)))

    def _set_mark(self, step: SetMark, way: _Way) -> None:
        resource = self._resource(step)
        self._client.apply(resource, step.body(), force=True, manager=MARKS_MANAGER)
        known = {DEPLOYED_CELL: step.mark.stands.annotations.get(DEPLOYED_CELL)}
        meant = {DEPLOYED_CELL: step.mark.cell}
        way.outcomes.append(Outcome(step.ref, way.node, "marked", step.mark.sentence, before=known, after=meant))

    def _release(self, resource: Resource, stands: Standing) -> None:
        """Take our finalizer off, and nobody else's; again where somebody writes at the same time."""
        for attempt in range(ATTEMPTS):
            live = self._client.get(resource, stands.ref.name, stands.ref.namespace)
            meta = (live or {}).get("metadata", {})
            if meta.get("uid") != stands.uid or FINALIZER not in (meta.get("finalizers") or ()):
                return
            others = [name for name in meta["finalizers"] if name != FINALIZER]
            named = {name: meta[name] for name in ("name", "namespace", "resourceVersion")}
            try:
                self._client.merge(resource, {"metadata": {**named, "finalizers": others}})
            except NotFoundError:
                return
            except ConflictError:
                if attempt + 1 == ATTEMPTS:
                    raise
            else:
                return


def at_once(ask: Callable[[_Asked], _Answer], asked: Iterable[_Asked]) -> list[_Answer]:
    """All answers in the order of the questions, a few at a time; an error that concerns all of them ends it."""
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="edpm-control") as threads:
        try:
            return list(threads.map(ask, asked))
        except BaseException:
            threads.shutdown(wait=True, cancel_futures=True)
            raise


def lacking(error: NotAllowedError, api_version: str, ref: Reference) -> str:
    """The sentence about a right to write that is missing, with what helps."""
    said = str(error).rstrip(".")
    if is_partners(api_version, ref.kind):
        return (
            f"{said}; what helps is a ClusterRole with the verbs of {WRITER} on this kind, bound to the account in "
            f"namespace {ref.namespace}: the kind comes from a partner's definition."
        )
    return f"{said}; what helps is a RoleBinding to the ClusterRole {WRITER} in namespace {ref.namespace}."


def told(error: KubernetesError, ref: Reference) -> str:
    """The error's sentence; for a field that the cluster's CRD lacks, one that says whose fault it is."""
    text = str(error)
    if "unknown field" not in text and "field not declared in schema" not in text:
        return text
    return (
        f"{text.rstrip('.')}. The CRD of {ref.kind} in this cluster is of another version than this collection writes; "
        "upgrade the operator that it belongs to, or install the collection's own with edpm.services.install_cluster."
    )


def _note(step: Apply, stands: Standing | None) -> str:
    """What a person holds and Node or Role would set otherwise."""
    if stands is None:
        return ""
    held = [name for name in step.wanted.spec if taken_over(step.wanted, stands, name)]
    return "; ".join(f"spec.{name} stays {stands.spec.get(name)}, set by {stands.theirs[name]}" for name in held)


def shown(stands: Standing | None) -> dict[str, Any] | None:
    """A service object as a difference shows it: what we and others have set, without what the server adds."""
    if stands is None:
        return None
    metadata = {"name": stands.ref.name, "namespace": stands.ref.namespace, "annotations": dict(stands.annotations)}
    owners = {"ownerReferences": [owner.body() for owner in stands.owners]} if stands.owners else {}
    finalizers = {"finalizers": list(stands.finalizers)} if stands.finalizers else {}
    return {
        "apiVersion": stands.api_version,
        "kind": stands.ref.kind,
        "metadata": {**metadata, **owners, **finalizers},
        "spec": dict(stands.spec),
    }
