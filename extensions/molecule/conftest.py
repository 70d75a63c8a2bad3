# SPDX-License-Identifier: GPL-3.0-or-later
"""A service on a node, as every scenario asks after it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from testinfra.host import Host

PATIENCE = 90.0


@dataclass(frozen=True)
class Service:
    """One service on one node; questions about its container wait until it is up, since it may just be starting."""

    host: Host
    name: str

    @property
    def home(self) -> str:
        return f"/var/lib/openstack/{self.name}"

    @property
    def container(self) -> str:
        return f"edpm_{self.name.replace('@', '-')}"

    @property
    def unit(self) -> str:
        return f"edpm_{self.name}.service"

    def is_up(self) -> bool:
        """Whether its unit is active and its container answers, within a boot's time."""
        asked = f"systemctl is-active {self.unit} && podman exec {self.container} true"
        return _becomes(lambda: self.host.run(asked).rc == 0)

    def text(self, path: str) -> str:
        """A file of the live generation."""
        return str(self.host.file(f"{self.home}/current/{path}").content_string)

    def modes(self) -> set[tuple[str, str]]:
        """Owner and mode of its folder and all in it, each once; live files belong to who reads them."""
        found = self.host.check_output(f"find {self.home} -name live -prune -o ! -type l -printf '%u %m\\n' | sort -u")
        parted = (line.partition(" ") for line in found.splitlines())
        return {(owner, mode) for owner, _space, mode in parted}

    def inside(self, command: str) -> str:
        """What a command in the container prints."""
        assert self.is_up()
        return str(self.host.check_output(f"podman exec {self.container} {command}"))

    def facts(self, field: str) -> str:
        """A field of podman's own account of the container."""
        assert self.is_up()
        return str(self.host.check_output(f"podman inspect --format '{{{{{field}}}}}' {self.container}"))


@pytest.fixture
def service(host: Host) -> Callable[[str], Service]:
    """A service of the node by its name."""
    return lambda name: Service(host, name)


def _becomes(is_so: Callable[[], bool]) -> bool:
    end = time.monotonic() + PATIENCE
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(0.5)
    return True
