# SPDX-License-Identifier: GPL-3.0-or-later
"""What travels arrives unchanged, and what is no bundle is refused with a sentence."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import (
    Bundle,
    File,
    Folder,
    Group,
    Health,
    Image,
    LiveFile,
    NodeFile,
    Seed,
    User,
    Validation,
)
from ansible_collections.edpm.services.plugins.module_utils._node.errors import BadBundle
from ansible_collections.edpm.services.plugins.module_utils._node.travel import read, written
from hypothesis import given
from hypothesis import strategies as st

SMALLEST: dict[str, Any] = {
    "version": 1,
    "service": "nova_compute",
    "digest": "3f9c21e",
    "image": {"reference": "registry.example.org/nova-compute@sha256:0123"},
    "units": {"edpm_nova_compute.container": "[Container]\n"},
}
FULL = Bundle(
    service="nova_compute",
    instance="ironic",
    digest="3f9c21e",
    image=Image("localhost/nova:1", "always", '{"auths": {}}', {"ca.crt": "-----BEGIN"}, "[[registry]]"),
    units={"edpm_nova_compute@ironic.container": "[Container]\n", "edpm_nova_compute@ironic-data.volume": "[Volume]\n"},
    files=(File("conf.d/01-nova.conf", b"\x00\xff", 0o640, True), File("keys/id", b"")),
    container="edpm_nova_compute-ironic",
    kolla='{"command": "nova-compute"}',
    groups=(Group("nova", 42436), Group("kolla")),
    users=(User("nova", 42436, "nova", ("kolla",), "/var/lib/nova", "/bin/sh"), User("other")),
    folders=(Folder("/var/lib/nova", 0o2755, "nova", "nova", "container_file_t"), Folder("/srv")),
    tmpfiles=("d /run/nova 0755 root root -",),
    sysctls={"net.ipv4.ip_forward": "1"},
    modules=("br_netfilter",),
    validation=Validation(("oslo-config-validator",), {"conf.d": "/etc/nova/nova.conf.d"}, "warn", 30, (2,)),
    health=Health(("true",), "nova-compute", True, 7, 70),
    guards={"cell": "nova-cell1", "host": "edpm-compute-0"},
    keep=5,
    restart="never",
    live=(LiveFile("/etc/pki/nova/ca.crt", b"\x00", 0o644, "nova", "nova", True), LiveFile("/etc/nova/key", b"")),
    seeds=(Seed("/var/lib/nova/compute_id", 0o640, "nova", "nova"), Seed("/var/lib/nova/other")),
    reload=("kill", "-HUP", "1"),
    ports=("tcp 5900-6923", "udp 53"),
    packages={"apt": ("libvirt-daemon-system", "g++"), "dnf": ("libvirt",)},
    node_units=("iscsid.socket", "dev-disk-by\\x2did.mount"),
    masked=("libvirtd-tcp.socket",),
    busy=("virsh", "list", "--name"),
    data=("/var/lib/nova/instances",),
)
PLAIN = Bundle(
    service="libvirt",
    digest="3f9c21e",
    image=Image(""),
    units={},
    node_units=("virtqemud.socket",),
    node_files=(NodeFile("/etc/libvirt/qemu.conf", b"\x00", 0o640, True),),
    health=Health(("virsh", "version"), on_node=True),
    reload=("systemctl", "reload", "virtqemud"),
    busy=("virsh", "list", "--name"),
)


def encoded(data: object) -> str:
    return base64.b64encode(json.dumps(data).encode()).decode()


def but(**fields: Any) -> str:
    return encoded({**SMALLEST, **fields})


def test_a_bundle_with_every_field_arrives_as_it_was_sent() -> None:
    assert read(written(FULL)) == FULL


def test_a_service_that_is_no_container_arrives_as_it_was_sent() -> None:
    assert read(written(PLAIN)) == PLAIN
    assert PLAIN.unit == "virtqemud.socket"


def test_the_smallest_bundle_is_plain_json_in_base64() -> None:
    made = read(encoded(SMALLEST))
    assert (made.name, made.unit, made.keep, made.image.pull) == (
        "nova_compute",
        "edpm_nova_compute.service",
        3,
        "missing",
    )


@given(st.dictionaries(st.text("abcdefgh0123456789-_.", min_size=2, max_size=20), st.binary(), max_size=8))
def test_the_bytes_of_files_arrive_verbatim(contents: dict[str, bytes]) -> None:
    files = tuple(File(f"conf.d/x{name}", content) for name, content in sorted(contents.items()))
    sent = Bundle("a", "0123456", Image("i"), {"edpm_a.container": ""}, files)
    assert read(written(sent)).files == files


def at(path: str) -> dict[str, str]:
    return {"path": path, "content": ""}


NO_IMAGE: dict[str, Any] = {"image": {}, "units": {}, "node_units": ["a.socket"]}
WRONG = {
    "no base64": ("*", "it is not base64"),
    "no JSON": (base64.b64encode(b"{,").decode(), "it holds no JSON"),
    "neither": (base64.b64encode(b"hello").decode(), "it is neither JSON nor compressed with zlib"),
    "cut short": (base64.b64encode(zlib.compress(b"x" * 500)[:-6]).decode(), "it is cut short, or larger than"),
    "a list": (base64.b64encode(zlib.compress(b"[]")).decode(), "it is not an object"),
    "half a character": (base64.b64encode(b'{"a": "\\ud800"}').decode(), "it holds half a character"),
    "newer": (but(version=2), "its version is 2 and this node's half reads version 1"),
    "unknown field": (but(fils=[]), "fils is a field that this version does not know"),
    "unknown field within": (but(image={"reference": "a", "pul": "never"}), "image.pul is a field"),
    "no service": (but(service=None), "service is missing"),
    "odd service": (but(service="../etc"), "service has the value '../etc', which is not allowed there"),
    "odd digest": (but(digest="../../x"), "digest has the value"),
    "wrong type": (but(keep="3"), "keep is not of the type int"),
    "truth is no number": (but(keep=True), "keep is not of the type int"),
    "too small": (but(keep=0), "keep is 0, and at least 1 is needed"),
    "odd word": (but(restart="maybe"), "restart is 'maybe' and not one of restart, never"),
    "no main unit": (but(units={"edpm_nova_compute-x.container": ""}), "units has no edpm_nova_compute.container"),
    "another's unit": (
        but(units={**SMALLEST["units"], "edpm_nova_compute_more.container": ""}),
        "so it is another service's",
    ),
    "a unit elsewhere": (but(units={"../x.container": ""}), "units has the key '../x.container'"),
    "a file elsewhere": (but(files=[{"path": "../x", "content": ""}]), "which does not lie below the generation"),
    "an absolute file": (but(files=[{"path": "/etc/passwd", "content": ""}]), "does not lie below the generation"),
    "the record": (but(files=[{"path": "bundle.json", "content": ""}]), "a name that cannot be used there"),
    "a file twice": (but(files=[{"path": "a", "content": ""}] * 2), "files has the path 'a' twice"),
    "a file as a folder": (
        but(files=[{"path": "a", "content": ""}, {"path": "a/b", "content": ""}]),
        "files has the path 'a/b' twice, or as a file and as a folder",
    ),
    "a file without bytes": (but(files=[{"path": "a"}]), "files[0].content is missing"),
    "bytes that are none": (but(files=[{"path": "a", "content": "!"}]), "files[0].content is not base64"),
    "a mode that is none": (but(files=[{"path": "a", "content": "", "mode": "rw"}]), "files[0].mode has the value"),
    "an unknown guard": (but(guards={"colour": "red"}), "guards has the key 'colour'"),
    "a setting elsewhere": (but(sysctls={"a/../../etc/x": "1"}), "sysctls has a key with two dots in a row"),
    "no command": (but(validation={"mounts": {}}), "validation.command is missing"),
    "codes that are none": (but(validation={"command": ["x"], "fatal": ["2"]}), "validation.fatal is not a list"),
    "a mount of nothing": (
        but(validation={"command": ["x"], "mounts": {"conf.d": "/etc"}}),
        "validation.mounts names 'conf.d', and no file of the bundle lies there",
    ),
    "a check nowhere": (but(health={"command": ["x"]}), "runs in the container, and container is missing"),
    "a reload nowhere": (but(reload=["x"]), "reload runs in the container, and container is missing"),
    "a question nowhere": (but(busy=["x"]), "busy runs in the container, and container is missing"),
    "nothing that runs": (but(image={}, units={}), "it has neither an image nor node_units"),
    "a unit without an image": (but(image={}), "units, container or validation need an image"),
    "a check without a container": (
        but(**NO_IMAGE, health={"command": ["x"]}),
        "health.command runs in the container, and there is none without an image",
    ),
    "a live file twice": (but(live=[at("/etc/x/a")] * 2), "live and seeds have the path '/etc/x/a' twice"),
    "a live file that is a seed": (but(live=[at("/etc/x")], seeds=[{"path": "/etc/x/a"}]), "as a file and as a folder"),
    "a live file below nothing": (but(live=[at("etc/x")]), "live[0].path has the value 'etc/x'"),
    "a live file above": (but(live=[at("/etc/x/../y")]), "live has the path '/etc/x/../y', which is not a plain path"),
    "a live folder": (but(live=[at("/etc/x/")]), "live has the path '/etc/x/', which is not a plain path"),
    "a seed at the top": (but(seeds=[{"path": "/id"}]), "seeds has the path '/id', which is not a plain path"),
    "all data": (but(data=["/var"]), "data has the path '/var', which is not a plain path below a folder"),
    "everybody's data": (but(data=["/var/lib"]), "data has the path '/var/lib', which holds more than a service's own"),
    "a port of nothing": (but(ports=["icmp 1"]), "ports holds 'icmp 1'"),
    "a port too high": (but(ports=["tcp 65536"]), "ports holds 'tcp 65536', which is no range of ports"),
    "ports the wrong way": (but(ports=["tcp 20-10"]), "ports holds 'tcp 20-10', which is no range of ports"),
    "an unknown manager": (but(packages={"brew": []}), "packages has the key 'brew'"),
    "a package with an option": (but(packages={"apt": ["-y"]}), "packages.apt holds '-y'"),
    "packages in one text": (but(packages={"apt": "a b"}), "packages.apt is not of the type list"),
    "a node unit without a kind": (but(node_units=["libvirtd"]), "node_units holds 'libvirtd'"),
    "wanted and masked": (but(node_units=["a.socket"], masked=["a.socket"]), "a.socket is both among node_units and"),
    "two lines": (but(tmpfiles=["d /x\nd /y"]), "tmpfiles holds"),
    "a module with an option": (but(modules=["x y=1"]), "modules holds 'x y=1'"),
}


@pytest.mark.parametrize(("text", "says"), WRONG.values(), ids=WRONG)
def test_what_is_no_bundle_is_refused_with_a_sentence_that_names_the_field(text: str, says: str) -> None:
    with pytest.raises(BadBundle) as caught:
        read(text)
    assert says in str(caught.value)
    assert str(caught.value).startswith("The bundle cannot be used: ")
    assert str(caught.value).endswith("make and read it.")
