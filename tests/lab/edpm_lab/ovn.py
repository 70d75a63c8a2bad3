# SPDX-License-Identifier: GPL-3.0-or-later
"""Open vSwitch and OVN's controller on a node, switched on and pointed at a southbound database.

Ports are handled in user space (the `netdev` datapath), since a host's kernel need not have Open vSwitch.
"""

from __future__ import annotations

from .errors import LabError
from .nodes import Nodes

#: The image of a node that has Open vSwitch, OVN and libvirt.
IMAGE = "node-ovn"

_JOIN = """command -v ovs-vsctl > /dev/null || { echo "it has no Open vSwitch" >&2; exit 3; }
systemctl enable --quiet --now openvswitch-switch.service
ovs-vsctl --timeout=20 set open . external_ids:hostname="$(hostname)" external_ids:ovn-remote="$1" \
    external_ids:ovn-encap-type=geneve external_ids:ovn-encap-ip="$2" external_ids:ovn-bridge=br-int \
    external_ids:ovn-bridge-datapath-type=netdev -- set-manager ptcp:6640:127.0.0.1
systemctl enable --quiet --now ovn-host.service
for _ in $(seq 150); do
    [ "$(ovn-appctl -t ovn-controller connection-status 2> /dev/null)" = connected ] && exit 0
    sleep 0.2
done
echo "OVN's controller does not reach $1" >&2
exit 4"""


def join(nodes: Nodes, name: str, southbound: str) -> None:
    """Make a node a chassis of the OVN whose southbound database is at `southbound`, such as tcp:10.0.0.1:6642."""
    address = nodes.address(name)
    done = nodes.execute(name, "sh", "-e", "-c", _JOIN, "join", southbound, address, timeout=90, check=False)
    if done.returncode == 3:
        raise LabError(f"node {name} has no Open vSwitch; start it with the image {IMAGE}: edpm-lab up 2 --kind ovn")
    if done.returncode != 0:
        raise LabError(f"node {name} could not join OVN: {done.stderr.strip() or done.stdout.strip()}")
