# SPDX-License-Identifier: GPL-3.0-or-later
"""Volumes over iSCSI, by two paths: the container of nova-compute works with the node's own iscsid and multipathd.

A container of the lab has the host's kernel, which need not know iSCSI; a machine has Debian's. It serves the volume
itself, and has the packages that the service asks for where apt finds them. The tests build on each other.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from edpm_lab import images

from .site import FILES, Site

SECURITY, IMAGE = "apparmor", "nova-compute"
CONTAINER = "edpm_nova_compute"
TARGET, PORTALS = "iqn.2026-01.test.lab:volume", ("127.0.0.1:3260", "127.0.0.2:3260")
DAEMONS = ("iscsid.socket", "multipathd.service")
VOLUME = "/var/lib/volume"
SHARED = ("/etc/iscsi", "/var/lib/iscsi", "/run/lock/iscsi", "/etc/multipath", "/etc/multipath.conf")


@pytest.fixture(scope="module")
def target(site: Site) -> None:
    """The volume is served; it begins with a mark."""
    site.sh(f"truncate --size=32M {VOLUME} && printf marked | dd of={VOLUME} conv=notrunc status=none")
    script = (FILES / "volumes/serve").read_text()
    site.machine.ssh("sh", "-s", "--", VOLUME, TARGET, *PORTALS, stdin=script)


def inside(site: Site, *words: str, user: str = "nova", stdin: str | None = None) -> str:
    """What a command says in the container."""
    argv = ("podman", "exec", "--interactive", "--user", user, CONTAINER, *words)
    return site.machine.ssh(*argv, stdin=stdin, timeout=400).stdout.strip()


def nova(site: Site, asked: str) -> dict[str, Any]:
    """What Nova's library answers to Nova's user."""
    program = (FILES / "volumes/connector").read_text()
    answer: dict[str, Any] = json.loads(inside(site, "python3", "-", asked, TARGET, *PORTALS, stdin=program))
    return answer


def sessions(site: Site) -> list[str]:
    """The portals at which the node is logged in, as a command in the container says."""
    told = inside(site, "sh", "-c", "iscsiadm --mode session || test $? = 21", user="root")
    return sorted(line.split()[2].partition(",")[0] for line in told.splitlines())


def test_the_nodes_daemons_come_with_their_packages_and_run(site: Site) -> None:
    assert site.sh("command -v iscsiadm multipathd", check=False) == ""
    play = {"nova_compute_image": images.reference(IMAGE)}
    assert [site.play("volumes/converge.yml", play), site.play("volumes/converge.yml", play)] == [1, 0]
    assert site.sh(f"systemctl is-active {' '.join(DAEMONS)}").split() == ["active", "active"]
    assert site.sh(f"systemctl is-enabled {' '.join(DAEMONS)}").split() == ["enabled", "enabled"]
    site.sh("test -d /sys/module/iscsi_tcp -a -d /sys/module/dm_multipath")


def test_the_container_sees_what_is_the_nodes(site: Site) -> None:
    mounts = json.loads(site.sh(f"podman inspect {CONTAINER}"))[0]["Mounts"]
    seen = {one["Source"]: one["RW"] for one in mounts if one["Source"] == one["Destination"]}
    assert {path: seen.get(path) for path in SHARED} == {path: path != "/etc/multipath.conf" for path in SHARED}
    for path in ("/etc/iscsi/initiatorname.iscsi", "/etc/multipath.conf"):
        assert inside(site, "cat", path, user="root") == site.sh(f"cat {path}")


def test_commands_in_the_container_reach_the_nodes_daemons(site: Site) -> None:
    assert sessions(site) == []
    pid = site.sh("systemctl show --value --property=MainPID multipathd.service")
    assert f"pid {pid} " in inside(site, "multipathd", "show", "daemon", user="root")
    # Its package has started it before the service's file was there, and it must know what the file says all the same.
    known = inside(site, "multipathd", "show", "config", "local", user="root")
    assert "\tfind_multipaths yes\n" in site.sh("cat /etc/multipath.conf")
    assert re.findall(r'^\tfind_multipaths "?(\w+)', known, re.MULTILINE) == ["on"]


def test_nova_tells_cinder_who_it_is_and_that_it_takes_more_than_one_path(site: Site) -> None:
    told = nova(site, "connector")
    assert told["multipath"] is True
    assert f"InitiatorName={told['initiator']}" in site.sh("cat /etc/iscsi/initiatorname.iscsi").splitlines()


@pytest.mark.usefixtures("target")
def test_nova_attaches_a_volume_by_all_of_its_paths(site: Site) -> None:
    volume = nova(site, "attach")
    assert sessions(site) == sorted(PORTALS)
    assert volume["path"].startswith("/dev/dm-"), volume
    assert inside(site, "head", "--bytes=6", volume["path"], user="root") == "marked"
    paths = inside(site, "multipathd", "show", "paths", "raw", "format", "%m %t", user="root").splitlines()
    assert paths == [f"{volume['multipath_id']} active"] * len(PORTALS)
    assert site.sh("systemctl is-active iscsid.service") == "active"


@pytest.mark.usefixtures("target")
def test_nova_detaches_it_again_and_leaves_nothing(site: Site) -> None:
    nova(site, "detach")
    assert sessions(site) == []
    assert site.sh("lsblk --noheadings --list --output TYPE,TRAN | sort --unique").split() == ["disk", "virtio"]
