# SPDX-License-Identifier: GPL-3.0-or-later
"""The watch itself, by kopf: it opens the streams, opens them again, and starts over where the server has forgotten.

Only kopf's plain events are used. Its other handlers write to every object that they see, and nothing here writes to
what is only read.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from typing import Any

from .._kube.client import Client
from .._kube.errors import KindNotServedError, LibraryMissingError, one_line
from .._kube.live import NODE_KINDS, OTHER_KINDS
from .news import Change, Memory

REQUIREMENT = "kopf>=1.44,<2"
SECRETS = ("v1", "Secret")
CONFIG_MAPS = ("v1", "ConfigMap")
JOBS = ("batch/v1", "Job")
#: What a plan is made of. Which Secrets and ConfigMaps count is for the listener to say.
KINDS = (*NODE_KINDS, *OTHER_KINDS, SECRETS, CONFIG_MAPS)

Kind = tuple[str, str]
Listener = Callable[[Change], None]
#: Whether an object counts, by its kind, namespace, name and labels.
Counts = Callable[[str, str, str, Any], bool]


def served(client: Client, kinds: Collection[Kind]) -> list[Kind]:
    """Those that the cluster knows; to watch another would only be an error."""
    found = []
    for one in dict.fromkeys(kinds):
        try:
            client.resource(*one)
        except KindNotServedError:
            continue
        found.append(one)
    return found


async def watch(
    kinds: Collection[Kind], namespaces: Collection[str], listener: Listener, *, counts: Counts | None = None
) -> None:
    """Tell the listener of every change until this is cancelled. Without namespaces, all of them are watched.

    kopf has a thread of its own: in the main one it would take the process' signals for itself. The listener is called
    in the caller's loop all the same.
    """
    loop, stop = asyncio.get_running_loop(), threading.Event()
    ended: asyncio.Future[None] = loop.create_future()

    def back(call: Callable[..., object], *about: object) -> None:
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(call, *about)

    def work() -> None:
        try:
            asyncio.run(_watch(kinds, namespaces, lambda change: back(listener, change), counts, stop))
        except Exception as error:  # noqa: BLE001 - it is the caller's, who is in another thread
            back(_settle, ended, error)
        else:
            back(_settle, ended, None)

    threading.Thread(target=work, name="edpm-watch", daemon=True).start()
    try:
        await ended
    finally:
        stop.set()


def _settle(ended: asyncio.Future[None], error: Exception | None) -> None:
    if ended.done():
        return
    if error is None:
        ended.set_result(None)
    else:
        ended.set_exception(error)


async def _watch(
    kinds: Collection[Kind],
    namespaces: Collection[str],
    listener: Listener,
    counts: Counts | None,
    stop: threading.Event,
) -> None:
    kopf = _kopf()
    registry, memory = kopf.OperatorRegistry(), Memory()

    async def heard(type: str | None, body: Any, **more: Any) -> None:
        del more
        meta = body.get("metadata") or {}
        about = (str(body.get("kind")), str(meta.get("namespace")), str(meta.get("name")), meta.get("labels") or {})
        if (counts is None or counts(*about)) and (change := memory.change(type, body)) is not None:
            listener(change)

    for api_version, kind in kinds:
        group, _slash, version = api_version.rpartition("/")
        kopf.on.event(group=group, version=version, kind=kind, id=f"{kind}.{group}", registry=registry)(heard)
    kopf.on.login(registry=registry)(_login)
    await kopf.operator(
        registry=registry,
        settings=settings(),
        standalone=True,
        namespaces=tuple(namespaces),
        clusterwide=not namespaces,
        stop_flag=stop,
    )


def settings() -> Any:
    """kopf's own settings: nothing is written, no right on CRDs is needed, and a thousand events need few tasks."""
    chosen = _kopf().OperatorSettings()
    chosen.posting.enabled = False
    chosen.scanning.disabled = True
    chosen.queueing.worker_limit = 50
    chosen.queueing.idle_timeout = 0.01
    chosen.watching.server_timeout = 300
    chosen.watching.reconnect_backoff = 1.0
    return chosen


def quiet(handler: logging.Handler) -> None:
    """Let kopf tell of troubles alone, each in a line; that it is in a thread of its own is none."""
    logging.getLogger("kopf").setLevel(logging.WARNING)
    logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)
    handler.addFilter(_brief)


def _brief(record: logging.LogRecord) -> bool:
    """A traceback of another's code helps nobody who reads a log; what it ends with does."""
    if record.exc_info and record.exc_info[1] is not None:
        record.msg, record.args = f"{record.getMessage()} ({one_line(record.exc_info[1])})", ()
        record.exc_info = record.exc_text = None
    return True


async def _login(**given: Any) -> Any:
    """The pod's account, at the address that the pod was told: not every cluster resolves names of services."""
    kopf = _kopf()
    found = kopf.login_with_service_account(**given)
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{name}", "") for name in ("HOST", "PORT"))
    if found is None or not host:
        return found or kopf.login_with_kubeconfig(**given)
    address = f"[{host}]" if ":" in host else host
    return replace(found, server=f"https://{address}:{port or 443}")


def _kopf() -> Any:
    try:
        return import_module("kopf")
    except ImportError as error:
        raise LibraryMissingError(
            f"This Python cannot import the kopf package ({one_line(error)}); install it: pip install '{REQUIREMENT}'."
        ) from error
