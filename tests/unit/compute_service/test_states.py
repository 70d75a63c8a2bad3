# SPDX-License-Identifier: GPL-3.0-or-later
"""What is asked of Nova and Placement for each state, over a cloud that lives in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._openstack.errors import (
    InUseError,
    OpenStackError,
    TooLateError,
)
from ansible_collections.edpm.services.plugins.plugin_utils._openstack.nova import Server, Service
from ansible_collections.edpm.services.plugins.plugin_utils._openstack.states import Done, Order, Patience, carry_out

HOST = "edpm-compute-0"
UP = Service("id-0", HOST, enabled=True, up=True)
WEB, DB = Server("id-web", "web", "ACTIVE"), Server("id-db", "db", "SHUTOFF")


@dataclass
class Cloud:
    """Computes, servers and providers as they stand, and every call that changed something."""

    services: dict[str, Service] = field(default_factory=dict)
    mapped: set[str] = field(default_factory=set)
    on: dict[str, list[Server]] = field(default_factory=dict)
    resource_providers: dict[str, str] = field(default_factory=dict)
    allocated: set[str] = field(default_factory=set)
    calls: list[str] = field(default_factory=list)
    stubborn: bool = False

    def service(self, host: str) -> Service | None:
        return self.services.get(host)

    def hypervisors(self, host: str) -> tuple[str, ...]:
        return (f"{host}.example.com",) if host in self.mapped else ()

    def maps(self, host: str, *, placed: bool = True) -> None:
        """Map a compute, and have it in Placement unless it has not told that yet."""
        self.mapped.add(host)
        if placed:
            self.resource_providers[f"{host}.example.com"] = f"provider of {host}"

    def servers(self, host: str) -> tuple[Server, ...]:
        return tuple(self.on.get(host, []))

    def switch(self, service: Service, *, on: bool, reason: str = "") -> None:
        self.calls.append(f"{'enable' if on else 'disable'} {service.host}")
        self.services[service.host] = replace(service, enabled=on, reason=reason)

    def move_away(self, server: Server) -> None:
        self.calls.append(f"move {server.name}")
        if not self.stubborn:
            self.on = {host: [one for one in servers if one != server] for host, servers in self.on.items()}

    def delete(self, service: Service) -> None:
        self.calls.append(f"delete {service.host}")
        del self.services[service.host]
        self.mapped.discard(service.host)

    def providers(self, names: tuple[str, ...]) -> dict[str, str]:
        return {name: provider for name, provider in self.resource_providers.items() if name in names}

    def delete_provider(self, name: str, provider: str) -> None:
        if name in self.allocated:
            raise InUseError(f"The resource provider {name} is in use: {provider}.")
        self.calls.append(f"delete provider {name}")
        del self.resource_providers[name]


class Time:
    """A clock that moves when somebody sleeps, and lets things happen then."""

    def __init__(self, happens: Callable[[], None] | None = None) -> None:
        self.now = 0.0
        self._happens = happens

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self._happens:
            self._happens()

    def patience(self, seconds: float = 30) -> Patience:
        return Patience(seconds, sleep=self.sleep, clock=lambda: self.now)


def told(cloud: Cloud, order: Order, time: Time | None = None) -> list[Done]:
    return carry_out(cloud, order, (time or Time()).patience())


def test_a_compute_that_is_mapped_is_left_alone() -> None:
    ran: list[str] = []
    cloud = Cloud({HOST: UP}, mapped={HOST})
    (done,) = told(cloud, Order("discovered", (HOST,), discover=lambda: ran.append("discover")))
    assert (done.changed, ran) == (False, [])


def test_the_command_runs_once_after_all_new_computes_have_reported() -> None:
    cloud = Cloud({HOST: UP})
    seen: list[set[str]] = []

    def report() -> None:
        cloud.services["edpm-compute-1"] = replace(UP, host="edpm-compute-1")

    def discover() -> None:
        seen.append(set(cloud.services))
        for host in cloud.services:
            cloud.maps(host)

    done = told(cloud, Order("discovered", (HOST, "edpm-compute-1"), discover=discover), Time(report))
    assert [one.changed for one in done] == [True, True]
    assert seen == [{HOST, "edpm-compute-1"}]


def test_the_command_runs_again_while_a_compute_has_not_told_what_there_is_to_map() -> None:
    cloud, reported, ran = Cloud({HOST: UP}), list[str](), list[str]()

    def discover() -> None:
        ran.append("discover")
        for host in reported:
            cloud.maps(host)

    (done,) = told(cloud, Order("discovered", (HOST,), discover=discover), Time(lambda: reported.append(HOST)))
    assert (done.changed, ran) == (True, ["discover"] * 2)


def test_a_new_compute_is_waited_for_until_placement_lists_it() -> None:
    cloud, looked = Cloud({HOST: UP}), list[set[str]]()

    def tell_placement() -> None:
        looked.append({*cloud.resource_providers})
        cloud.maps(HOST)

    order = Order("discovered", (HOST,), discover=lambda: cloud.maps(HOST, placed=False))
    (done,) = told(cloud, order, Time(tell_placement))
    assert (done.changed, looked) == (True, [set()])


def test_a_compute_that_placement_does_not_list_in_time_is_named() -> None:
    cloud = Cloud({HOST: UP})
    order = Order("discovered", (HOST,), discover=lambda: cloud.maps(HOST, placed=False))
    sentence = (
        "edpm-compute-0 is mapped to its cell, but Placement has no resource provider for it within 120 s; see wh"
    )
    with pytest.raises(TooLateError, match=sentence):
        told(cloud, order)


def test_without_a_command_the_scheduler_is_waited_for() -> None:
    cloud = Cloud({HOST: UP})
    (done,) = told(cloud, Order("discovered", (HOST,)), Time(lambda: cloud.maps(HOST)))
    assert done.changed


def test_a_compute_that_never_reports_is_named_with_what_to_look_at() -> None:
    with pytest.raises(TooLateError, match=r"edpm-compute-0 has not reported to Nova within 120 s; .* message bus\.$"):
        told(Cloud(), Order("discovered", (HOST,)))


def test_a_compute_that_is_not_mapped_in_time_is_named() -> None:
    with pytest.raises(TooLateError, match="was not mapped to its cell within 120 s; see to the command"):
        told(Cloud({HOST: UP}), Order("discovered", (HOST,), discover=lambda: None))


def test_disabling_is_done_once_and_again_for_another_reason() -> None:
    cloud = Cloud({HOST: UP})
    assert [told(cloud, Order("disabled", (HOST,), reason=reason))[0].changed for reason in ("a", "a", "b")] == [
        True,
        False,
        True,
    ]
    assert cloud.services[HOST] == replace(UP, enabled=False, reason="b")
    assert [told(cloud, Order("enabled", (HOST,)))[0].changed for _ in range(2)] == [True, False]


@pytest.mark.parametrize("state", ["enabled", "disabled", "drained"])
def test_a_compute_that_nova_does_not_know_is_refused(state: str) -> None:
    with pytest.raises(OpenStackError, match="Nova knows no compute service edpm-compute-0"):
        told(Cloud(), Order(state, (HOST,)))


def test_a_compute_with_servers_is_not_drained_and_not_even_disabled() -> None:
    cloud = Cloud({HOST: UP}, on={HOST: [WEB, DB]})
    with pytest.raises(InUseError, match=r"^2 servers are \(web, db\) on edpm-compute-0; move or delete them"):
        told(cloud, Order("drained", (HOST,)))
    assert cloud.calls == []


def test_servers_that_run_are_moved_after_the_compute_was_disabled() -> None:
    cloud = Cloud({HOST: UP}, on={HOST: [WEB]})
    (done,) = told(cloud, Order("drained", (HOST,), migrate=True))
    assert (done.changed, cloud.calls) == (True, ["disable edpm-compute-0", "move web"])
    assert not told(cloud, Order("drained", (HOST,), migrate=True))[0].changed


def test_a_server_that_does_not_run_cannot_be_moved_live() -> None:
    cloud = Cloud({HOST: UP}, on={HOST: [WEB, DB]})
    with pytest.raises(InUseError, match="db is SHUTOFF"):
        told(cloud, Order("drained", (HOST,), migrate=True))
    assert cloud.calls == []


def test_servers_that_do_not_leave_in_time_are_named() -> None:
    cloud = Cloud({HOST: UP}, on={HOST: [WEB]}, stubborn=True)
    with pytest.raises(TooLateError, match=r"1 server is \(web\) still on edpm-compute-0 after 120 s"):
        told(cloud, Order("drained", (HOST,), migrate=True))


def test_a_compute_is_removed_with_its_providers_and_a_second_time_nothing_is_done() -> None:
    providers = {f"{HOST}.example.com": "p-0", "another": "p-1"}
    cloud = Cloud({HOST: UP}, mapped={HOST}, resource_providers=providers)
    assert told(cloud, Order("absent", (HOST,)))[0].changed
    assert cloud.calls == ["delete edpm-compute-0", "delete provider edpm-compute-0.example.com"]
    assert cloud.resource_providers == {"another": "p-1"}
    assert not told(cloud, Order("absent", (HOST,)))[0].changed


def test_a_provider_that_was_left_behind_is_removed_too() -> None:
    cloud = Cloud(resource_providers={HOST: "p-0"})
    assert told(cloud, Order("absent", (HOST,)))[0].changed
    assert cloud.calls == ["delete provider edpm-compute-0"]


def test_a_compute_with_servers_is_not_removed() -> None:
    cloud = Cloud({HOST: UP}, on={HOST: [DB]})
    with pytest.raises(InUseError, match=r"1 server is \(db\) on edpm-compute-0, so it stays; drain it first"):
        told(cloud, Order("absent", (HOST,)))
    assert cloud.calls == []


def test_allocations_that_are_left_are_told_with_the_remedy() -> None:
    cloud = Cloud(resource_providers={HOST: "p-0"}, allocated={HOST})
    with pytest.raises(InUseError, match=r"still has allocations, .* heal_allocations"):
        told(cloud, Order("absent", (HOST,)))


@pytest.mark.parametrize("state", ["discovered", "disabled", "drained", "absent"])
def test_check_mode_announces_and_does_nothing(state: str) -> None:
    cloud = Cloud({HOST: UP})
    order = Order(state, (HOST,), check=True, discover=lambda: pytest.fail("the command ran"))
    (done,) = told(cloud, order)
    assert (done.changed, cloud.calls) == (True, [])
    assert "would be" in done.told


def test_of_many_servers_five_are_named() -> None:
    servers = [Server(str(number), f"s{number}", "ACTIVE") for number in range(8)]
    with pytest.raises(InUseError, match=r"8 servers are \(s0, s1, s2, s3, s4 and 3 others\)"):
        told(Cloud({HOST: UP}, on={HOST: servers}), Order("drained", (HOST,)))
