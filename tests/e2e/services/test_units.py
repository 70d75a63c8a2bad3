# SPDX-License-Identifier: GPL-3.0-or-later
"""The units of every definition on a real node: Quadlet takes them, and an agent without privileges runs from one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.built_in import RUNNING
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.bundle import bundle
from edpm_lab.cloud import Cloud
from edpm_lab.labs import Lab

from .conftest import Bring
from .machine import CONTAINERS, Machine, planned

GENERATOR = "/usr/lib/systemd/system-generators/podman-system-generator --dryrun"
AGENT = """[DEFAULT]
host = {node}
state_path = /var/lib/neutron
transport_url = {bus}
[agent]
root_helper = sudo neutron-rootwrap /etc/neutron/rootwrap.conf
[oslo_concurrency]
lock_path = /var/lib/neutron/lock
"""
FILES = {
    "nova_compute": {"01.conf": "[libvirt]\nrbd_secret_uuid = u\n", "ssh-privatekey": "k", "ssh-publickey": "k"},
    "libvirt": {"tls.crt": "c", "tls.key": "k", "ca.crt": "c"},
}


@pytest.fixture(scope="module")
def machine(bring: Bring) -> Machine:
    return bring(CONTAINERS)


def test_quadlet_makes_a_service_of_every_unit(machine: Machine, tmp_path: Path) -> None:
    plans = [
        planned(service, {**FILES.get(service, {}), "tls-ca-bundle.pem": "ca"}, instance=instance)
        for service in RUNNING
        for instance in ("", "fast")
    ]
    texts = {name: text for plan in plans for name, text in bundle(plan).units.items()}
    folder = f"/tmp/{tmp_path.name}"
    for name, text in texts.items():
        machine.put(f"{folder}/{name}", text.replace("@GENERATION@", "/var/lib/openstack/some/generations/one"))
    said = machine.sh(f"QUADLET_UNIT_DIRS={folder} {GENERATOR} 2>&1; rm -r {folder}")
    made = set(re.findall(r"^---(.*)---$", said, re.MULTILINE))
    assert made == {name.replace(".container", ".service") for name in texts}
    assert len(made) == 2 * len(RUNNING) + 2
    started = re.findall(r"^ExecStart=(.*)$", said, re.MULTILINE)
    assert all(" --pull=never " in line for line in started)
    assert {re.findall(r"--name edpm_(\w+)", line)[0] for line in started if " --privileged " in line} == {
        "libvirt",
        "nova_compute",
    }
    assert len(re.findall(r"^ExecStartPost=/usr/bin/podman exec ", said, re.MULTILINE)) == 2


def test_an_unprivileged_agent_is_healthy_once_it_has_reached_its_bus(machine: Machine, lab: Lab) -> None:
    bus = Cloud(lab).up(["bus"]).site.transport_url("cell1")
    machine.brought(planned("neutron_sriov_agent", {"01.conf": AGENT.format(node=machine.name, bus=bus)}))
    inspected = json.loads(machine.sh("podman inspect edpm_neutron_sriov_agent"))[0]
    assert inspected["HostConfig"]["Privileged"] is False
    rights = {one.removeprefix("CAP_") for one in inspected["HostConfig"]["CapAdd"]}
    assert rights == set(RUNNING["neutron_sriov_agent"].capabilities)
    assert inspected["HostConfig"]["PidMode"] != "host"


def test_an_option_that_the_image_does_not_know_in_a_generated_file_is_a_warning(machine: Machine, lab: Lab) -> None:
    bus = Cloud(lab).up(["bus"]).site.transport_url("cell1")
    text = AGENT.format(node=machine.name, bus=bus).replace("[DEFAULT]\n", "[DEFAULT]\ndebgu = True\n")
    files = {"01.conf": text, "99-override.conf": "[aegnt]\npolling_interval = 2\n"}
    told = machine.deploy(planned("neutron_sriov_agent", files))
    assert (told["failed"], told["changed"]) == (False, True), told["shown"]
    # Ansible breaks its warnings into lines.
    shown = "".join(told["shown"].split())
    assert shown.count("Theimageofneutron_sriov_agentsaysofitsconfiguration:/") == 2, told["shown"]
    assert "/01.conf:debguinthegroupDEFAULTisanoptionthatnothingintheimageknows" in shown, told["shown"]
    assert "/99-override.conf:nothingintheimagereadsthegroupaegntbythisname" in shown, told["shown"]


def test_an_option_that_the_image_does_not_know_is_refused_in_a_snippet(machine: Machine) -> None:
    files = {"01.conf": "[DEFAULT]\ndebug = True\n", "99-override.conf": "[libvirt]\nvirt_tpye = qemu\n"}
    refused = machine.deploy(planned("nova_compute", files))
    assert refused["failed"], refused["shown"]
    assert "virt_tpye in the group libvirt is an option that nothing in the image knows" in str(refused["msg"])
    assert not machine.sh("ls /etc/containers/systemd | grep nova || true")
