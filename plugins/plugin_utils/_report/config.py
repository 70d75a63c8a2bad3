# SPDX-License-Identifier: GPL-3.0-or-later
"""A service's configuration for a program that puts it somewhere: whole and unmasked, or not at all."""

from __future__ import annotations

from typing import Any

from .._bundle.bundle import Bundle, explanation, unusable
from .._dataplane.planned import Plan
from .data import option_data
from .near import NotThereError, did_you_mean
from .overview import PlannedService, Question, overview


class NotUsableError(NotThereError):
    """The service's files are wrong or incomplete; the text says why."""


def service_config(plan: Plan, host: str, service: str, file: str | None, *, effective: bool = False) -> list[Any]:
    """The files of conf.d, or one file's text, or the options. Values are not masked."""
    made = _bundle(plan, host, service)
    if effective:
        return [option_data(option) for option in explanation(made).options]
    if file:
        return [_text(made, host, file)]
    return [{"name": one.name, "content": one.content.decode(), "source": one.origin} for one in made.conf_d_files]


def _bundle(plan: Plan, host: str, service: str) -> Bundle:
    if not host:
        raise NotThereError("No node is named; name one with host, for example host='edpm-compute-0'.")
    if not service:
        raise NotThereError("No service is named; name one, for example nova_compute.")
    name = service.removesuffix("@")
    found = next((one for one in overview(plan, Question(host, name)).services if one.plan.name == name), None)
    if found is None:
        raise NotThereError(f"The node {host} runs only instances of {name}; name one as {name}@<instance>.")
    _refuse_if_unusable(found)
    return found.bundle


def _refuse_if_unusable(found: PlannedService) -> None:
    reasons = unusable(found.node, found.plan, found.bundle)
    if reasons:
        raise NotUsableError(f"{found.plan.name} on {found.node.name} has no usable configuration: {' '.join(reasons)}")


def _text(made: Bundle, host: str, file: str) -> str:
    found = next((one for one in made.conf_d_files if one.name == file), None)
    found = found or next((one for one in made.files if one.path == file), None)
    if found is None:
        known = [*(one.name for one in made.conf_d_files), *(one.path for one in made.files)]
        raise NotThereError(f"{made.name} on {host} has no file {file}; {did_you_mean(file, known, 'files')}")
    try:
        return found.content.decode()
    except UnicodeDecodeError:
        raise NotUsableError(f"{found.origin}: is no text, and a lookup gives only text; use deploy.") from None
