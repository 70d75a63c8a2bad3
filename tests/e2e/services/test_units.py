# SPDX-License-Identifier: GPL-3.0-or-later
"""The units of every definition on a real node: Quadlet takes them, and an agent without privileges runs from one."""

from __future__ import annotations

import re
import shlex
from dataclasses import fields

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.built_in import RUNNING
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.bundle import Bundle, bundle
from edpm_lab.cloud import Cloud
from edpm_lab.labs import Lab

from .conftest import Bring
from .machine import CONTAINERS, Machine, planned
from .privileges import May, check, defined, found

GENERATION = "/var/lib/openstack/some/generations/one"
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
LOGIN = """[keystone_authtoken]
auth_type = password
auth_url = https://keystone-internal.openstack.svc:5000
username = nova
password = some
user_domain_name = Default
project_name = service
project_domain_name = Default
region_name = regionOne
"""
FILES = {
    "nova_compute": {"01.conf": "[libvirt]\nrbd_secret_uuid = u\n", "ssh-privatekey": "k", "ssh-publickey": "k"},
    "libvirt": {"tls.crt": "c", "tls.key": "k", "ca.crt": "c"},
}


@pytest.fixture(scope="module")
def machine(bring: Bring) -> Machine:
    return bring(CONTAINERS)


@pytest.fixture(scope="module")
def bundles() -> list[Bundle]:
    return [
        bundle(planned(service, {**FILES.get(service, {}), "tls-ca-bundle.pem": "ca"}, instance=instance))
        for service in RUNNING
        for instance in ("", "fast")
    ]


@pytest.fixture(scope="module")
def texts(bundles: list[Bundle]) -> dict[str, str]:
    return {name: text for made in bundles for name, text in made.units.items()}


@pytest.fixture(scope="module")
def said(machine: Machine, texts: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """What Quadlet makes of the units."""
    folder = f"/tmp/{tmp_path_factory.mktemp('units').name}"
    for name, text in texts.items():
        machine.put(f"{folder}/{name}", text.replace("@GENERATION@", GENERATION))
    return machine.sh(f"QUADLET_UNIT_DIRS={folder} {GENERATOR} 2>&1; rm -r {folder}")


def test_quadlet_makes_a_service_of_every_unit(texts: dict[str, str], said: str) -> None:
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


def test_every_container_may_what_its_definition_says_and_no_more(
    machine: Machine, bundles: list[Bundle], said: str
) -> None:
    """Of every service and instance, made by the very commands of the units and not started."""
    commands = dict(_command(line) for line in re.findall(r"^ExecStart=(.*)$", said, re.MULTILINE))
    wanted = {name: may for made in bundles for name, may in defined(made, GENERATION).items()}
    assert set(commands) == set(wanted)
    for name, words in commands.items():
        assert _created(machine, words) == wanted[name], name


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ("--volume=/etc:/etc/of-the-node", "mounts"),
        ("--cap-add=SYS_MODULE", "capabilities"),
        ("--device=/dev/null:/dev/of-the-node", "devices"),
        ("--security-opt=seccomp=unconfined", "options"),
        ("--device-cgroup-rule=c *:* rwm", "options"),
        ("--pid=host", "of_the_node"),
        ("--ipc=host", "of_the_node"),
        ("--privileged", "privileged"),
        ("--user=root", "user"),
        ("--read-only", "read_only"),
    ],
)
def test_a_container_that_may_more_is_seen(machine: Machine, said: str, more: str, field: str) -> None:
    line = re.findall(r"^ExecStart=(.*--name edpm_neutron_sriov_agent .*)$", said, re.MULTILINE)[0]
    _name, words = _command(line)
    last = words.index("--pull=never")
    usual, other = (_created(machine, [*words[:last], *extra, *words[last:]]) for extra in ((), (more,)))
    assert field in {one.name for one in fields(May) if getattr(usual, one.name) != getattr(other, one.name)}


def _command(line: str) -> tuple[str, list[str]]:
    """The name of the container that a unit runs, and the words after `podman run`, but those for systemd."""
    _podman, _run, *words = shlex.split(line)
    kept = [one for one in words if one != "-d" and not one.startswith("--cidfile")]
    return kept[kept.index("--name") + 1], kept


def _created(machine: Machine, words: list[str]) -> May:
    """What a container may that is made by these words, under another name, and gone afterwards."""
    at = words.index("--name") + 1
    named = [*words[:at], "edpm-made", *words[at + 1 :]]
    volumes = [words[number + 1].split(":")[0] for number, word in enumerate(words) if word == "-v"]
    machine.sh("".join(f"[ -e {one} ] || mkdir -p {one}\n" for one in map(shlex.quote, volumes)))
    machine.sh(f"podman rm --force --ignore edpm-made > /dev/null; podman create {shlex.join(named)}")
    may = found(machine, "edpm-made")
    machine.sh("podman rm --force edpm-made")
    return may


def test_an_unprivileged_agent_is_healthy_once_it_has_reached_its_bus(machine: Machine, lab: Lab) -> None:
    bus = Cloud(lab).up(["bus"]).site.transport_url("cell1")
    plan = planned("neutron_sriov_agent", {"01.conf": AGENT.format(node=machine.name, bus=bus)})
    machine.brought(plan)
    check(machine, plan)


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
    files = {"01.conf": LOGIN, "99-override.conf": f"{LOGIN}[libvirt]\nvirt_tpye = qemu\n"}
    refused = machine.deploy(planned("nova_compute", files))
    assert refused["failed"], refused["shown"]
    assert "virt_tpye in the group libvirt is an option that nothing in the image knows" in str(refused["msg"])
    assert "keystone_authtoken" not in refused["shown"], "its options come with the way to log in that it chooses"
    assert not machine.sh("ls /etc/containers/systemd | grep nova || true")
