# SPDX-License-Identifier: GPL-3.0-or-later
"""What one node says to another, heard on the wire: which ports it opens, and whether it begins TLS there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from edpm_lab.nodes import Nodes

_UNIT, _PROGRAM, _HEARD = "wire.service", "/run/wire.py", "/run/wire.json"
#: The first segment of a connection has SYN and no ACK; a handshake is a record of type 22 that begins with a hello.
_LISTENER = """
import json, signal, socket, sys

heard = {}

def end(*_):
    with open(sys.argv[2], "w") as file:
        json.dump(heard, file)
    sys.exit()

signal.signal(signal.SIGTERM, end)
ears = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
ears.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
peer = socket.inet_aton(sys.argv[1])
while True:
    packet = ears.recv(256)
    if packet[9] != 6 or packet[12:16] != peer:
        continue
    segment = packet[(packet[0] & 15) * 4 : int.from_bytes(packet[2:4], "big")]
    port, said = int.from_bytes(segment[2:4], "big"), segment[(segment[12] >> 4) * 4 :]
    if segment[13] & 0x12 == 0x02:
        heard.setdefault(port, False)
    elif port in heard and said[:2] == b"\\x16\\x03" and said[5:6] == b"\\x01":
        heard[port] = True
"""


@dataclass
class Wire:
    """The ports that were opened, and of them those on which TLS began. Both are empty before the end."""

    opened: set[int] = field(default_factory=set)
    with_tls: set[int] = field(default_factory=set)

    def __str__(self) -> str:
        told = (f"{port} with{'' if port in self.with_tls else 'out'} TLS" for port in sorted(self.opened))
        return ", ".join(told) or "nothing"


@contextmanager
def heard(nodes: Nodes, node: str, peer: str) -> Iterator[Wire]:
    """Listen on a node to what another one says to it, as long as the block lasts."""
    run = f"systemd-run --quiet --collect --unit={_UNIT} python3 {_PROGRAM} {nodes.address(peer)} {_HEARD}"
    nodes.execute(node, "bash", "-ec", f"rm -f {_HEARD}; cat > {_PROGRAM}; {run}", stdin=_LISTENER)
    wire = Wire()
    try:
        yield wire
    finally:
        told = nodes.execute(node, "bash", "-ec", f"systemctl stop {_UNIT}; cat {_HEARD}").stdout
    ports = {int(port): with_tls for port, with_tls in json.loads(told).items()}
    wire.opened |= ports.keys()
    wire.with_tls |= {port for port, with_tls in ports.items() if with_tls}
