# SPDX-License-Identifier: GPL-3.0-or-later
"""A cloud with two cells: the control plane of OpenStack in one system container beside the nodes.

It stands for a control plane in pods: MariaDB, RabbitMQ with a bus for each cell, Keystone, Placement, Glance, Nova
with a conductor for each cell, Neutron with OVN, and Cinder. Hosts are not discovered by themselves. The databases come
with the image; passwords are the lab's own. Of its parts `bus` is the message bus alone, which starts in a moment.
"""

from __future__ import annotations

import functools
import http.client
import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from . import cloud_manifests, hosts, images, openstack_calls, podman
from .access import Access
from .cloud_settings import CATALOG, CELL_METADATA_PORTS, CELLS, METADATA_PORT, REGION, USERS, Passwords, Site, files
from .command import Result
from .errors import LabError
from .labs import Lab
from .openstack_calls import OpenStackError
from .pki import write_private
from .progress import say, step

#: The control plane's place in the lab's network, and its name there.
ADDRESS_NUMBER = 3
NAME = "control-plane"
IMAGE = "control-plane"

#: The units of each part. Every part but the bus stands on `compute`: Keystone, Placement, Glance, Nova and Neutron.
PARTS: Mapping[str, Sequence[str]] = {
    "bus": ("rabbitmq-server",),
    "compute": (
        "neutron-api",
        "neutron-ovn-maintenance-worker",
        "nova-conductor",
        *(f"nova-conductor@{cell}" for cell in CELLS),
        "placement-api",
        "glance-api",
        "nova-api",
        "nova-scheduler",
    ),
    "metadata": ("nova-api-metadata",),
    "cell-metadata": tuple(f"nova-metadata@{cell}" for cell in CELLS),
    "agents": ("neutron-rpc-server",),
    "volume": ("cinder-api", "cinder-scheduler"),
}

#: Those that take longest and do not call Keystone when they start; the others wait until it serves.
_EARLY = ("neutron-api", "neutron-ovn-maintenance-worker", "nova-conductor")

#: Cells have no metadata service of their own unless it is asked for.
DEFAULT_PARTS = tuple(part for part in PARTS if part != "cell-metadata")

#: Where each part answers HTTP once it serves.
_PORTS: Mapping[str, Mapping[str, int]] = {
    "compute": {"placement-api": 8778, "glance-api": 9292, "nova-api": 8774, "neutron-api": 9696},
    "metadata": {"nova-api-metadata": METADATA_PORT},
    "cell-metadata": {f"nova-metadata@{cell}": port for cell, port in CELL_METADATA_PORTS.items()},
    "volume": {"cinder-api": 8776},
}
_NOVA = {"nova-conductor": 1 + len(CELLS), "nova-scheduler": 1}

#: Seconds until a step that does not end is given up; a machine that does nothing else needs a tenth of it.
_BOOT_LIMIT = 180.0
_START_LIMIT = 600.0
_SERVE_LIMIT = 600.0

_FIRST_PROCESS = f"""{podman.BECOME_A_MACHINE} || exit 1
cd /srv/settings || exit 1
find . -type f -printf '%P\\n' | while read -r file; do
    group=${{file%%/*}}
    getent group "$group" > /dev/null || group=root
    install -D -m 0640 -g "$group" "$file" "/etc/$file" || exit 1
done
chown -R keystone:keystone /etc/keystone/fernet-keys /etc/keystone/credential-keys
chmod 0700 /etc/keystone/fernet-keys /etc/keystone/credential-keys
cd /
export container=podman
exec /sbin/init"""

_UNTIL_BOOTED = """for _ in $(seq 1000); do
    case $(systemctl is-system-running 2> /dev/null) in running|degraded) exit 0 ;; esac
    sleep 0.1
done
exit 1"""

_OPEN_OVN = """for _ in $(seq 100); do
    [ -S /run/ovn/ovnnb_db.sock ] && [ -S /run/ovn/ovnsb_db.sock ] && break
    sleep 0.2
done
ovn-nbctl --timeout=10 set-connection ptcp:6641:0.0.0.0 -- set connection . inactivity_probe=0
ovn-sbctl --timeout=10 set-connection ptcp:6642:0.0.0.0 -- set connection . inactivity_probe=0"""


