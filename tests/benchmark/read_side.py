# SPDX-License-Identifier: GPL-3.0-or-later
"""The read side at its full size, from a real API server and from manifests, each beside the least it could cost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from pathlib import Path

import yaml
from ansible_collections.edpm.services.plugins.plugin_utils._kube.client import Client
from ansible_collections.edpm.services.plugins.plugin_utils._kube.connection import Connection, Settings
from edpm_lab.access import Access
from edpm_lab.api_server import api_server
from edpm_lab.labs import Lab

from .data_plane import NAMESPACE, Body, Size, objects
from .figures import TREE, Figure

SIZE = Size()
CRDS = TREE / "roles/cluster/files/crds"
WRITERS = 10
MIB = 1024 * 1024

Result = dict[str, float]


def live(lab: Lab) -> Iterator[Figure]:
    """From a live server, against a bare paged GET of the same pages."""
    with api_server(lab, "bench-read") as server:
        install(server)
        create(server, objects(SIZE))
        file = inventory_file(lab.folder / "live.dataplane.yml", kubeconfig=str(server.kubeconfig))
        bare, ours = interleaved(("bare_pages", file), ("inventory", file), tries=3)
    pages = "bare paged GET and json.loads"
    yield Figure("live: snapshot and inventory", ours["wall without plan"], pages, bare["wall"], 3)
    yield Figure("live: snapshot, plan and inventory", ours["wall"], pages, bare["wall"])
    yield Figure("live: the plan, in CPU time", ours["plan cpu"], "1 s for 1,000 nodes", SIZE.nodes / 1000, 1)
    yield Figure("live: peak memory", ours["memory"] / MIB, "the pages of JSON", bare["bytes"] / MIB, 10, "MiB")


def manifests(lab: Lab) -> Iterator[Figure]:
    """From manifests, against parsing the same YAML. CPU time, since neither of the two waits for anything."""
    content = lab.folder / "manifests.yaml"
    content.write_text(yaml.dump_all(objects(SIZE), Dumper=yaml.CSafeDumper))
    file = inventory_file(lab.folder / "manifests.dataplane.yml", manifests=str(content))
    bare, ours = interleaved(("bare_yaml", content), ("inventory", file), tries=2)
    size = sum(len(json.dumps(body)) for body in objects(SIZE))
    parsed = "the YAML parsed by the C loader"
    yield Figure("manifests: snapshot and inventory", ours["cpu without plan"], parsed, bare["cpu"], 2)
    yield Figure("manifests: snapshot, plan and inventory", ours["cpu"], parsed, bare["cpu"])
    yield Figure("manifests: peak memory", ours["memory"] / MIB, "the same as JSON", size / MIB, 10, "MiB")


def interleaved(*runs: tuple[str, Path], tries: int) -> list[Result]:
    """The least of each figure over several tries, in turns, so that what disturbs one disturbs the other too."""
    found: list[list[Result]] = [[] for _ in runs]
    for _ in range(tries):
        for results, (way, file) in zip(found, runs, strict=True):
            results.append(read(way, file))
    return [{name: min(one[name] for one in results) for name in results[0]} for results in found]


def read(way: str, file: Path) -> Result:
    """Read in a process of its own."""
    quiet = {
        key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_AUTH_", "SSH_AUTH"))
    }
    reader = Path(__file__).with_name("reader.py")
    done = subprocess.run(
        [sys.executable, reader, way, file], cwd=TREE, env=quiet, stdout=subprocess.PIPE, timeout=300, check=True
    )
    result: Result = json.loads(done.stdout.splitlines()[-1])
    if result.get("ready", SIZE.nodes) != SIZE.nodes:
        raise AssertionError(f"{way} found {result['ready']} nodes ready, not {SIZE.nodes}")
    return result


def inventory_file(path: Path, **options: object) -> Path:
    path.write_text(yaml.safe_dump({"plugin": "edpm.services.dataplane", "namespaces": [NAMESPACE], **options}))
    return path


def install(server: Access) -> None:
    """The definitions without a status of its own, so that one request writes the whole of an object."""
    crds = [yaml.safe_load(file.read_text()) for file in sorted(CRDS.glob("*.yaml"))]
    for crd in crds:
        for version in crd["spec"]["versions"]:
            version.pop("subresources", None)
    server.kubectl("create", "namespace", NAMESPACE)
    server.kubectl("create", "-f", "-", stdin=yaml.safe_dump_all(crds))
    server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s", timeout=90)


def create(server: Access, bodies: Iterable[Body]) -> None:
    """Create all objects, several at a time over connections that stay open."""
    with Connection(Settings(kubeconfig=str(server.kubeconfig))) as connection, ThreadPoolExecutor(WRITERS) as threads:
        client = Client(connection)

        def create_one(body: Body) -> None:
            path = client.resource(body["apiVersion"], body["kind"]).path(namespace=NAMESPACE)
            answer = connection.request("POST", path, {}, body=json.dumps(body).encode())
            if answer.status != HTTPStatus.CREATED:
                raise AssertionError(f"{body['kind']} {body['metadata']['name']}: {answer.body.decode()}")

        for _ in threads.map(create_one, bodies):
            pass
