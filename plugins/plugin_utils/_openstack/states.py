# SPDX-License-Identifier: GPL-3.0-or-later
"""What OpenStack is told about computes: each state says what must hold, and does nothing where it holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from .errors import InUseError, OpenStackError, TooLateError
from .nova import Server, Service

STATES = ("discovered", "enabled", "disabled", "drained", "absent")
REASON = "edpm.services: taken out of service"

#: Servers that a sentence names before it counts the rest.
MOST_NAMED = 5

#: A server in one of these states runs, and can be moved while it does.
MOVABLE = ("ACTIVE", "PAUSED")


class Calls(Protocol):
    """What is needed of Nova and Placement."""

    def service(self, host: str) -> Service | None: ...
    def hypervisors(self, host: str) -> tuple[str, ...]: ...
    def servers(self, host: str) -> tuple[Server, ...]: ...
    def switch(self, service: Service, *, on: bool, reason: str = "") -> None: ...
    def move_away(self, server: Server) -> None: ...
    def delete(self, service: Service) -> None: ...
    def providers(self, names: tuple[str, ...]) -> dict[str, str]: ...
    def delete_provider(self, name: str, provider: str) -> None: ...


@dataclass(frozen=True)
class Order:
    """What is asked for; `discover` runs the site's own command and is None where the scheduler discovers hosts."""

    state: str
    hosts: tuple[str, ...]
    reason: str = REASON
    migrate: bool = False
    timeout: float = 120
    check: bool = False
    discover: Callable[[], None] | None = None


@dataclass(frozen=True)
class Done:
    """What became of one compute."""

    host: str
    changed: bool
    told: str


@dataclass
class Patience:
    """Asks again and again until a time is over."""

    seconds: float
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    pause: float = 1.0
    _end: float = field(init=False)

    def __post_init__(self) -> None:
        self._end = self.clock() + self.seconds

    def until(self, holds: Callable[[], bool], late: Callable[[], str]) -> None:
        """Wait until it holds; when it does not in time, `late` says what is wrong."""
        while not holds():
            if self.clock() >= self._end:
                raise TooLateError(late())
            self.sleep(self.pause)

    def until_each(self, hosts: Sequence[str], holds: Callable[[str], bool], late: Callable[[str], str]) -> None:
        """Wait until it holds for all hosts."""
        for host in hosts:
            self.until(partial(holds, host), partial(late, host))


def carry_out(nova: Calls, order: Order, patience: Patience | None = None) -> list[Done]:
    """Bring all computes into the state that is asked for."""
    waiting = patience or Patience(order.timeout)
    if order.state == "discovered":
        return _discovered(nova, order, waiting)
    one = {"enabled": _enabled, "disabled": _disabled, "drained": _drained, "absent": _absent}[order.state]
    return [one(nova, host, order, waiting) for host in order.hosts]


def _discovered(nova: Calls, order: Order, patience: Patience) -> list[Done]:
    new = [host for host in order.hosts if not nova.hypervisors(host)]
    if new and not order.check:
        patience.until_each(new, lambda host: nova.service(host) is not None, lambda host: _silent(host, order))
        patience.until(lambda: not _unmapped(nova, new, order), lambda: _not_mapped(nova, new, order))
        patience.until_each(new, lambda host: _in_placement(nova, host), lambda host: _not_in_placement(host, order))
    verb = "would be" if order.check else "was"
    return [
        Done(host, host in new, f"{host} {verb} mapped to its cell" if host in new else f"{host} is mapped to its cell")
        for host in order.hosts
    ]


def _unmapped(nova: Calls, hosts: Sequence[str], order: Order) -> list[str]:
    """Those that are not mapped after the command; Nova lists a compute before that has told what there is to map."""
    if order.discover is not None:
        order.discover()
    return [host for host in hosts if not nova.hypervisors(host)]


def _in_placement(nova: Calls, host: str) -> bool:
    """Whether servers can be scheduled to it: a compute tells Placement of itself after it has told Nova."""
    return bool(nova.providers(nova.hypervisors(host)))


def _enabled(nova: Calls, host: str, order: Order, _patience: Patience) -> Done:
    service = _known(nova, host)
    if service.enabled:
        return Done(host, False, f"{host} is enabled")
    if not order.check:
        nova.switch(service, on=True)
    return Done(host, True, f"{host} {_would(order)} enabled")


