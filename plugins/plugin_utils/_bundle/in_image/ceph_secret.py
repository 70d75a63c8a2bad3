# SPDX-License-Identifier: GPL-3.0-or-later
"""Defines libvirt's secret for the Ceph user that nova-compute's configuration names, with the key of its keyring.

The word is the folder of the generation, whose files are there before the service's start program has copied them.
"""

from __future__ import annotations

import base64
import configparser
import importlib
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_XML = "<secret ephemeral='no' private='yes'><uuid>{0}</uuid><usage type='ceph'><name>{1} {0}</name></usage></secret>"
_PATIENCE = 60
_PAUSE = 1


def settings(generation: Path) -> tuple[str, str]:
    """The secret's UUID and the Ceph user, as nova-compute reads them; empty where they are not set."""
    from oslo_config import cfg  # noqa: PLC0415 (only the image has it)

    found = cfg.ConfigOpts()
    found.register_opts([cfg.StrOpt("rbd_secret_uuid", default=""), cfg.StrOpt("rbd_user", default="")], "libvirt")
    main = generation / "files/etc/nova/nova.conf"
    words = [f"--config-file={main}"] if main.exists() else []
    found([*words, f"--config-dir={generation / 'conf.d'}"], project="nova", default_config_files=[])
    return found.libvirt.rbd_secret_uuid or "", found.libvirt.rbd_user or ""


def key_of(user: str, folders: Iterable[Path]) -> str:
    """The key of a Ceph user, from the first folder that has its keyring."""
    for folder in folders:
        for keyring in sorted(folder.glob(f"*client.{user}.keyring")):
            parsed = configparser.ConfigParser(interpolation=None)
            parsed.read_string("\n".join(map(str.strip, keyring.read_text().splitlines())))
            key = parsed.get(f"client.{user}", "key", fallback="")
            if key:
                return key
    return ""


def connected(libvirt: Any) -> Any:
    """libvirt, once it answers."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            return libvirt.open("qemu:///system")
        except libvirt.libvirtError:
            if time.monotonic() > end:
                raise
            time.sleep(_PAUSE)


def define(libvirt: Any, uuid: str, user: str, key: str) -> None:
    """Have the secret with this key; one that is there keeps its description."""
    connection = connected(libvirt)
    known = {one.UUIDString(): one for one in connection.listAllSecrets()}
    secret = known.get(uuid) or connection.secretDefineXML(_XML.format(uuid, f"client.{user}"))
    secret.setValue(base64.b64decode(key))


def main(generation: Path) -> int:
    """The exit code."""
    uuid, user = settings(generation)
    if not uuid or not user:
        return 0
    key = key_of(user, (generation / "files/etc/ceph", Path("/etc/ceph")))
    if not key:
        print(f"no keyring in /etc/ceph has the key of client.{user}, which [libvirt] rbd_user names")
        return 1
    libvirt: Any = importlib.import_module("libvirt")
    try:
        define(libvirt, uuid.lower(), user, key)
    except (libvirt.libvirtError, ValueError) as error:
        print(f"libvirt does not take the secret {uuid} of client.{user}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
