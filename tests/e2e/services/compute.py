# SPDX-License-Identifier: GPL-3.0-or-later
"""nova-compute with all that a deployer lists for it, and what it says of itself."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from pathlib import Path

from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.identity import host_specific
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.model import Reference
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import (
    ConfigSource,
    Identity,
    Layer,
    Origin,
    ServicePlan,
)

from .machine import Machine, planned

UUID = "5a1b0e9e-0a3c-4e1f-9f35-1f0d9f3b9f53"
CEPH_KEY = base64.b64encode(b"marked-ceph-key").decode()
CELL = """[DEFAULT]
debug = True
transport_url = {bus}
[libvirt]
virt_type = qemu
rbd_user = openstack
rbd_secret_uuid = {uuid}
"""
SNIPPET = "[DEFAULT]\nreserved_host_memory_mb = 333\n"


def compute(
    machine: Machine, bus: str, key: Path, *, ca: str = "first", instance: str = "", **more: str
) -> ServicePlan:
    """nova-compute with all that a deployer lists for it."""
    address = machine.nodes.address(machine.name)
    suffix = f"-{instance}" if instance else ""
    who = Identity(f"{machine.name}{suffix}", address, f"/var/lib/nova{suffix}")
    files: dict[str, str | bytes] = {
        "01-nova.conf": CELL.format(bus=bus, uuid=UUID),
        "ssh-privatekey": key.read_bytes(),
        "ssh-publickey": key.with_suffix(".pub").read_bytes(),
        "ceph.conf": "[global]\nmon_host = 192.0.2.1\n",
        "ceph.client.openstack.keyring": f"[client.openstack]\n\tkey = {CEPH_KEY}\n",
        "tls-ca-bundle.pem": ca,
        "provider-extra.yaml": "meta: {schema_version: '1.0'}\nproviders: []\n",
        "02-nova-override.conf": SNIPPET,
        **more,
    }
    plan = planned("nova_compute", files, identity=who, instance=instance)
    origin = Origin(plan.sources[0].origin.ref, "identity")
    own = ConfigSource(origin, plan.conf_d or "", "02-nova-host-specific.conf", Layer.HOST, False, host_specific(who))
    return replace(plan, sources=(*plan.sources, own))


def given(directory: str, name: str, text: str) -> ConfigSource:
    """A file out of a Secret of the deployer's."""
    origin = Origin(Reference("Secret", "openstack", "site"), f"key {name}")
    return ConfigSource(origin, directory, name, Layer.DEPLOYER, True, text.encode() + b"\n")


def reported(machine: Machine, service: str) -> dict[str, str]:
    """What the process itself says of its options when it is asked for a report."""
    unit, container = f"edpm_{service}.service", f"edpm_{service.replace('@', '-')}"
    since = machine.sh(f"date +%s; podman kill --signal USR2 {container} > /dev/null").split()[0]
    log = f"journalctl -u {unit} -o cat --no-pager --since=@{since}"
    machine.until(f"{log} | grep -q '^ *live_migration_uri = '", 60)
    found: dict[str, str] = {}
    group = ""
    for line in machine.sh(log).splitlines():
        if named := re.fullmatch(r"([\w.]+): *", line):
            group = "" if named.group(1) in ("default", "DEFAULT") else f"{named.group(1)}."
        elif setting := re.fullmatch(r"  (\w+) = (.*)", line):
            found[group + setting.group(1)] = setting.group(2).strip()
    return found
