# SPDX-License-Identifier: GPL-3.0-or-later
"""A service image as a Quadlet unit on a node, started by kolla's own start program.

This is how the lab shows that its images and nodes are the real thing; deploying services is the
collection's work.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from . import images
from .nodes import Nodes


@dataclass(frozen=True)
class Unit:
    """One service on a node: what kolla starts, with one configuration file that kolla puts in place."""

    name: str
    image: str
    user: str
    program: str
    configuration: str
    settings: str = "# nothing is set here\n"
    #: A service runs on and comes back with its node; otherwise the program runs once to its end.
    serves: bool = False
    #: Folders of the node that it shares, as podman writes them.
    volumes: tuple[str, ...] = ()

    def start(self, nodes: Nodes, node: str) -> None:
        """Put the unit on a node and start it."""
        home = f"/var/lib/openstack/{self.name}"
        put(nodes, node, f"{home}/service.conf", self.settings)
        put(nodes, node, f"/var/lib/kolla/{self.name}.json", self._kolla())
        put(nodes, node, f"/etc/containers/systemd/{self.name}.container", self._container(home))
        nodes.execute(node, "systemctl", "daemon-reload")
        nodes.execute(node, "systemctl", "start", f"{self.name}.service", timeout=120, check=self.serves)

    def journal(self, nodes: Nodes, node: str) -> str:
        """What the unit printed."""
        return nodes.execute(node, "journalctl", f"--unit={self.name}.service", "--output=cat", "--no-pager").stdout

    def _kolla(self) -> str:
        """A config.json as the community's images take it."""
        copied = {
            "source": "/var/lib/openstack/config/service.conf",
            "dest": self.configuration,
            "owner": self.user,
            "perm": "0600",
        }
        return json.dumps({"command": self.program, "config_files": [copied]})

    def _container(self, home: str) -> str:
        privileged = ["PodmanArgs=--privileged --pid=host --cgroupns=host --cgroups=no-conmon", "Volume=/dev:/dev"]
        runs_on = ["[Service]", "Restart=always", "[Install]", "WantedBy=multi-user.target"]
        runs_once = ["[Service]", "Type=oneshot", "RemainAfterExit=yes"]
        lines = [
            "[Container]",
            f"Image={images.image(self.image)}",
            f"ContainerName={self.name}",
            "Pull=never",
            "Network=host",
            f"User={self.user}",
            "Environment=KOLLA_CONFIG_STRATEGY=COPY_ALWAYS KOLLA_SKIP_EXTEND_START=1",
            f"Volume=/var/lib/kolla/{self.name}.json:/var/lib/kolla/config_files/config.json:ro",
            f"Volume={home}:/var/lib/openstack/config:ro",
            *(f"Volume={volume}" for volume in self.volumes),
            *(privileged if self.serves else []),
            *(runs_on if self.serves else runs_once),
        ]
        return "\n".join(lines) + "\n"


#: libvirtd as a unit that serves; without polkit in its container it asks nobody who a client is.
LIBVIRT = Unit(
    name="libvirtd",
    image="libvirt",
    user="root",
    program="libvirtd",
    configuration="/etc/libvirt/libvirtd.conf",
    settings='auth_unix_rw = "none"\nauth_unix_ro = "none"\n',
    serves=True,
)


def start_compute(nodes: Nodes, node: str, settings: str) -> Unit:
    """nova-compute with these settings on a node of the kind `ovn`, over the libvirt of the node's own packages."""
    shared = (
        "/run/libvirt:/run/libvirt:shared",
        "/var/lib/libvirt:/var/lib/libvirt",
        "/var/lib/nova:/var/lib/nova:shared",
    )
    compute = Unit(
        name="nova_compute",
        image="nova-compute",
        user="nova",
        program="nova-compute",
        configuration="/etc/nova/nova.conf.d/01-nova.conf",
        settings=settings,
        serves=True,
        volumes=shared,
    )
    nodes.execute(node, "install", "-d", "-o", "nova", "-g", "nova", "/var/lib/nova", "/var/lib/nova/instances")
    nodes.execute(node, "systemctl", "start", "virtlogd.socket", "libvirtd.socket", "libvirtd.service")
    compute.start(nodes, node)
    return compute


def virsh(nodes: Nodes, node: str, *words: str) -> str:
    """Ask the libvirtd of a node; it may need a moment after its unit has started."""
    asked = f"podman exec {LIBVIRT.name} virsh -c qemu:///system {' '.join(words)}"
    return nodes.execute(node, "bash", "-c", f"for _ in $(seq 50); do {asked} && exit; sleep 0.2; done; exit 1").stdout


def put(nodes: Nodes, node: str, path: str, text: str) -> None:
    """Write a file on a node."""
    nodes.execute(node, "install", "-D", "-m", "0644", "/dev/stdin", path, stdin=text)
