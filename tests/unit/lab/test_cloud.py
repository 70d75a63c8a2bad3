# SPDX-License-Identifier: GPL-3.0-or-later
"""The cloud's settings and manifests are text that follows from an address and passwords; no service runs here."""

from __future__ import annotations

import base64
import configparser
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from edpm_lab import cloud_manifests, cloud_settings, images, openstack_calls, podman
from edpm_lab.cloud import Cloud
from edpm_lab.cloud_settings import CELLS, Passwords, Site
from edpm_lab.errors import LabError
from edpm_lab.labs import Lab

SITE = Site("10.213.7.3", Passwords.new())
OPENSTACK = """
import itertools, types
resource = types.SimpleNamespace(Resource=type("Resource", (), {}))
exceptions = types.SimpleNamespace(SDKException=type("SDKException", (Exception,), {}))
numbers = itertools.count(1)
def connect(cloud):
    return types.SimpleNamespace(number=next(numbers))
"""


def parsed(text: str) -> configparser.ConfigParser:
    found = configparser.ConfigParser(interpolation=None, default_section="no section")
    found.read_string(text)
    return found


def by_name(metadata: str = "global") -> dict[tuple[str, str], cloud_manifests.Manifest]:
    return {(one["kind"], one["metadata"]["name"]): one for one in cloud_manifests.manifests(SITE, metadata=metadata)}


def test_two_clouds_share_no_password() -> None:
    first, second = Passwords.new(), Passwords.new()
    assert not {first.admin, first.services, *first.bus.values()} & {
        second.admin,
        second.services,
        *second.bus.values(),
    }
    assert len({first.admin, first.services, first.database, first.metadata, *first.bus.values()}) == 7


def test_passwords_are_the_same_after_they_were_written_and_read() -> None:
    assert Passwords.read(SITE.passwords.written()) == SITE.passwords


def test_passwords_do_not_show_when_a_site_is_printed() -> None:
    assert SITE.passwords.admin not in repr(SITE)


def test_each_cell_has_a_bus_a_user_and_a_database_of_its_own() -> None:
    urls = [urlsplit(parsed(cloud_settings.compute(SITE, cell))["DEFAULT"]["transport_url"]) for cell in CELLS]
    assert [url.path for url in urls] == ["/cell1", "/cell2"]
    assert [url.username for url in urls] == ["nova-cell1", "nova-cell2"]
    assert urls[0].password != urls[1].password
    conductors = cloud_settings.files(SITE)
    databases = [parsed(conductors[f"nova/nova-{cell}.conf"])["database"]["connection"] for cell in CELLS]
    assert [urlsplit(database).path for database in databases] == ["/nova_cell1", "/nova_cell2"]


def test_rabbitmq_gets_the_passwords_that_the_services_use() -> None:
    definitions = json.loads(cloud_settings.files(SITE)["rabbitmq/definitions.json"])
    assert {(each["user"], each["vhost"]) for each in definitions["permissions"]} == {
        ("openstack", "/"),
        ("nova-cell1", "cell1"),
        ("nova-cell2", "cell2"),
    }
    for user, bus in (("openstack", "api"), ("nova-cell1", "cell1"), ("nova-cell2", "cell2")):
        raw = base64.b64decode(next(each for each in definitions["users"] if each["name"] == user)["password_hash"])
        assert hashlib.sha256(raw[:4] + SITE.passwords.bus[bus].encode()).digest() == raw[4:]


def test_no_host_is_discovered_by_itself() -> None:
    scheduler = parsed(cloud_settings.files(SITE)["nova/nova.conf"])["scheduler"]
    assert int(scheduler["discover_hosts_in_cells_interval"]) < 0


def test_nova_is_told_where_its_cells_are() -> None:
    updates = [line for line in SITE.sql().splitlines() if line.startswith("UPDATE")]
    for cell in CELLS:
        (line,) = [line for line in updates if line.endswith(f"name = '{cell}';")]
        assert SITE.transport_url(cell) in line
        assert f"/nova_{cell}?" in line


def test_settings_that_hold_an_ini_value_survive_a_parser() -> None:
    text = cloud_settings.ini({"DEFAULT": {"debug": True, "empty": "", "ratio": 3.0}, "one": {"url": "a=b;c#d"}})
    found = parsed(text)
    assert dict(found["DEFAULT"]) == {"debug": "true", "empty": "", "ratio": "3.0"}
    assert found["one"]["url"] == "a=b;c#d"


def test_arm_guests_get_a_processor_that_runs_their_firmware(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cloud_settings, "architecture", lambda: "arm64")
    assert parsed(cloud_settings.compute(SITE, "cell1"))["libvirt"]["cpu_models"] == "cortex-a57"
    monkeypatch.setattr(cloud_settings, "architecture", lambda: "amd64")
    assert dict(parsed(cloud_settings.compute(SITE, "cell1"))["libvirt"]) == {"virt_type": "qemu"}


def test_manifests_have_the_names_that_the_operators_use() -> None:
    assert {name for kind, name in by_name() if kind == "Secret"} == {
        "nova-cell1-compute-config",
        "nova-cell2-compute-config",
        "nova-metadata-compute-config",
        "neutron-ovn-metadata-agent-neutron-config",
        "neutron-sriov-agent-neutron-config",
        "cinder-volume-config",
        "openstack-config-secret",
    }
    assert {one["metadata"]["namespace"] for one in by_name().values()} == {"openstack"}


def test_every_cell_is_ready() -> None:
    for cell in CELLS:
        novacell = by_name()["NovaCell", f"nova-{cell}"]
        assert novacell["spec"]["cellName"] == cell
        assert [(each["type"], each["status"]) for each in novacell["status"]["conditions"]] == [("Ready", "True")]


