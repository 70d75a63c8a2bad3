# SPDX-License-Identifier: GPL-3.0-or-later
"""nova-compute on a node: who it is, how its guests migrate, and what it needs for volumes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._bundle import nova_compute
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.bundle import bundle
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.migration import (
    known_hosts,
    known_hosts_path,
    migrates_over,
    with_known_hosts,
)
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.identity import host_specific
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import Layer, ServicePlan
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.values import Value

from .definitions import keyed, live_of, parcelled, planned, text_of

PLAIN_STATE = b"[DEFAULT]\nstate_path = /var/lib/nova\n"
CELL = {"01-nova.conf": b"[DEFAULT]\n"}
KEYS = {"ssh-privatekey": b"PRIVATE", "ssh-publickey": b"ssh-ed25519 AAAA nova@cell\n"}
HOST_FILE = "/etc/nova/nova.conf.d/02-nova-host-specific.conf"
OVER_SSH = """\
[DEFAULT]
host = compute-0

[libvirt]
live_migration_inbound_addr = 172.17.0.5
live_migration_uri = qemu+ssh://nova@%s/system?keyfile=/var/lib/nova/.ssh/ssh-privatekey&proxy=netcat&no_tty=1
"""
OVER_TLS = """\
[DEFAULT]
host = compute-0

[libvirt]
live_migration_inbound_addr = compute-0.ctlplane
live_migration_uri = qemu+tls://%s/system
live_migration_with_native_tls = True
"""


def test_a_compute_keeps_its_id_whatever_happens_to_its_files() -> None:
    plain, fast = (parcelled(keyed("nova_compute", CELL, instance=instance)) for instance in ("", "fast"))
    assert [(one.path, one.owner, one.mode) for one in (*plain.seeds, *fast.seeds)] == [
        ("/var/lib/nova/compute_id", "nova", 0o644),
        ("/var/lib/nova-fast/compute_id", "nova", 0o644),
    ]


def test_a_key_for_migration_becomes_files_that_need_no_restart() -> None:
    with_key, other = (keyed("nova_compute", {**CELL, **KEYS, "ssh-privatekey": key}) for key in (b"PRIVATE", b"OTHER"))
    sent = parcelled(with_key)
    files = live_of(sent)
    assert {path: (one.mode, one.owner, one.secret) for path, one in files.items()} == {
        "/var/lib/nova/.ssh/authorized_keys": (0o600, "nova", True),
        "/var/lib/nova/.ssh/config": (0o600, "nova", False),
        "/var/lib/nova/.ssh/ssh-privatekey": (0o600, "nova", True),
    }
    assert files["/var/lib/nova/.ssh/ssh-privatekey"].content == b"PRIVATE\n"
    assert files["/var/lib/nova/.ssh/authorized_keys"].content == b"restrict ssh-ed25519 AAAA nova@cell\n"
    assert b"StrictHostKeyChecking yes" in files["/var/lib/nova/.ssh/config"].content
    assert not [file for file in sent.files if "ssh" in file.path]
    assert sent.digest == parcelled(other).digest
    folder = next(one for one in sent.folders if one.path == "/var/lib/nova/.ssh")
    assert (folder.owner, folder.mode, folder.setype) == ("nova", 0o700, "ssh_home_t")
    assert [(one.name, one.shell) for one in sent.users] == [("nova", "/bin/sh")]
    assert sent.packages == {"apt": ("netcat-openbsd",), "dnf": ("nmap-ncat",)}


def test_the_nodes_own_file_says_how_guests_migrate() -> None:
    assert text_of(bundle(keyed("nova_compute", {**CELL, **KEYS})), HOST_FILE) == OVER_SSH
    tls = keyed("nova_compute", CELL, options={"edpm_nova_compute_migration": "tls"})
    assert text_of(bundle(tls), HOST_FILE) == OVER_TLS
    assert text_of(bundle(keyed("nova_compute", CELL)), HOST_FILE) == "[DEFAULT]\nhost = compute-0\n"
    unnumbered = keyed("nova_compute", {**CELL, **KEYS}, my_ip=None)
    assert "inbound_addr" not in text_of(bundle(unnumbered), HOST_FILE)


def test_what_the_groups_snippet_says_of_migration_is_not_said_after_it() -> None:
    theirs = b"[libvirt]\nlive_migration_uri = qemu+tcp://%s/system\n"
    found = bundle(keyed("nova_compute", {**CELL, **KEYS}, profile=theirs))
    assert "live_migration_uri" not in text_of(found, HOST_FILE)
    assert "live_migration_inbound_addr" in text_of(found, HOST_FILE)


def test_without_a_file_of_the_node_one_is_made_for_the_settings() -> None:
    asked = replace(planned("nova_compute"), options={"edpm_nova_compute_migration": "tls"})
    assert text_of(bundle(asked), HOST_FILE).startswith("[libvirt]\nlive_migration_uri = qemu+tls://%s/system\n")


def test_an_instance_has_a_key_of_its_own_and_no_door_of_its_own() -> None:
    sent = parcelled(keyed("nova_compute", {**CELL, **KEYS}, instance="fast"))
    assert sorted(live_of(sent)) == ["/var/lib/nova-fast/.ssh/config", "/var/lib/nova-fast/.ssh/ssh-privatekey"]
    assert "Volume=/var/lib/nova-fast/.ssh:/var/lib/nova/.ssh:ro\n" in sent.units["edpm_nova_compute@fast.container"]


@contextmanager
def running(name: str, disk: str) -> Iterator[None]:
    """A process with the words of a guest's QEMU."""
    words = ["-name", f"guest={name},debug-threads=on", "-uuid", "u", "-blockdev", f'{{"filename":"{disk}"}}']
    sleeper = "import sys; print(flush=True); sys.stdin.read()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", sleeper, *words], stdin=pipe, stdout=pipe) as guest:
        assert guest.stdout
        guest.stdout.readline()
        yield
        guest.communicate()