def _disabled(nova: Calls, host: str, order: Order, _patience: Patience) -> Done:
    service = _known(nova, host)
    if not service.enabled and service.reason == order.reason:
        return Done(host, False, f"{host} is disabled")
    if not order.check:
        nova.switch(service, on=False, reason=order.reason)
    return Done(host, True, f"{host} {_would(order)} disabled")


def _drained(nova: Calls, host: str, order: Order, patience: Patience) -> Done:
    service = _known(nova, host)
    servers = nova.servers(host)
    if servers and not order.migrate:
        raise InUseError(f"{_counted(servers)} on {host}; move or delete them, or ask for them to be migrated.")
    if stuck := [server for server in servers if server.status not in MOVABLE]:
        raise InUseError(
            f"{_counted(stuck)} on {host} and cannot be moved while running ({stuck[0].name} is {stuck[0].status}); "
            "migrate or delete them by hand."
        )
    if not servers and not service.enabled:
        return Done(host, False, f"{host} is disabled and has no servers")
    if not order.check:
        if service.enabled:
            nova.switch(service, on=False, reason=order.reason)
        for server in servers:
            nova.move_away(server)
        patience.until(lambda: not nova.servers(host), lambda: _still_there(nova, host, order))
    moved = f", {len(servers)} servers {_would(order)} moved" if servers else ""
    return Done(host, True, f"{host} {_would(order)} disabled{moved}")


def _absent(nova: Calls, host: str, order: Order, patience: Patience) -> Done:
    service = nova.service(host)
    names = tuple(dict.fromkeys((*nova.hypervisors(host), host)))
    left = nova.providers(names)
    if service is None and not left:
        return Done(host, False, f"{host} is not known to Nova and Placement")
    if service is not None and (servers := nova.servers(host)):
        raise InUseError(f"{_counted(servers)} on {host}, so it stays; drain it first.")
    if not order.check:
        if service is not None:
            nova.delete(service)
        _remove_providers(nova, nova.providers(names))
        patience.until(
            lambda: nova.service(host) is None,
            lambda: f"{host} has reported to Nova again after it was deleted; stop nova_compute on it first.",
        )
    return Done(host, True, f"{host} {_would(order)} removed from Nova and Placement")


def _remove_providers(nova: Calls, providers: dict[str, str]) -> None:
    for name, provider in providers.items():
        try:
            nova.delete_provider(name, provider)
        except InUseError as error:
            raise InUseError(
                f"The resource provider {name} ({provider}) still has allocations, of servers that left it in a hurry; "
                f"heal them with nova-manage placement heal_allocations, then run this again. ({error})"
            ) from error


def _known(nova: Calls, host: str) -> Service:
    service = nova.service(host)
    if service is None:
        raise OpenStackError(f"Nova knows no compute service {host}; see to the name, or deploy it first.")
    return service


def _silent(host: str, order: Order) -> str:
    return (
        f"The compute {host} has not reported to Nova within {order.timeout:.0f} s; see whether nova_compute runs on "
        "it and reaches its cell's message bus."
    )


def _not_mapped(nova: Calls, hosts: Sequence[str], order: Order) -> str:
    host = next((host for host in hosts if not nova.hypervisors(host)), hosts[0])
    means = "the command that discovers hosts" if order.discover else "the scheduler, if it discovers hosts by itself"
    return f"The compute {host} was not mapped to its cell within {order.timeout:.0f} s; see to {means}."


def _not_in_placement(host: str, order: Order) -> str:
    return (
        f"The compute {host} is mapped to its cell, but Placement has no resource provider for it within "
        f"{order.timeout:.0f} s; see whether nova_compute on it reaches Placement."
    )


def _still_there(nova: Calls, host: str, order: Order) -> str:
    return f"{_counted(nova.servers(host))} still on {host} after {order.timeout:.0f} s; see to their migrations."


def _counted(servers: Sequence[Server]) -> str:
    named = ", ".join(server.name for server in servers[:MOST_NAMED])
    more = f" and {len(servers) - MOST_NAMED} others" if len(servers) > MOST_NAMED else ""
    return f"{len(servers)} {'server is' if len(servers) == 1 else 'servers are'} ({named}{more})"


def _would(order: Order) -> str:
    return "would be" if order.check else "was"
