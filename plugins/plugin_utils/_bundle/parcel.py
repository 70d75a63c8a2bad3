# SPDX-License-Identifier: GPL-3.0-or-later
"""A bundle as a node takes it: everything below the generation's folder, and what the node must have for it."""

from __future__ import annotations

from ...module_utils._node import bundle as node
from .._config.sources import Layer
from .._dataplane.planned import ServicePlan
from .bundle import Bundle
from .files import File
from .in_image import program
from .in_image.validate import UNREADABLE
from .kolla import place
from .running import Account, Folder, Health, Instance

#: Whose options must all be known to the image; in others an unknown one is only told.
_HUMAN = (Layer.PROFILE, Layer.OVERRIDE)


def parcel(service: ServicePlan, made: Bundle) -> node.Bundle | None:
    """What a node is asked to have; None for a service without an image, or that nothing here says how to run."""
    running = made.running
    if running is None or made.image is None:
        return None
    who = made.who
    # The images' start programs set this very mode.
    logs = (Folder(who.logs, running.user, 0o755),) if running.log_folder else ()
    return node.Bundle(
        service=made.service,
        instance=made.instance,
        digest=made.digest,
        image=node.Image(made.image),
        units=dict(made.units),
        files=tuple(sorted((_file(file, made.conf_d) for file in made.files), key=lambda file: file.path)),
        container=who.container,
        kolla=made.kolla,
        groups=tuple(node.Group(one.name, one.number) for one in running.accounts),
        users=tuple(_user(one) for one in running.accounts),
        folders=tuple(_folder(one, who) for one in (*running.folders, *logs)),
        tmpfiles=running.tmpfiles,
        validation=_validation(made) if running.validates else None,
        health=_health(running.health),
        guards=_guards(service),
    )


def _file(file: File, conf_d: str | None) -> node.File:
    return node.File(place(file, conf_d), file.content, file.mode, file.secret)


def _user(one: Account) -> node.User:
    return node.User(one.name, one.number, group=one.name, home=one.home)


def _folder(one: Folder, who: Instance) -> node.Folder:
    # The image's users have a group of the same name.
    owner = "" if one.owner == "root" else one.owner
    return node.Folder(who.filled(one.path), one.mode, owner, owner)


def _health(one: Health | None) -> node.Health:
    return node.Health(one.command, settle=one.settle, timeout=one.timeout) if one else node.Health()


def _validation(made: Bundle) -> node.Validation | None:
    """The service's own files at their places; the image's other files are not ours to judge."""
    read = (*([made.main_file] if made.main_file else []), *made.conf_d_files)
    if not read:
        return None
    ours = [file.path for file in read if file.layer not in _HUMAN]
    theirs = [file.path for file in read if file.layer in _HUMAN]
    return node.Validation(
        command=program("validate", *ours, "--strict", *theirs),
        mounts={place(file, made.conf_d): file.path for file in read},
        fatal=(UNREADABLE,),
    )


def _guards(service: ServicePlan) -> dict[str, str]:
    """What a node remembers of its first deployment and refuses to change."""
    told = {"cell": service.cell, "host": service.identity.host if service.identity else None}
    return {key: value for key, value in told.items() if value and service.identity}
