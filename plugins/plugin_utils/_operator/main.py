# SPDX-License-Identifier: GPL-3.0-or-later
"""The operator's process: it takes the lease, listens, and makes a pass when something changed or time has gone by."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from .._dataplane.model import Reference
from .._kube.client import Client, Retry
from .._kube.connection import Connection, Settings
from .._kube.errors import KubernetesError, one_line
from .._watch.news import Change
from .._watch.watch import JOBS, KINDS, quiet, served, watch
from .lease import Lease
from .metrics import Metrics
from .passes import LOG, Done, Passes
from .rights import watchable
from .runs import OPERATOR_LABEL
from .serving import serve
from .settings import BadSettingsFileError, OperatorSettings

SETTINGS_VARIABLE = "EDPM_OPERATOR_SETTINGS"
SETTINGS_FILE = "/etc/edpm/operator/settings.yaml"
#: Seconds that a pass may take before the process counts as stuck.
STUCK_AFTER = 1800.0
#: Seconds until something that failed is tried again, and at most.
AGAIN, LONGEST = 2.0, 60.0
#: The part of the lease's time after which one that was not renewed counts as lost, well before another may take it.
IN_TIME = 2 / 3


class Operator:
    """One process."""

    def __init__(self, settings: OperatorSettings) -> None:
        self._settings, self._metrics = settings, Metrics()
        self._passes = Passes(settings, self._metrics)
        self._wake, self._stop = asyncio.Event(), asyncio.Event()
        self._read = asyncio.Event()
        self._done = Done(None, frozenset(), frozenset())
        self._sign = self._renewed = time.monotonic()
        self._passing = False
        self._forbidden: frozenset[str] = frozenset()

    async def run(self) -> int:
        """Until somebody ends it; the process ends with 1 where the lease was lost or a part of the work broke."""
        loop = asyncio.get_running_loop()
        for one in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(one, self._stop.set)
        pages = serve(self._settings.port, self._metrics, self._alive)
        with Connection(Settings()) as connection:
            # A lease must be renewed in time, so a request for it is not repeated for minutes.
            place = (self._settings.lease_place, self._settings.lease)
            client = Client(connection, retry=Retry(attempts=2, longest_pause=1.0))
            lease = Lease(client, place, self._settings.identity, self._settings.lease_duration)
            if not await self._acquired(lease):
                return 0
            LOG.info("%s holds the lease %s/%s", self._settings.identity, *place)
            self._metrics.set("edpm_operator_leader", 1)
            work = [asyncio.ensure_future(one) for one in (self._keep(lease), self._work(), self._listen())]
            await self._until_the_end(work)
            if self._passing:
                # What it writes is finished by the next one, which waits until the lease has run out.
                LOG.info("A pass is cut short.")
                logging.shutdown()
                os._exit(0)
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)
            with suppress(KubernetesError):
                await asyncio.to_thread(lease.release)
        pages.shutdown()
        return 0

    async def _until_the_end(self, work: Sequence[asyncio.Future[None]]) -> None:
        """Wait for a signal. Work that ends before it has broken: another process begins with a clean memory."""
        stopping: asyncio.Future[Any] = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait({stopping, *work}, return_when=asyncio.FIRST_COMPLETED)
        if not self._stop.is_set():
            _die(_broken(part for part in work if part.done()))

    def _alive(self) -> str:
        silent = time.monotonic() - self._sign
        return f"nothing has moved for {silent:.0f} s" if silent > STUCK_AFTER + self._settings.resync else ""

    async def _acquired(self, lease: Lease) -> bool:
        """Wait for the lease; False where the process is to end before that."""
        said = ""
        while not self._stop.is_set():
            self._renewed = time.monotonic()
            try:
                if await asyncio.to_thread(lease.hold):
                    return True
            except KubernetesError as error:
                if str(error) != said:
                    said = str(error)
                    LOG.warning("%s", said)
            self._sign = time.monotonic()
            await self._pause(self._settings.lease_duration / 5)
        return False

    async def _keep(self, lease: Lease) -> None:
        """Renew it. One that could not be renewed in time may be another's: then this process ends as it stands."""
        while not self._stop.is_set():
            await asyncio.sleep(self._settings.lease_duration / 5)
            asked, last = time.monotonic(), self._renewed + self._settings.lease_duration * IN_TIME
            held: bool | None = None
            with suppress(KubernetesError, TimeoutError):
                held = await asyncio.wait_for(asyncio.to_thread(lease.hold), last - asked)
            if held:
                self._renewed = asked
            elif held is False or time.monotonic() >= last:
                _die(f"The lease {self._settings.lease} is lost; another may work now.")

    async def _work(self) -> None:
        """Pass after pass."""
        failures = 0
        # Before 3.12 Python forgets that a task was cancelled where what it waits for comes at that moment.
        while not self._stop.is_set():
            self._wake.clear()
            if await self._passed():
                failures = 0
                self._read.set()
                await self._something()
            else:
                await self._pause(min(AGAIN * 2 ** min(failures, 8), LONGEST))
                failures += 1

    async def _passed(self) -> bool:
        """Make one; False where the cluster did not let it come to its end."""
        begun, known = time.monotonic(), self._done.named
        self._passing = True
        try:
            self._done = await asyncio.to_thread(self._passes.once)
        except KubernetesError as error:
            LOG.warning("%s", error)
            self._metrics.add("edpm_operator_passes_total", result="failed")
            return False
        finally:
            self._passing = False
            self._sign = time.monotonic()
        self._metrics.add("edpm_operator_passes_total", result="ok")
        self._metrics.add("edpm_operator_pass_seconds_total", self._sign - begun)
        self._metrics.set("edpm_operator_last_pass_timestamp_seconds", time.time())
        if self._read.is_set() and not self._done.named <= known:
            # Nobody listened to these while the pass read them.
            self._wake.set()
        return True

    async def _something(self) -> None:
        """Wait for a sign of a change, and then for those that come with it; or until something is due."""
        rest = self._settings.resync
        if self._done.due is not None:
            rest = min(rest, max(0.5, self._done.due - time.time()))
        with suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), rest)
            await asyncio.sleep(self._settings.settle)

    async def _listen(self) -> None:
        """Watch; where that fails, passes go on by themselves and it is tried again.

        What happens between the first pass and the first list of the watch is in that list, so nothing is missed.
        """
        await self._read.wait()
        failures = 0
        while not self._stop.is_set():
            begun = time.monotonic()
            try:
                await self._watch()
            except asyncio.CancelledError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever ends the watch, passes go on and it is opened again
                LOG.warning("The watch has ended (%s); it is opened again.", error)
            failures = 0 if time.monotonic() - begun > LONGEST else failures + 1
            await self._pause(min(AGAIN * 2 ** min(failures, 8), LONGEST))

    async def _watch(self) -> None:
        """Until it fails, or until other kinds can be watched: the cluster serves a partner's, or a right was given."""
        kinds = await asyncio.to_thread(self._kinds)
        if not kinds:
            await self._pause(self._settings.resync)
            return
        watching = asyncio.ensure_future(
            watch(kinds, self._settings.namespaces, self._heard, counts=self._counts),
        )
        try:
            while not (await asyncio.wait({watching}, timeout=self._settings.resync))[0]:
                if await asyncio.to_thread(self._kinds) != kinds:
                    LOG.info("The cluster serves other kinds than before; the watch is opened anew.")
                    return
            await watching
        finally:
            watching.cancel()

    def _kinds(self) -> list[tuple[str, str]]:
        with Connection(Settings()) as connection:
            client = Client(connection)
            known = served(client, [*KINDS, *sorted(self._done.kinds), JOBS])
            kinds, forbidden = watchable(client, known, self._settings.namespaces)
        for sentence in forbidden:
            if sentence not in self._forbidden:
                LOG.warning("%s", sentence)
        self._forbidden = frozenset(forbidden)
        return kinds

    def _counts(self, kind: str, namespace: str, name: str, labels: object) -> bool:
        if kind == "Job":
            return isinstance(labels, dict) and labels.get(OPERATOR_LABEL) == self._settings.lease
        if kind in ("Secret", "ConfigMap"):
            return Reference(kind, namespace, name) in self._done.named
        return True

    def _heard(self, change: Change) -> None:
        self._metrics.add("edpm_operator_changes_total", kind=change.kind)
        self._wake.set()

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), seconds)


def _broken(parts: Iterable[asyncio.Future[None]]) -> str:
    """The sentence about work that has ended although nobody asked for it."""
    found = [error for part in parts if not part.cancelled() and (error := part.exception()) is not None]
    why = "; ".join(f"{type(error).__name__}: {one_line(error)}" for error in found) or "it just stopped"
    return f"The operator cannot go on ({why}); it ends, to be started anew."


def _die(sentence: str) -> NoReturn:
    """End as it stands, also with threads that would not let the interpreter go."""
    LOG.error("%s", sentence)
    logging.shutdown()
    os._exit(1)


def main() -> int:
    """Read the settings, and work."""
    handler = logging.StreamHandler(sys.stderr)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", handlers=[handler])
    quiet(handler)
    try:
        settings = OperatorSettings.read(os.environ.get(SETTINGS_VARIABLE, SETTINGS_FILE))
        return asyncio.run(Operator(settings).run())
    except (BadSettingsFileError, KubernetesError) as error:
        LOG.error("%s", error)
        return 1


if __name__ == "__main__":
    sys.exit(main())
