# SPDX-License-Identifier: GPL-3.0-or-later
"""What a person asked for and what then failed, as an Event of the service object that asked: once for each run.

The name of the Event follows from the run's, so that an operator that comes later does not tell it again.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import UTC, datetime

from .._control.events import EVENTS, Event
from .._control.look import World
from .._control.standing import Standing
from .._kube.client import Client
from .._kube.errors import ConflictError, KubernetesError
from .deciding import ASKED_BY, RESTART_TASK, ROLLBACK_TASK
from .runs import Failed

LOG = logging.getLogger("edpm.operator")
_WORDS = {RESTART_TASK: "restart it", ROLLBACK_TASK: "roll it back"}
_ASKED = {task: asked for task, asked, *_dealt in ASKED_BY}


class Failures:
    """Tells them; those that it has told of are known as long as their Jobs are there."""

    def __init__(self) -> None:
        self._known: frozenset[str] = frozenset()

    def tell(self, client: Client, world: World, failed: Collection[Failed]) -> None:
        """Tell what is new of these, which are all that are there."""
        asking = {one.uid: one for one in world.service_objects()}
        for run in failed:
            if run.uid not in self._known and run.asker in asking:
                _tell(client, asking[run.asker], run)
        self._known = frozenset(run.uid for run in failed)


def _tell(client: Client, one: Standing, run: Failed) -> None:
    meant = f"Job {run.namespace}/{run.name}, which was to {_WORDS[run.task]},"
    said = f"{meant} {run.why} Then give {_ASKED[run.task]} another value."
    event = Event(one, "Warning", f"{run.task.capitalize()}Failed", said)
    body = event.body(datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    body["metadata"]["name"] = f"{one.ref.name[:200]}.{run.uid}"
    try:
        client.create(EVENTS, body)
    except ConflictError:
        return
    except KubernetesError as error:
        LOG.debug("%s", error)
    LOG.warning("%s: %s", one.ref, said)
