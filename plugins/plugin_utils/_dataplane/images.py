# SPDX-License-Identifier: GPL-3.0-or-later
"""The image of a service: the service CR's, else the environment's."""

from __future__ import annotations

from collections.abc import Mapping

from .definitions import ServiceDefinition
from .model import ServiceResource
from .planned import Image


def image_of(
    definition: ServiceDefinition, resource: ServiceResource | None, environment: Mapping[str, str]
) -> Image | None:
    """None where neither names one: a role's own default may still."""
    if resource is not None and definition.image_field in resource.images:
        return Image(
            resource.images[definition.image_field], f"{resource.meta.ref}, field spec.{definition.image_field}"
        )
    default = environment.get(definition.image_variable)
    return Image(default, f"environment variable {definition.image_variable}") if default else None


def no_image(definition: ServiceDefinition) -> str:
    """What to tell a person then."""
    field = f"spec.{definition.image_field} of the {definition.kind}" if definition.kind else "its definition"
    variable = definition.image_variable
    return f"No image is named for {definition.name}: set {field}, or the environment variable {variable}."
