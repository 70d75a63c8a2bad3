# SPDX-License-Identifier: GPL-3.0-or-later
"""The real metadata agent with OVN and haproxy: what a guest gets, and for how long it gets none after a restart.

The guest is a network namespace on a port of OVN. Behind the agent stands a small server in the place of Nova's, which
answers with the instance that the agent names to it.
"""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import ServicePlan
from edpm_lab import ovn
from edpm_lab.cloud import Cloud
from edpm_lab.labs import Lab

from .conftest import Bring
from .machine import WITH_OVN, Machine, planned
from .privileges import check

NETWORK, PORT = "8f1f8c5e-1111-4f3a-9d55-000000000001", "8f1f8c5e-1111-4f3a-9d55-000000000002"
METADATA_PORT, INSTANCE = "8f1f8c5e-1111-4f3a-9d55-000000000003", "8f1f8c5e-1111-4f3a-9d55-000000000004"
UNIT = "edpm_ovn_metadata_agent.service"

_OPEN_OVN = """systemctl start ovn-central
for _ in $(seq 100); do [ -S /run/ovn/ovnnb_db.sock ] && [ -S /run/ovn/ovnsb_db.sock ] && break; sleep 0.2; done
ovn-sbctl --timeout=20 set-connection ptcp:6642:0.0.0.0 -- set connection . inactivity_probe=0"""
#: What Neutron writes for a network with one port of a server.
_NEUTRON = f"""ovn-nbctl --timeout=20 --if-exists ls-del neutron-{NETWORK}
ovn-nbctl --timeout=20 ls-add neutron-{NETWORK} \
-- set logical_switch neutron-{NETWORK} external_ids:'"neutron:network_name"'=net \
-- lsp-add neutron-{NETWORK} {METADATA_PORT} -- lsp-set-type {METADATA_PORT} localport \
-- lsp-set-addresses {METADATA_PORT} 'fa:16:3e:00:00:02 10.9.0.2' \
-- set logical_switch_port {METADATA_PORT} external_ids:'"neutron:cidrs"'='"10.9.0.2/24"' \
external_ids:'"neutron:device_id"'=ovnmeta-{NETWORK} external_ids:'"neutron:device_owner"'='"network:distributed"' \
-- lsp-add neutron-{NETWORK} {PORT} -- lsp-set-addresses {PORT} 'fa:16:3e:00:00:05 10.9.0.5' \
-- set logical_switch_port {PORT} external_ids:'"neutron:cidrs"'='"10.9.0.5/24"' \
external_ids:'"neutron:device_id"'={INSTANCE} external_ids:'"neutron:device_owner"'='"compute:nova"' \
external_ids:'"neutron:project_id"'=project"""
#: In user space nobody fills in a checksum that was left to a network card: the guest makes its own (ETHTOOL_STXCSUM).
_CHECKSUMS = """import ctypes, fcntl, socket, struct
off = ctypes.create_string_buffer(struct.pack("II", 0x17, 0))
fcntl.ioctl(socket.socket(), 0x8946, struct.pack("16sP", b"eth0", ctypes.addressof(off)) + bytes(16))"""
_GUEST = f"""set -e
ip netns list | grep -q guest && exit
ip netns add guest
ip link add tapguest type veth peer name eth0 netns guest
ip -n guest link set eth0 address fa:16:3e:00:00:05 up
ip -n guest address add 10.9.0.5/24 dev eth0
ip -n guest route add 169.254.169.254 via 10.9.0.2
ip netns exec guest python3 -c {shlex.quote(_CHECKSUMS)}
ip link set tapguest up
ovs-vsctl --timeout=20 --may-exist add-port br-int tapguest -- set interface tapguest external_ids:iface-id={PORT}"""
_NOVA = """import http.server
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        text = self.headers["X-Instance-ID"].encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; charset=UTF-8")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
http.server.ThreadingHTTPServer(("127.0.0.1", 8775), Answer).serve_forever()"""
#: For how long something of this node has waited for a processor so far, where the kernel tells; microseconds.
_PRESSURE = "/sys/fs/cgroup/cpu.pressure"
#: Asks again and again; each line tells when, how long the node has waited for a processor, and what the answer was.
_WATCH = """import os, re, time, urllib.request
def now():
    waited = re.search(rb"some .*total=(\\d+)", os.pread(9, 1000, 0))
    return time.time(), int(waited[1]) / 1e6 if waited else 0.0
end = time.time() + 400
last = None
while time.time() < end:
    begin = now()
    try:
        answer = urllib.request.urlopen("http://169.254.169.254/latest", timeout=1).read().decode()
    except Exception as error:
        answer = ""
    if bool(answer) != last:
        print(*(now() if answer else begin), answer, flush=True)
        last = bool(answer)
    time.sleep(0.1)
"""
AGENT = """[DEFAULT]
debug = True
state_path = /var/lib/neutron
nova_metadata_host = 127.0.0.1
metadata_proxy_shared_secret = lab
metadata_workers = 1
[agent]
root_helper = sudo neutron-rootwrap /etc/neutron/rootwrap.conf
[ovs]
ovsdb_connection = tcp:127.0.0.1:6640
[ovn]
ovn_sb_connection = {southbound}
[oslo_concurrency]
lock_path = /var/lib/neutron/lock
"""


