# SPDX-License-Identifier: GPL-3.0-or-later
"""The lease: who holds it, and which conflicts are a loss. The client is the real one, the server is small."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._kube.client import Client, Retry
from ansible_collections.edpm.services.plugins.plugin_utils._kube.connection import Response
from ansible_collections.edpm.services.plugins.plugin_utils._kube.errors import ConflictError, UnreachableError
from ansible_collections.edpm.services.plugins.plugin_utils._operator.lease import Lease

PLACE = ("openstack", "edpm-services-operator")


class Server:
    """Keeps one Lease. What is in `before` happens just before the next writes, one for each."""

    server = "memory"

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.before: list[Callable[[], None]] = []
        self.lost = 0

    def request(
        self, method: str, path: str, query: Mapping[str, str], *, body: bytes | None = None, content_type: str = ""
    ) -> Response:
        del path, query, content_type
        if method == "GET":
            return self._answer(200 if self.lease else 404)
        if self.before:
            self.before.pop(0)()
        told = json.loads(body or b"{}")
        status = self._write(told, create=method == "POST")
        if self.lost:
            self.lost -= 1
            raise UnreachableError("The connection was reset.", transient=True)
        return self._answer(status)

    def write(self, **spec: Any) -> None:
        """By somebody else."""
        self.version += 1
        known = (self.lease or {}).get("spec") or {}
        self.lease = {"metadata": {"resourceVersion": str(self.version)}, "spec": {**known, **spec}}

    @property
    def spec(self) -> dict[str, Any]:
        assert self.lease is not None
        found: dict[str, Any] = self.lease["spec"]
        return found

    def _write(self, told: dict[str, Any], *, create: bool) -> int:
        known = None if self.lease is None else self.lease["metadata"]["resourceVersion"]
        if (create and known) or (not create and told["metadata"]["resourceVersion"] != known):
            return 409
        self.write(**told["spec"])
        return 200

    def _answer(self, status: int) -> Response:
        return Response(status, {}, json.dumps(self.lease if status == 200 else {}).encode())


@pytest.fixture
def server() -> Server:
    return Server()


def lease(server: Server, identity: str = "one", clock: Callable[[], float] = lambda: 0.0) -> Lease:
    client = Client(server, retry=Retry(attempts=2, sleep=lambda _seconds: None))
    return Lease(client, PLACE, identity, 15, clock=clock)


def test_one_holds_it_and_another_waits_until_it_is_not_renewed(server: Server) -> None:
    now = 0.0
    one, two = lease(server), lease(server, "two", lambda: now)
    assert one.hold()
    assert not two.hold()
    now = 16.0
    assert two.hold()
    assert (server.spec["holderIdentity"], server.spec["leaseTransitions"]) == ("two", 1)
    assert not one.hold()


@pytest.mark.parametrize("known", [False, True])
def test_a_lost_answer_is_no_lost_lease(server: Server, known: bool) -> None:
    one = lease(server)
    if known:
        assert one.hold()
    server.lost = 1
    assert one.hold()
    assert (server.spec["holderIdentity"], server.spec["leaseTransitions"]) == ("one", 0)


def test_who_only_annotates_it_does_not_take_it(server: Server) -> None:
    one = lease(server)
    assert one.hold()
    server.before = [server.write]
    assert one.hold()


def test_who_takes_it_in_between_has_it(server: Server) -> None:
    one = lease(server)
    assert one.hold()
    server.before = [lambda: server.write(holderIdentity="two")]
    assert not one.hold()
    assert server.spec["holderIdentity"] == "two"


def test_one_that_was_let_go_in_between_is_taken(server: Server) -> None:
    one = lease(server)
    server.write(holderIdentity="")
    server.before = [lambda: server.write(holderIdentity="")]
    assert one.hold()


def test_what_changes_all_the_time_is_an_error_and_no_loss(server: Server) -> None:
    one = lease(server)
    assert one.hold()
    server.before = [server.write, server.write]
    with pytest.raises(ConflictError):
        one.hold()
    assert one.hold()
