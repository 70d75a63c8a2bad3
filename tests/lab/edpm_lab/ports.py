# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports of the loopback address for servers.

They lie below those that Linux gives to clients for their end of a connection, so that a server which was killed has
its port again when it comes back, and below those that Kubernetes gives to services.
"""

from __future__ import annotations

import secrets
import socket
from contextlib import ExitStack, suppress

from .errors import LabError

LOOPBACK = "127.0.0.1"
PORTS = range(20000, 30000)


def free_port() -> int:
    """One that nobody listens at just now."""
    with ExitStack() as held:
        return hold_any(held)


def hold_any(held: ExitStack) -> int:
    """A free one, kept from others until `held` ends."""
    for _attempt in range(100):
        with suppress(LabError):
            return hold(held, secrets.choice(PORTS))
    raise LabError(f"no port of {LOOPBACK} from {PORTS.start} to {PORTS.stop - 1} is free; stop what listens there")


def hold(held: ExitStack, port: int) -> int:
    """Keep a port from others until `held` ends."""
    listener = held.enter_context(socket.socket())
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
        listener.listen(1)
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else "there is no such port"
        raise LabError(f"port {port} of {LOOPBACK} cannot be used ({reason}); choose another or none") from error
    return port
