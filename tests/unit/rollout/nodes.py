# SPDX-License-Identifier: GPL-3.0-or-later
"""A small plan, and what its nodes would answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ansible_collections.edpm.services.plugins.module_utils._node.record import settings
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.bundle import bundle
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.parcel import parcel
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.model import Reference, Resources, Snapshot
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import (
    ConfigSource,
    Connection,
    Identity,
    Image,
    Layer,
    NodePlan,
    Origin,
    Plan,
    ServicePlan,
)
from ansible_collections.edpm.services.plugins.plugin_utils._kube import snapshot

AGENT = "neutron_sriov_agent"


def service(name: str = AGENT, text: str = "[DEFAULT]\ndebug = True\n", **fields: Any) -> ServicePlan:
    """A service with one file."""
    origin = Origin(Reference("Secret", "openstack", "config"), "key 01.conf")
    source = ConfigSource(origin, "/etc/neutron.conf.d", "01.conf", Layer.GENERATED, True, text.encode())
    made: dict[str, Any] = {"image": Image(f"registry/{name}:1", "the test"), "conf_d": "/etc/neutron.conf.d"}
    return ServicePlan(name, **{**made, "sources": (source,), **fields})


def compute(host: str, cell: str = "nova-cell1") -> ServicePlan:
    """A nova-compute whose guests move over SSH."""
    keys = tuple(
        ConfigSource(
            Origin(Reference("Secret", "openstack", "migration"), f"key {name}"),
            *("/var/lib/nova/.ssh", name, Layer.DEPLOYER, True, f"{name} of nova".encode()),
            live=True,
        )
        for name in ("ssh-privatekey", "ssh-publickey")
    )
    return ServicePlan(
        "nova_compute",
        cell=cell,
        image=Image("registry/nova:1", "the test"),
        identity=Identity(host, None, "/var/lib/nova"),
        conf_d="/etc/nova/nova.conf.d",
        sources=keys,
    )


def node(name: str, *services: ServicePlan, **fields: Any) -> NodePlan:
    """A node with an address of its own."""
    connection = Connection(f"address-of-{name}", "root", 22)
    origin = Reference("OpenStackDataPlaneNode", "openstack", name)
    return NodePlan(name, "openstack", name, origin, connection=connection, services=services, **fields)


def answer(one: ServicePlan, **fields: Any) -> dict[str, Any]:
    """What a node answers that has the service as planned."""
    told: dict[str, Any] = {
        "service": one.service,
        "instance": one.instance,
        "digest": bundle(one).digest,
        "settings": settings(wanted) if (wanted := parcel(one, bundle(one))) else None,
        "previous": None,
        "image": one.image.name if one.image else None,
        "drift": [],
        "live": {},
        "healthy": True,
        "fault": None,
        "unfinished": False,
        "restart_pending": False,
        "unit": {"restarts": 0},
    }
    return {**told, **fields}


def other(one: ServicePlan) -> ServicePlan:
    """The same service with another file."""
    return replace(one, sources=tuple(replace(source, content=b"[DEFAULT]\n") for source in one.sources))


@contextmanager
def taken(*nodes: NodePlan) -> Iterator[Plan]:
    """A run that has read a plan with these nodes."""
    plan = Plan(nodes=nodes)
    snapshot.forget()
    snapshot._run.snapshot, snapshot._run.plan = Snapshot(Resources()), plan
    try:
        yield plan
    finally:
        snapshot.forget()