@pytest.fixture(scope="module")
def southbound(lab: Lab) -> str:
    cloud = Cloud(lab).up(["bus"])
    cloud.inside("sh", "-e", "-c", _OPEN_OVN, timeout=120)
    cloud.inside("sh", "-e", "-c", _NEUTRON, timeout=60)
    return str(cloud.site.southbound)


@pytest.fixture(scope="module")
def machine(bring: Bring, southbound: str) -> Machine:
    found = bring(WITH_OVN, ovn.IMAGE)
    ovn.join(found.nodes, found.name, southbound)
    found.sh(_GUEST)
    found.sh(
        f"systemctl is-active -q nova-metadata || systemd-run --unit=nova-metadata python3 -c {shlex.quote(_NOVA)}"
    )
    return found


@pytest.fixture(scope="module")
def plan(southbound: str) -> ServicePlan:
    return planned("ovn_metadata_agent", {"05-nova-metadata.conf": AGENT.format(southbound=southbound)})


def ask(machine: Machine) -> str:
    """What the guest gets."""
    return machine.sh("ip netns exec guest curl -s -m 2 http://169.254.169.254/latest", check=False)


def test_a_guest_gets_its_metadata_from_the_deployed_agent(machine: Machine, plan: ServicePlan) -> None:
    machine.brought(plan)
    machine.until(f"ip netns exec guest curl -s -m 2 http://169.254.169.254/latest | grep -qx {INSTANCE}", 240)
    assert "haproxy" in machine.sh("podman top edpm_ovn_metadata_agent comm")
    check(machine, plan)


def test_after_a_restart_guests_get_their_metadata_again_within_seconds(machine: Machine) -> None:
    lost, limit = _outage(machine, f"systemctl restart {UNIT}")
    assert lost < limit


def test_a_killed_agent_comes_back_with_its_metadata(machine: Machine) -> None:
    before = machine.invocation(UNIT)
    lost, limit = _outage(machine, "podman kill --signal KILL edpm_ovn_metadata_agent")
    assert lost < limit + RESTART_PAUSE
    assert machine.invocation(UNIT) != before


def test_a_changed_setting_is_one_restart(machine: Machine, plan: ServicePlan) -> None:
    changed = replace(plan.sources[0], content=plan.sources[0].content + b"[quotas]\n")
    answer = machine.deploy(replace(plan, sources=(changed,)))
    assert (answer["failed"], answer["restarted"]) == (False, True), answer["shown"]
    machine.until(f"ip netns exec guest curl -s -m 2 http://169.254.169.254/latest | grep -qx {INSTANCE}", 240)


#: What systemd waits before it starts a unit again that ended by itself.
RESTART_PAUSE = 5


def _reading(machine: Machine) -> float:
    """The processor's seconds in which this machine reads the agent's program."""
    program = "import time, neutron.agent.ovn.metadata.agent; print(time.process_time())"
    return float(machine.sh(f"podman exec edpm_ovn_metadata_agent python3 -c '{program}'").splitlines()[-1])


def _outage(machine: Machine, blow: str) -> tuple[float, float]:
    """The seconds between the last answer before a blow and the first one after it, and how many there may be.

    Those in which the node waited for a processor are not counted, since others have it then. There may be a few, and
    the time to read the program three times: by the agent, its privileged half and its server.
    """
    before = _reading(machine)
    # Inside the guest the node's control groups cannot be seen, so the file is opened before.
    watch = f"""pressure={_PRESSURE}
[ -e $pressure ] || pressure=/dev/null
timeout 400 ip netns exec guest python3 -u -c {shlex.quote(_WATCH)} 9< $pressure > /run/watch"""
    machine.sh(f"rm -f /run/watch; systemd-run --unit=watch --collect bash -c {shlex.quote(watch)}")
    machine.until("grep -q . /run/watch")
    machine.sh(f"timeout 60 {blow}")
    machine.until("[ $(wc -l < /run/watch) -ge 3 ]", 240)
    machine.sh("systemctl stop watch", check=False)
    lines = [line.split() for line in machine.sh("head -3 /run/watch").splitlines()]
    passed, waited = (float(lines[2][place]) - float(lines[1][place]) for place in (0, 1))
    limit = 10 + 4 * (before + _reading(machine)) / 2
    print(f"no metadata for {passed:.1f} s, {waited:.1f} of them without a processor, of {limit:.1f} s after: {blow}")
    return passed - waited, limit
