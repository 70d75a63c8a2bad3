# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting for a run: a line for the person who waits whenever something changes, and an end where waiting is no use."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from .._kube.client import Client, Resource
from .._kube.errors import KubernetesError, NotAllowedError
from .order import Order
from .standing import Pod, Standing, obstacle, waits_for, warning

POLL = 1.0
#: Seconds that a pod may take before its events are asked for.
PATIENCE = 10.0
EVENTS = Resource("v1", "Event", "events", namespaced=True)


class HopelessError(KubernetesError):
    """The run cannot get anywhere unless somebody changes something."""


class NotDoneError(KubernetesError):
    """It takes longer than somebody wants to wait."""


class Engine(Protocol):
    """What a run is made of in the cluster."""

    kind: str
    start: str

    def find(self) -> Standing | None: ...

    def begin(self) -> bool: ...

    def mend(self) -> None: ...

    def look(self) -> Standing: ...

    def pods(self) -> list[Pod]: ...

    def remove(self) -> None: ...

    def manifest(self) -> list[dict[str, object]]: ...


class Watch:
    """Follows one run."""

    def __init__(
        self,
        client: Client,
        order: Order,
        engine: Engine,
        say: Callable[[str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client, self._order, self._engine, self._say = client, order, engine, say
        self._clock, self._sleep = clock, sleep
        self._told: set[str] = set()
        self._line = ""

    def to_the_end(self, timeout: float) -> Standing:
        """How the run stands when it is over."""
        began = self._clock()
        while True:
            stands = self._engine.look()
            pods = [] if stands.finished else self._engine.pods()
            waited = self._clock() - began
            self._tell(stands, pods, waited)
            if stands.finished:
                return stands
            self._judge(stands, pods, waited)
            if waited >= timeout:
                raise NotDoneError(
                    f"{self._where} is not done after {timeout:g} s ({stands.settled} of {stands.total} shards are); "
                    "it runs on: run the same again to wait for it, or give it more time with wait_timeout."
                )
            self._sleep(POLL)

    @property
    def _where(self) -> str:
        return f"{self._engine.kind} {self._order.namespace}/{self._order.run_name}"

    def _tell(self, stands: Standing, pods: Sequence[Pod], waited: float) -> None:
        if (line := _progress(stands, pods)) != self._line:
            self._line = line
            self._say(f"{_elapsed(waited)}  {line}")
        for pod in pods:
            if pod.has_failed:
                self._once(pod.name, f"pod {pod.name} of shard {pod.index} ended ({pod.end})")

    def _judge(self, stands: Standing, pods: Sequence[Pod], waited: float) -> None:
        """Give up where waiting is of no use; else say what is being waited for."""
        if found := obstacle(pods, self._order.namespace, self._order.image):
            raise HopelessError(found)
        late = waits_for(pods)
        if waited < PATIENCE or stands.settled or (pods and late is None):
            return
        kind, name = ("Pod", late.name) if late is not None else (self._engine.kind, self._order.run_name)
        text, hopeless = self._events(name)
        if hopeless and not any(pod.has_started for pod in pods):
            raise HopelessError(
                f"{kind} {self._order.namespace}/{name} cannot start ({text}); "
                "create what is missing or correct its name, then run again."
            )
        if text := text or (late.unscheduled if late is not None else ""):
            self._once(f"{name} {text.partition(',')[0]}", f"{kind.lower()} {name} waits: {text}")

    def _events(self, name: str) -> tuple[str, bool]:
        """What the cluster says of an object, if this account may know."""
        try:
            return warning(self._client.get_all(EVENTS, self._order.namespace, fields=f"involvedObject.name={name}"))
        except NotAllowedError:
            return "", False

    def _once(self, key: str, line: str) -> None:
        if key not in self._told:
            self._told.add(key)
            self._say(f"       {line}")


def _progress(stands: Standing, pods: Sequence[Pod]) -> str:
    running = sum(1 for pod in pods if pod.phase == "Running")
    failed = f", {len(stands.failed)} failed" if stands.failed else ""
    return f"{len(stands.done)} of {stands.total} shards done{failed}, {running} running"


def _elapsed(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes:02d}:{rest:02d}"
