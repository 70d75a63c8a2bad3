# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node shows to the registry that it pulls images from: one Secret, which an annotation names.

Nothing of its contents is ever quoted in a sentence.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from .asking import said
from .model import Node, Reference, Role, Store
from .options import PULL
from .planned import Registry
from .values import Value

ANNOTATION = "edpm.openstack.org/registry-secret"
AUTH_KEYS = (".dockerconfigjson", "auth.json")
CERTIFICATE_KEYS = ("ca.crt", "client.cert", "client.key")
MIRRORS_KEY = "registries.conf"
_PAIR = frozenset(CERTIFICATE_KEYS[1:])


@dataclass(frozen=True, slots=True)
class Access:
    """A registry, and what stands against it or is worth knowing."""

    registry: Registry | None = None
    notes: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()


NO_REGISTRY = Access()


def registry_secret(node: Node, role: Role | None) -> tuple[Reference | None, str]:
    """The Secret that the Node's annotation names, else the Role's, and where that is said."""
    found = said(node, role, (ANNOTATION,))
    return (Reference("Secret", node.namespace, found.value) if found.value else None), found.where


class Registries:
    """What the Secrets say, each read once for all nodes."""

    def __init__(self, stores: Mapping[Reference, Store]):
        self._stores = stores
        self._known: dict[tuple[Reference, str], Access] = {}

    def of(self, node: Node, role: Role | None) -> Access:
        """What a node may use."""
        ref, where = registry_secret(node, role)
        if ref is None:
            return NO_REGISTRY
        if (ref, where) not in self._known:
            self._known[ref, where] = self._read(ref, where)
        return self._known[ref, where]

    def _read(self, ref: Reference, where: str) -> Access:
        store = self._stores.get(ref)
        if store is None:
            return Access(blocked=(f"{ref}, which {where} names, does not exist; create it or remove the annotation.",))
        faults = (*(fault.sentence for fault in store.faults), *_faults(store))
        known = {key: content.decode(errors="replace") for key, content in store.data.items()}
        auth = next((known[key] for key in AUTH_KEYS if key in known), "")
        certificates = {key: known[key] for key in CERTIFICATE_KEYS if key in known}
        registry = Registry(auth, certificates, known.get(MIRRORS_KEY, ""))
        parts = {"credentials": auth, "certificates": certificates, "mirrors": registry.registries}
        has = ", ".join(part for part, content in parts.items() if content)
        note = f"Images are pulled with the {has} of {ref}."
        return Access(registry, (note,) if has else (), faults)


def pulling(registry: Registry | None, options: Mapping[str, Value]) -> Registry | None:
    """The registry with the node's own word on when to pull; None where neither is said."""
    pull = options.get(PULL)
    if not isinstance(pull, str):
        return registry
    return replace(registry or Registry(), pull=pull)


def _faults(store: Store) -> Iterator[str]:
    known = (*AUTH_KEYS, *CERTIFICATE_KEYS, MIRRORS_KEY)
    if not any(key in store.data for key in known):
        yield f"{store.ref} has none of the keys {', '.join(known)}; add those that the registry needs."
    if all(key in store.data for key in AUTH_KEYS):
        yield f"{store.ref} has the keys {' and '.join(AUTH_KEYS)}; keep one of them."
    for key in AUTH_KEYS:
        if key in store.data and not _is_docker_config(store.data[key]):
            yield f'{store.ref}, key {key}: is no Docker configuration, JSON with a mapping "auths"; write it anew.'
    if len(_PAIR & store.data.keys()) == 1:
        yield f"{store.ref} has one of the keys {' and '.join(sorted(_PAIR))}, which belong together; add the other."
    if MIRRORS_KEY in store.data and not _is_toml(store.data[MIRRORS_KEY]):
        yield f"{store.ref}, key {MIRRORS_KEY}: is not TOML, as a registries.conf is; correct it."


def _is_docker_config(content: bytes) -> bool:
    try:
        read = json.loads(content)
    except (ValueError, RecursionError):
        return False
    return isinstance(read, dict) and isinstance(read.get("auths", {}), dict)


def _is_toml(content: bytes) -> bool:
    try:
        tomllib.loads(content.decode())
    except (ValueError, RecursionError):
        return False
    return True
