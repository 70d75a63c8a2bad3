# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of a unit, as its definition says."""

from __future__ import annotations

import dataclasses

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.built_in import RUNNING
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.quadlet import unit, units
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.running import Instance, Mount, Running
from hypothesis import given
from hypothesis import strategies as st

from .definitions import made

SMALL = Running("small", "Small service", "small --now", "someone", confined=True)
TEXT = """\
# small@fast, written by edpm.services: a change here is undone by the next deployment
[Unit]
Description=Small service fast
Wants=other.service
After=network-online.target other.service

[Container]
Image=image:1
ContainerName=edpm_small-fast
User=someone
Network=host
Environment=KOLLA_CONFIG_STRATEGY=COPY_ALWAYS
Environment="NAME=two words"
Volume=@GENERATION@/kolla.json:/var/lib/kolla/config_files/config.json:ro,z
Volume=@GENERATION@:/var/lib/openstack/config:ro,z
Volume=/var/log/containers/small@fast:/var/log/kolla/small:z
AddCapability=NET_ADMIN
Volume=/var/lib/small-fast:/var/lib/small:shared,z
Volume=/run/others:/run/others
PodmanArgs=--pull=never
PodmanArgs=--stop-timeout=7
PodmanArgs="--device-cgroup-rule=b *:* rwm"

[Service]
Restart=always
RestartSec=5
TimeoutStopSec=22
SuccessExitStatus=143
SuccessExitStatus=SIGKILL

[Install]
WantedBy=multi-user.target
"""
# What Quadlet of podman 4.4 takes; a key that it does not know makes it drop the unit.
KEYS = {
    "AddCapability", "ContainerName", "Environment", "Exec", "Image", "Network", "PodmanArgs", "SecurityLabelDisable",
    "User", "Volume",
}  # fmt: skip


def values(text: str, key: str) -> list[str]:
    return [line.partition("=")[2] for line in text.splitlines() if line.startswith(f"{key}=")]


def test_every_word_of_a_definition_has_its_line() -> None:
    whole = dataclasses.replace(
        SMALL,
        mounts=(Mount("/var/lib/small{suffix}", "/var/lib/small", ("shared",), own=True), Mount("/run/others")),
        log_folder="/var/log/kolla/small",
        capabilities=("NET_ADMIN",),
        podman_options=("--device-cgroup-rule=b *:* rwm",),
        environment=(("NAME", "two words"),),
        wants=("other.service",),
        after=("other.service",),
        stop_seconds=7,
        service_lines=("SuccessExitStatus=SIGKILL",),
    )
    assert unit(whole, Instance("small", "fast"), "image:1") == TEXT


@pytest.mark.parametrize("service", RUNNING)
def test_a_unit_names_its_own_generation_and_never_pulls(service: str) -> None:
    """So the unit's file is the one thing that changes when another generation becomes the live one."""
    text = made(service).units[f"edpm_{service}.container"]
    volumes = [value.split(":")[:2] for value in values(text, "Volume")]
    assert ["@GENERATION@", "/var/lib/openstack/config"] in volumes
    assert ["@GENERATION@/kolla.json", "/var/lib/kolla/config_files/config.json"] in volumes
    assert "/current" not in text
    assert "--pull=never" in values(text, "PodmanArgs")


@pytest.mark.parametrize("service", RUNNING)
def test_only_keys_are_used_that_the_oldest_podman_knows(service: str) -> None:
    for text in made(service).units.values():
        section = text.partition("[Container]\n")[2].partition("\n\n")[0]
        assert {line.partition("=")[0] for line in section.splitlines()} <= KEYS


@pytest.mark.parametrize("service", RUNNING)
def test_selinux_relabels_only_what_is_ours_and_only_for_a_confined_container(service: str) -> None:
    running, text = RUNNING[service], made(service).units[f"edpm_{service}.container"]
    ours = (
        "@GENERATION@",
        "/var/lib/openstack/",
        "/var/log/containers/",
        *(one.source for one in running.mounts if one.own),
    )
    for volume in values(text, "Volume"):
        source, _target, *options = volume.split(":")
        labelled = "z" in ",".join(options).split(",")
        assert labelled == (running.confined and source.startswith(ours)), volume
    assert bool(values(text, "SecurityLabelDisable")) == (not running.confined and not running.privileged)


def test_the_log_keeper_of_libvirt_is_a_unit_of_its_own_that_a_restart_of_libvirt_leaves_alone() -> None:
    libvirt, keeper = made("libvirt").units.items()
    assert (libvirt[0], keeper[0]) == ("edpm_libvirt.container", "edpm_libvirt-virtlogd.container")
    assert values(libvirt[1], "Wants") == ["edpm_libvirt-virtlogd.service"]
    assert "Requires=" not in libvirt[1]
    assert values(keeper[1], "Exec") == ["/usr/sbin/virtlogd"]
    assert "kolla" not in keeper[1].lower()
    assert "ExecStop" in libvirt[1]
    assert "ExecStop" not in keeper[1]


@given(st.sampled_from(sorted(RUNNING)), st.sampled_from(["", "fast"]), st.sampled_from(["a:1", "b@sha256:0"]))
def test_the_same_definition_and_image_give_the_same_bytes(service: str, instance: str, image: str) -> None:
    units.cache_clear()
    first = dict(units(RUNNING[service], Instance(service, instance), image))
    units.cache_clear()
    assert first == units(RUNNING[service], Instance(service, instance), image)
    assert all(values(text, "Image") == [image] for text in first.values())
