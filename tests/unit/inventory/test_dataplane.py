# SPDX-License-Identifier: GPL-3.0-or-later
"""`ansible-inventory` and `ansible-playbook` with manifests, as a user runs them."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.edpm.services.plugins.inventory.dataplane import InventoryModule

BIN = Path(sys.executable).parent
TUTORIAL = Path(__file__).parents[3] / "docs" / "tutorial" / "manifests"
PLUGIN = "edpm.services.dataplane"
SECRET_TEXT = "transport_url = rabbit://u:verysecret@rabbit"

Run = subprocess.CompletedProcess[str]


def inventory_file(folder: Path, name: str = "test.dataplane.yml", **options: Any) -> Path:
    file = folder / name
    file.write_text(yaml.safe_dump({"plugin": PLUGIN, **options}))
    return file


def ansible(program: str, *args: str | Path, stdin: str | None = None, **env: str) -> Run:
    quiet = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("ANSIBLE_", "K8S_AUTH_", "RELATED_IMAGE_"))
        and key not in ("SSH_AUTH_SOCK", "KUBECONFIG")
    }
    return subprocess.run(
        [BIN / program, *args],
        input=stdin,
        stdin=None if stdin is not None else subprocess.DEVNULL,
        env={**quiet, "ANSIBLE_NOCOLOR": "1", **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def host(file: Path, name: str, **env: str) -> dict[str, Any]:
    run = ansible("ansible-inventory", "-i", file, "--host", name, **env)
    assert run.returncode == 0, run.stderr
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def words(run: Run) -> str:
    """What was shown, without the line breaks that Ansible puts in."""
    return " ".join((run.stdout + run.stderr).split())


def data_plane(**node: Any) -> list[dict[str, Any]]:
    api, meta = "dataplane.openstack.org/v1beta1", {"namespace": "openstack"}
    cell = {"annotations": {"nova.openstack.org/cell": "nova-cell1"}}
    secret = {"01-nova.conf": base64.b64encode(f"[DEFAULT]\npassword = {SECRET_TEXT}\n".encode()).decode()}
    return [
        {"apiVersion": api, "kind": "OpenStackDataPlaneRole", "metadata": {"name": "r", **meta, **cell}, "spec": {}},
        {
            "apiVersion": api,
            "kind": "OpenStackDataPlaneNode",
            "metadata": {"name": "a", **meta},
            "spec": {"role": "r", "ansibleHost": "192.0.2.1", "node": node},
        },
        {"apiVersion": "nova.openstack.org/v1beta1", "kind": "NovaCell", "metadata": {"name": "nova-cell1", **meta}},
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "nova-cell1-compute-config", **meta},
            "data": secret,
        },
    ]


def write(folder: Path, objects: list[dict[str, Any]], **options: Any) -> Path:
    (folder / "m.yaml").write_text(yaml.safe_dump_all(objects))
    return inventory_file(folder, manifests="m.yaml", **options)


def test_the_tutorial_as_list_graph_and_host(tmp_path: Path) -> None:
    file = inventory_file(tmp_path, manifests=str(TUTORIAL))
    listed = json.loads(ansible("ansible-inventory", "-i", file, "--list").stdout)
    groups = {name: entry["hosts"] for name, entry in listed.items() if name not in ("_meta", "all")}
    both = ["edpm-compute-0", "edpm-compute-1"]
    assert groups == {
        "cell_nova_cell1": both[:1],
        "cell_nova_cell2": both[1:],
        "dataplane_openstack_edpm": both,
        "ready": both,
        "role_edpm_compute": both,
        "service_libvirt": both,
        "service_nova_compute": both,
    }
    graph = ansible("ansible-inventory", "-i", file, "--graph", "cell_nova_cell2").stdout
    assert graph == "@cell_nova_cell2:\n  |--edpm-compute-1\n"
    assert host(file, "edpm-compute-1") == {
        "ansible_host": "192.168.122.101",
        "ansible_port": 22,
        "ansible_user": "root",
        "edpm_blocked": [],
        "edpm_cell": "nova-cell2",
        "edpm_node": "edpm-compute-1",
        "edpm_role": "edpm-compute",
        "edpm_services": ["libvirt", "nova_compute"],
        "timesync_ntp_servers": [{"hostname": "ntp.example.com"}],
    }


def test_no_content_of_a_secret_is_shown(tmp_path: Path) -> None:
    file = write(tmp_path, data_plane())
    for arguments in (["--list"], ["--list", "--yaml"], ["--list", "--toml"], ["--host", "a"], ["--graph", "--vars"]):
        run = ansible("ansible-inventory", "-i", file, *arguments, "-vvvv")
        shown = run.stdout + run.stderr
        assert "verysecret" not in shown
        assert base64.b64encode(SECRET_TEXT.encode()).decode()[:20] not in shown


def test_jinja_renders_in_ansiblevars_and_nowhere_else(tmp_path: Path) -> None:
    objects = data_plane(ansibleUser="{{ 6 * 7 }}", ansibleVars={"deep": [{"er": "{{ 6 * 7 }}"}]})
    file = write(tmp_path, objects)
    play = [
        {
            "hosts": "all",
            "gather_facts": False,
            "tasks": [{"ansible.builtin.debug": {"msg": "{{ deep[0].er }} and {{ ansible_user }}"}}],
        }
    ]
    (tmp_path / "play.yml").write_text(yaml.safe_dump(play))
    assert '"msg": "42 and {{ 6 * 7 }}"' in ansible("ansible-playbook", "-i", file, tmp_path / "play.yml").stdout


def test_constructed_options_work_on_what_the_plugin_sets(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        data_plane(ansibleVars={"rack": "r7"}),
        compose={"console": "'con-' ~ edpm_node", "nothing": "not_there"},
        groups={"in_cell1": "edpm_cell == 'nova-cell1'", "elsewhere": "edpm_cell == 'x'"},
        keyed_groups=[{"key": "rack", "prefix": "rack"}],
    )
    listed = json.loads(ansible("ansible-inventory", "-i", file, "--list").stdout)
    assert listed["in_cell1"]["hosts"] == listed["rack_r7"]["hosts"] == ["a"]
    assert "elsewhere" not in listed
    assert host(file, "a")["console"] == "con-a"
    strict = write(tmp_path, data_plane(), strict=True, compose={"nothing": "not_there"})
    assert "not_there" in words(ansible("ansible-inventory", "-i", strict, "--list"))


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("dataplane.yml", True),
        ("dataplane.yaml", True),
        ("openstack.dataplane.yml", True),
        ("openstack.dataplane.json", True),
        ("mydataplane.yml", False),
        ("openstack.yml", False),
    ],
)
def test_the_file_is_known_by_its_name(tmp_path: Path, name: str, ours: bool) -> None:
    (tmp_path / name).touch()
    assert InventoryModule().verify_file(str(tmp_path / name)) is ours


def test_a_json_file_works_where_the_plugin_is_enabled(tmp_path: Path) -> None:
    file = tmp_path / "dataplane.json"
    file.write_text(json.dumps({"plugin": PLUGIN, "manifests": [str(TUTORIAL)]}))
    run = ansible("ansible-inventory", "-i", file, "--graph", "ready", ANSIBLE_INVENTORY_ENABLED=PLUGIN)
    assert "edpm-compute-0" in run.stdout, run.stderr


def test_manifests_on_standard_input(tmp_path: Path) -> None:
    file = inventory_file(tmp_path, manifests="-")
    run = ansible("ansible-inventory", "-i", file, "--graph", "ready", stdin=yaml.safe_dump_all(data_plane()))
    assert run.stdout == "@ready:\n  |--a\n", run.stderr


def test_a_blocked_node_says_why_and_the_broken_object_is_a_warning(tmp_path: Path) -> None:
    objects = data_plane()[:3]
    broken = {**objects[1], "metadata": {"name": "b", "namespace": "openstack"}, "spec": {"role": ["r"]}}
    file = write(tmp_path, [*objects, broken])
    assert host(file, "a")["edpm_blocked"] == [
        "Secret openstack/nova-cell1-compute-config does not exist; NovaCell nova-cell1 makes it once it is Ready."
    ]
    assert "OpenStackDataPlaneNode openstack/b, field spec.role: " in words(
        ansible("ansible-inventory", "-i", file, "--graph")
    )


def test_text_that_oslo_config_cannot_read_blocks_its_node_already_here(tmp_path: Path) -> None:
    objects = data_plane()
    objects[3]["data"]["01-nova.conf"] = base64.b64encode(b"no section, no option\n").decode()
    blocked = host(write(tmp_path, objects), "a")["edpm_blocked"]
    assert len(blocked) == 1
    assert "Secret openstack/nova-cell1-compute-config, key 01-nova.conf, line 1" in blocked[0]


def test_a_node_may_be_called_like_a_group(tmp_path: Path) -> None:
    objects = data_plane()
    objects[1]["metadata"]["name"] = "ready"
    file = write(tmp_path, objects)
    listed = json.loads(ansible("ansible-inventory", "-i", file, "--list").stdout)
    assert listed["ready"]["hosts"] == ["ready"]
    assert listed["_meta"]["hostvars"]["ready"]["edpm_cell"]
    assert "vars" not in listed["ready"]


def test_nothing_found_is_said(tmp_path: Path) -> None:
    shown = words(ansible("ansible-inventory", "-i", write(tmp_path, data_plane()[2:]), "--graph"))
    assert "No node of a data plane was found" in shown


def test_options_of_the_connection_come_from_the_environment_too(tmp_path: Path) -> None:
    run = ansible("ansible-inventory", "-i", inventory_file(tmp_path), "--list", K8S_AUTH_KUBECONFIG="/nowhere/config")
    assert "The kubeconfig /nowhere/config does not exist; correct the path in kubeconfig or" in words(run)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"manifests": "nowhere"}, "nowhere cannot be read: No such file or directory; correct the path."),
        ({"manifests": "broken.yaml"}, "broken.yaml:2 is not YAML: "),
        ({"kubeconfig": "/nowhere/config"}, "The kubeconfig /nowhere/config does not exist; correct the path in"),
        ({"host": "https://127.0.0.1:9", "api_key": "topsecret"}, "https://127.0.0.1:9 cannot be reached: "),
        ({"manifests": "m", "ssh_keys": "yes please"}, "ssh_keys"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_no_traceback(tmp_path: Path, options: dict[str, Any], sentence: str) -> None:
    (tmp_path / "broken.yaml").write_text("a: 1\nb: ]\n")
    run = ansible("ansible-inventory", "-i", inventory_file(tmp_path, **options), "--list")
    assert sentence in words(run)
    assert "Traceback" not in words(run)
    assert "topsecret" not in words(run)


def test_a_failure_is_there_for_the_playbooks_to_see(tmp_path: Path) -> None:
    """A lookup stands in for those of the collection: like them it runs in a worker and asks the store."""
    (tmp_path / "lookup_plugins").mkdir()
    (tmp_path / "lookup_plugins" / "why.py").write_text(
        "from ansible.plugins.lookup import LookupBase\n"
        "from ansible_collections.edpm.services.plugins.plugin_utils._kube import snapshot\n"
        "class LookupModule(LookupBase):\n"
        "    def run(self, terms, variables=None, **kwargs):\n"
        "        return [snapshot.failure() or str(len(snapshot.plan().nodes)) + ' planned']\n"
    )
    task = {"ansible.builtin.debug": {"msg": "{{ lookup('why') }}"}}
    play = [{"hosts": "localhost", "gather_facts": False, "tasks": [task]}]
    (tmp_path / "play.yml").write_text(yaml.safe_dump(play))
    good = ansible("ansible-playbook", "-i", write(tmp_path, data_plane()), tmp_path / "play.yml")
    assert '"msg": "1 planned"' in good.stdout
    bad = inventory_file(tmp_path, manifests="nowhere")
    failed = ansible("ansible-playbook", "-i", bad, tmp_path / "play.yml")
    assert failed.returncode == 0
    assert f'"msg": "The manifest {tmp_path}/nowhere cannot be read: No such file' in failed.stdout


def test_two_data_planes_in_one_run_are_refused(tmp_path: Path) -> None:
    one = write(tmp_path, data_plane())
    two = inventory_file(tmp_path, "two.dataplane.yml", manifests=str(TUTORIAL))
    shown = words(ansible("ansible-inventory", "-i", one, "-i", two, "--graph"))
    assert "a run deploys one data plane; name all manifests or namespaces in one inventory file" in shown
    assert "edpm-compute-0" not in shown


def test_the_examples_in_its_documentation_are_inventories_that_it_takes() -> None:
    run = ansible("ansible-doc", "-t", "inventory", PLUGIN, "--json")
    entry = json.loads(run.stdout)[PLUGIN]
    options = entry["doc"]["options"]
    for example in yaml.safe_load_all(entry["examples"]):
        assert example["plugin"] == PLUGIN
        assert set(example) <= set(options)
