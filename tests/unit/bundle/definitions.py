# SPDX-License-Identifier: GPL-3.0-or-later
"""Services as a plan has them, for the tests of what starts them."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.edpm.services.plugins.module_utils._node import bundle as node
from ansible_collections.edpm.services.plugins.module_utils._node.travel import read, written
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.bundle import Bundle, bundle
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.parcel import parcel
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.built_in import BUILT_IN
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.model import Reference
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import (
    ConfigSource,
    Identity,
    Image,
    Layer,
    Origin,
    ServicePlan,
)
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.values import Value

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


def keyed(
    service: str,
    keys: Mapping[str, bytes],
    *,
    instance: str = "",
    options: Mapping[str, Value] | None = None,
    my_ip: str | None = "172.17.0.5",
    profile: bytes = b"",
) -> ServicePlan:
    """A service whose files come out of a Secret with these keys, as resolution places them."""
    definition = BUILT_IN[service]
    sources = []
    for key, content in keys.items():
        place = definition.place_of(key)
        directory = place.directory if place else definition.conf_d or ""
        name = (place.file_name if place else "") or key
        live = bool(place and place.live)
        sources.append(
            ConfigSource(Origin(SECRET, f"key {key}"), directory, name, Layer.GENERATED, True, content, live)
        )
    if definition.host_specific_file:
        origin = Origin(Reference("OpenStackDataPlaneNode", "openstack", "compute-0"), "identity")
        host = b"[DEFAULT]\nhost = compute-0\n"
        folder = definition.conf_d or ""
        sources.append(ConfigSource(origin, folder, definition.host_specific_file, Layer.HOST, False, host))
    if profile:
        origin = Origin(Reference("ServiceProfile", "openstack", "group"), "spec.customServiceConfig")
        folder = definition.conf_d or ""
        sources.append(ConfigSource(origin, folder, definition.profile_file, Layer.PROFILE, False, profile))
    who = Identity("compute-0", my_ip, f"/var/lib/nova{f'-{instance}' if instance else ''}", "compute-0.ctlplane")
    return ServicePlan(
        service,
        instance,
        image=Image(IMAGE, "somewhere"),
        conf_d=definition.conf_d,
        sources=tuple(sources),
        options=options or {},
        identity=who if definition.host_specific_file else None,
    )


def parcelled(plan: ServicePlan) -> node.Bundle:
    """What a node gets, as it arrives there; the plan must have no faults."""
    found = bundle(plan)
    assert found.errors == ()
    sent = parcel(plan, found)
    assert sent is not None
    assert read(written(sent)) == sent
    return sent


def text_of(found: Bundle, path: str) -> str:
    return next(file.content.decode() for file in found.files if file.path == path)


def node_files_of(sent: node.Bundle) -> dict[str, node.NodeFile]:
    return {one.path: one for one in sent.node_files}


def live_of(sent: node.Bundle) -> dict[str, node.LiveFile]:
    return {one.path: one for one in sent.live}
