# SPDX-License-Identifier: GPL-3.0-or-later
"""The event source of ansible-rulebook on a real API server: by itself, and in ansible-rulebook with the example."""

from __future__ import annotations

import asyncio
import os
import runpy
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from edpm_lab.command import tied
from edpm_lab.prerequisites import Tool, require

from .conftest import CELL, Body, Site, data_plane, node, thing
from .operating import prepare

EXTENSION = Path(__file__).resolve().parents[3] / "extensions/eda"
SOURCE = runpy.run_path(str(EXTENSION / "plugins/event_source/dataplane.py"))


def events(args: Body, act: Callable[[], None], enough: Callable[[list[Body]], bool], heard: int = 1) -> list[Body]:
    """What comes from the beginning until it is enough; `act` is done once so many were heard."""

    async def listen() -> list[Body]:
        queue: asyncio.Queue[Any] = asyncio.Queue(1)  # as ansible-rulebook makes it
        source = asyncio.ensure_future(SOURCE["main"](queue, args))
        found = [await asyncio.wait_for(queue.get(), 60) for _ in range(heard)]
        await asyncio.to_thread(act)
        while not enough(found):
            found.append(await asyncio.wait_for(queue.get(), 60))
        source.cancel()
        await asyncio.gather(source, return_exceptions=True)
        return found

    return asyncio.run(listen())


def test_every_change_is_an_event_without_contents(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(site)
    monkeypatch.setenv("KUBECONFIG", str(site.account))
    site.create(*data_plane(1))

    def act() -> None:
        site.create(node(1))
        site.annotate("osdpnode", "node-1", f"{CELL}=nova-cell2")
        secret = thing("v1", "Secret", "nova-cell1-compute-config", stringData={"01-nova.conf": "[DEFAULT]\nx = 1\n"})
        site.send("replace", secret)
        site.kubectl("delete", "osdpnode", "node-0")

    found = events(
        {"namespaces": [site.namespace], "secrets": ["nova-cell1-compute-config"]},
        act,
        lambda seen: (
            any((one["what"], one["name"]) == ("deleted", "node-0") for one in seen)
            and any((one["what"], one["kind"]) == ("modified", "Secret") for one in seen)
            and any((one["what"], one["name"]) == ("modified", "node-1") for one in seen)
        ),
        heard=5,  # a role, two cells, a node and the Secret: what comes after them is a change
    )

    told = {(one["what"], one["kind"], one["name"]) for one in found}
    assert ("listed", "OpenStackDataPlaneRole", "edpm") in told
    assert ("listed", "OpenStackDataPlaneNode", "node-0") in told
    assert ("added", "OpenStackDataPlaneNode", "node-1") in told
    assert {one["namespace"] for one in found} == {site.namespace}
    assert {one["name"] for one in found if one["kind"] == "Secret"} == {"nova-cell1-compute-config"}
    moved = next(one for one in found if (one["what"], one["name"]) == ("modified", "node-1"))
    assert moved["annotations"] == {CELL: "nova-cell2"}
    assert "[DEFAULT]" not in str(found)


def test_ansible_rulebook_runs_the_example(site: Site, tmp_path: Path) -> None:
    """A Node that comes to belong to a cell gets its service object, and nobody calls a playbook."""
    require("ansible-rulebook", Tool("java", "default-jre-headless"))
    prepare(site)
    site.create(*data_plane(1))
    log = tmp_path / "log"
    with (
        log.open("w") as out,
        subprocess.Popen(
            [*tied(), *rulebook(site, tmp_path)], cwd=tmp_path, env=environment(site), stdout=out, stderr=out
        ) as program,
    ):
        try:
            until(lambda: "Handler 'OpenStackDataPlaneNode" in log.read_text(), log)  # it has heard of the first one
            site.create(node(1))
            # It has run the playbook once, to its end.
            until(lambda: program.poll() is not None, log)
        finally:
            program.terminate()
    assert site.there("nec") == ["node-0", "node-1"], log.read_text()
    assert program.returncode == 0, log.read_text()


def rulebook(site: Site, folder: Path) -> list[str | Path]:
    """The command of ansible-rulebook over the example: here for one namespace, with less patience, and once."""
    [example] = yaml.safe_load((EXTENSION / "rulebooks/reconcile.yml").read_text())
    example["sources"][0]["edpm.services.dataplane"]["namespaces"] = [site.namespace]
    [rule] = example["rules"]
    rule["throttle"]["once_after"] = "1 seconds"
    rule["actions"] = [rule.pop("action"), {"shutdown": {"delay": 0.5}}]
    (folder / "rulebook.yml").write_text(yaml.safe_dump([example]))
    (folder / "inventory.yml").write_text("all: {hosts: {localhost: {ansible_connection: local}}}\n")
    program = Path(sys.executable).parent / "ansible-rulebook"
    return [program, "--rulebook", folder / "rulebook.yml", "-i", folder / "inventory.yml", "--verbose"]


def environment(site: Site) -> dict[str, str]:
    own = {key: value for key, value in os.environ.items() if not key.startswith(("K8S_AUTH_", "ANSIBLE_"))}
    image = {"RELATED_IMAGE_NOVA_COMPUTE_IMAGE_URL_DEFAULT": "compute:1"}
    path = f"{Path(sys.executable).parent}:{own['PATH']}"
    return {**own, **image, "PATH": path, "KUBECONFIG": str(site.account), "K8S_AUTH_KUBECONFIG": str(site.account)}


def until(what: Callable[[], bool], log: Path) -> None:
    limit = time.monotonic() + 120
    while not what():
        assert time.monotonic() < limit, log.read_text()
        time.sleep(0.5)


def test_the_example_names_arguments_and_a_playbook_that_exist() -> None:
    [rulebook] = yaml.safe_load((EXTENSION / "rulebooks/reconcile.yml").read_text())
    args = rulebook["sources"][0]["edpm.services.dataplane"]
    assert set(args) <= SOURCE["ARGUMENTS"]
    name = rulebook["rules"][0]["action"]["run_playbook"]["name"]
    assert (EXTENSION.parents[1] / f"playbooks/{name.rpartition('.')[2]}.yml").is_file()


@pytest.mark.parametrize(
    ("args", "said"), [({"namespace": "x"}, "has no argument namespace"), ({"kinds": ["Nothing"]}, "serves none of")]
)
def test_a_wrong_argument_is_told(site: Site, monkeypatch: pytest.MonkeyPatch, args: Body, said: str) -> None:
    monkeypatch.setenv("KUBECONFIG", str(site.account))
    with pytest.raises(ValueError, match=said):
        asyncio.run(SOURCE["main"](asyncio.Queue(), args))
