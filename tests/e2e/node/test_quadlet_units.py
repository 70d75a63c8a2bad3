# SPDX-License-Identifier: GPL-3.0-or-later
"""The units of every definition on a real node: Quadlet takes them, and real services run from them."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.built_in import RUNNING
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.bundle import bundle
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.parcel import parcel
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.definitions import BUILT_IN
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.model import Reference
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import (
    ConfigSource,
    Image,
    Layer,
    Origin,
    ServicePlan,
)
from edpm_lab import images
from edpm_lab.labs import Lab
from edpm_lab.nodes import Nodes, default_names
from edpm_lab.prerequisites import architecture

from .probe import Caller

IMAGES = {
    "libvirt": "libvirt",
    "nova_compute": "nova-compute",
    "ovn_metadata_agent": "neutron",
    "neutron_sriov_agent": "neutron",
    "cinder_volume": "cinder-volume",
}
GENERATOR = "/usr/lib/systemd/system-generators/podman-system-generator --dryrun"
#: Takes connections and says nothing: enough for a service to have reached its message bus.
SILENT_BUS = (
    "import socket; s = socket.create_server(('127.0.0.1', 5672)); kept = []\nwhile True: kept.append(s.accept())"
)
AGENT = """[DEFAULT]
host = {node}
state_path = /var/lib/neutron
transport_url = rabbit://nobody:nothing@127.0.0.1:5672/
[agent]
root_helper = sudo neutron-rootwrap /etc/neutron/rootwrap.conf
[oslo_concurrency]
lock_path = /var/lib/neutron/lock
"""
ARCHITECTURE, MACHINE = {"amd64": ("x86_64", "q35"), "arm64": ("aarch64", "virt")}[architecture()]
GUEST = f"""<domain type='qemu'><name>guest</name><memory unit='MiB'>32</memory><vcpu>1</vcpu>
<os><type arch='{ARCHITECTURE}' machine='{MACHINE}'>hvm</type></os></domain>"""


@pytest.fixture(scope="module")
def caller(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    nodes = Nodes(lab)
    name = default_names(1)[0]
    nodes.up([name])
    called = Caller(nodes, name, tmp_path_factory.mktemp("units"))
    yield called
    called.sh("podman exec edpm_libvirt virsh destroy guest", check=False)
    called.sh("systemctl stop 'edpm_*' silent-bus; rm -f /etc/containers/systemd/edpm_*", check=False)


def planned(service: str, instance: str = "", **files: str) -> ServicePlan:
    """The service from the lab's image, with these files in its conf.d; those of a human are named `override`."""
    folder = BUILT_IN[service].conf_d
    sources = tuple(_source(folder or "", name, text) for name, text in files.items())
    image = Image(images.image(IMAGES[service]), "the lab")
    return ServicePlan(service, instance, image=image, conf_d=folder, sources=sources)


def _source(folder: str, name: str, text: str) -> ConfigSource:
    origin = Origin(Reference("ConfigMap", "openstack", "config"), f"key {name}.conf")
    layer = Layer.OVERRIDE if "override" in name else Layer.GENERATED
    return ConfigSource(origin, folder, f"{name}.conf", layer, False, text.encode())


def deploy(caller: Caller, plan: ServicePlan) -> dict[str, object]:
    wanted = parcel(plan, bundle(plan))
    assert wanted is not None
    return caller.deploy(wanted)


def test_quadlet_makes_a_service_of_every_unit(caller: Caller, tmp_path: Path) -> None:
    plans = [planned(service, instance) for service in RUNNING for instance in ("", "fast")]
    texts = {name: text for plan in plans for name, text in bundle(plan).units.items()}
    folder = f"/tmp/{tmp_path.name}"
    for name, text in texts.items():
        caller.nodes.ssh(caller.node, "install", "-D", "-m", "0644", "/dev/stdin", f"{folder}/{name}", stdin=text)
    said = caller.sh(f"QUADLET_UNIT_DIRS={folder} {GENERATOR} 2>&1; rm -r {folder}")
    made = set(re.findall(r"^---(.*)---$", said, re.MULTILINE))
    assert made == {name.replace(".container", ".service") for name in texts}
    assert len(made) == 2 * len(RUNNING) + 2
    started = re.findall(r"^ExecStart=(.*)$", said, re.MULTILINE)
    assert all(" --pull=never " in line for line in started)
    assert {re.findall(r"--name edpm_(\w+)", line)[0] for line in started if " --privileged " in line} == {
        "libvirt",
        "nova_compute",
    }


def test_libvirt_answers_and_its_guests_survive_its_restart(caller: Caller) -> None:
    plan = planned("libvirt")
    first = deploy(caller, plan)
    assert (first["failed"], first["changed"]) == (False, True), first["shown"]
    caller.nodes.ssh(caller.node, "tee", "/var/lib/libvirt/guest.xml", stdin=GUEST)
    caller.sh("podman exec edpm_libvirt virsh create --paused /var/lib/libvirt/guest.xml")
    guest = caller.sh("pgrep -f '[g]uest=guest'")
    keeper = caller.sh("systemctl show --value -p MainPID edpm_libvirt-virtlogd.service")
    caller.sh("timeout 30 systemctl restart edpm_libvirt.service")
    caller.until("podman exec edpm_libvirt virsh list --all --name | grep -qx guest")
    assert caller.sh("pgrep -f '[g]uest=guest'") == guest
    assert caller.sh("systemctl show --value -p MainPID edpm_libvirt-virtlogd.service") == keeper
    again = deploy(caller, plan)
    assert (again["failed"], again["changed"]) == (False, False), again["shown"]
    assert caller.sh("pgrep -f '[g]uest=guest'") == guest


def test_an_unprivileged_agent_is_healthy_once_it_has_reached_its_bus(caller: Caller) -> None:
    caller.sh(f"systemd-run --unit=silent-bus python3 -c {shlex.quote(SILENT_BUS)}")
    plan = planned("neutron_sriov_agent", **{"01": AGENT.format(node=caller.node)})
    first = deploy(caller, plan)
    assert (first["failed"], first["changed"]) == (False, True), first["shown"]
    inspected = json.loads(caller.sh("podman inspect edpm_neutron_sriov_agent"))[0]
    assert inspected["HostConfig"]["Privileged"] is False
    again = deploy(caller, plan)
    assert (again["failed"], again["changed"]) == (False, False), again["shown"]


def test_an_option_that_the_image_does_not_know_is_refused_in_a_snippet_and_not_elsewhere(caller: Caller) -> None:
    generated = "[DEFAULT]\ndebgu = True\n"
    refused = deploy(
        caller, planned("nova_compute", **{"01": generated, "99-override": "[libvirt]\nvirt_tpye = qemu\n"})
    )
    assert refused["failed"]
    assert "virt_tpye in the group libvirt is an option that nothing in the image knows" in str(refused["msg"])
    assert not caller.sh("ls /etc/containers/systemd | grep nova || true")
