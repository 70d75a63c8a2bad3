# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers in the lab's cloud: which there can be, and how they are booted, moved and watched.

Most boot from an empty disk, which is all that it takes to be a domain of libvirt. A Linux guest says on its console
which address it got and what the metadata service told it.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from . import images, podman
from .cloud import Cloud
from .errors import LabError
from .prerequisites import architecture

HEADING = ("SERVER", "ID", "STATUS", "HOST", "DOMAIN")
LINUX = "linux"
EMPTY = "empty"
NETWORK = "guests"

#: Seconds until something that does not come is given up; all of it is emulated, on a machine that others use.
_BOOT_LIMIT = 300
_GUEST_FILES = "/srv/guest"

_BOOT = """
compute, image, network = cloud.compute, cloud.image, cloud.network

def of_image(name, disk_format, container_format, data, **more):
    return image.find_image(name) or image.create_image(
        name=name, disk_format=disk_format, container_format=container_format, data=data, validate_checksum=False,
        **more)

def flavor(name, ram):
    return compute.find_flavor(name) or compute.create_flavor(name=name, ram=ram, vcpus=1, disk=1)

def guest(kind):
    if kind != "linux":
        return dict(flavor_id=flavor("empty", 64).id, image_id=of_image("empty", "raw", "bare", bytes(1 << 20)).id,
                    networks="none")
    parts = {}
    for part, form in (("kernel", "aki"), ("initrd", "ari")):
        with open("%s/%s" % (given["files"], part), "rb") as file:
            parts[part] = of_image(part, form, form, file.read()).id
    disk = of_image("linux", "raw", "bare", bytes(1 << 20), kernel_id=parts["kernel"], ramdisk_id=parts["initrd"],
                    os_command_line="console=%s quiet" % given["console"])
    joined = network.find_network(given["network"]) or network.create_network(name=given["network"])
    if not list(network.subnets(network_id=joined.id)):
        network.create_subnet(network_id=joined.id, ip_version=4, cidr="192.168.77.0/24")
    return dict(flavor_id=flavor("linux", 256).id, image_id=disk.id, networks=[{"uuid": joined.id}])

made = [compute.create_server(name=one["name"], availability_zone="nova:" + one["host"], **guest(one["kind"]))
        for one in given["servers"]]
end = time.monotonic() + given["seconds"]
answer = []
for one in made:
    server = compute.get_server(one.id)
    while server.status not in ("ACTIVE", "ERROR") and time.monotonic() < end:
        time.sleep(0.5)
        server = compute.get_server(one.id)
    answer.append([server.id, server.name, server.status, server.compute_host, server.instance_name,
                   (server.to_dict().get("fault") or {}).get("message", "")])
"""

_LIST = """
answer = [[one.id, one.name, one.status, one.compute_host, one.instance_name,
           (one.to_dict().get("fault") or {}).get("message", "")]
          for one in cloud.compute.servers(all_projects=True)]
"""

_DELETE = """
for one in given:
    cloud.compute.delete_server(one, ignore_missing=True)
for one in given:
    server = cloud.compute.find_server(one)
    if server:
        cloud.compute.wait_for_delete(server, interval=0.5, wait=120)
answer = None
"""

_MIGRATE = """
compute = cloud.compute
compute.default_microversion = "2.80"
if given["live"]:
    compute.live_migrate_server(given["id"], host=given["host"], block_migration="auto")
else:
    compute.migrate_server(given["id"], host=given["host"])
end, confirmed = time.monotonic() + given["seconds"], False
while True:
    server = compute.get_server(given["id"])
    found = [one for one in compute.migrations() if one.server_id == server.id and one.dest_compute == given["host"]]
    moved = max(found, key=lambda one: one.id).status if found else ""
    settled = not server.task_state
    if server.status == "ERROR" or moved in ("error", "failed") or time.monotonic() > end:
        break
    if settled and server.status == "VERIFY_RESIZE" and not confirmed:
        compute.confirm_server_resize(server)
        confirmed = True
    elif settled and server.status == "ACTIVE" and moved in ("completed", "confirmed"):
        break
    time.sleep(0.5)
answer = [server.status, server.compute_host, moved]
"""

_ATTACH = """
volumes, compute = cloud.block_storage, cloud.compute
volume = volumes.create_volume(name=given["name"], size=1)
end = time.monotonic() + given["seconds"]
said = []

def until(*wanted):
    found = volumes.get_volume(volume.id)
    while found.status not in wanted and time.monotonic() < end:
        time.sleep(0.5)
        found = volumes.get_volume(volume.id)
    return found

volume = until("available", "error")
said.append(volume.status)
if volume.status == "available":
    compute.create_volume_attachment(given["server"], volume_id=volume.id)
    volume = until("in-use", "error")
    said.append(volume.status)
answer = [volume.id, volume.host, said, [[one["server_id"], one["device"]] for one in volume.attachments]]
"""


