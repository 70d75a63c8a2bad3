# SPDX-License-Identifier: GPL-3.0-or-later
"""Services as a plan has them, for the tests of what starts them."""

from __future__ import annotations

from ansible_collections.edpm.services.plugins.plugin_utils._bundle.bundle import Bundle, bundle
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.definitions import BUILT_IN
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.model import Reference
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import (
    ConfigSource,
    Image,
    Layer,
    Origin,
    ServicePlan,
)

SECRET = Reference("Secret", "openstack", "config")
IMAGE = "images.example/openstack/service:30"


def planned(service: str, instance: str = "", *sources: ConfigSource, image: str | None = IMAGE) -> ServicePlan:
    """A service; without sources it has one file in its conf.d, where it has such a folder."""
    folder = BUILT_IN[service].conf_d if service in BUILT_IN else None
    given = sources or ((source(folder, "01.conf"),) if folder else ())
    named = Image(image, "somewhere") if image else None
    return ServicePlan(service, instance, image=named, conf_d=folder, sources=given)


def source(directory: str, name: str, content: bytes = b"[DEFAULT]\n", layer: Layer = Layer.GENERATED) -> ConfigSource:
    return ConfigSource(Origin(SECRET, f"key {name}"), directory, name, layer, True, content)


def made(service: str, instance: str = "") -> Bundle:
    return bundle(planned(service, instance))