def test_metadata_is_served_once_for_all_cells_or_once_in_each() -> None:
    whole, split = by_name("global"), by_name("cells")
    assert whole["Nova", "nova"]["spec"]["metadataServiceTemplate"] == {"enabled": True}
    assert split["Nova", "nova"]["spec"]["metadataServiceTemplate"] == {"enabled": False}
    assert ("Secret", "nova-metadata-compute-config") not in split
    ports = []
    for cell in CELLS:
        assert split["Nova", "nova"]["spec"]["cellTemplates"][cell]["metadataServiceTemplate"] == {"enabled": True}
        assert whole["Nova", "nova"]["spec"]["cellTemplates"][cell]["metadataServiceTemplate"] == {"enabled": False}
        text = split["Secret", f"nova-{cell}-metadata-compute-config"]["stringData"]["05-nova-metadata.conf"]
        ports.append(parsed(text)["DEFAULT"]["nova_metadata_port"])
    assert ports == ["8785", "8786"]
    with pytest.raises(LabError, match="metadata cannot be 'both'; it is one of global, cells"):
        by_name("both")


def test_credentials_are_a_pair_and_only_one_of_it_is_secret() -> None:
    public, secret = by_name()["ConfigMap", "openstack-config"], by_name()["Secret", "openstack-config-secret"]
    assert SITE.passwords.admin not in yaml.safe_dump(public)
    assert SITE.passwords.admin in secret["stringData"]["secure.yaml"]


def test_manifests_are_written_for_their_owner_alone(tmp_path: Path) -> None:
    written = cloud_manifests.write(tmp_path / "new", SITE)
    assert len(written) == len(by_name())
    assert {path.stat().st_mode & 0o777 for path in written} == {0o600}
    assert [yaml.safe_load(path.read_text()) for path in written] == cloud_manifests.manifests(SITE)


@pytest.mark.parametrize(
    ("asked", "started"),
    [
        (["bus"], ["bus"]),
        (["compute"], ["bus", "compute"]),
        (["volume", "metadata"], ["bus", "compute", "metadata", "volume"]),
    ],
)
def test_a_part_brings_what_it_stands_on(
    asked: list[str], started: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[list[str]] = []
    one = Cloud(Lab("quiet", tmp_path, kept=False))
    (tmp_path / "cloud").mkdir()
    monkeypatch.setattr(podman, "containers_work", lambda: None)
    monkeypatch.setattr(images, "image", lambda name: name)
    monkeypatch.setattr(one, "_begin_unless_running", lambda: None)
    monkeypatch.setattr(one, "runs", lambda: True)
    monkeypatch.setattr(one, "_start", found.append)
    assert one.up(asked).parts() == started
    one.up(asked)
    assert found == [started]


def test_an_unknown_part_is_named_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="the cloud has no part dns; there are bus, compute, metadata"):
        Cloud(Lab("quiet", tmp_path, kept=False)).up(["dns"])


def test_a_lab_without_a_cloud_says_how_to_start_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cloud, "address", "10.213.7.3")
    with pytest.raises(LabError, match="the lab quiet has no cloud; start one with: edpm-lab cloud up --name quiet"):
        Cloud(Lab("quiet", tmp_path, kept=False)).manifests(tmp_path)


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[openstack_calls.Programs]:
    """The process that runs programs, with a small stand-in for openstacksdk."""
    (tmp_path / "openstack.py").write_text(OPENSTACK)
    (tmp_path / "keystoneauth1").mkdir()
    (tmp_path / "keystoneauth1/exceptions.py").write_text("class ClientException(Exception): pass\n")
    argv = (sys.executable, *openstack_calls.ARGV[1:])
    found = openstack_calls.Programs(argv, {"PYTHONPATH": str(tmp_path)}, tmp_path / "log")
    yield found
    found.end()


def test_one_process_runs_all_programs_each_with_a_connection_of_its_own(programs: openstack_calls.Programs) -> None:
    body = "import os\ndef three(): return given + [cloud.number]\nanswer = [os.getpid(), three()]"
    first, second = (programs.run(body, [number], timeout=30) for number in (7, 8))
    assert first[0] == second[0]
    assert (first[1], second[1]) == ([7, 1], [8, 2])


def test_what_openstack_refuses_is_one_sentence(programs: openstack_calls.Programs) -> None:
    refused = 'raise openstack.exceptions.SDKException("No Flavor\\nfound for 7")'
    with pytest.raises(openstack_calls.OpenStackError, match=r"^OpenStack: No Flavor found for 7$"):
        programs.run(f"import openstack\n{refused}", None, timeout=30)
    with pytest.raises(openstack_calls.OpenStackError, match=r"^ZeroDivisionError: "):
        programs.run("1 / 0", None, timeout=30)
    assert programs.run("answer = given", "and goes on", timeout=30) == "and goes on"


def test_programs_that_end_their_process_or_do_not_end_are_told_and_the_next_has_a_new_one(
    programs: openstack_calls.Programs,
) -> None:
    with pytest.raises(openstack_calls.OpenStackError, match=r"^the last words$"):
        programs.run("import os, sys\nprint('the last words', file=sys.stderr, flush=True)\nos._exit(1)", 0, timeout=30)
    with pytest.raises(LabError, match="did not end within 1 s"):
        programs.run("time.sleep(60)", None, timeout=1)
    assert programs.run("answer = given", 3, timeout=30) == 3


@pytest.mark.parametrize("body", [openstack_calls.ASK, openstack_calls.OBJECTS, openstack_calls.UP])
def test_programs_for_the_control_plane_are_python(body: str) -> None:
    compile(body, "program", "exec")
