# SPDX-License-Identifier: GPL-3.0-or-later
"""The image of a service, and what to say where there is none."""

from __future__ import annotations

from collections.abc import Mapping

from .definitions import ServiceDefinition
from .model import ServiceResource
from .planned import Image, ServicePlan

#: The variable by which a node says that it has a service from its own packages.
MODE_VARIABLE = "edpm_{}_mode"
ON_HOST = "host"


def image_of(
    definition: ServiceDefinition, resource: ServiceResource | None, environment: Mapping[str, str]
) -> Image | None:
    """The service CR's, else the environment's, else the definition's; None where nobody names one."""
    if resource is not None and definition.image_field in resource.images:
        return Image(
            resource.images[definition.image_field], f"{resource.meta.ref}, field spec.{definition.image_field}"
        )
    default = environment.get(definition.image_variable)
    if default:
        return Image(default, f"environment variable {definition.image_variable}")
    if definition.image and definition.partner is not None:
        return Image(definition.image, f"{definition.partner.origin}, field image")
    return None


def no_image(definition: ServiceDefinition) -> str:
    """What to tell a person then."""
    if definition.partner is not None:
        field = f"image in {definition.partner.origin}"
    else:
        field = f"spec.{definition.image_field} of the {definition.kind}" if definition.kind else "its definition"
    variable = definition.image_variable
    return f"No image is named for {definition.name}: set {field}, or the environment variable {variable}."


def undeployable(service: ServicePlan) -> str | None:
    """The sentence that says why a service cannot be deployed although nothing stands against it, or None.

    A service that comes from the node's own packages needs no image.
    """
    if service.image is not None or service.options.get(MODE_VARIABLE.format(service.service)) == ON_HOST:
        return None
    told = next((note for note in service.notes if note.startswith("No image is named for ")), None)
    return told or f"No image is named for {service.name}: name one, then deploy again."