def in_use(plan: ServicePlan) -> str:
    """What the node hears when it asks, by the command that it is sent."""
    python, *words = parcelled(plan).busy
    assert python == "python3"
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True).stdout


def at_home(instance: str, *, files: dict[str, bytes] | None = None, profile: bytes = b"") -> ServicePlan:
    """nova-compute with its state path in the node's own file, as resolution writes it."""
    plan = keyed("nova_compute", files or {"01-nova.conf": PLAIN_STATE}, instance=instance, profile=profile)
    assert plan.identity is not None
    own = host_specific(plan.identity)
    sources = (replace(one, content=own) if one.layer is Layer.HOST else one for one in plan.sources)
    return replace(plan, sources=tuple(sources))


def test_a_guest_keeps_its_own_instance_on_the_node_and_no_other() -> None:
    plain, fast = at_home(""), at_home("fast")
    with running("of-plain", "/var/lib/nova/instances/u/disk"):
        assert "guest of-plain (u)\n" in in_use(plain)
        assert "of-plain" not in in_use(fast)
    with running("of-fast", "/var/lib/nova-fast/instances/u/disk"):
        assert "of-fast" not in in_use(plain)
        assert "guest of-fast (u)\n" in in_use(fast)


@pytest.mark.parametrize(
    ("files", "profile"),
    [
        ({"01-nova.conf": b"[DEFAULT]\ninstances_path = /srv/instances\n"}, b""),
        ({"01-nova.conf": b"[DEFAULT]\n", "nova.conf": b"[DEFAULT]\ninstances-path = /srv\n"}, b""),
        ({"01-nova.conf": b"[DEFAULT]\n", "03-more.conf": PLAIN_STATE}, b""),
        ({"01-nova.conf": b"[DEFAULT]\n"}, b"[DEFAULT]\ninstances_path = /srv/instances\n"),
    ],
)
def test_an_instance_whose_guests_lie_elsewhere_is_kept_by_all_of_them(files: dict[str, bytes], profile: bytes) -> None:
    with running("of-plain", "/var/lib/nova/instances/u/disk"):
        assert "of-plain" in in_use(at_home("fast", files=files, profile=profile))