@dataclass(frozen=True)
class Server:
    """A server as Nova tells of it; `domain` is what libvirt calls it, `fault` why it is in ERROR."""

    uuid: str
    name: str
    status: str
    host: str
    domain: str
    fault: str

    def row(self) -> tuple[str, ...]:
        """The server as a row of a table under `HEADING`."""
        return self.name, self.uuid, self.status, self.host, self.domain

    def __str__(self) -> str:
        return f"server {self.name} ({self.uuid}): {self.status} on {self.host}{self.fault and ': ' + self.fault}"


@dataclass(frozen=True)
class Volume:
    """A volume as Cinder tells of it: the states that it went through, and the servers that have it."""

    uuid: str
    backend: str
    states: list[str]
    attached: list[list[str]]


def boot(cloud: Cloud, hosts: Sequence[str], *, linux_on: str = "") -> list[Server]:
    """Boot a server on each host, side by side; the one on `linux_on` is a Linux guest with a network."""
    if linux_on:
        _bring_guest(cloud)
    wanted = [{"name": f"on-{host}", "host": host, "kind": LINUX if host == linux_on else EMPTY} for host in hosts]
    console = "ttyAMA0" if architecture() == "arm64" else "ttyS0"
    given = {"servers": wanted, "files": _GUEST_FILES, "console": console, "network": NETWORK, "seconds": _BOOT_LIMIT}
    return [Server(*one) for one in cloud.python(_BOOT, given, timeout=_BOOT_LIMIT + 60)]


def listed(cloud: Cloud) -> list[Server]:
    """All servers of the cloud."""
    return [Server(*one) for one in cloud.python(_LIST)]


def delete(cloud: Cloud, *uuids: str) -> None:
    """Delete servers and wait until they are gone."""
    cloud.python(_DELETE, list(uuids))


def migrate(cloud: Cloud, uuid: str, host: str, *, live: bool) -> tuple[str, str, str]:
    """Move a server; the answer is its state, its host, and what became of the migration."""
    given = {"id": uuid, "host": host, "live": live, "seconds": _BOOT_LIMIT}
    status, where, moved = cloud.python(_MIGRATE, given, timeout=_BOOT_LIMIT + 60)
    return status, where, moved


def attach(cloud: Cloud, uuid: str, name: str) -> Volume:
    """Make a volume and give it to a server."""
    given = {"server": uuid, "name": name, "seconds": _BOOT_LIMIT}
    return Volume(*cloud.python(_ATTACH, given, timeout=_BOOT_LIMIT + 60))


def metadata(cloud: Cloud, uuid: str, *, after: int = 0) -> tuple[int, str]:
    """What a Linux guest got from the metadata service: when, in seconds since it started, and the UUID that it got."""
    end = time.monotonic() + _BOOT_LIMIT
    while True:
        told = _console(cloud, uuid)
        for when, what in re.findall(r"^GUEST metadata at (\d+): (\S+)\s*$", told, re.MULTILINE):
            if int(when) > after and what != "none":
                return int(when), what
        if time.monotonic() > end:
            raise LabError(f"the guest {uuid} got no metadata in {_BOOT_LIMIT} s; its console ends with: {told[-400:]}")
        time.sleep(1)


def uptime(cloud: Cloud, uuid: str) -> int:
    """For how many seconds a Linux guest has been up, as it said last."""
    return max((int(one) for one in re.findall(r"^GUEST metadata at (\d+)", _console(cloud, uuid), re.M)), default=0)


def _console(cloud: Cloud, uuid: str) -> str:
    answer: Any = cloud.openstack("compute.get_server_console_output", uuid)
    return str(answer.get("output") or "").replace("\r", "")


def _bring_guest(cloud: Cloud) -> None:
    """Put the guest's kernel and first file system beside the control plane, from where they are uploaded."""
    if cloud.inside("test", "-e", _GUEST_FILES, check=False).returncode == 0:
        return
    folder = cloud.folder / "guest"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    image = images.image("guest")
    podman.run("run", "--rm", "--network=none", "--volume", f"{folder}:/out", image, "sh", "-c", "cp /srv/guest/* /out")
    podman.run("cp", folder, f"{cloud.container}:{_GUEST_FILES}", timeout=120)
