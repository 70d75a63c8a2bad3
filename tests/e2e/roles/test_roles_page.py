# SPDX-License-Identifier: GPL-3.0-or-later
"""The page about roles, example by example, on a node: what it says is what happens.

Files of the page lie in a folder as their first lines name them; images of the lab stand in for those of its registry.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from ansible_collections.edpm.services.plugins.plugin_utils._rollout.known_hosts import keyscan
from edpm_lab import images
from edpm_lab.labs import Lab
from edpm_lab.nodes import Nodes

PAGE = Path(__file__).parents[3] / "docs/howto/roles.md"
BUS = Path(__file__).parents[3] / "extensions/molecule/shared"
IMAGES = {
    "nova-libvirt": "libvirt",
    "nova-compute": "nova-compute",
    "cinder-volume": "cinder-volume",
    "neutron-sriov-agent": "neutron",
}
NODE = "edpm-compute-0"
GROUPS = ("computes", "storage", "agents")
SECRET = "not-a-real-password"


@dataclass(frozen=True)
class Reader:
    """Somebody who follows the page, in a folder of their own."""

    folder: Path
    nodes: Nodes

    def plays(self, name: str, *flags: str) -> subprocess.CompletedProcess[str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")}
        return subprocess.run(
            [Path(sys.executable).parent / "ansible-playbook", "-i", "hosts.yml", name, *flags],
            cwd=self.folder,
            env={**kept, "ANSIBLE_NOCOLOR": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )

    def changes(self, name: str, *flags: str) -> int:
        """How many tasks of a playbook changed something; all went well."""
        run = self.plays(name, *flags)
        assert run.returncode == 0, run.stdout
        found = re.search(rf"^{NODE} .*changed=(\d+)", run.stdout, re.MULTILINE)
        assert found is not None, run.stdout
        return int(found[1])

    def sh(self, script: str) -> str:
        return self.nodes.execute(NODE, "sh", "-c", script).stdout

    def live(self, service: str, path: str) -> str:
        return self.sh(f"cat /var/lib/openstack/{service}/current/{path}")


@pytest.fixture(scope="module")
def reader(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    nodes = Nodes(lab)
    nodes.up([NODE])
    one = Reader(tmp_path_factory.mktemp("roles"), nodes)
    for folder, name in (("/usr/local/lib", "stand-in"), ("/etc/systemd/system", "stand-in.service")):
        nodes.execute(NODE, "tee", f"{folder}/{name}", stdin=(BUS / name).read_text())
    one.sh("systemctl daemon-reload; systemctl start stand-in")
    for path, text in blocks():
        file = one.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    inventory = yaml.safe_load(nodes.inventory())
    inventory["all"]["children"] = {group: {"hosts": {NODE: {}}} for group in GROUPS}
    (one.folder / "hosts.yml").write_text(yaml.safe_dump(inventory))
    yield one
    one.sh("systemctl stop 'edpm_*' stand-in; rm -f /etc/containers/systemd/edpm_*; systemctl daemon-reload")


def blocks() -> Iterator[tuple[str, str]]:
    """The page's files: blocks whose first line is a comment with a path."""
    for text in re.findall(r"^```(?:yaml|ini)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL):
        path, _, rest = text.partition("\n")
        yield path.removeprefix("# "), with_images(rest)


def with_images(text: str) -> str:
    return re.sub(r"registry\.example/openstack/([a-z-]+):30", lambda found: images.image(IMAGES[found[1]]), text)


def test_a_compute_from_variables_and_a_folder_then_back_and_away(reader: Reader) -> None:
    assert reader.changes("computes.yml", "--check") == 2
    assert reader.changes("computes.yml") == 2
    assert reader.changes("computes.yml") == 0
    assert reader.live("nova_compute", "conf.d/02-nova-override.conf") == "[DEFAULT]\ncpu_allocation_ratio = 3.0\n"
    assert reader.sh("ls /var/lib/openstack/nova_compute/current/conf.d").split() == [
        *("01-nova.conf", "02-nova-host-specific.conf", "02-nova-override.conf"),
    ]
    changed = (reader.folder / "computes.yml").read_text().replace("= 3.0", "= 4.0")
    (reader.folder / "changed.yml").write_text(changed)
    assert reader.changes("changed.yml") == 1
    assert reader.changes("back.yml") == 1
    assert reader.live("nova_compute", "conf.d/02-nova-override.conf") == "[DEFAULT]\ncpu_allocation_ratio = 3.0\n"
    assert reader.changes("away.yml") == 1
    assert reader.sh("ls /etc/containers/systemd | grep nova || true; test -d /var/lib/nova/instances") == ""


def test_a_compute_does_not_move_to_another_cell(reader: Reader) -> None:
    assert reader.changes("computes.yml") >= 1
    moved = (reader.folder / "computes.yml").read_text().replace("nova_compute_cell: cell1", "nova_compute_cell: cell2")
    (reader.folder / "moved.yml").write_text(moved)
    run = reader.plays("moved.yml")
    assert run.returncode != 0, run.stdout
    assert re.search(r'"msg": "[^"]*cell1[^"]*cell2', run.stdout), run.stdout
    assert reader.changes("away.yml") == 1


def test_computes_know_each_other_by_one_play(reader: Reader) -> None:
    reader.sh("mkdir -p /var/lib/nova/.ssh; getent passwd nova > /dev/null || useradd nova")
    assert reader.changes("peers.yml") == 1
    assert reader.changes("peers.yml") == 0
    known = reader.sh("cat /var/lib/nova/.ssh/known_hosts")
    key = reader.sh("cut -d ' ' -f 1-2 /etc/ssh/ssh_host_ed25519_key.pub").strip()
    address = reader.nodes.address(NODE)
    assert f"{address} {key}\n" in known
    # A run over a data plane asks in the same way for the keys of nodes that it leaves out.
    assert " ".join(("ssh-ed25519", keyscan([address], 22)[address]["ssh-ed25519"])) == key


def test_files_go_where_their_names_or_the_list_say(reader: Reader) -> None:
    assert reader.changes("storage.yml") == 1
    assert (
        reader.live("cinder_volume", "conf.d/99-override.conf") == (reader.folder / "cinder/backends.conf").read_text()
    )
    places = reader.sh("cd /var/lib/openstack/cinder_volume/current/files && find . -type f | sort").split()
    assert {"./etc/ceph/ceph.conf", "./etc/ceph/ceph.client.openstack.keyring", "./etc/cinder/nfs_shares"} <= {*places}
    assert reader.live("cinder_volume", "files/etc/ceph/ceph.client.openstack.keyring") == "[client.openstack]\n"


def test_three_ways_give_the_same_bytes_of_a_text_with_braces(reader: Reader) -> None:
    assert reader.changes("verbatim.yml") == 1
    text = "[DEFAULT]\n# {{ this }} stays\ndebug = True\n"
    assert reader.live("neutron_sriov_agent", "conf.d/99-override.conf") == text
    assert reader.changes("verbatim.yml") == 0


def test_the_mark_counts_in_the_inventory_and_without_it_text_is_a_template(reader: Reader) -> None:
    """What the page warns of: the third play's lookup gives way to variables of an inventory's host."""
    play = yaml.safe_dump(
        [{"hosts": "agents", "gather_facts": False, "roles": [{"role": "edpm.services.neutron_sriov_agent"}]}]
    )
    (reader.folder / "from_inventory.yml").write_text(play)
    variables = reader.folder / "host_vars" / f"{NODE}.yml"
    variables.parent.mkdir()
    common = f"neutron_sriov_agent_image: {images.image('neutron')}\n"
    common += f"neutron_sriov_agent_config_folder: {reader.folder}/neutron\n"
    snippet = "neutron_sriov_agent_custom_service_config:{} |\n  [DEFAULT]\n  # {{{{ this }}}} stays\n  debug = True\n"
    variables.write_text(common + snippet.format(" !unsafe"))
    assert reader.changes("from_inventory.yml") == 0
    variables.write_text(common + snippet.format(""))
    run = reader.plays("from_inventory.yml")
    assert run.returncode != 0
    assert "'this' is undefined" in run.stdout
    variables.unlink()


def test_no_secret_is_shown_by_a_role_however_much_is_asked(reader: Reader) -> None:
    changed = (reader.folder / "cinder/01-cinder.conf").read_text() + "# changed\n"
    (reader.folder / "cinder/01-cinder.conf").write_text(changed)
    run = reader.plays("storage.yml", "-vvv", "--diff")
    assert run.returncode == 0, run.stdout
    assert "conf.d/01-cinder.conf" in run.stdout
    assert SECRET not in run.stdout


def test_a_path_that_is_not_there_is_a_sentence_that_names_the_option(reader: Reader) -> None:
    text = (reader.folder / "storage.yml").read_text().replace("cinder/backends.conf", "cinder/backend.conf")
    (reader.folder / "wrong.yml").write_text(text)
    run = reader.plays("wrong.yml")
    assert run.returncode != 0
    assert "option custom_service_config_file of cinder_volume: cinder/backend.conf cannot be read" in run.stdout
    assert "Traceback" not in run.stdout