def test_how_a_node_asks_for_guests_is_no_part_of_the_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = at_home("fast")
    own = parcelled(plan)
    monkeypatch.setattr(nova_compute, "_guests", lambda fitted: fitted)
    of_all = parcelled(plan)
    assert own.busy != of_all.busy
    assert own.digest == of_all.digest


@pytest.mark.parametrize(
    ("keys", "options", "sentence"),
    [
        (
            {},
            {"edpm_nova_compute_migration": "ssh"},
            "nova_compute: guests shall migrate over SSH, and no Secret has the key ssh-privatekey and ssh-publickey; "
            "list nova-migration-ssh-key among its data sources, or set edpm_nova_compute_migration to tls or none.",
        ),
        (
            {"ssh-privatekey": b"P", "ssh-publickey": b"one\ntwo\n"},
            {},
            "Secret openstack/config, key ssh-publickey: is no public key; put the one line of the key's .pub file "
            "there.",
        ),
        (
            {},
            {"edpm_nova_compute_migration": "tcp"},
            "nova_compute: edpm_nova_compute_migration is 'tcp'; write ssh, tls or none.",
        ),
        (
            {},
            {"edpm_nova_compute_iscsid": "yes"},
            "nova_compute: edpm_nova_compute_iscsid is 'yes'; write true or false.",
        ),
    ],
)
def test_what_cannot_be_is_a_sentence(keys: dict[str, bytes], options: dict[str, str], sentence: str) -> None:
    assert bundle(keyed("nova_compute", {**CELL, **keys}, options=options)).errors == (sentence,)


def test_beside_tls_a_key_serves_for_what_nova_copies_itself() -> None:
    """Cold migration and resize of a guest with disks on the node."""
    tls: dict[str, Value] = {"edpm_nova_compute_migration": "tls"}
    for instance in ("", "fast"):
        over_ssh = keyed("nova_compute", {**CELL, **KEYS}, instance=instance)
        over_tls = replace(over_ssh, options=tls)
        sent, same = parcelled(over_tls), parcelled(over_ssh)
        assert live_of(sent) == live_of(same)
        assert (sent.folders, sent.users, sent.units) == (same.folders, same.users, same.units)
        assert sent.packages == {}, "netcat is for libvirt's connections"
        assert text_of(bundle(over_tls), HOST_FILE) == OVER_TLS
        assert bundle(over_tls).notes == ()
        assert known_hosts_path(over_tls) == known_hosts_path(over_ssh) is not None
    without = keyed("nova_compute", CELL, options=tls)
    assert (parcelled(without).live, known_hosts_path(without)) == ((), None)


def test_a_key_for_what_nova_copies_costs_no_restart() -> None:
    tls: dict[str, Value] = {"edpm_nova_compute_migration": "tls"}
    with_key, without = (keyed("nova_compute", {**CELL, **keys}, options=tls) for keys in (KEYS, {}))
    assert parcelled(with_key).digest == parcelled(without).digest


@pytest.mark.parametrize(
    ("said", "keys", "why"),
    [
        ("none", KEYS, "guests migrate not at all"),
        ("tls", {"ssh-privatekey": b"PRIVATE"}, "it has no ssh-publickey"),
    ],
)
def test_a_key_that_nobody_uses_is_told(said: str, keys: dict[str, bytes], why: str) -> None:
    plan = keyed("nova_compute", {**CELL, **keys}, options={"edpm_nova_compute_migration": said})
    assert bundle(plan).notes == (f"nova_compute: the key for migration over SSH is left out, since {why}.",)
    assert (parcelled(plan).live, known_hosts_path(plan)) == ((), None)


