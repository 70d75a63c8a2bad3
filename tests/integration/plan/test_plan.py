# SPDX-License-Identifier: GPL-3.0-or-later
"""`edpm.services.plan` as a user runs it."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import yaml
from edpm_lab.access import Access

from .conftest import SPECIFICATION, TUTORIAL, User, shown, thing, told

IMAGES = {
    "RELATED_IMAGE_NOVA_COMPUTE_IMAGE_URL_DEFAULT": "images.example/openstack/nova-compute:30",
    "RELATED_IMAGE_NOVA_LIBVIRT_IMAGE_URL_DEFAULT": "images.example/openstack/nova-libvirt:30",
}
PASSWORD = "not-a-real-password"
TUTORIAL_PLAN = """\
NODE            CELL        SERVICE       IMAGE              STATE
edpm-compute-0  nova-cell1  libvirt       …/nova-libvirt:30  ready  {0[0]}
                            nova_compute  …/nova-compute:30  ready  {0[1]}
edpm-compute-1  nova-cell2  libvirt       …/nova-libvirt:30  ready  {0[2]}
                            nova_compute  …/nova-compute:30  ready  {0[3]}
notes:
  Secret openstack/dataplane-ansible-ssh-private-key-secret, the node's SSH key, does not exist; bring a key of your \
own. (edpm-compute-0, edpm-compute-1)
2 nodes: 2 ready · 4 services: 4 ready
"""
NO_COMPUTE_IMAGE = (
    "No image is named for nova_compute: set spec.novaComputeContainerImage of the NovaExternalCompute, or the "
    "environment variable RELATED_IMAGE_NOVA_COMPUTE_IMAGE_URL_DEFAULT."
)
SPECIFICATION_ROWS = """\
NODE            CELL        SERVICE       IMAGE  STATE
edpm-compute-0  nova-cell1  libvirt       –      ready    {0[0]}
                            nova_compute  –      blocked  Secret default/nova-cell1-compute-config does not exist; \
NovaCell nova-cell1 makes it once it is Ready.
edpm-compute-1  nova-cell2  libvirt       –      blocked  OpenStackDataPlaneNode default/edpm-compute-1, annotation \
nova.openstack.org/cell: NovaCell default/nova-cell2 does not exist; name a NovaCell that does, for example \
nova-cell1, or add the cell to a Nova.
                            nova_compute  –      blocked  Secret default/nova-cell2-compute-config does not exist; \
