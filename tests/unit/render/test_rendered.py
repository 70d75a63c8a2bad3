# SPDX-License-Identifier: GPL-3.0-or-later
"""From a plan to the files of every node."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node.record import read_record, sha256
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.plan import resolve
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import Plan
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.stores import snapshot_of
from ansible_collections.edpm.services.plugins.plugin_utils._report.answer import Answer
from ansible_collections.edpm.services.plugins.plugin_utils._report.lines import as_text
from ansible_collections.edpm.services.plugins.plugin_utils._report.near import NotThereError
from ansible_collections.edpm.services.plugins.plugin_utils._report.overview import Question
from ansible_collections.edpm.services.plugins.plugin_utils._report.rendered import rendered

PASSWORD = "never-to-be-seen"
ALL = Question()


def plan(password: str = PASSWORD, *, image: bool = True, name: str = "compute-0") -> Plan:
    dataplane, nova = "dataplane.openstack.org/v1beta1", "nova.openstack.org/v1beta1"
    generated = (
        f"[DEFAULT]\ntransport_url = rabbit://nova:{password}@rabbit.example/\n[placement]\npassword = {password}\n"
    )

    def thing(api_version: str, kind: str, name: str, **rest: object) -> dict[str, object]:
        meta = {"name": name, "namespace": "openstack", "annotations": rest.pop("annotations", {})}
        return {"apiVersion": api_version, "kind": kind, "metadata": meta, **rest}

    cell, held = {"nova.openstack.org/cell": "nova-cell1"}, {"nova.openstack.org/deploy": "false"}
    other = {"nova.openstack.org/cell": "nova-cell2"}
    objects = [
        thing(dataplane, "OpenStackDataPlaneRole", "compute", annotations=cell, spec={}),
        thing(nova, "NovaCell", "nova-cell1", spec={"cellName": "cell1"}),
        thing("v1", "Secret", "nova-cell1-compute-config", stringData={"01-nova.conf": generated}),
        thing(dataplane, "OpenStackDataPlaneNode", name, spec={"role": "compute"}),
        thing(dataplane, "OpenStackDataPlaneNode", "compute-1", annotations=held, spec={"role": "compute"}),
        thing(dataplane, "OpenStackDataPlaneNode", "compute-2", annotations=other, spec={"role": "compute"}),
    ]
    images = {
        "RELATED_IMAGE_NOVA_LIBVIRT_IMAGE_URL_DEFAULT": "images.example/libvirt:30" if image else "",
        "RELATED_IMAGE_NOVA_COMPUTE_IMAGE_URL_DEFAULT": "images.example/nova-compute:30",
    }
    return resolve(snapshot_of(objects, {name: value for name, value in images.items() if value}))


def found(folder: Path) -> dict[str, str]:
    """The files by their paths, the digest left out of them."""
    return {
        "/".join("DIGEST" if len(part) == 64 else part for part in path.relative_to(folder).parts): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }


def told(answer: Answer) -> str:
    return as_text(answer.lines) + json.dumps(answer.result)


def test_the_tree_is_that_of_the_node(tmp_path: Path) -> None:
    rendered(plan(), Question("compute-0", "nova_compute"), str(tmp_path))
    node = tmp_path / "compute-0"
    home = "var/lib/openstack/nova_compute"
    assert set(found(node)) == {
        "etc/containers/systemd/edpm_nova_compute.container",
        "etc/tmpfiles.d/edpm_nova_compute.conf",
        *(
            f"{home}/generations/DIGEST/{name}"
            for name in (
                "bundle.json",
                "conf.d/01-nova.conf",
                "conf.d/02-nova-host-specific.conf",
                "kolla.json",
                "node/tmpfiles.conf",
                "units/edpm_nova_compute.container",
            )
        ),
    }
    (generation,) = (node / home / "generations").iterdir()
    assert (node / home / "current").readlink() == Path("generations") / generation.name
    assert stat.S_IMODE((node / "etc/containers/systemd/edpm_nova_compute.container").stat().st_mode) == 0o644


def test_the_record_holds_for_the_files_as_they_are_deployed(tmp_path: Path) -> None:
    answer = rendered(plan(), Question("compute-0"), str(tmp_path), show_secrets=True)
    for made in answer.result["rendered"]:
        generation = Path(made["path"])
        record = read_record((generation / "bundle.json").read_bytes())
        assert record is not None
        assert record.digest == made["digest"]
        for file in record.files:
            path = generation / file.path
            assert (sha256(path.read_bytes()), stat.S_IMODE(path.stat().st_mode)) == (file.sha256, file.mode)
        for one in record.placed:
            assert sha256((tmp_path / "compute-0" / one.path.lstrip("/")).read_bytes()) == one.sha256
    assert len(answer.result["rendered"]) == 2


def test_secrets_are_masked_unless_they_are_asked_for_and_never_displayed_or_returned(tmp_path: Path) -> None:
    masked = rendered(plan(), ALL, str(tmp_path), diff=True)
    assert PASSWORD not in told(masked) + "".join(found(tmp_path).values())
    shown = rendered(plan(), ALL, str(tmp_path), diff=True, show_secrets=True)
    name = "compute-0/var/lib/openstack/nova_compute/generations/DIGEST/conf.d/01-nova.conf"
    assert f"password = {PASSWORD}\n" in found(tmp_path)[name]
    back = rendered(plan("another-one"), ALL, str(tmp_path), diff=True, show_secrets=True)
    gone = rendered(plan("another-one", name="else-0"), ALL, str(tmp_path), diff=True)
    for answer in (shown, back, gone):
        assert answer.result["changed"]
        assert PASSWORD not in told(answer)
        assert "another-one" not in told(answer)


def test_a_second_run_changes_nothing_and_check_mode_writes_nothing_and_says_the_same(tmp_path: Path) -> None:
    out = tmp_path / "out"
    would = rendered(plan(), ALL, str(out), check=True, diff=True)
    assert not out.exists()
    did = rendered(plan(), ALL, str(out), diff=True)
    assert (would.result["changed"], did.result["changed"]) == (True, True)
    assert would.result["diff"] == did.result["diff"]
    assert "would be written" in would.result["msg"]
    for check in (True, False):
        again = rendered(plan(), ALL, str(out), check=check, diff=True)
        assert not again.result["changed"]
        assert again.result["diff"] == []
        assert again.result["msg"] == f"{out}: 4 services on 2 nodes, up to date, 2 left out."


def test_a_change_leaves_nothing_of_the_generation_before(tmp_path: Path) -> None:
    rendered(plan(), ALL, str(tmp_path))
    before = set(tmp_path.rglob("*"))
    answer = rendered(plan("another-one"), ALL, str(tmp_path), diff=True)
    assert len(set(tmp_path.rglob("*"))) == len(before)
    home = tmp_path / "compute-0/var/lib/openstack/nova_compute"
    assert [one.name for one in (home / "generations").iterdir()] == [(home / "current").readlink().name]
    states = [line.text.split()[-2:] for line in answer.lines if line.text.startswith("compute-0")]
    assert [state[-1] for state in states] == ["date", "written"]


def test_what_waits_is_told_and_left_out_and_what_is_held_is_written(tmp_path: Path) -> None:
    answer = rendered(plan(), ALL, str(tmp_path))
    assert {(one["node"], one["service"]) for one in answer.result["left_out"]} == {
        ("compute-2", "libvirt"),
        ("compute-2", "nova_compute"),
    }
    assert all("nova-cell2 does not exist" in one["reason"] for one in answer.result["left_out"])
    assert not (tmp_path / "compute-2").exists()
    assert (tmp_path / "compute-1/var/lib/openstack/nova_compute/current").is_dir()
    assert answer.result["msg"].endswith(" written, 2 left out.")


def test_a_service_without_an_image_is_left_out(tmp_path: Path) -> None:
    answer = rendered(plan(image=False), Question("compute-0"), str(tmp_path))
    assert [one["service"] for one in answer.result["rendered"]] == ["nova_compute"]
    assert [one["reason"] for one in answer.result["left_out"]] == ["no image is named for it."]


def test_a_node_or_service_that_is_not_there_is_told_before_anything_is_written(tmp_path: Path) -> None:
    for question in (Question("compute-9"), Question("", "nova")):
        with pytest.raises(NotThereError):
            rendered(plan(), question, str(tmp_path / "out"))
    assert list(tmp_path.iterdir()) == []


def test_one_node_or_service_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    rendered(plan(), ALL, str(tmp_path))
    before = found(tmp_path / "compute-1")
    answer = rendered(plan("another-one"), Question("compute-0"), str(tmp_path))
    assert answer.result["changed"]
    assert found(tmp_path / "compute-1") == before
