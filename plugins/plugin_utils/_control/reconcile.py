# SPDX-License-Identifier: GPL-3.0-or-later
"""One pass: read, see what is missing, write it. A pass that is cut short is finished by the next."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from .._dataplane.model import Reference
from .._kube.connection import Connection, Settings
from .._kube.live import STORES
from .applying import Applier, Outcome, at_once
from .chains import SetMark, chains
from .inventories import inventory_of
from .leaving import Going, leaving_objects, unreached_sentence
from .look import WatchfulClient, World, look
from .marks import computes_of, role_marks
from .wanted import Chosen, Wanted, wanted_objects


@dataclass(frozen=True)
class Pass:
    """What a pass has found and done. `unchanged` are objects that no request was made for."""

    outcomes: tuple[Outcome, ...]
    going: tuple[Going, ...]
    unchanged: int
    warnings: tuple[str, ...] = ()


def reconcile(
    settings: Settings, namespaces: Sequence[str], chosen: Chosen, *, check: bool, leaving_only: bool = False
) -> Pass:
    """Open a connection, make one pass, close it. With `check` the server only judges."""
    with Connection(settings) as connection:
        client = WatchfulClient(connection, dry_run=check)
        return one_pass(client, namespaces, chosen, leaving_only=leaving_only)


def one_pass(client: WatchfulClient, namespaces: Sequence[str], chosen: Chosen, *, leaving_only: bool = False) -> Pass:
    """The same with a client that is there already."""
    return pass_over(client, look(client, namespaces), chosen, leaving_only=leaving_only)


def pass_over(
    client: WatchfulClient,
    world: World,
    chosen: Chosen,
    *,
    leaving_only: bool = False,
    lost: Collection[Reference] = (),
) -> Pass:
    """The same with a cluster that was read already. With `leaving_only` no object is made or kept in step.

    `lost` are inventories that are known not to be there. Those of nodes that are chosen by name are looked at here.
    """
    wanted, untouched = wanted_objects(world, chosen)
    staying = {one.ref for one in wanted}
    going, unjudged = leaving_objects(world, staying, chosen)
    applier = Applier(client)
    coming = [] if leaving_only else wanted
    if chosen.nodes:
        lost = {*lost, *_lost(client, coming)}
    outcomes = applier.run(chains(world, coming, going, chosen, lost))
    outcomes += applier.marks(_role_marks(world, outcomes))
    spared = [
        Outcome(one.ref, one.node, "refused" if one.refused else "kept", one.sentence, changed=False)
        for one in (*untouched, *unjudged)
    ]
    touched = {outcome.ref for outcome in outcomes}
    unchanged = sum(1 for one in wanted if one.ref not in touched)
    unreached = (unreached_sentence(world, one.stands) for one in going if not one.free)
    warnings = (*world.plan.warnings, *_unknown(world, chosen), *filter(None, unreached))
    return Pass((*outcomes, *spared), tuple(going), unchanged, warnings)


def _lost(client: WatchfulClient, wanted: Iterable[Wanted]) -> set[Reference]:
    """The inventories of objects that are not there: a request for each, so this is for a few nodes."""
    named = sorted({inventory_of(one) for one in wanted})
    found = at_once(lambda ref: client.get(STORES[ref.kind], ref.name, ref.namespace), named)
    return {ref for ref, body in zip(named, found, strict=True) if body is None}


def _unknown(world: World, chosen: Chosen) -> list[str]:
    """A sentence for every chosen node that nobody describes."""
    known = {name for _namespace, name in world.described} | {one.node for one in world.service_objects()}
    return [
        f"No Node, NodeSet or service object is called or names {name}; look at the node's name and the namespaces."
        for name in sorted(chosen.nodes - known)
    ]


def _role_marks(world: World, outcomes: Sequence[Outcome]) -> list[SetMark]:
    """After the nodes, since a mark tells what is, not what was meant."""
    gone = [outcome.ref for outcome in outcomes if outcome.result == "removed"]
    made = {outcome.ref: outcome.compute for outcome in outcomes if outcome.compute is not None}
    return [SetMark(mark) for mark in role_marks(world, computes_of(world, gone, made))]
