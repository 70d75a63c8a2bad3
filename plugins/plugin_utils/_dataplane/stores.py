# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets' and ConfigMaps' contents as bytes, and the snapshot that holds those which are named, and no others."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

from .built_in import BUILT_IN
from .definitions import ServiceDefinition
from .fields import Fields
from .model import Reference, Resources, Snapshot, Store, UnseenKind
from .parse import DEFAULT_NAMESPACE, parse_resources
from .partners import definition_sources, partners
from .references import references

KINDS = ("Secret", "ConfigMap")
_KEY = re.compile(r"[A-Za-z0-9_.-]+")


def snapshot_of(
    objects: Iterable[Mapping[str, Any]],
    images: Mapping[str, str] | None = None,
    *,
    namespace: str = DEFAULT_NAMESPACE,
    definitions: Mapping[str, ServiceDefinition] = BUILT_IN,
) -> Snapshot:
    """A snapshot out of objects of all kinds in one heap, as manifests are. They are gone through once."""
    stores: list[Mapping[str, Any]] = []

    def kept() -> Iterator[Mapping[str, Any]]:
        for body in objects:
            if store_reference(body, namespace) is not None:
                stores.append(body)
            yield body

    resources = parse_resources(kept(), namespace=namespace)
    held = stores_of(stores, definition_sources(resources, definitions), namespace=namespace)
    theirs = partners(resources, held, definitions)
    named = references(resources, definitions, theirs)
    return snapshot(resources, named, stores, images, namespace=namespace, definitions=theirs)


def snapshot(
    resources: Resources,
    wanted: Set[Reference],
    objects: Iterable[Mapping[str, Any]],
    images: Mapping[str, str] | None = None,
    *,
    namespace: str = DEFAULT_NAMESPACE,
    definitions: tuple[ServiceDefinition, ...] = (),
    unseen: tuple[UnseenKind, ...] = (),
) -> Snapshot:
    """A snapshot out of parsed resources and, of the objects, the Secrets and ConfigMaps that are wanted for them.

    `definitions` are the partners', `unseen` are kinds of theirs that could not be listed.
    """
    stores = stores_of(objects, wanted, namespace=namespace)
    return Snapshot(resources, stores, dict(sorted((images or {}).items())), definitions, unseen)


def stores_of(
    objects: Iterable[Mapping[str, Any]], wanted: Set[Reference], *, namespace: str = DEFAULT_NAMESPACE
) -> dict[Reference, Store]:
    """Of the objects, the Secrets and ConfigMaps that are wanted, in the order of their names."""
    stores: dict[Reference, Store] = {}
    for body in objects:
        ref = store_reference(body, namespace)
        if ref is not None and ref in wanted:
            stores[ref] = _store(Fields(body, ref))
    return dict(sorted(stores.items()))


def store_reference(body: Mapping[str, Any], namespace: str = DEFAULT_NAMESPACE) -> Reference | None:
    """Which Secret or ConfigMap an object is; None for other kinds."""
    if not isinstance(body, Mapping) or body.get("kind") not in KINDS or body.get("apiVersion", "v1") != "v1":
        return None
    meta = body.get("metadata")
    if not isinstance(meta, Mapping):
        return None
    name, home = meta.get("name"), meta.get("namespace") or namespace
    return Reference(body["kind"], home, name) if isinstance(name, str) and isinstance(home, str) else None


def _store(fields: Fields) -> Store:
    """Contents decoded. `stringData` wins over `data`, as in the API server."""
    secret = fields.ref.kind == "Secret"
    data: dict[str, bytes] = {}
    for section, encoded in (("data", secret), ("binaryData", True), ("stringData", False)):
        inner = fields.inner(section)
        for key in inner:
            content = _content(inner, key, encoded=encoded)
            if content is not None and _good_key(inner, key):
                data[key] = content
    return Store(fields.ref, dict(sorted(data.items())), tuple(fields.faults))


def _content(inner: Fields, key: str, *, encoded: bool) -> bytes | None:
    if not inner.has(key):
        return b""
    known = len(inner.faults)
    text = inner.text(key)
    if text is None:
        return b"" if len(inner.faults) == known else None
    if not encoded:
        return text.encode()
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        inner.fault(key, "is not base64; encode the content, or put it under stringData as it is.")
        return None


def _good_key(inner: Fields, key: str) -> bool:
    """What Kubernetes itself would refuse: a key becomes a file's name and must not lead out of its folder."""
    if _KEY.fullmatch(key) and key != "." and not key.startswith(".."):
        return True
    inner.fault(key, "is no name for a file; use letters, digits, dashes, dots and underscores.")
    return False
