# SPDX-License-Identifier: GPL-3.0-or-later
"""A pod's writable folder, and a name for its UID: the root is read-only, and a cluster may choose any UID."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from .. import manifests


class Places:
    """Where things lie; a test has them elsewhere."""

    def __init__(self, work: str = manifests.WORK, read: str = "/") -> None:
        self.work = Path(work)
        self._root = Path(read)

    def read(self, path: str) -> Path:
        """A folder that the pod has mounted."""
        return self._root / path.lstrip("/")

    @property
    def home(self) -> Path:
        """The user's home."""
        return self.work / "home"

    def prepare(self) -> None:
        """Make the folders, and an entry for a UID that no passwd file knows: ssh refuses to start without one."""
        for folder in (self.home, self.home / ".ssh", self.work / "tmp", self.work / "private"):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        users = self.work / "extrausers"
        users.mkdir(exist_ok=True)
        try:
            pwd.getpwuid(os.getuid())
        except KeyError:
            entry = f"runner:x:{os.getuid()}:{os.getgid()}:runner:{self.home}:/usr/sbin/nologin\n"
            (users / "passwd").write_text(entry, encoding="utf-8")

    def environment(self) -> dict[str, str]:
        """What Ansible and ssh must know of these folders."""
        told = {
            "HOME": str(self.home),
            "TMPDIR": str(self.work / "tmp"),
            "ANSIBLE_HOME": str(self.home / ".ansible"),
            "ANSIBLE_LOCAL_TEMP": str(self.work / "tmp"),
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(self.work / "cp"),
            "ANSIBLE_SSH_COMMON_ARGS": self._host_keys(),
            "ANSIBLE_PIPELINING": "true",
            "ANSIBLE_FORCE_COLOR": "false",
            "ANSIBLE_NOCOLOR": "true",
        }
        key = self.read(manifests.SSH) / manifests.SSH_KEY
        if key.exists():
            told["ANSIBLE_PRIVATE_KEY_FILE"] = str(key)
        authority = self.read(manifests.CA) / manifests.CA_KEY
        if authority.exists():
            told |= dict.fromkeys(("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "OS_CACERT"), str(authority))
        return told

    def _host_keys(self) -> str:
        """Known hosts are insisted on where they are given; else the first key that a node shows is taken."""
        known = self.read(manifests.KNOWN_HOSTS) / manifests.KNOWN_HOSTS_KEY
        if known.exists():
            return f"-o StrictHostKeyChecking=yes -o UserKnownHostsFile={known}"
        return f"-o StrictHostKeyChecking=accept-new -o UserKnownHostsFile={self.home}/.ssh/known_hosts"
