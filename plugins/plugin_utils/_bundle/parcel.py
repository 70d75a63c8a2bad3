# SPDX-License-Identifier: GPL-3.0-or-later
"""A bundle as a node takes it: everything below the generation's folder, and what the node must have for it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from ...module_utils._node import bundle as node
from .._config.masking import masked_file
from .._config.sources import Layer, Source
from .._dataplane.planned import Registry, ServicePlan
from .bundle import Bundle
from .choices import keep, policy, pull
from .files import File
from .in_image import program
from .in_image.validate import UNREADABLE
from .kolla import place
from .running import Account, Folder, Instance, Running

#: What of a file's mode counts on the node, where only root comes to it.
_OF_ROOT = 0o700
#: Whose options must all be known to the image; in others an unknown one is only told.
_HUMAN = (Layer.PROFILE, Layer.OVERRIDE)


def parcel(service: ServicePlan, made: Bundle) -> node.Bundle | None:
    """What a node is asked to have; None for a service without an image, or that nothing here says how to run."""
    running = made.running
    if running is None or (made.image is None and not running.on_node):
        return None
    who = made.who
    return node.Bundle(
        service=made.service,
        instance=made.instance,
        digest=made.digest,
        image=_image(service, made),
        units=dict(made.units),
        files=() if running.on_node else tuple(sorted(_files(made), key=_path)),
        container="" if running.on_node else who.container,
        kolla=made.kolla,
        groups=_groups(running),
        users=tuple(_user(one) for one in running.accounts),
        folders=tuple(_folder(one, who) for one in (*running.folders, *_logs(running, who))),
        tmpfiles=tuple(who.filled(line) for line in running.tmpfiles),
        sysctls=dict(running.sysctls),
        modules=running.modules,
        validation=_validation(service, made, running),
        health=_health(running),
        guards=_guards(service),
        keep=keep(service),
        node_files=tuple(sorted(_on_node(made), key=_path)),
        live=tuple(sorted(_live(made), key=_path)),
        seeds=tuple(node.Seed(who.filled(one.path), one.mode, one.owner, one.owner) for one in running.seeds),
        reload=running.reload,
        ports=running.ports,
        packages=_packages(running),
        node_units=running.node_units,
        masked=running.masked,
        busy=running.busy,
        data=tuple(who.filled(one) for one in running.data),
    )


def _path(one: node.File | node.NodeFile | node.LiveFile) -> str:
    return one.path


def _image(service: ServicePlan, made: Bundle) -> node.Image:
    if made.image is None:
        return node.Image("")
    shown = service.registry or Registry()
    return node.Image(made.image, pull(service), shown.auth, dict(shown.certificates), shown.registries)


def _files(made: Bundle) -> Iterator[node.File]:
    # What the mode says of others is for the container's copy.
    return (
        node.File(place(file, made.conf_d), file.content, file.mode & _OF_ROOT, _is_secret(file)) for file in made.files
    )


def _is_secret(file: File) -> bool:
    """A human's snippet is in no Secret and may hold a password all the same."""
    return file.secret or _tells(file.source)


@lru_cache(maxsize=512)
def _tells(source: Source) -> bool:
    return masked_file(source) != source.content


def _live(made: Bundle) -> Iterator[node.LiveFile]:
    for one in made.live:
        yield node.LiveFile(one.path, one.file.content, one.file.mode, one.owner, one.group, one.file.secret)


def _on_node(made: Bundle) -> Iterator[node.NodeFile]:
    """The files of a service that is no container lie where it reads them."""
    if made.running and made.running.on_node:
        yield from (node.NodeFile(one.path, one.content, one.mode, one.secret) for one in made.files)


def _groups(running: Running) -> tuple[node.Group, ...]:
    own = (node.Group(one.name, one.number) for one in running.accounts)
    return (*own, *(node.Group(one.name, one.number) for one in running.groups))


def _logs(running: Running, who: Instance) -> tuple[Folder, ...]:
    # The images' start programs set this very mode.
    return (Folder(who.logs, running.user, 0o755),) if running.log_folder else ()


def _packages(running: Running) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for manager, names in running.packages:
        found[manager] = tuple(sorted({*found.get(manager, ()), *names}))
    return found


def _user(one: Account) -> node.User:
    return node.User(one.name, one.number, group=one.name, groups=one.groups, home=one.home, shell=one.shell)


def _folder(one: Folder, who: Instance) -> node.Folder:
    # The image's users have a group of the same name.
    owner = "" if one.owner == "root" else one.owner
    return node.Folder(who.filled(one.path), one.mode, owner, owner, one.setype)


def _health(running: Running) -> node.Health:
    one = running.health
    return node.Health(one.command, one.connected, running.on_node, one.settle, one.timeout) if one else node.Health()


def _validation(service: ServicePlan, made: Bundle, running: Running) -> node.Validation | None:
    """The service's own files at their places; the image's other files are not ours to judge."""
    if running.validation:
        mounts = {place(file, made.conf_d): file.path for file in made.files}
        return node.Validation(running.validation, mounts, policy(service))
    read = (*([made.main_file] if made.main_file else []), *made.conf_d_files)
    if not running.validates or not read:
        return None
    ours = [file.path for file in read if file.layer not in _HUMAN]
    theirs = [file.path for file in read if file.layer in _HUMAN]
    return node.Validation(
        command=program("validate", *ours, "--strict", *theirs),
        mounts={place(file, made.conf_d): file.path for file in read},
        policy=policy(service),
        fatal=(UNREADABLE,),
    )


def _guards(service: ServicePlan) -> dict[str, str]:
    """What a node remembers of its first deployment and refuses to change."""
    told = {"cell": service.cell, "host": service.identity.host if service.identity else None}
    return {key: value for key, value in told.items() if value and service.identity}