NovaCell nova-cell2 makes it once it is Ready.
notes:
"""


def digests(file: Path) -> list[str]:
    plan = json.loads(file.read_text())["plan"]
    return [service["digest"][:7] for node in plan["nodes"] for service in node["services"]]


def test_the_tutorials_data_plane(user: User) -> None:
    user.reads(TUTORIAL)
    command = ("edpm.services.plan", "-i", user.inventory)
    table = shown(user.run("ansible-playbook", *command, **IMAGES))
    as_json = ("-e", "output=json", "-e", "output_file=plan.json")
    written = shown(user.run("ansible-playbook", *command, *as_json, **IMAGES))
    assert written == "plan.json is written. 2 nodes: 2 ready · 4 services: 4 ready.\n"
    assert table == TUTORIAL_PLAN.format(digests(user.folder / "plan.json"))
    assert stat.S_IMODE((user.folder / "plan.json").stat().st_mode) == 0o600


def test_the_specifications_own_example(user: User) -> None:
    user.reads(SPECIFICATION)
    user.playbook("plan", "-e", "output=json", "-e", "output_file=plan.json")
    run = user.playbook("plan")
    assert shown(run).startswith(SPECIFICATION_ROWS.format(digests(user.folder / "plan.json")))
    assert f"  {NO_COMPUTE_IMAGE} (edpm-compute-0, edpm-compute-1)\n" in shown(run)
    assert shown(run).endswith("2 nodes: 2 blocked · 4 services: 1 ready, 3 blocked\n")


def test_nothing_but_the_table_is_shown_and_no_secret_even_when_asked_for_everything(user: User) -> None:
    user.reads(TUTORIAL)
    run = user.playbook("plan", "-vvv")
    assert PASSWORD not in run.stdout + run.stderr
    quiet = user.playbook("plan")
    assert quiet.stdout.count("TASK [") == 1
    assert quiet.stderr == ""


def test_one_node_and_one_service(user: User) -> None:
    user.reads(TUTORIAL)
    rows = shown(user.playbook("plan", node="edpm-compute-1", service="nova_compute")).splitlines()
    assert rows[1].split()[:3] == ["edpm-compute-1", "nova-cell2", "nova_compute"]
    assert rows[-1] == "1 node: 1 ready · 1 service: 1 ready"


def test_what_does_not_exist_fails_with_what_does(user: User) -> None:
    user.reads(TUTORIAL)
    assert told(user.playbook("plan", node="edpm-compute-2")) == (
        "The data plane has no node edpm-compute-2; did you mean edpm-compute-0 or edpm-compute-1?"
    )
    assert told(user.playbook("plan", service="nova")) == ("No node runs nova; its services are libvirt, nova_compute.")
    assert told(user.playbook("plan", output="html")).startswith("An HTML page is for a file;")
    assert "must be one of: text, json, html" in told(user.playbook("plan", output="pdf"))
    assert told(user.playbook("plan", output_file="nowhere/plan.txt")) == (
        "nowhere/plan.txt cannot be written: No such file or directory; name another file."
    )


def test_an_inventory_that_cannot_be_read_fails_the_run(user: User) -> None:
    (user.folder / "broken.yaml").write_text("kind: Nova\nmetadata: [\n")
    user.reads("broken.yaml")
    sentence = told(user.playbook("plan"))
    assert sentence.startswith(f"The manifest {user.folder}/broken.yaml:3 is not YAML: ")

    user.reads("missing")
    assert str(user.folder / "missing") in told(user.playbook("plan"))
    user.reads(kubeconfig=str(user.folder / "none"))
    assert f"{user.folder}/none does not exist" in told(user.playbook("plan"))


def test_without_an_inventory_of_ours_the_run_fails(user: User) -> None:
    sentence = told(user.run("ansible-playbook", "edpm.services.plan", "-i", "localhost,"))
    assert sentence.startswith("No data plane was read in this run; name an inventory of edpm.services.dataplane")


def test_check_mode_writes_nothing(user: User) -> None:
    user.reads(TUTORIAL)
    run = user.playbook("plan", "--check", output="json", output_file="plan.json")
    assert shown(run).startswith("plan.json would be written. ")
    assert not (user.folder / "plan.json").exists()
    user.playbook("plan", output="json", output_file="plan.json")
    again = user.playbook("plan", output="json", output_file="plan.json")
    assert shown(again).startswith("plan.json is up to date. ")
    assert "changed=0" in again.stdout


def test_the_page_is_written_whole_and_without_secrets(user: User) -> None:
    user.reads(TUTORIAL)
    shown(user.playbook("plan", output="html", output_file="plan.html"))
    text = (user.folder / "plan.html").read_text()
    assert text.startswith("<!DOCTYPE html>")
    assert text.endswith("</html>\n")
    assert PASSWORD not in text


def test_the_module_can_be_used_in_a_play_of_ones_own(user: User) -> None:
    (user.folder / "hosts").write_text("localhost\n")
    run = user.play(
        {"edpm.services.dataplane_info": {"manifests": [str(TUTORIAL)]}, "register": "found"},
        {"ansible.builtin.debug": {"msg": "{{ found.plan.nodes | map(attribute='cell') | join('+') }}"}},
        inventory="hosts",
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "nova-cell1+nova-cell2" in run.stdout


def test_every_kind_of_bad_input_blocks_only_its_own_node(user: User) -> None:
    objects = [body for file in sorted(TUTORIAL.glob("*.yaml")) for body in yaml.safe_load_all(file.read_text())]
    objects = [one for one in objects if one["kind"] not in ("Namespace", "NovaExternalCompute")]
    compute = {"dataplaneNodeName": "edpm-compute-0", "cellName": "nova-cell1"}
    bad = thing("nova.openstack.org/v1beta1", "NovaExternalCompute", "edpm-compute-0")
    bad["spec"] = {**compute, "customServiceConfig": "[DEFAULT]\n  debug\nTrue\n"}
    stray = thing("dataplane.openstack.org/v1beta1", "OpenStackDataPlaneNode", "edpm-stray-0")
    stray["spec"] = {"role": "nowhere", "ansibleHost": "192.0.2.1"}
    user.has([*objects, bad, stray])
    text = shown(user.playbook("plan"))
    assert (
        "blocked  NovaExternalCompute openstack/edpm-compute-0, spec.customServiceConfig, line 2: an indented line "
        "with no value above it to continue; remove the spaces at its beginning." in text
    )
    assert "OpenStackDataPlaneRole openstack/nowhere does not exist; create it, or name one that does." in text
    assert text.endswith("3 nodes: 1 ready, 2 blocked · 4 services: 3 ready, 1 blocked\n")


def test_every_fault_of_a_deployers_own_config_map_is_told_with_its_key(user: User) -> None:
    objects = [body for file in sorted(TUTORIAL.glob("*.yaml")) for body in yaml.safe_load_all(file.read_text())]
    service = thing("dataplane.openstack.org/v1beta1", "OpenStackDataPlaneService", "nova")
    service["spec"] = {"dataSources": [{"configMapRef": {"name": "extra"}}]}
    data = {"01-nova.conf": "[DEFAULT]\n", "bad/name.conf": "", ".hidden.conf": "", "notes.txt": ""}
    extra = thing("v1", "ConfigMap", "extra", data=data, binaryData={"04-bytes.conf": "/w=="})
    user.has([*objects, service, extra])
    text = shown(user.playbook("plan", node="edpm-compute-0"))
    for sentence in (
        "01-nova.conf comes from ConfigMap openstack/extra, key 01-nova.conf and from Secret "
        "openstack/nova-cell1-compute-config, key 01-nova.conf; rename one of them, each file has one source.",
        "ConfigMap openstack/extra, field data.bad/name.conf: is no name for a file; use letters, digits, dashes, dots "
        "and underscores.",
        "ConfigMap openstack/extra, key 04-bytes.conf: is not UTF-8, which oslo.config needs; write the text anew.",
        "ConfigMap openstack/extra, key .hidden.conf: is left out, since oslo.config reads no hidden files.",
        "ConfigMap openstack/extra, key notes.txt: is left out, since nova_compute has no place for such a file.",
    ):
        assert sentence in text


def test_a_live_cluster_gives_the_same_plan_as_the_manifests(user: User, installed: Access, namespace: str) -> None:
    objects = [body for file in sorted(TUTORIAL.glob("*.yaml")) for body in yaml.safe_load_all(file.read_text())]
    objects = [one for one in objects if one["kind"] != "Namespace"]
    for one in objects:
        one["metadata"]["namespace"] = namespace
    installed.kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all(objects))
    ready = json.dumps({"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    for cell in ("nova-cell1", "nova-cell2"):
        patch = ("patch", "novacell", cell, "-n", namespace, "--subresource=status", "--type=merge", "-p", ready)
        installed.kubectl(*patch)
    found = []
    user.has(objects, namespaces=[namespace])
    found.append(user.playbook("plan", output="json", output_file="manifests.json"))
    user.reads(kubeconfig=str(installed.kubeconfig), namespaces=[namespace])
    found.append(user.playbook("plan", output="json", output_file="live.json"))
    assert [shown(run) for run in found]
    assert (user.folder / "live.json").read_text() == (user.folder / "manifests.json").read_text()
    assert len(digests(user.folder / "live.json")) == 4
