# SPDX-License-Identifier: GPL-3.0-or-later
"""A definition made to fit one service of a plan: what depends on the node's variables and on the files it is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from .._dataplane.planned import ServicePlan
from . import choices
from .files import File, Live, placed
from .running import Folder, Instance, Mount, Running

_READABLE, _PRIVATE = 0o644, 0o600


@dataclass(frozen=True, slots=True)
class Fitted:
    """A service of a plan, how it runs, its files outside the generations, and what a person must be told."""

    service: ServicePlan
    running: Running
    live: tuple[Live, ...] = ()
    notes: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()

    @property
    def who(self) -> Instance:
        """Its names on the node."""
        return Instance(self.service.service, self.service.instance)


Fit = Callable[[Fitted], Fitted]


def fit(service: ServicePlan, running: Running, own: Fit | None = None) -> Fitted:
    """The definition for this service; `own` is what this kind of service does before that which all have."""
    fitted = Fitted(service, running, errors=tuple(choices.faults(service)))
    return _with_live_files(_with_extra_mounts(own(fitted) if own else fitted))


def choice(fitted: Fitted, variable: str, allowed: Iterable[str]) -> tuple[str, Fitted]:
    """What a variable of the node says; the first of the allowed words where it says nothing, or nothing sensible."""
    words = tuple(allowed)
    said = fitted.service.options.get(variable)
    if said is None or said in words:
        return (str(said) if said is not None else words[0]), fitted
    fault = f"{fitted.service.name}: {variable} is {said!r}; write {', '.join(words[:-1])} or {words[-1]}"
    return words[0], replace(fitted, errors=(*fitted.errors, fault))


def switch(fitted: Fitted, variable: str) -> tuple[bool, Fitted]:
    """Whether a variable of the node switches something on."""
    said = fitted.service.options.get(variable, False)
    if isinstance(said, bool):
        return said, fitted
    fault = f"{fitted.service.name}: {variable} is {said!r}; write true or false"
    return False, replace(fitted, errors=(*fitted.errors, fault))


def _with_extra_mounts(fitted: Fitted) -> Fitted:
    """A deployer's mounts; one with the target of a mount of the definition replaces it."""
    wanted, service = fitted.service.extra_mounts, fitted.service
    if not wanted:
        return fitted
    files = tuple(file for one in wanted for file in one.files)
    fitted = replace(fitted, service=replace(service, sources=(*service.sources, *files)))
    theirs = tuple(Mount(one.source, one.target, one.options) for one in wanted if one.source)
    if fitted.running.on_node:
        notes = (
            f"{service.name} runs on the node itself and sees {one.source} where it is; its extra mount at "
            f"{one.target} is left out"
            for one in theirs
        )
        return replace(fitted, notes=(*fitted.notes, *notes))
    targets = {one.target for one in theirs}
    kept = tuple(one for one in fitted.running.mounts if (one.target or one.source) not in targets)
    return replace(fitted, running=replace(fitted.running, mounts=(*kept, *theirs)))


def _with_live_files(fitted: Fitted) -> Fitted:
    """Sources that may change without a restart, with the folders that they lie in."""
    files, errors = placed(fitted.service, live=True)
    fitted = replace(fitted, errors=(*fitted.errors, *errors))
    if not files:
        return fitted
    rest = tuple(one for one in fitted.service.sources if not one.live)
    fitted = replace(fitted, service=replace(fitted.service, sources=rest))
    return with_live(fitted, files)


def with_live(fitted: Fitted, files: Iterable[File], *, mode: int | None = None, group: str = "") -> Fitted:
    """Files that lie outside the generation, seen by the service at their places.

    A rename changes a file's inode, so folders are mounted and not files. They lie below the service's own folder,
    which only root can enter, unless a mount of the service has them already. Without a `mode` they are for the user
    that runs the service.
    """
    listed = tuple(files)
    mounts = () if fitted.running.on_node else tuple(_mounts(fitted, listed))
    fitted = replace(fitted, running=replace(fitted.running, mounts=(*fitted.running.mounts, *mounts)))
    folders = tuple(_folders(fitted, listed))
    fitted = replace(fitted, running=replace(fitted.running, folders=(*fitted.running.folders, *folders)))
    return replace(fitted, live=(*fitted.live, *(_live(fitted, one, mode, group) for one in listed)))


def _live(fitted: Fitted, file: File, mode: int | None, group: str) -> Live:
    user, known = fitted.running.user, {one.name for one in fitted.running.accounts}
    owner = user if user in known else ""
    if mode is None:
        # A user that only the image knows gets in by the mount, and nobody else of the node does.
        mode = _PRIVATE if owner or user == "root" else _READABLE
    return Live(node_path(fitted, file.path), replace(file, mode=mode), owner, group or owner)


def node_path(fitted: Fitted, path: str) -> str:
    """Where on the node a path of the container lies."""
    if fitted.running.on_node:
        return path
    mount = _mount_of(fitted, path)
    if mount is None:
        return f"{fitted.who.live}{path}"
    target = fitted.who.filled(mount.target or mount.source)
    return fitted.who.filled(mount.source) + path.removeprefix(target)


def _mount_of(fitted: Fitted, path: str) -> Mount | None:
    """The innermost mount that holds a path."""
    holding = [
        one
        for one in fitted.running.mounts
        if PurePosixPath(path).is_relative_to(fitted.who.filled(one.target or one.source))
    ]
    return max(holding, key=lambda one: len(one.target or one.source), default=None)


def _mounts(fitted: Fitted, files: Iterable[File]) -> Iterator[Mount]:
    """A mount for each folder that no other mount holds, outer ones first."""
    for directory in sorted({file.directory for file in files}):
        if _mount_of(fitted, directory) is None:
            mount = Mount(f"{fitted.who.live}{directory}", directory, ("ro",), own=True)
            fitted = replace(fitted, running=replace(fitted.running, mounts=(*fitted.running.mounts, mount)))
            yield mount


def _folders(fitted: Fitted, files: Iterable[File]) -> Iterator[Folder]:
    """Those of ours; whoever can read a file there must be able to get to it."""
    paths = {node_path(fitted, file.directory) for file in files}
    ours = sorted(path for path in paths if path.startswith(f"{fitted.who.live}/"))
    if ours:
        yield Folder(fitted.who.home, mode=0o700)
    for path in ours:
        yield Folder(path, mode=0o755)
