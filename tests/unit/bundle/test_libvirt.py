# SPDX-License-Identifier: GPL-3.0-or-later
"""libvirt in a container and from the node's packages, with certificates and without."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.bundle import bundle
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.model import Reference
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import (
    ConfigSource,
    ExtraMount,
    Layer,
    Origin,
)

from .definitions import IMAGE, keyed, live_of, node_files_of, parcelled, text_of

TLS = {"tls.crt": b"CERTIFICATE", "tls.key": b"KEY", "ca.crt": b"AUTHORITY"}
HOST = {"edpm_libvirt_mode": "host"}
DEBIAN = {**HOST, "edpm_libvirt_daemons": "monolithic"}
LIVE = "/var/lib/openstack/libvirt/live"


def test_in_a_container_it_is_one_of_the_images() -> None:
    sent = parcelled(keyed("libvirt", {}))
    assert (sent.image.reference, sent.container, sent.node_units) == (IMAGE, "edpm_libvirt", ())
    assert sent.ports == ("tcp 5900-6923", "tcp 49152-49215")
    assert "/var/lib/libvirt" in sent.data
    assert [(one.name, one.gid) for one in sent.groups] == [("nova", 42436), ("libvirt", 42473)]
    assert [(one.name, one.groups) for one in sent.users] == [("nova", ("libvirt",))]


def test_from_packages_it_is_no_container_and_the_node_has_its_units() -> None:
    sent = parcelled(keyed("libvirt", {"qemu.conf": b"max_files = 4096\n"}, options=HOST))
    assert (sent.image.reference, sent.units, sent.container, sent.kolla, sent.files) == ("", {}, "", "", ())
    assert sent.unit == "virtqemud.service"
    assert {"virtlogd.socket", "virtproxyd.socket", "virtsecretd.socket"} < set(sent.node_units)
    assert {"libvirtd.service", "libvirtd.socket", "libvirtd-tls.socket"} < set(sent.masked)
    assert "libvirt-daemon-system" in sent.packages["apt"]
    assert "libvirt-daemon-kvm" in sent.packages["dnf"]
    assert sent.health.on_node
    assert sent.live == ()
    assert [one.path for one in sent.node_files] == [
        "/etc/libvirt/qemu.conf",
        "/etc/ssh/ssh_config.d/20-edpm-migration.conf",
        "/etc/systemd/system/virtqemud.service.d/edpm.conf",
    ]


def test_a_node_with_the_one_big_daemon_says_so() -> None:
    sent = parcelled(keyed("libvirt", {}, options=DEBIAN))
    assert sent.unit == "libvirtd.service"
    assert sent.masked == ()
    assert node_files_of(sent)["/etc/systemd/system/libvirtd.service.d/edpm.conf"].content == (
        b"[Service]\nEnvironment=LIBVIRTD_ARGS=\n"
    )


def test_its_settings_on_a_node_are_a_new_generation_each() -> None:
    plain, other = (parcelled(keyed("libvirt", {"qemu.conf": text}, options=HOST)) for text in (b"a = 1\n", b"a = 2\n"))
    assert plain.digest != other.digest
    assert plain.digest != parcelled(keyed("libvirt", {"qemu.conf": b"a = 1\n"}, options=DEBIAN)).digest


@pytest.mark.parametrize("options", [{}, HOST, DEBIAN])
def test_renewed_certificates_are_no_new_generation(options: dict[str, str]) -> None:
    old, new = (parcelled(keyed("libvirt", {**TLS, "tls.key": key}, options=options)) for key in (b"KEY", b"NEW"))
    assert old.digest == new.digest != parcelled(keyed("libvirt", {}, options=options)).digest
    assert old.live != new.live
    assert old.reload[0] == "virt-admin"
    assert "tcp 16514" in old.ports


def test_in_a_container_certificates_lie_in_folders_that_only_root_reaches() -> None:
    sent = parcelled(keyed("libvirt", TLS))
    files = {path: (one.mode, one.content) for path, one in live_of(sent).items()}
    assert files == {
        f"{LIVE}/etc/pki/CA/cacert.pem": (0o600, b"AUTHORITY"),
        f"{LIVE}/etc/pki/libvirt/clientcert.pem": (0o600, b"CERTIFICATE"),
        f"{LIVE}/etc/pki/libvirt/servercert.pem": (0o600, b"CERTIFICATE"),
        f"{LIVE}/etc/pki/libvirt/private/clientkey.pem": (0o600, b"KEY"),
        f"{LIVE}/etc/pki/libvirt/private/serverkey.pem": (0o600, b"KEY"),
        f"{LIVE}/etc/pki/qemu/ca-cert.pem": (0o644, b"AUTHORITY"),
        f"{LIVE}/etc/pki/qemu/client-cert.pem": (0o644, b"CERTIFICATE"),
        f"{LIVE}/etc/pki/qemu/server-cert.pem": (0o644, b"CERTIFICATE"),
        f"{LIVE}/etc/pki/qemu/client-key.pem": (0o644, b"KEY"),
        f"{LIVE}/etc/pki/qemu/server-key.pem": (0o644, b"KEY"),
    }
    modes = {one.path: one.mode for one in sent.folders}
    assert modes["/var/lib/openstack/libvirt"] == 0o700
    assert modes[f"{LIVE}/etc/pki/libvirt/private"] == 0o755
    unit = sent.units["edpm_libvirt.container"]
    for folder in ("CA", "libvirt", "qemu"):
        assert f"Volume={LIVE}/etc/pki/{folder}:/etc/pki/{folder}:ro\n" in unit
    assert "pki/libvirt/private" not in unit
    found = bundle(keyed("libvirt", TLS))
    assert '"/usr/sbin/libvirtd --listen"' in found.kolla
    assert text_of(found, "/etc/libvirt/libvirtd.conf").endswith("listen_tls = 1\nlisten_tcp = 0\n")


def test_guests_that_start_before_certificates_come_see_them_later() -> None:
    volume = f"Volume={LIVE}/etc/pki/qemu:/etc/pki/qemu:ro\n"
    without, with_tls = (parcelled(keyed("libvirt", keys)) for keys in ({}, TLS))
    for sent in (without, with_tls):
        assert sent.units["edpm_libvirt.container"].count(volume) == 1
        modes = {one.path: one.mode for one in sent.folders}
        assert (modes["/var/lib/openstack/libvirt"], modes[f"{LIVE}/etc/pki/qemu"]) == (0o700, 0o755)
    assert not [path for path in live_of(without) if "pki" in path]


def test_certificates_that_come_or_go_leave_the_keeper_of_the_consoles_alone() -> None:
    units = [parcelled(keyed("libvirt", keys)).units for keys in ({}, TLS, {**TLS, "tls-ca-bundle.pem": b"CA"})]
    assert len({one["edpm_libvirt-virtlogd.container"] for one in units}) == 1
    assert len({one["edpm_libvirt.container"] for one in units}) == 3
    assert "/etc/pki" not in units[0]["edpm_libvirt-virtlogd.container"]


@pytest.mark.parametrize("target", ["/etc/pki", "/etc/pki/qemu", "/etc/pki/qemu/mine"])
def test_what_a_deployer_has_in_the_place_of_qemus_certificates_is_not_covered(target: str) -> None:
    plan = keyed("libvirt", {})
    mounted = replace(plan, extra_mounts=(ExtraMount(target, "/srv/pki"),))
    unit = parcelled(mounted).units["edpm_libvirt.container"]
    assert LIVE not in unit
    assert f"Volume=/srv/pki:{target}\n" in unit
    origin = Origin(Reference("Secret", "openstack", "mine"), "key ca-cert.pem")
    file = ConfigSource(origin, "/etc/pki/qemu", "ca-cert.pem", Layer.DEPLOYER, True, b"MINE")
    assert LIVE not in parcelled(replace(plan, sources=(file,))).units["edpm_libvirt.container"]


def test_on_a_node_certificates_are_where_its_programs_look() -> None:
    files = live_of(parcelled(keyed("libvirt", TLS, options=HOST)))
    key, qemus = files["/etc/pki/libvirt/private/serverkey.pem"], files["/etc/pki/qemu/server-key.pem"]
    assert (key.mode, key.owner, key.group) == (0o600, "", "")
    assert (qemus.mode, qemus.owner, qemus.group) == (0o640, "", "kvm")
    sent = parcelled(keyed("libvirt", TLS, options=HOST))
    assert {"virtproxyd-tls.socket", "virtproxyd-admin.socket"} < set(sent.node_units)
    # The proxy's sockets are named like libvirtd's.
    assert sent.reload == ("virt-admin", "--connect=libvirtd:///system", "server-update-tls", "virtproxyd")
    sent = parcelled(keyed("libvirt", TLS, options=DEBIAN))
    drop_in = node_files_of(sent)["/etc/systemd/system/libvirtd.service.d/edpm.conf"]
    assert b"Wants=libvirtd-tls.socket" in drop_in.content
    assert "libvirtd-tls.socket" in sent.node_units, "or it would go on listening when its certificates are gone"


@pytest.mark.parametrize(
    ("keys", "options", "sentence"),
    [
        (
            {"tls.crt": b"C", "ca.crt": b"A"},
            {},
            "Secret openstack/config: libvirt needs tls.key too for TLS; add it, or do not list the others.",
        ),
        ({}, {"edpm_libvirt_mode": "pod"}, "libvirt: edpm_libvirt_mode is 'pod'; write container or host."),
        (
            {},
            {**HOST, "edpm_libvirt_daemons": "big"},
            "libvirt: edpm_libvirt_daemons is 'big'; write modular or monolithic.",
        ),
    ],
)
def test_what_cannot_be_is_a_sentence(keys: dict[str, bytes], options: dict[str, str], sentence: str) -> None:
    assert bundle(keyed("libvirt", keys, options=options)).errors == (sentence,)


def test_qemu_can_read_the_settings_of_ceph_and_nobody_its_keyring() -> None:
    keys = {"ceph.conf": b"[global]\n", "ceph.client.openstack.keyring": b"secret"}
    sent = parcelled(keyed("libvirt", keys))
    copied = {one["dest"]: one["perm"] for one in json.loads(sent.kolla)["config_files"]}
    assert copied["/etc/ceph/ceph.conf"] == "0644"
    assert copied["/etc/ceph/ceph.client.openstack.keyring"] == "0600"
    assert {file.mode for file in sent.files} == {0o600, 0o700}