_MAPPED = """SELECT host_mappings.host, cell_mappings.name FROM nova_api.host_mappings
JOIN nova_api.cell_mappings ON host_mappings.cell_id = cell_mappings.id;
"""

#: The computes that have told Nova what they have.
_REPORTED = """SELECT host FROM nova_cell1.compute_nodes WHERE deleted = 0
UNION SELECT host FROM nova_cell2.compute_nodes WHERE deleted = 0;
"""

_DISCOVER = ("su", "-s", "/bin/sh", "nova", "-c", "nova-manage cell_v2 discover_hosts --verbose")

#: From 2.88 on Nova asks each compute how long it is up, and fails where one is just being started anew.
WITHOUT_UPTIME = "2.53"

COMPUTES = ("COMPUTE", "CELL", "STATE", "STATUS", "HYPERVISOR")


@dataclass(frozen=True)
class Compute:
    """A compute as Nova tells of it; what it does not tell is a dash."""

    host: str
    cell: str
    state: str
    status: str
    hypervisor: str

    def row(self) -> tuple[str, ...]:
        """The compute as a row of a table under `COMPUTES`."""
        return self.host, self.cell, self.state, self.status, self.hypervisor


class Cloud:
    """The cloud of one lab."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._folder = lab.folder / "cloud"

    @property
    def container(self) -> str:
        """The system container that the control plane runs in."""
        return f"edpm-{self._lab.name}-{NAME}"

    @property
    def folder(self) -> Path:
        """What the lab keeps of it."""
        return self._folder

    @property
    def address(self) -> str:
        """Where the control plane is in the lab's network."""
        return podman.network(self._lab.name).address(ADDRESS_NUMBER)

    @property
    def site(self) -> Site:
        """Its address and passwords, which stay the same until they are changed on purpose."""
        try:
            text = (self._folder / "passwords.json").read_text()
        except FileNotFoundError:
            raise LabError(
                f"the lab {self._lab.name} has no cloud; start one with: edpm-lab cloud up --name {self._lab.name}"
            ) from None
        return Site(self.address, Passwords.read(text))

    def up(self, parts: Sequence[str] = DEFAULT_PARTS) -> Self:
        """Start the control plane, or further parts of it; what serves already is left alone."""
        wanted = _with_needed(parts)
        missing = [part for part in wanted if part not in self.parts()]
        if missing:
            podman.containers_work()
            images.image(IMAGE)
            with step(f"the control plane ({', '.join(missing)})"):
                self._begin_unless_running()
                self._start(missing)
                self._remember([*self.parts(), *missing])
        return self

    def down(self) -> None:
        """Remove the control plane with all that it knew."""
        _programs(self.container, self._folder).end()
        podman.run("rm", "--force", "--ignore", "--time", "0", "--volumes", self.container, timeout=120)
        shutil.rmtree(self._folder, ignore_errors=True)

    def runs(self) -> bool:
        """Whether the control plane's container runs."""
        if not self._folder.is_dir():
            return False
        asked = ("container", "inspect", "--format", "{{.State.Running}}", self.container)
        return podman.run(*asked, check=False).stdout.strip() == "true"

    def parts(self) -> list[str]:
        """The parts that have been started."""
        record = self._folder / "parts.json"
        if not record.exists() or not self.runs():
            return []
        known: list[str] = json.loads(record.read_text())
        return known

    def openstack(self, path: str, *args: Any, **kwargs: Any) -> Any:
        """One call of openstacksdk as the administrator, such as `openstack("compute.services")`, as plain data."""
        return self.ask([(path, args, kwargs)])[0]

    def ask(self, calls: Sequence[openstack_calls.Call]) -> list[Any]:
        """Several calls in one process, one after the other."""
        answers: list[Any] = self.python(openstack_calls.ASK, [list(call) for call in calls])
        return answers

    def python(self, body: str, given: object = None, *, timeout: float = 600) -> Any:
        """Run a program beside the control plane: it has `cloud`, a connection, and `given`, and sets `answer`."""
        podman.ready()
        return _programs(self.container, self._folder).run(body, given, timeout=timeout)

    def inside(self, *words: str, timeout: float = 300, check: bool = True, stdin: str | None = None) -> Result:
        """Run a command in the control plane's container as root."""
        return podman.execute(self.container, *words, timeout=timeout, check=check, stdin=stdin)

    def inside_argv(self, *words: str) -> list[str]:
        """What another program executes to run a command in the control plane's container."""
        settings = [f"{name}={value}" for name, value in podman.environment().items()]
        return ["env", *settings, "podman", "exec", self.container, *words]

    def discover_argv(self) -> list[str]:
        """The command that maps new hosts to their cells, as an administrator runs it in a conductor."""
        return self.inside_argv(*_DISCOVER)

    def mapped_hosts(self) -> dict[str, str]:
        """The cell that each compute is mapped to, from the tables that nova-manage lists; it takes seconds to load."""
        shown = self.inside("mariadb", "--batch", "--skip-column-names", stdin=_MAPPED).stdout
        return dict(line.split("\t") for line in shown.splitlines())

    def computes(self) -> list[Compute]:
        """All computes that Nova lists."""
        asked: list[openstack_calls.Call] = [
            ("compute.services", [], {"binary": "nova-compute"}),
            ("compute.hypervisors", [], {"details": True, "microversion": WITHOUT_UPTIME}),
        ]
        services, hypervisors = self.ask(asked)
        mapped = self.mapped_hosts()
        kinds = {one["name"]: one["hypervisor_type"] for one in hypervisors}
        return [
            Compute(host, mapped.get(host, "-"), one["state"], one["status"], kinds.get(host, "-"))
            for host, one in sorted((one["host"], one) for one in services)
        ]

    def await_compute(self, host: str, *, limit: float = 120) -> Compute:
        """What Nova says of a compute, once it is up."""
        end = time.monotonic() + limit
        while True:
            listed = {one.host: one for one in self.computes()}
            if host in listed and listed[host].state == "up":
                return listed[host]
            if time.monotonic() > end:
                raise LabError(f"{host} was not up within {limit:.0f} s; Nova lists {[*listed.values()]}")
            time.sleep(0.5)

    def discover(self, host: str, *, limit: float = 120) -> None:
        """Map a new compute to its cell, as an administrator does in a conductor.

        Nova calls a compute up before that has told what it has, and until then there is nothing to map.
        """
        end = time.monotonic() + limit
        while host not in self.inside("mariadb", "--batch", "--skip-column-names", stdin=_REPORTED).stdout.split():
            if time.monotonic() > end:
                raise LabError(f"{host} did not tell Nova what it has within {limit:.0f} s")
            time.sleep(0.5)
        self.inside(*_DISCOVER)

    def manifests(self, folder: Path, *, metadata: str = "global") -> list[Path]:
        """Write what the operators of such a control plane would have written to the cluster."""
        return cloud_manifests.write(folder, self.site, metadata=metadata)

    def apply(self, server: Access, *, metadata: str = "global", namespace: str = cloud_manifests.NAMESPACE) -> None:
        """Write the same into a cluster, with its status."""
        found = cloud_manifests.manifests(self.site, metadata=metadata, namespace=namespace)
        cloud_manifests.apply(server, found)

    def rotate_bus(self, cell: str) -> None:
        """Give a cell's message bus a new password; whoever used the old one is cut off."""
        new = Passwords.new()
        old = self.site.passwords
        changed = Passwords.read(json.dumps({**json.loads(old.written()), "bus": {**old.bus, cell: new.bus[cell]}}))
        self._write(Site(self.address, changed))
        user = f"nova-{cell}"
        self.inside("rabbitmqctl", "--quiet", "change_password", user, changed.bus[cell])
        self._place_settings()
        self.inside("mariadb", stdin=self.site.sql())
        self.inside("rabbitmqctl", "--quiet", "close_all_user_connections", user, "the password has changed")
        units = (f"nova-conductor@{cell}", "nova-conductor", "nova-scheduler", "nova-api")
        self.inside("systemctl", "restart", "--no-block", *units)
        self._await_units(units)
        self._await_http({"nova-api": 8774})

    def _begin_unless_running(self) -> None:
        if self.runs():
            return
        self.down()
        self._folder.mkdir(mode=0o700)
        self._write(Site(self.address, Passwords.new()))
        hosts.remember(self._lab, {NAME: self.address})
        podman.run(
            *("run", "--detach", "--name", self.container, "--hostname", NAME),
            *podman.labels(self._lab.name),
            *("--privileged", "--cgroupns=private", "--systemd=false"),
            *podman.network(self._lab.name).at(self.address),
            *hosts.mounted(self._lab),
            *("--tmpfs", "/run:rw,exec,mode=755", "--tmpfs", "/tmp:rw,exec,mode=1777"),
            *("--volume", f"{self._folder / 'settings'}:/srv/settings:ro"),
            *(images.image(IMAGE), "/bin/sh", "-c", _FIRST_PROCESS),
        )
        self._await_boot()

    def _await_boot(self) -> None:
        """Wait for systemd; while the container becomes a machine a command in it may fail."""
        end = time.monotonic() + _BOOT_LIMIT
        while True:
            try:
                self.inside("sh", "-c", _UNTIL_BOOTED, timeout=_BOOT_LIMIT)
            except LabError as error:
                if time.monotonic() < end and self.runs():
                    time.sleep(0.5)
                    continue
                logs = podman.run("logs", "--tail", "5", self.container, check=False)
                shown = " / ".join((logs.stdout + logs.stderr).strip().splitlines()) or "nothing"
                raise LabError(f"the control plane's container did not boot: {error}; last printed: {shown}") from None
            return

    def _write(self, site: Site) -> None:
        write_private(self._folder / "passwords.json", site.passwords.written().encode())
        for name, text in files(site).items():
            place = self._folder / "settings" / name
            place.parent.mkdir(parents=True, exist_ok=True)
            write_private(place, text.encode())

    def _place_settings(self) -> None:
        """Put changed settings where the services read them, with the modes that they have there."""
        copy = 'cd /srv/settings; find . -type f | while read -r file; do cat "$file" > "/etc/$file"; done'
        self.inside("sh", "-e", "-c", copy)

    def _remember(self, parts: Sequence[str]) -> None:
        (self._folder / "parts.json").write_text(json.dumps(parts))

    def _start(self, parts: Sequence[str]) -> None:
        """Start parts side by side, and those that would only keep Keystone from starting after it."""
        units = [unit for part in parts if part != "bus" for unit in PARTS[part]]
        with ThreadPoolExecutor(thread_name_prefix="cloud") as pool:
            bus = pool.submit(self._start_bus) if "bus" in parts else None
            if "compute" in parts:
                ovn = pool.submit(self._start_ovn)
                self._start_database()
                identity = pool.submit(self._start_identity)
                ovn.result()
                if bus:
                    bus.result()
                self._begin([unit for unit in units if unit in _EARLY])
                identity.result()
            elif bus:
                bus.result()
        self._begin(units)
        self._await_units(units)
        self._await_http({unit: port for part in parts for unit, port in _PORTS.get(part, {}).items()})
        if "compute" in parts:
            self._await_nova()

    def _start_bus(self) -> None:
        self._serve(*PARTS["bus"])
        there = self.inside("rabbitmqctl", "--quiet", "list_vhosts", "--no-table-headers").stdout.split()
        if missing := [cell for cell in CELLS if cell not in there]:
            raise LabError(
                f"RabbitMQ started without the vhosts {', '.join(missing)}: {self._last_words('rabbitmq-server')}"
            )
        say("the message bus is up")

    def _start_ovn(self) -> None:
        self._serve("ovn-central")
        self.inside("sh", "-e", "-c", _OPEN_OVN)
        say("OVN is up")

    def _start_database(self) -> None:
        self._serve("mariadb")
        self.inside("mariadb", stdin=self.site.sql())
        say("the database is up")

    def _start_identity(self) -> None:
        site = self.site
        where = [f"--bootstrap-{kind}-url={site.identity}" for kind in ("admin", "internal", "public")]
        bootstrap = ["keystone-manage", "bootstrap", f"--bootstrap-region-id={REGION}", *where]
        environment = ["env", f"OS_BOOTSTRAP_PASSWORD={site.passwords.admin}"]
        self.inside("setpriv", "--reuid=keystone", "--regid=keystone", "--clear-groups", *environment, *bootstrap)
        self._serve("keystone")
        self._await_http({"keystone": 5000})
        wanted = {"users": USERS, "password": site.passwords.services, "catalog": CATALOG}
        self.python(openstack_calls.OBJECTS, {**wanted, "address": site.address, "region": REGION})
        say("Keystone is up and knows the services")

    def _await_nova(self) -> None:
        try:
            self.python(openstack_calls.UP, {"wanted": _NOVA, "seconds": _SERVE_LIMIT}, timeout=_SERVE_LIMIT + 30)
        except OpenStackError as error:
            raise LabError(f"Nova did not get ready: {error}: {self._last_words('nova-scheduler')}") from None

    def _begin(self, units: Sequence[str]) -> None:
        """Ask for units to be started, without waiting for them."""
        if units:
            self.inside("systemctl", "start", "--no-block", *units)

    def _serve(self, *units: str) -> None:
        """Start units and wait for them."""
        self._begin(units)
        self._await_units(units)

    def _await_units(self, units: Sequence[str]) -> None:
        """Wait until units are up; one that fails, or takes too long, is named with what it said last."""
        end = time.monotonic() + _START_LIMIT
        while waiting := self._not_active(units):
            failed = [unit for unit, state in waiting.items() if state == "failed"]
            if failed or time.monotonic() > end:
                unit = next(iter(failed or waiting))
                raise LabError(
                    f"{unit} of the control plane is {waiting[unit]} and not up within {_START_LIMIT:.0f} s: "
                    f"{self._last_words(unit)}"
                )
            time.sleep(0.5)

    def _not_active(self, units: Sequence[str]) -> dict[str, str]:
        if not units:
            return {}
        states = self.inside("systemctl", "is-active", *units, check=False, timeout=30).stdout.split()
        return {unit: state for unit, state in zip(units, states, strict=False) if state != "active"}

    def _await_http(self, ports: Mapping[str, int]) -> None:
        """Wait until each server answers a request, whatever it says to it."""
        end = time.monotonic() + _SERVE_LIMIT
        for unit, port in ports.items():
            while not _answers(self.address, port):
                if time.monotonic() > end:
                    raise LabError(
                        f"{unit} of the control plane does not answer after {_SERVE_LIMIT:.0f} s: "
                        f"{self._last_words(unit)}"
                    )
                time.sleep(0.3)

    def _last_words(self, unit: str) -> str:
        """The end of a unit's journal, and of its log, where errors are."""
        log = unit.replace("@", "-")
        script = (
            f'journalctl --unit "{unit}" --output cat --no-pager --lines 3; '
            f'grep -h -E "ERROR|CRITICAL|Error" /var/log/*/"{log}"*.log | tail -n 2'
        )
        shown = self.inside("sh", "-c", script, check=False, timeout=20).stdout.strip().splitlines()
        return " / ".join(line.strip()[:300] for line in shown) or "it logged nothing"


@functools.cache
def _programs(container: str, folder: Path) -> openstack_calls.Programs:
    """The process of this run beside a control plane."""
    argv = ("podman", "exec", "--interactive", container, *openstack_calls.ARGV)
    return openstack_calls.Programs(argv, {**os.environ, **podman.environment()}, folder / "programs.log")


def found_cloud(lab: Lab) -> Cloud | None:
    """The cloud of a lab, if one runs."""
    cloud = Cloud(lab)
    return cloud if cloud.runs() else None


def _with_needed(parts: Sequence[str]) -> list[str]:
    """The parts with all that they stand on, in the order in which they are started."""
    if unknown := [part for part in parts if part not in PARTS]:
        raise LabError(f"the cloud has no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    wanted = {"bus", *parts}
    if wanted != {"bus"}:
        wanted.add("compute")
    return [part for part in PARTS if part in wanted]


def _answers(address: str, port: int) -> bool:
    """Whether something speaks HTTP there; asked directly, since a proxy of the host's has no way to a lab."""
    connection = http.client.HTTPConnection(address, port, timeout=20)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
