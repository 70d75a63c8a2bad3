# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a service: those of conf.d in the order in which they are read, and those with a fixed place."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable

from .._config.layers import ConfD, layer
from .._config.sources import Layer, Source
from .._dataplane.planned import ConfigSource, ServicePlan
from .running import OwnFile

MODE = 0o600


@dataclasses.dataclass(frozen=True, slots=True)
class File:
    """One file as the service sees it; `object` and `field` tell where its bytes come from."""

    directory: str
    name: str
    content: bytes = dataclasses.field(repr=False)
    object: str
    field: str
    layer: Layer
    secret: bool = False
    mode: int = MODE

    @property
    def path(self) -> str:
        """The whole path."""
        return f"{self.directory}/{self.name}"

    @property
    def origin(self) -> str:
        """The source in words, as messages name it."""
        return self.source.origin

    @property
    def source(self) -> Source:
        """The same for the room that knows oslo.config and what may be shown."""
        return Source(self.name, self.content, self.object, self.field, self.layer, self.secret)


@dataclasses.dataclass(frozen=True, slots=True)
class Live:
    """A file outside the generations, at `path` of the node; `file` says where the service sees it, and its bytes."""

    path: str
    file: File
    owner: str = ""
    group: str = ""


def conf_d(service: ServicePlan) -> ConfD:
    """The folder that oslo.config reads. With errors it may be looked at, and must not be deployed."""
    return layer(_source(one) for one in service.sources if one.directory == service.conf_d)


def placed(
    service: ServicePlan, own: Iterable[OwnFile] = (), *, live: bool = False
) -> tuple[tuple[File, ...], tuple[str, ...]]:
    """The files outside conf.d in the order of their paths, and a sentence for each that has two sources.

    Those of the generation, or the `live` ones. The definition's `own` files give way to those of the plan.
    """
    by_path: defaultdict[str, dict[str, File]] = defaultdict(dict)
    for one in service.sources:
        if one.directory != service.conf_d and one.live == live:
            file = file_of(_source(one), one.directory)
            by_path[file.path].setdefault(file.origin, file)
    for default in (_own(service.service, one) for one in own):
        if default.path not in by_path:
            by_path[default.path][default.origin] = default
    errors = [_collision(path, same) for path, same in sorted(by_path.items()) if len(same) > 1]
    return tuple(same[min(same)] for _path, same in sorted(by_path.items())), tuple(errors)


def file_of(source: Source, directory: str) -> File:
    """The source as a file in this folder."""
    return File(directory, source.name, source.content, source.object, source.field, source.layer, source.secret)


def _own(service: str, one: OwnFile) -> File:
    who, content = f"definition of {service}", one.text.encode()
    return File(one.directory, one.name, content, who, f"file {one.name}", Layer.GENERATED, mode=one.mode)


def _source(one: ConfigSource) -> Source:
    layer_of = Layer(one.layer.value)
    return Source(one.file_name, one.content, str(one.origin.ref), one.origin.field, layer_of, one.secret)


def _collision(path: str, origins: Iterable[str]) -> str:
    told = " and from ".join(sorted(origins))
    return f"{path} comes from {told}; keep it in one of them, each file has one source"
