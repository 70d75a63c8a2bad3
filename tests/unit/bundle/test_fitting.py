# SPDX-License-Identifier: GPL-3.0-or-later
"""What every service has of a node's variables and of the files that it is given."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node import bundle as node
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.built_in import RUNNING
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.bundle import bundle
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.settings import settings_digest
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import ExtraMount, Registry, ServicePlan
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.values import Value

from .definitions import IMAGE, keyed, live_of, node_files_of, parcelled, planned, source

FOLDER = "/etc/pki/ca-trust/extracted/pem"
SERVICES = sorted(RUNNING)
PARTNER: dict[str, Value] = {
    "version": 1,
    "name": "acme",
    "image": IMAGE,
    "command": "acme --config /etc/acme/acme.conf",
    "user": "acme",
    "validation": {"command": ["acme-check", "/etc/acme/acme.conf"]},
}


@pytest.mark.parametrize("service", SERVICES)
def test_a_new_ca_bundle_reaches_a_running_service(service: str) -> None:
    old, new = (
        parcelled(keyed(service, {"01.conf": b"[DEFAULT]\n", "tls-ca-bundle.pem": text})) for text in (b"A", b"B")
    )
    path = f"/var/lib/openstack/{service}/live{FOLDER}/tls-ca-bundle.pem"
    user = RUNNING[service].user
    assert [(one.path, one.mode, one.owner) for one in old.live] == [(path, 0o600, "" if user == "root" else user)]
    assert live_of(new)[path].content == b"B"
    assert old.digest == new.digest
    plans = [keyed(service, {"01.conf": b"[DEFAULT]\n", "tls-ca-bundle.pem": text}) for text in (b"A", b"B", b"A")]
    first, second, again = (settings_digest(one, bundle(one)) for one in plans)
    assert first == again != second, "so that somebody notices"
    label = ",z" if RUNNING[service].confined else ""
    line = f"Volume=/var/lib/openstack/{service}/live{FOLDER}:{FOLDER}:ro{label}\n"
    assert line in old.units[f"edpm_{service}.container"]
    assert not [file for file in old.files if "tls-ca-bundle" in file.path]


def test_two_sources_of_one_live_file_are_an_error() -> None:
    plan = keyed("cinder_volume", {"tls-ca-bundle.pem": b"A"})
    other = replace(plan.sources[0], origin=replace(plan.sources[0].origin, field="key other"))
    found = bundle(replace(plan, sources=(*plan.sources, other)))
    assert found.errors == (
        f"{FOLDER}/tls-ca-bundle.pem comes from Secret openstack/config, key other and from Secret openstack/config, "
        "key tls-ca-bundle.pem; keep it in one of them, each file has one source.",
    )


def test_an_instance_has_live_files_of_its_own() -> None:
    sent = parcelled(keyed("cinder_volume", {"tls-ca-bundle.pem": b"A"}, instance="fast"))
    assert sent.live[0].path.startswith("/var/lib/openstack/cinder_volume@fast/live/")


def mounted(plan: ServicePlan, *mounts: ExtraMount) -> node.Bundle:
    return parcelled(replace(plan, extra_mounts=mounts))


def test_extra_mounts_are_volumes_and_files_out_of_secrets_are_files() -> None:
    files = (source("/etc/ceph", "ceph.conf", b"[global]\n"),)
    sent = mounted(
        planned("nova_compute"),
        ExtraMount("/mnt/shared", "/srv/shared", options=("rshared",)),
        ExtraMount("/etc/ceph", files=files, options=("ro",)),
    )
    unit = sent.units["edpm_nova_compute.container"]
    assert "Volume=/srv/shared:/mnt/shared:rshared\n" in unit
    assert "Volume=/etc/ceph" not in unit
    assert {file.path: file.content for file in sent.files}["files/etc/ceph/ceph.conf"] == b"[global]\n"


def test_an_extra_mount_at_the_place_of_a_mount_replaces_it() -> None:
    unit = mounted(planned("nova_compute"), ExtraMount("/var/lib/libvirt", "/big/libvirt")).units[
        "edpm_nova_compute.container"
    ]
    assert [line for line in unit.splitlines() if ":/var/lib/libvirt" in line] == [
        "Volume=/big/libvirt:/var/lib/libvirt"
    ]


def test_what_runs_on_the_node_itself_needs_no_mount_of_the_node() -> None:
    plan = keyed("libvirt", {}, options={"edpm_libvirt_mode": "host"})
    files = (source("/etc/ceph", "ceph.conf"),)
    mounts = (ExtraMount("/mnt", "/srv"), ExtraMount("/etc/ceph", files=files))
    assert bundle(replace(plan, extra_mounts=mounts)).notes == (
        "libvirt runs on the node itself and sees /srv where it is; its extra mount at /mnt is left out.",
    )
    assert "/etc/ceph/ceph.conf" in node_files_of(mounted(plan, *mounts))


def test_a_users_own_start_file_is_taken_as_it_is() -> None:
    text = b'{ "command": "nova-compute --debug",\n "config_files": [] }\n'
    found = bundle(replace(planned("nova_compute"), user_kolla=text))
    assert (found.kolla.encode(), found.errors) == (text, ())
    assert found.digest != bundle(planned("nova_compute")).digest


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"{", "nova_compute: the kolla config.json that is given for it is no JSON (Expecting property name"),
        (b"\xff", "nova_compute: the kolla config.json that is given for it is no JSON ("),
        (b"[]", "nova_compute: the kolla config.json that is given for it names no command; add one."),
        (b'{"command": " "}', "nova_compute: the kolla config.json that is given for it names no command; add one."),
    ],
)
def test_a_start_file_that_starts_nothing_is_refused(text: bytes, sentence: str) -> None:
    (fault,) = bundle(replace(planned("nova_compute"), user_kolla=text)).errors
    assert fault.startswith(sentence)


def test_what_a_registry_wants_to_see_goes_with_the_image_and_is_not_in_the_digest() -> None:
    plain = planned("libvirt")
    registry = Registry('{"auths": {}}', {"ca.crt": "CA"}, "[[registry]]\n", "always")
    sent = parcelled(replace(plain, registry=registry))
    assert sent.image == node.Image(IMAGE, "always", '{"auths": {}}', {"ca.crt": "CA"}, "[[registry]]\n")
    assert sent.digest == parcelled(plain).digest
    assert parcelled(plain).image == node.Image(IMAGE)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ("missing", 3, "fail")),
        ({"edpm_image_pull": "never", "edpm_keep_generations": 5, "edpm_validation": "warn"}, ("never", 5, "warn")),
        ({"edpm_validation": False}, ("missing", 3, "off")),
    ],
)
def test_variables_of_the_node_say_how_it_is_deployed(options: dict[str, Any], expected: tuple[str, int, str]) -> None:
    sent = parcelled(replace(planned("nova_compute"), options=options))
    assert sent.validation is not None
    assert (sent.image.pull, sent.keep, sent.validation.policy) == expected


def test_a_variable_that_says_nothing_sensible_is_a_sentence() -> None:
    wrong: dict[str, Value] = {"edpm_image_pull": "now", "edpm_keep_generations": 0, "edpm_validation": True}
    assert bundle(replace(planned("libvirt"), options=wrong)).errors == (
        "libvirt: edpm_validation is True; write off, warn or fail.",
        "libvirt: edpm_image_pull is 'now'; write missing, always or never.",
        "libvirt: edpm_keep_generations is 0; write a number from 1 on.",
    )


def test_a_partners_service_runs_as_its_definition_says() -> None:
    file = source("/etc/acme", "acme.conf")
    plan = replace(planned("acme", "", file), definition=PARTNER)
    sent = parcelled(plan)
    assert json.loads(sent.kolla)["command"] == PARTNER["command"]
    assert sent.validation == node.Validation(
        ("acme-check", "/etc/acme/acme.conf"), {"files/etc/acme/acme.conf": "/etc/acme/acme.conf"}
    )
    live = parcelled(replace(plan, sources=(replace(file, live=True),))).live[0]
    assert (live.path, live.mode, live.owner) == ("/var/lib/openstack/acme/live/etc/acme/acme.conf", 0o644, "")
