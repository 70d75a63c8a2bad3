# SPDX-License-Identifier: GPL-3.0-or-later
"""Credentials for OpenStack: a cloud of the user's clouds.yaml, or the pair that a control plane keeps in its cluster.

The pair is read when it is asked for and is no part of the run's snapshot: only few runs talk to OpenStack.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from .._dataplane.model import Reference, Snapshot, Store
from .._dataplane.parse import DEFAULT_NAMESPACE
from .._dataplane.stores import stores_of
from .._kube.client import Client
from .._kube.connection import Connection
from .._kube.live import STORES
from .._kube.manifests import stream
from .._kube.snapshot import Source
from .errors import CredentialsError

CONFIG = "openstack-config"
SECRET = "openstack-config-secret"  # noqa: S105 - a name
USUAL = "default"

_REMEDY = (
    f"name a cloud of your clouds.yaml with cloud, or use an inventory of edpm.services.dataplane that reads the "
    f"ConfigMap {CONFIG} (clouds.yaml) and the Secret {SECRET} (secure.yaml)"
)


def settings(cloud: str, namespace: str, source: Source | None, snapshot: Snapshot | None) -> dict[str, Any]:
    """What `openstack.connect` takes: a cloud of the user's files where one is named, else the data plane's pair."""
    if cloud:
        return {"cloud": cloud}
    if source is None or snapshot is None:
        raise CredentialsError(f"There are no credentials for OpenStack in this run; {_REMEDY}.")
    where = namespace or _namespace(snapshot)
    config, secret = Reference("ConfigMap", where, CONFIG), Reference("Secret", where, SECRET)
    stores = _stores(source, frozenset({config, secret}))
    for ref in (config, secret):
        if ref not in stores:
            raise CredentialsError(f"{ref} does not exist, so there are no credentials for OpenStack; {_REMEDY}.")
    merged = _merged(_clouds(config, stores[config], "clouds.yaml"), _clouds(secret, stores[secret], "secure.yaml"))
    chosen = merged.get(USUAL) if USUAL in merged else next(iter(merged.values())) if len(merged) == 1 else None
    if not isinstance(chosen, dict):
        raise CredentialsError(
            f"{config} has no cloud {USUAL}, and not exactly one other; call the cloud {USUAL} in its clouds.yaml."
        )
    return {"load_yaml_config": False, "load_envvars": False, **chosen}


def _namespace(snapshot: Snapshot) -> str:
    """Where the computes' cells are, or the nodes if there is no cell."""
    of_cells = {cell.meta.ref.namespace for cell in snapshot.resources.cells}
    found = sorted(of_cells or {node.namespace for node in snapshot.resources.nodes})
    if len(found) != 1:
        listed = ", ".join(found) or "none"
        raise CredentialsError(
            f"The data plane is not in one namespace ({listed}), so where {CONFIG} is must be told; set namespace."
        )
    return found[0]


def _stores(source: Source, wanted: frozenset[Reference]) -> Mapping[Reference, Store]:
    if source.manifests:
        default = source.namespaces[0] if len(source.namespaces) == 1 else DEFAULT_NAMESPACE
        bodies = [one.body for one in stream(Path(path) for path in source.manifests)]
        return stores_of(bodies, wanted, namespace=default)
    with Connection(source.settings) as connection:
        client = Client(connection)
        found = [client.get(STORES[ref.kind], ref.name, ref.namespace) for ref in sorted(wanted)]
    return stores_of([body for body in found if body is not None], wanted)


def _clouds(ref: Reference, store: Store, key: str) -> dict[str, Any]:
    """The clouds in one of the two texts; none of the text is shown, whatever is wrong with it."""
    try:
        document = yaml.safe_load(store.data[key])
        clouds = document["clouds"]
    except KeyError:
        raise CredentialsError(f"{ref} has no key {key} with clouds in it; {_REMEDY}.") from None
    except (yaml.YAMLError, TypeError, UnicodeDecodeError):
        raise CredentialsError(f"{ref}, key {key}: it is no YAML that describes clouds; correct it.") from None
    if not isinstance(clouds, dict):
        raise CredentialsError(f"{ref}, key {key}: clouds is no mapping; correct it.")
    return clouds


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """As openstacksdk merges secure.yaml into clouds.yaml."""
    merged = dict(base)
    for name, value in over.items():
        both = isinstance(value, dict) and isinstance(merged.get(name), dict)
        merged[name] = _merged(merged[name], value) if both else value
    return merged
