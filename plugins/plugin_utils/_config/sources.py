# SPDX-License-Identifier: GPL-3.0-or-later

"""What this room is made from: the bytes of one file of a service, and where they come from."""

from __future__ import annotations

import dataclasses
from enum import StrEnum


class Layer(StrEnum):
    """Who speaks through a file. What is generated gives way to a profile, and both to the human's own snippet."""

    GENERATED = "generated"
    PROFILE = "profile"
    HOST = "host"
    OVERRIDE = "override"
    DEPLOYER = "deployer"


@dataclasses.dataclass(frozen=True)
class Source:
    """One file: the name it has in conf.d, its bytes, and the object and field that hold them.

    `object` is what a person would look up (`Secret openstack/nova-cell1-compute-config`), `field` the place in it
    (`key 01-nova.conf`, `spec.customServiceConfig`). `secret` is true for everything out of a Secret.
    """

    name: str
    content: bytes = dataclasses.field(repr=False)
    object: str
    field: str
    layer: Layer
    secret: bool = False

    @property
    def origin(self) -> str:
        """The source in words, as messages name it."""
        return f"{self.object}, {self.field}"
