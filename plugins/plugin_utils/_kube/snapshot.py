# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The one snapshot of a run, from a cluster or from manifests, and the plan that follows from it.

Ansible forks a worker for every task and host. What the parent process has read every worker inherits, and what
a worker reads is lost with it: so `take` is called in the parent, and `taken` and `plan` wherever they are needed.

What reads and resolves is imported when something is read: a run over plain variables does without all of it.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from .._dataplane.model import Snapshot
from .._dataplane.planned import Plan
from .errors import KubernetesError

if TYPE_CHECKING:
    from .connection import Settings

IMAGES = "RELATED_IMAGE_"
RARELY = (100_000, 50, 1000)
_STANDARD_INPUT = "-"


class NotTakenError(KubernetesError):
    """There is no snapshot in this run, or it could not be read."""


def _settings(options: Mapping[str, Any] = MappingProxyType({})) -> Settings:
    from .connection import Settings  # noqa: PLC0415  (see the top)

    return Settings.from_options(options)


@dataclass(frozen=True)
class Source:
    """Where a snapshot comes from: manifests where some are named, else the cluster of `settings`.

    Without `namespaces`, all of them are read. The only one that is named is that of manifests which name none.
    """

    manifests: tuple[str, ...] = ()
    settings: Settings = field(default_factory=_settings)
    namespaces: tuple[str, ...] = ()

    @classmethod
    def from_options(cls, options: Mapping[str, Any], folder: str | Path = ".") -> Self:
        """Take what belongs here out of a plugin's options. Relative manifests lie in `folder`."""
        return cls(
            manifests=tuple(_located(str(path), Path(folder)) for path in _listed(options.get("manifests"))),
            settings=_settings(options),
            namespaces=tuple(str(name) for name in _listed(options.get("namespaces"))),
        )


def read(source: Source) -> Snapshot:
    """Read the source once, and keep nothing."""
    from .files import read_manifests  # noqa: PLC0415  (see the top)
    from .live import read_cluster  # noqa: PLC0415  (see the top)

    images = {name: image for name, image in os.environ.items() if name.startswith(IMAGES) and image}
    if source.manifests:
        return read_manifests(source.manifests, source.namespaces, images)
    return read_cluster(source.settings, source.namespaces, images)


def take(source: Source) -> Snapshot:
    """Read the source anew and keep it for this process and all that it forks from now on.

    A run has one snapshot: another source than the one before is refused.
    """
    from .._dataplane.plan import resolve  # noqa: PLC0415  (see the top)

    if _run.source not in (None, source):
        raise NotTakenError(
            "This run has a snapshot of another source already, and a run deploys one data plane; "
            "name all manifests or namespaces in one inventory file, or run once for each."
        )
    _run.snapshot = _run.plan = None
    with _loading():
        _run.snapshot = read(source)
        _run.plan = resolve(_run.snapshot)
    _run.source = source
    return _run.snapshot


def taken() -> Snapshot | None:
    """The snapshot that this process or its parent has taken."""
    return _run.snapshot


def source() -> Source | None:
    """Where the snapshot of this run comes from."""
    return _run.source


def plan() -> Plan:
    """The plan of the snapshot that was taken; where there is none, the sentence that says why."""
    if _run.plan is None or _run.failures:
        raise NotTakenError(
            failure()
            or "No data plane was read in this run; name an inventory of edpm.services.dataplane with -i, "
            "for example -i openstack.dataplane.yml."
        )
    return _run.plan


def amend(plan: Plan) -> None:
    """Put in place of the plan one that knows more, such as nodes whose SSH key is of no use."""
    _run.plan = plan


@contextmanager
def attempt(place: str) -> Iterator[None]:
    """Remember an error, so that the run cannot go on: to Ansible an inventory that fails is only a warning.

    A later attempt at the same place starts over.
    """
    _run.failures.pop(place, None)
    try:
        with _making_much():
            yield
    except Exception as error:
        _run.failures[place] = str(error) or type(error).__name__
        raise
    gc.freeze()  # what was made of the snapshot meanwhile, such as Ansible's hosts


def failure() -> str | None:
    """What was wrong with the first attempt that failed."""
    return next(iter(_run.failures.values()), None)


def forget() -> None:
    """Start over, as a new process would."""
    _run.source = _run.snapshot = _run.plan = None
    _run.failures.clear()


@dataclass
class _Run:
    source: Source | None = None
    snapshot: Snapshot | None = None
    plan: Plan | None = None
    failures: dict[str, str] = field(default_factory=dict)


_run = _Run()


@contextmanager
def _loading() -> Iterator[None]:
    """Keep the collector away from what is loaded: while it grows, and, frozen, from then on in every fork."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


@contextmanager
def _making_much() -> Iterator[None]:
    """Let the collector look less often while Ansible's hosts are made, by the thousand and to stay."""
    usual = gc.get_threshold()
    gc.set_threshold(*RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def _listed(value: object) -> Iterable[object]:
    if value is None or value == "":
        return ()
    return value if isinstance(value, list | tuple) else (value,)


def _located(path: str, folder: Path) -> str:
    return path if path == _STANDARD_INPUT else str(folder / Path(os.path.expandvars(path)).expanduser())
