# SPDX-License-Identifier: GPL-3.0-or-later
"""One service for one node with everything filled in. Every plugin of the collection gets its files from here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType

from .._config.layers import ConfD
from .._config.options import parse, parse_errors
from .._config.provenance import Explanation, explain
from .._dataplane.planned import NodePlan, ServicePlan
from .._dataplane.wording import told
from .built_in import FITS, RUNNING
from .digest import digest
from .files import File, Live, conf_d, file_of, placed
from .fitting import Fitted, fit
from .kolla import kolla_json, users_kolla
from .quadlet import units
from .running import Instance, Running

_NONE: Mapping[str, str] = MappingProxyType({})
_PUBLIC = 0o644


@dataclass(frozen=True)
class Bundle:
    """A service's files and the digest over them.

    `files` are in the order in which the service reads them: its main file, conf.d, then those with a fixed place.
    `kolla` and `units` are what starts it; without a definition of how it runs, or without an image, there is none.
    `live` files lie outside its generation and change without a restart, so the digest does not cover them.
    `errors` are faults of the files themselves; what the plan has against the service is in the plan.
    """

    service: str
    instance: str
    image: str | None
    conf_d: str | None
    files: tuple[File, ...]
    digest: str
    kolla: str = ""
    units: Mapping[str, str] = field(default_factory=lambda: _NONE)
    running: Running | None = None
    live: tuple[Live, ...] = ()
    notes: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """`<service>` or `<service>@<instance>`."""
        return self.who.name

    @property
    def who(self) -> Instance:
        """Its names on the node."""
        return Instance(self.service, self.instance)

    @property
    def conf_d_files(self) -> tuple[File, ...]:
        """The files of conf.d in reading order."""
        return tuple(file for file in self.files if file.directory == self.conf_d)

    @property
    def main_file(self) -> File | None:
        """What oslo.config reads before conf.d: of `/etc/nova/nova.conf.d` that is `/etc/nova/nova.conf`."""
        return next((file for file in self.files if self.conf_d and f"{file.path}.d" == self.conf_d), None)


def bundle(service: ServicePlan, definitions: Mapping[str, Running] = RUNNING) -> Bundle:
    """The service's bundle. Never raises over what a resource says: that is in its errors."""
    fitted = _fitted(service, definitions)
    running, service = fitted.running, fitted.service
    folder = conf_d(service)
    others, collisions = placed(service, running.files if running else ())
    layered = tuple(file_of(source, service.conf_d or "") for source in folder.files)
    main, rest = _main_first(others, service.conf_d)
    files = tuple(_readable(file, running) for file in (*main, *layered, *rest))
    image = service.image.name if service.image and not (running and running.on_node) else None
    kolla, faulty = _kolla(service, running, files)
    texts = units(running, Instance(service.service, service.instance), image) if running and image else _NONE
    notes, faults = _judged(folder, main)
    return Bundle(
        service=service.service,
        instance=service.instance,
        image=image,
        conf_d=service.conf_d,
        files=files,
        digest=digest(service.name, image, files, {"kolla.json": kolla, **texts, **_settings(running)}),
        kolla=kolla,
        units=texts,
        running=running,
        live=fitted.live,
        notes=told((*service.notes, *_sentences((*fitted.notes, *folder.notes, *notes)))),
        errors=told(_sentences((*fitted.errors, *folder.errors, *collisions, *faulty, *faults))),
    )


def explanation(made: Bundle) -> Explanation:
    """For every option of the bundle's configuration its value, and every place that sets it."""
    main = (made.main_file.source,) if made.main_file else ()
    return explain(ConfD(tuple(file.source for file in made.conf_d_files)), base=main)


def against(node: NodePlan, service: ServicePlan, made: Bundle) -> tuple[str, ...]:
    """All that keeps this service off this node, each sentence once: the node's reasons, its own, its files'."""
    reasons = (*node.errors, *node.blocked, *service.errors, *service.blocked, *made.errors)
    return tuple(dict.fromkeys(reasons))


def unusable(node: NodePlan, service: ServicePlan, made: Bundle) -> tuple[str, ...]:
    """What makes the files themselves wrong or incomplete; a node that merely waits for its turn has none of it."""
    return tuple(dict.fromkeys((*node.errors, *service.errors, *service.blocked, *made.errors)))


@dataclass(frozen=True)
class _Unknown:
    """A service that nothing here says how to run."""

    service: ServicePlan
    running: None = None
    live: tuple[Live, ...] = ()
    notes: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


def _fitted(service: ServicePlan, definitions: Mapping[str, Running]) -> Fitted | _Unknown:
    running = definitions.get(service.service)
    if running is None and service.definition is not None:
        # Most services are defined here, and do without all that a partner's definition needs.
        from . import partner  # noqa: PLC0415  (see above)

        running = partner.running(service.definition)
    if running is None:
        return _Unknown(service)
    return fit(service, running, FITS.get(service.service))


def _readable(file: File, running: Running | None) -> File:
    return replace(file, mode=_PUBLIC) if running and file.path in running.public else file


def _kolla(service: ServicePlan, running: Running | None, files: tuple[File, ...]) -> tuple[str, tuple[str, ...]]:
    if running is None or running.on_node:
        return "", ()
    if service.user_kolla is None:
        return kolla_json(running, files, service.conf_d), ()
    return users_kolla(service)


def _settings(running: Running | None) -> dict[str, str]:
    """What else of a definition a generation depends on, by name."""
    if running is None:
        return {}
    settings = {
        "tmpfiles": running.tmpfiles,
        "sysctls": tuple(f"{key} = {value}" for key, value in running.sysctls),
        "modules": running.modules,
        "node_units": running.node_units,
        "masked": running.masked,
    }
    return {name: "\n".join(lines) for name, lines in settings.items() if lines}


def _sentences(words: Iterable[str]) -> Iterable[str]:
    return (f"{one.rstrip('.')}." for one in words)


def _main_first(files: Iterable[File], folder: str | None) -> tuple[tuple[File, ...], tuple[File, ...]]:
    main = tuple(file for file in files if folder and f"{file.path}.d" == folder)
    return main, tuple(file for file in files if file not in main)


def _judged(folder: ConfD, main: tuple[File, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What oslo.config would say to the files. Most of them hold nothing that only a whole explanation can tell."""
    base = tuple(file.source for file in main)
    if any(_is_intricate(source.content) for source in (*base, *folder.files)):
        explained = explain(folder, base=base)
        return explained.notes, explained.errors
    return (), parse_errors((*base, *folder.files))


# Thousands of nodes share one Secret; its text is looked at once.
@lru_cache(maxsize=512)
def _is_intricate(content: bytes) -> bool:
    odd = (setting.group == "default" or "-" in setting.name for setting in parse(content).settings)
    return b"$" in content or any(odd)
