# SPDX-License-Identifier: GPL-3.0-or-later
"""What a deployer wants in the containers of a node beside what they have: `extraMounts` of the node section.

A volume is a path of the node, or files out of a Secret or ConfigMap. `propagation` says which services get it: none,
`All` and `edpm` mean every one that takes extra mounts, `Compute` means nova_compute and libvirt, and a service's name,
ours or the data plane's, means that one.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .definitions import ServiceDefinition
from .fields import Fields
from .model import Reference, Store
from .placement import Placement
from .planned import ConfigSource, ExtraMount, Layer, Origin

EVERYWHERE = frozenset({"all", "edpm"})
COMPUTE = "compute"
_ON_COMPUTES = frozenset({"nova_compute", "libvirt"})
_OPTIONS = {"HostToContainer": "rslave", "Bidirectional": "rshared", "None": ""}
_PATH = re.compile(r"(/(?!\.\.?(/|$))[^\0\n/:]+)+/?")


@dataclass(frozen=True, slots=True)
class Piece:
    """Files of one Secret or ConfigMap in a volume: all keys, or `items`, a path for each key."""

    ref: Reference
    items: tuple[tuple[str, str], ...] = ()
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Wish:
    """One mount as it is written. Of `source` and `pieces` one is set; `part` is the path in the volume that counts."""

    where: str
    target: str
    propagation: tuple[str, ...] = ()
    source: str = ""
    pieces: tuple[Piece, ...] = ()
    part: str = ""
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wishes:
    """All mounts of a node section, and what is wrong with the way they are written."""

    mounts: tuple[Wish, ...] = ()
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Mounted:
    """The mounts of a service, and what stands against them or is worth knowing."""

    mounts: tuple[ExtraMount, ...] = ()
    notes: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()


NO_MOUNTS = Mounted()


class Mounts:
    """What is written is read once for all nodes of a role, and so are the files."""

    def __init__(self, stores: Mapping[Reference, Store]):
        self._stores = stores
        self._wishes: dict[int, Wishes] = {}
        self._mounted: dict[tuple[int, str], Mounted] = {}

    def references(self, placement: Placement) -> Iterator[Reference]:
        """The Secrets and ConfigMaps that the services of a node need for this."""
        if placement.inherited.section.extra_mounts is None:
            return
        for wish in self._read(placement).mounts:
            if any(_is_for(wish, wanted.definition) for wanted in placement.asked.wanted):
                yield from (piece.ref for piece in wish.pieces)

    def of(self, placement: Placement, definition: ServiceDefinition) -> Mounted:
        """The mounts of one service on one node."""
        written = placement.inherited.section.extra_mounts
        if written is None:
            return NO_MOUNTS
        key = (id(written), definition.name)  # what is written lives as long as the resources do
        if key not in self._mounted:
            self._mounted[key] = self._of(self._read(placement), definition)
        return self._mounted[key]

    def _read(self, placement: Placement) -> Wishes:
        written = placement.inherited.section.extra_mounts
        if id(written) not in self._wishes:
            self._wishes[id(written)] = _wishes(placement)
        return self._wishes[id(written)]

    def _of(self, wishes: Wishes, definition: ServiceDefinition) -> Mounted:
        mounts: list[ExtraMount] = []
        notes: list[str] = []
        errors = list(wishes.errors) if definition.takes_extra_mounts else []
        blocked: list[str] = []
        for wish in wishes.mounts:
            if not _is_for(wish, definition):
                continue
            files: list[ConfigSource] = []
            for piece in wish.pieces:
                store = self._stores.get(piece.ref)
                if store is None and not piece.optional:
                    blocked.append(f"{piece.ref}, which {wish.where} names, does not exist; create it.")
                elif store is not None:
                    errors.extend(fault.sentence for fault in store.faults)
                    files.extend(_files(store, piece, wish, errors))
            if wish.part and wish.pieces and not (files or blocked):
                errors.append(f"{wish.where}: there is no {wish.part} in the volume; correct subPath.")
            if wish.source or files:
                mounts.append(ExtraMount(wish.target, wish.source, tuple(files), wish.options, wish.where))
                what = wish.source or " and ".join(str(piece.ref) for piece in wish.pieces)
                notes.append(f"{definition.name} finds {what} at {wish.target}, as {wish.where} says.")
        return Mounted(tuple(mounts), tuple(notes), tuple(dict.fromkeys(errors)), tuple(dict.fromkeys(blocked)))


def _is_for(wish: Wish, definition: ServiceDefinition) -> bool:
    words = {word.lower() for word in wish.propagation}
    if not words or words & EVERYWHERE:
        return definition.takes_extra_mounts
    if COMPUTE in words and definition.name in _ON_COMPUTES:
        return True
    return bool(words & {definition.name, *definition.dataplane_names})


def _wishes(placement: Placement) -> Wishes:
    node, role = placement.node, placement.role
    if role is None or node.section.extra_mounts is not None:
        place, path, value = node.where, "node" if node.path == "spec" else "", node.section.extra_mounts
    else:
        place, path, value = str(role.meta.ref), "nodeTemplate", role.template.extra_mounts
    fields = Fields({"extraMounts": value}, node.meta.ref, path)
    found = [wish for entry in fields.items("extraMounts") for wish in _entry(entry, place)]
    told = (fault.sentence.replace(str(fields.ref), place, 1) for fault in fields.faults)
    return Wishes(tuple(found), tuple(dict.fromkeys(told)))


def _entry(entry: Fields, place: str) -> Iterator[Wish]:
    volumes = {volume.needed_text("name"): volume for volume in entry.items("volumes")}
    propagation = entry.texts("propagation") or ()
    for mount in entry.items("mounts"):
        name = mount.needed_text("name")
        if name not in volumes:
            mount.fault("name", f"there is no volume {name or 'without a name'} beside it; add it to volumes.")
            continue
        target = _path(mount, "mountPath")
        part = (mount.text("subPath") or "").strip("/")
        if part and _PATH.fullmatch(f"/{part}") is None:
            mount.fault("subPath", "leads out of its volume; correct it.")
            continue
        volume = _volume(volumes[name])
        if volume is None or target is None:
            continue
        source, pieces = volume
        yield Wish(
            where=f"{place}, field {mount.path('').rstrip('.')}",
            target=target,
            propagation=propagation,
            source=f"{source}/{part}" if source and part else source,
            pieces=pieces,
            part=part,
            options=_options(mount),
        )


def _volume(volume: Fields) -> tuple[str, tuple[Piece, ...]] | None:
    """A path of the node, or the Secrets and ConfigMaps; None where it cannot exist on a node."""
    kinds = [key for key in volume if key != "name" and volume.has(key)]
    if len(kinds) != 1:
        volume.fault("name", "a volume has one of hostPath, secret, configMap and projected; correct it.")
        return None
    kind = kinds[0]
    inner = volume.inner(kind)
    if kind == "hostPath":
        path = _path(inner, "path")
        return None if path is None else (path, ())
    if kind in ("secret", "configMap"):
        return "", (_piece(inner, kind, volume.ref.namespace, "secretName" if kind == "secret" else "name"),)
    if kind == "projected":
        pieces = tuple(
            _piece(source.inner(one), one, volume.ref.namespace, "name")
            for source in inner.items("sources")
            for one in source
            if one in ("secret", "configMap") or _cannot(source, one)
        )
        return ("", pieces) if pieces else None
    _cannot(volume, kind)
    return None


def _cannot(fields: Fields, kind: str) -> bool:
    fields.fault(
        kind,
        "cannot exist on a node outside the cluster; mount it on the node and name the path in hostPath, or use a "
        "secret or configMap.",
    )
    return False


def _piece(fields: Fields, kind: str, namespace: str, name: str) -> Piece:
    items = tuple((item.needed_text("key"), item.needed_text("path").strip("/")) for item in fields.items("items"))
    for key, path in items:
        if path and _PATH.fullmatch(f"/{path}") is None:
            fields.fault("items", f"the path of {key} leads out of its volume; correct it.")
    ref = Reference("Secret" if kind == "secret" else "ConfigMap", namespace, fields.needed_text(name))
    return Piece(ref, items, bool(fields.boolean("optional")))


def _path(fields: Fields, key: str) -> str | None:
    path = fields.needed_text(key)
    if path and _PATH.fullmatch(path) is None:
        fields.fault(key, "is not a whole path without colons and .., such as /etc/ceph; correct it.")
    return path.rstrip("/") if path and _PATH.fullmatch(path) else None


def _options(mount: Fields) -> tuple[str, ...]:
    said = mount.text("mountPropagation") or "None"
    if said not in _OPTIONS:
        mount.fault("mountPropagation", f"is {said} and none of {', '.join(_OPTIONS)}; correct it.")
    return tuple(one for one in ("ro" if mount.boolean("readOnly") else "", _OPTIONS.get(said, "")) if one)


def _files(store: Store, piece: Piece, wish: Wish, errors: list[str]) -> Iterator[ConfigSource]:
    for key, path in piece.items or tuple((key, key) for key in store.data):
        if key not in store.data:
            if not piece.optional:
                errors.append(f"{store.ref} has no key {key}, which {wish.where} names; add it.")
            continue
        place = _below(path, wish)
        if place is not None:
            folder, name = posixpath.split(place)
            origin = Origin(store.ref, f"key {key}")
            yield ConfigSource(origin, folder, name, Layer.DEPLOYER, store.secret, store.data[key])


def _below(path: str, wish: Wish) -> str | None:
    """Where a file of the volume lies in the container; None where it is not in the part that is meant."""
    if not wish.part:
        return f"{wish.target}/{path}"
    if path == wish.part:
        return wish.target
    return f"{wish.target}/{path.removeprefix(f'{wish.part}/')}" if path.startswith(f"{wish.part}/") else None
