# SPDX-License-Identifier: GPL-3.0-or-later
"""Nova and Placement as far as a compute service concerns them, in words of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from importlib import import_module
from typing import Any, Self

from .errors import CredentialsError, InUseError, OpenStackError

BINARY = "nova-compute"

#: Later versions of this list ask each compute how long it is up, and fail when one has just been stopped.
WITHOUT_UPTIME = "2.53"


@dataclass(frozen=True)
class Service:
    """The record of a compute in its cell."""

    id: str
    host: str
    enabled: bool
    up: bool
    reason: str = ""


@dataclass(frozen=True)
class Server:
    """A server on a compute."""

    id: str
    name: str
    status: str


class Nova:
    """The calls, through a connection of openstacksdk."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @classmethod
    def connected(cls, settings: dict[str, Any]) -> Self:
        """Log in; nothing of the credentials is shown when that fails."""
        try:
            openstack = import_module("openstack")
        except ImportError as error:
            raise CredentialsError(
                f"The Python package openstacksdk is not there ({error}); install it where Ansible runs."
            ) from error
        try:
            connection = openstack.connect(**settings)
            connection.authorize()
        except Exception as error:
            if not isinstance(error, _refusals()):
                raise
            raise CredentialsError(f"OpenStack does not let us in: {_words(error)}; see to the credentials.") from error
        return cls(connection)

    def service(self, host: str) -> Service | None:
        """The compute's record, which is there as soon as it has reported to its cell."""
        with _translated(f"The compute service {host}"):
            for found in self._connection.compute.services(host=host, binary=BINARY):
                reason = found.disabled_reason or ""
                return Service(found.id, found.host, found.status == "enabled", found.state == "up", reason)
        return None

    def hypervisors(self, host: str) -> tuple[str, ...]:
        """The names of a host's hypervisors; Nova lists those of hosts that are mapped to a cell."""
        with _translated(f"The hypervisors of {host}"):
            listed = self._connection.compute.hypervisors(details=True, microversion=WITHOUT_UPTIME)
            return tuple(one.name for one in listed if (one.service_details or {}).get("host") == host)

    def servers(self, host: str) -> tuple[Server, ...]:
        """All projects' servers on a host."""
        with _translated(f"The servers on {host}"):
            listed = self._connection.compute.servers(all_projects=True, compute_host=host)
            return tuple(Server(one.id, one.name, one.status) for one in listed)

    def switch(self, service: Service, *, on: bool, reason: str = "") -> None:
        """Let the scheduler use a compute, or not."""
        wanted = {"status": "enabled"} if on else {"status": "disabled", "disabled_reason": reason}
        with _translated(f"The compute service {service.host}"):
            self._connection.compute.update_service(service.id, **wanted)

    def move_away(self, server: Server) -> None:
        """Begin a live migration to wherever the scheduler likes."""
        with _translated(f"The live migration of server {server.name} ({server.id})"):
            self._connection.compute.live_migrate_server(server.id, host=None, block_migration="auto")

    def delete(self, service: Service) -> None:
        """Remove a compute's record, with its host mapping and its resource providers."""
        with _translated(f"The compute service {service.host}"):
            self._connection.compute.delete_service(service.id)

    def providers(self, names: tuple[str, ...]) -> dict[str, str]:
        """The resource providers of these names in Placement, with their ids."""
        with _translated("Placement"):
            placement = self._connection.placement
            return {one.name: one.id for name in names for one in placement.resource_providers(name=name)}

    def delete_provider(self, name: str, provider: str) -> None:
        """Remove a resource provider that nothing is allocated from."""
        with _translated(f"The resource provider {name}"):
            self._connection.placement.delete_resource_provider(provider)


@contextmanager
def _translated(what: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if not isinstance(error, _refusals()):
            raise
        if getattr(error, "status_code", None) == HTTPStatus.CONFLICT:
            raise InUseError(f"{what} is in use: {_words(error)}.") from error
        raise OpenStackError(f"{what}: OpenStack refuses: {_words(error)}.") from error


def _refusals() -> tuple[type[Exception], ...]:
    """What the two libraries raise for whatever OpenStack does not do."""
    names = (("openstack.exceptions", "SDKException"), ("keystoneauth1.exceptions", "ClientException"))
    return tuple(getattr(import_module(module), name) for module, name in names)


def _words(error: Exception) -> str:
    """One line of what was said, without the tail of an HTML page."""
    return " ".join(str(getattr(error, "details", None) or error).split())[:300].rstrip(".")
