# SPDX-License-Identifier: GPL-3.0-or-later
"""How guests move between computes: over SSH with a key of their own, or over TLS.

Over SSH the user nova of every compute lets the user nova of the others in. Each node knows the host keys of all
others, so nobody has to trust a key at first sight. TLS is for guests that run: what is resized or moved while it is
off Nova itself copies over SSH, so there, too, a key is used where there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from ipaddress import ip_address

from ...module_utils._node import bundle as node
from .._dataplane.instances import state_path
from .._dataplane.planned import ServicePlan

#: The variable of a node that says how guests move to and from it.
VARIABLE = "edpm_nova_compute_migration"
SSH, TLS, NONE = "ssh", "tls", "none"
PRIVATE_KEY, PUBLIC_KEY = "ssh-privatekey", "ssh-publickey"
_KNOWN_HOSTS = "known_hosts"


def known_hosts(entries: Iterable[tuple[Sequence[str], Mapping[str, str]]]) -> bytes:
    """The text of a known_hosts: for every host its names and addresses, and its public keys by type.

    Same hosts, same bytes, in whatever order they come.
    """
    lines = {
        f"{','.join(sorted(set(map(_plain, names))))} {kind} {key}\n"
        for names, keys in entries
        if names
        for kind, key in keys.items()
    }
    return "".join(sorted(lines)).encode()


def known_hosts_path(service: ServicePlan) -> str | None:
    """Where on the node a service wants its known_hosts; None for one that wants none."""
    return f"{ssh_folder(service.instance)}/{_KNOWN_HOSTS}" if uses_ssh(service) else None


def with_known_hosts(parcel: node.Bundle, text: bytes) -> node.Bundle:
    """The bundle with this known_hosts among its live files. It is public, and libvirt reads it too."""
    mine = node.LiveFile(f"{ssh_folder(parcel.instance)}/{_KNOWN_HOSTS}", text, 0o644, "nova", "nova")
    others = tuple(one for one in parcel.live if one.path != mine.path)
    return replace(parcel, live=tuple(sorted((*others, mine), key=lambda one: one.path)))


def migrates_over(service: ServicePlan) -> str:
    """`ssh`, `tls` or `none`: what the node's variable says, else SSH where there is a key for it."""
    if service.service != "nova_compute":
        return NONE
    chosen = service.options.get(VARIABLE)
    if chosen in (SSH, TLS, NONE):
        return str(chosen)
    return SSH if any(one.file_name == PRIVATE_KEY for one in service.sources) else NONE


def uses_ssh(service: ServicePlan) -> bool:
    """Whether anything of its guests moves over SSH: all of it, or beside TLS what Nova copies."""
    over = migrates_over(service)
    whole = {PRIVATE_KEY, PUBLIC_KEY} <= {one.file_name for one in service.sources}
    return over == SSH or (over == TLS and whole)


def ssh_folder(instance: str) -> str:
    """The folder on the node with the key, the settings and the known hosts of an instance."""
    return f"{state_path('/var/lib/nova', instance)}/.ssh"


def _plain(name: str) -> str:
    """An address in its one spelling; names are not case-sensitive, and known_hosts has them in small letters."""
    try:
        return str(ip_address(name.strip("[]")))
    except ValueError:
        return name.lower()