def test_volumes_bring_their_programs_only_where_they_are_asked_for() -> None:
    plain = parcelled(keyed("nova_compute", CELL))
    assert (plain.packages, plain.node_units, plain.modules) == ({}, (), ())
    asked = keyed(
        "nova_compute", CELL, options={"edpm_nova_compute_iscsid": True, "edpm_nova_compute_multipathd": True}
    )
    sent = parcelled(asked)
    assert sent.packages == {
        "apt": ("multipath-tools", "open-iscsi"),
        "dnf": ("device-mapper-multipath", "iscsi-initiator-utils"),
    }
    assert sent.node_units == ("iscsid.socket", "multipathd.service")
    assert sent.modules == ("iscsi_tcp", "dm-multipath")
    unit = sent.units["edpm_nova_compute.container"]
    for path in ("/etc/iscsi", "/var/lib/iscsi", "/run/lock/iscsi", "/etc/multipath", "/etc/multipath.conf"):
        assert f"Volume={path}:{path}" in unit
    assert text_of(bundle(asked), HOST_FILE).endswith("[libvirt]\nvolume_use_multipath = True\n")


def test_the_secret_for_ceph_is_defined_where_the_configuration_names_one() -> None:
    named = b"[libvirt]\nrbd_user = openstack\nrbd_secret_uuid = 5a1b0e9e-0a3c-4e1f-9f35-1f0d9f3b9f53\n"
    keyring = b"[client.openstack]\n key = c2VjcmV0\n"
    files = {**CELL, "03-ceph.conf": named, "ceph.client.openstack.keyring": keyring, "ceph.conf": b"[global]\n"}
    found = bundle(keyed("nova_compute", files))
    unit = found.units["edpm_nova_compute.container"]
    assert (
        "ExecStartPost=/usr/bin/podman exec --user=root edpm_nova_compute python3 "
        "/var/lib/openstack/config/files/usr/local/libexec/edpm/ceph_secret.py /var/lib/openstack/config\n"
    ) in unit
    assert "c2VjcmV0" not in unit + found.kolla
    compile(text_of(found, "/usr/local/libexec/edpm/ceph_secret.py"), "ceph_secret.py", "exec")
    assert "ExecStartPost" not in bundle(keyed("nova_compute", CELL)).units["edpm_nova_compute.container"]


def test_known_hosts_are_the_same_bytes_in_whatever_order_they_come() -> None:
    first = (("Compute-0", "172.17.0.5", "compute-0"), {"ssh-ed25519": "AAAA", "ssh-rsa": "BBBB"})
    second = (("compute-1",), {"ssh-ed25519": "CCCC"})
    text = known_hosts([first, second])
    assert text == known_hosts([second, first])
    assert text.decode().splitlines() == [
        "172.17.0.5,compute-0 ssh-ed25519 AAAA",
        "172.17.0.5,compute-0 ssh-rsa BBBB",
        "compute-1 ssh-ed25519 CCCC",
    ]
    assert known_hosts([]) == b""


def test_a_compute_that_migrates_over_ssh_wants_the_keys_of_all_hosts() -> None:
    plan = keyed("nova_compute", {**CELL, **KEYS})
    assert known_hosts_path(plan) == "/var/lib/nova/.ssh/known_hosts"
    assert known_hosts_path(keyed("nova_compute", {**CELL, **KEYS}, instance="a")) == "/var/lib/nova-a/.ssh/known_hosts"
    assert known_hosts_path(keyed("nova_compute", CELL)) is None
    assert known_hosts_path(planned("libvirt")) is None
    assert migrates_over(planned("libvirt")) == "none"
    sent = parcelled(plan)
    more = with_known_hosts(with_known_hosts(sent, b"old"), b"new")
    assert sorted(live_of(more)) == [one.path for one in more.live]
    assert live_of(more)["/var/lib/nova/.ssh/known_hosts"].content == b"new"
    assert (len(more.live), more.digest) == (len(sent.live) + 1, sent.digest)
