# SPDX-License-Identifier: GPL-3.0-or-later
"""Ceph beside the nodes: a monitor, a manager and one store in memory, with a pool for volumes and a user for it."""

from __future__ import annotations

import time
from typing import Self

from . import hosts, images, podman
from .errors import LabError
from .labs import Lab
from .progress import step

#: Its place in the lab's network, and its name there.
ADDRESS_NUMBER = 5
NAME = "ceph"
POOL = "volumes"
USER = "openstack"

#: By this UUID libvirt knows the key of the user.
SECRET = "6b1f5a2e-3c1d-4c57-9d0e-2f4b8a61cefa"

_START_LIMIT = 180.0
_FILES = ("ceph.conf", f"ceph.client.{USER}.keyring")


class Ceph:
    """The Ceph of one lab."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    @property
    def address(self) -> str:
        """Where it is in the lab's network."""
        return podman.network(self._lab.name).address(ADDRESS_NUMBER)

    def up(self) -> Self:
        """Start it, empty; one that runs is left alone."""
        if not self._serves():
            podman.containers_work()
            image = images.image(NAME)
            with step("Ceph"):
                self._begin(image)
                self._await()
        return self

    def files(self) -> dict[str, str]:
        """What a client needs below /etc/ceph, by name."""
        return {name: self._inside("cat", f"/etc/ceph/{name}") for name in _FILES}

    def volumes(self) -> list[str]:
        """The images in the pool, as Ceph itself lists them."""
        return self._inside("rbd", "ls", "--pool", POOL).split()

    def backend(self) -> str:
        """What a deployer tells cinder-volume about it."""
        return (
            "[DEFAULT]\nenabled_backends = ceph\n"
            "[ceph]\nvolume_driver = cinder.volume.drivers.rbd.RBDDriver\nvolume_backend_name = ceph\n"
            f"rbd_pool = {POOL}\nrbd_user = {USER}\nrbd_ceph_conf = /etc/ceph/ceph.conf\nrbd_secret_uuid = {SECRET}\n"
        )

    def computes(self) -> str:
        """What a deployer tells nova-compute about it."""
        return f"[libvirt]\nrbd_user = {USER}\nrbd_secret_uuid = {SECRET}\n"

    @property
    def _container(self) -> str:
        return f"edpm-{self._lab.name}-{NAME}"

    def _begin(self, image: str) -> None:
        hosts.remember(self._lab, {NAME: self.address})
        podman.run("rm", "--force", "--ignore", "--time", "0", "--volumes", self._container, timeout=120)
        podman.run(
            *("run", "--detach", "--name", self._container, "--hostname", NAME),
            *podman.labels(self._lab.name),
            *podman.network(self._lab.name).at(self.address),
            *hosts.mounted(self._lab),
            image,
        )

    def _await(self) -> None:
        end = time.monotonic() + _START_LIMIT
        while not self._serves():
            if time.monotonic() > end:
                logs = podman.run("logs", "--tail", "5", self._container, check=False)
                shown = " / ".join((logs.stdout + logs.stderr).strip().splitlines()) or "nothing"
                raise LabError(f"Ceph does not serve after {_START_LIMIT:.0f} s; last printed: {shown}")
            time.sleep(0.3)

    def _serves(self) -> bool:
        asked = ("test", "-e", "/run/ceph/ready")
        return podman.execute(self._container, *asked, check=False, timeout=30).returncode == 0

    def _inside(self, *words: str) -> str:
        return podman.execute(self._container, *words, timeout=60).stdout
