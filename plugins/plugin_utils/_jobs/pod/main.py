# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays a run's playbook over one shard, stores what became of each node, and ends with a code that the Job judges."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

from ..._kube.client import Client, Resource
from ..._kube.connection import Connection, Settings
from ..._kube.errors import ConflictError, KubernetesError
from .. import manifests
from ..results import ShardResult, State, encode
from .events import Listener
from .places import Places

CONFIG_MAPS = Resource("v1", "ConfigMap", "configmaps", namespaced=True)
TERMINATION_LOG = "/dev/termination-log"
#: Told to go, as 128 + SIGTERM: the Job tries again.
STOPPED = 128 + signal.SIGTERM


@dataclass(frozen=True)
class Part:
    """One shard of a run, as the pod finds it in its files and its environment."""

    told: Mapping[str, Any]
    index: int
    nodes: tuple[str, ...]
    pod: str
    job: str
    job_uid: str

    @classmethod
    def read(cls, places: Places, environment: Mapping[str, str]) -> Part:
        """Read what the run's ConfigMap says of this pod."""
        folder = places.read(manifests.SETTINGS)
        index = int(environment.get("EDPM_SHARD") or environment.get("JOB_COMPLETION_INDEX") or 0)
        shards = json.loads((folder / "shards.json").read_text(encoding="utf-8"))
        named = (environment.get(f"EDPM_{name}", "") for name in ("POD", "JOB", "JOB_UID"))
        return cls(json.loads((folder / "run.json").read_text(encoding="utf-8")), index, tuple(shards[index]), *named)


def main() -> int:
    """Play, store, tell."""
    places = Places()
    part = Part.read(places, os.environ)
    places.prepare()
    os.environ.update({**places.environment(), **{k: v for k, v in os.environ.items() if k.startswith("ANSIBLE_")}})
    result = play(part, places)
    if result is None:
        return STOPPED
    try:
        store(part, result)
    except KubernetesError as error:
        _last_words(f"The results could not be stored: {error}")
        return 1
    bad = [node.node for node in result.nodes if not node.state.good]
    _last_words(result.reason or (f"{len(bad)} of {len(result.nodes)} nodes failed: {', '.join(bad)}" if bad else ""))
    return exit_code(result)


def play(part: Part, places: Places) -> ShardResult | None:
    """Run the playbook; None when the pod was told to go meanwhile."""
    stopped = False

    def stop(_signal: int, _frame: FrameType | None) -> None:
        nonlocal stopped
        stopped = True

    signal.signal(signal.SIGTERM, stop)
    listener, began = Listener(), time.monotonic()
    played = import_module("ansible_runner").run(
        private_data_dir=str(places.work / "private"),
        playbook=_playbook(part, places),
        inventory=inventories(part, places),
        extravars=dict(part.told["extra_vars"]) or None,
        limit=_limit(part, places),
        tags=",".join(part.told["tags"]) or None,
        skip_tags=",".join(part.told["skip_tags"]) or None,
        forks=part.told["forks"],
        cmdline=shlex.join([*_variables(places), *part.told["arguments"]]) or None,
        event_handler=listener.hear,
        cancel_callback=lambda: stopped,
    )
    if stopped:
        return None
    seconds, code = time.monotonic() - began, int(played.rc)
    return ShardResult(part.index, code, seconds, listener.results(part.nodes, part.index, code), listener.reason(code))


def exit_code(result: ShardResult) -> int:
    """How the pod ends."""
    if result.reason and result.code:
        return manifests.NOT_PLAYED
    bad = {State.FAILED, State.UNREACHABLE}
    return manifests.NODES_FAILED if result.code or any(node.state in bad for node in result.nodes) else manifests.DONE


def store(part: Part, result: ShardResult) -> None:
    """Create the shard's ConfigMap; each pod has one of its own, so that the account need not change any."""
    # Where it is there already it is this pod's own, and the answer was lost on the way.
    with Connection(Settings()) as connection, suppress(ConflictError):
        Client(connection).create(CONFIG_MAPS, result_map(part, result))


def result_map(part: Part, result: ShardResult) -> dict[str, Any]:
    """That ConfigMap; it goes with the Job."""
    metadata: dict[str, Any] = {
        "name": f"{part.pod}-result",
        "namespace": part.told["namespace"],
        "labels": {**part.told["labels"], manifests.RESULT_LABEL: str(part.index)},
    }
    if part.job and part.job_uid:
        owner = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": part.job, "uid": part.job_uid}}
        metadata["ownerReferences"] = [manifests.owned_by(owner)]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": encode(result)}


def inventories(part: Part, places: Places) -> list[str]:
    """The inventory files: those of the ConfigMaps, and one that reads the data plane as the pod's account."""
    mounted = places.read(manifests.INVENTORY)
    others = sorted(str(file) for file in mounted.glob("*.yml")) if mounted.is_dir() else []
    if others and not part.told.get("reads_data_plane"):
        return others
    file = places.work / "openstack.dataplane.yml"
    keys = "own" if (places.read(manifests.SSH) / manifests.SSH_KEY).exists() else "secrets"
    told = {"plugin": "edpm.services.dataplane", "namespaces": [part.told["namespace"]], "ssh_keys": keys}
    file.write_text(json.dumps(told), encoding="utf-8")
    return [str(file), *others]


def _playbook(part: Part, places: Places) -> str:
    own = places.read(manifests.SETTINGS) / "play.yml"
    return str(own) if own.exists() else str(part.told["playbook"])


def _limit(part: Part, places: Places) -> str | None:
    """The shard's nodes and localhost, on which playbooks do what is no node's; or what was asked for."""
    if not part.nodes:
        return part.told["limit"] or None
    file = places.work / "nodes"
    file.write_text("\n".join(("localhost", *part.nodes)), encoding="utf-8")
    return f"@{file}"


def _variables(places: Places) -> list[str]:
    """Files of variables out of Secrets, in the order in which the Secrets were named."""
    folder = places.read(manifests.VARIABLES)
    numbered = sorted(folder.glob("*"), key=lambda path: int(path.name)) if folder.is_dir() else []
    files = [file for one in numbered for file in sorted(one.glob("*.y*ml"))]
    return [word for file in files for word in ("-e", f"@{file}")]


def _last_words(sentence: str) -> None:
    """For whoever looks at the pod: a line in its log and in its status."""
    if sentence:
        print(sentence, flush=True)
        with suppress(OSError):
            Path(TERMINATION_LOG).write_bytes(sentence.encode()[:2000])


if __name__ == "__main__":
    sys.exit(main())
