# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bring an image to the node ahead of the switch, so that the switch itself does not wait for a registry."""

from __future__ import annotations

from .bundle import Bundle
from .lock import held
from .node import Node
from .outcome import Prefetch


def prefetch(node: Node, bundle: Bundle, *, check: bool, patience: float) -> Prefetch:
    """Have the bundle's image on the node; in check mode, say whether it would be pulled."""
    image = bundle.image
    if not image.reference:
        return Prefetch(bundle.name, bundle.digest, "", pulled=False)
    node.podman.require()
    if check:
        return Prefetch(bundle.name, bundle.digest, image.reference, node.podman.needs(image))
    with held(node.places.lock, patience, node.clock.sleep, node.clock.now):
        node.podman.forget()
        return Prefetch(bundle.name, bundle.digest, image.reference, node.podman.provide(image))
