# SPDX-License-Identifier: GPL-3.0-or-later
"""`edpm.services.explain` as a user runs it."""

from __future__ import annotations

import json

import pytest

from .conftest import TUTORIAL, User, shown, told

DEBUG = """\
edpm-compute-0 · nova_compute · [DEFAULT] debug = True
  False     01-nova.conf:2           Secret openstack/nova-cell1-compute-config, key 01-nova.conf
  True   ◄  02-nova-override.conf:3  NovaExternalCompute openstack/edpm-compute-0, spec.customServiceConfig
"""
PASSWORD = "not-a-real-password"


@pytest.fixture(autouse=True)
def _tutorial(user: User) -> None:
    user.reads(TUTORIAL)


def test_one_option(user: User) -> None:
    run = user.playbook("explain", node="edpm-compute-0", service="nova_compute", option="DEFAULT.debug")
    assert shown(run) == DEBUG


def test_all_options_of_a_service_with_their_secrets_masked(user: User) -> None:
    text = shown(user.playbook("explain", node="edpm-compute-1", service="nova_compute"))
    assert text.startswith("edpm-compute-1 · nova_compute\n  [DEFAULT] compute_driver = libvirt.LibvirtDriver\n")
    loud = user.playbook("explain", "-vvv", node="edpm-compute-1", service="nova_compute")
    assert PASSWORD not in text + loud.stdout + loud.stderr
    assert "  [placement] password = ***\n" in text
    assert "rabbit://nova:***@rabbitmq-cell2.openstack.svc:5671/?ssl=1" in text
    assert "  [libvirt] cpu_mode = host-model\n" in text


def test_the_same_for_a_program(user: User) -> None:
    run = user.playbook("explain", option="debug", output="json", output_file="debug.json")
    shown(run)
    found = json.loads((user.folder / "debug.json").read_text())["explanations"]
    assert [(one["node"], one["options"][0]["value"]) for one in found] == [
        ("edpm-compute-0", "True"),
        ("edpm-compute-1", "False"),
    ]


def test_what_does_not_exist_fails_with_what_does(user: User) -> None:
    assert told(user.playbook("explain", node="edpm-compute-0", service="nova_compute", option="debgu")) == (
        "No file of nova_compute on edpm-compute-0 sets DEFAULT.debgu; did you mean DEFAULT.debug?"
    )
    assert told(user.playbook("explain", node="edpm-compute-9")).startswith(
        "The data plane has no node edpm-compute-9;"
    )
    assert told(user.playbook("explain", service="libvirt")).startswith("libvirt has no configuration of oslo.config's")
