# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables of a node that say how a service runs there: `edpm_<service>_…`, and the few that all services share.

They are read here, where nothing is templated: a value with a template is refused where it would have an effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .definitions import ServiceDefinition
from .model import Node
from .values import Value, Variables

PULL = "edpm_image_pull"
VALIDATION = "edpm_validation"
KEEP = "edpm_keep_generations"
KOLLA_CONFIG = "kolla_config"
PULLS = ("missing", "always", "never")
POLICIES = ("off", "warn", "fail")
_COMMON = (PULL, VALIDATION, KEEP)
_TEMPLATES = ("{{", "{%")


@dataclass(frozen=True, slots=True)
class Chosen:
    """The options of a service, and what is wrong with them or worth knowing."""

    options: Mapping[str, Value] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


NO_OPTIONS = Chosen()


def ours(variables: Variables) -> Variables:
    """The variables that may be options of some service."""
    return {name: value for name, value in variables.items() if name.startswith("edpm_")}


def options_of(node: Node, variables: Variables, definition: ServiceDefinition) -> Chosen:
    """What the variables say to this service."""
    prefix = definition.variable_prefix
    found = {name: value for name, value in variables.items() if name in _COMMON or name.startswith(prefix)}
    if not found:
        return NO_OPTIONS
    read = {*_COMMON, *definition.options, prefix + KOLLA_CONFIG}
    notes: list[str] = []
    errors: list[str] = []
    options: dict[str, Value] = {}
    for name, value in sorted(found.items()):
        where = f"{node.where}, ansibleVars {name}"
        if _holds_template(value):
            (errors if name in read else notes).append(
                f"{where}: holds a template, and templates are not read here; write the value out."
            )
        elif problem := _problem(name, value):
            errors.append(f"{where}: {problem}")
        else:
            options[name] = "off" if name == VALIDATION and value is False else value
    applied = [f"{name}: {_shown(value)}" for name, value in options.items() if name in read]
    if applied:
        notes.append(f"{definition.name} runs with {', '.join(applied)}.")
    return Chosen(options, tuple(notes), tuple(errors))


def _problem(name: str, value: Value) -> str | None:
    if name == PULL and value not in PULLS:
        return f"{_shown(value)} is none of {', '.join(PULLS)}; correct it."
    # YAML takes a bare `off` for false.
    if name == VALIDATION and value not in POLICIES and value is not False:
        return f"{_shown(value)} is none of {', '.join(POLICIES)}; correct it."
    if name == KEEP and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        return f"{_shown(value)} is no number of generations; write 1 or more, without quotes."
    return None


def _holds_template(value: Value) -> bool:
    if isinstance(value, str):
        return any(mark in value for mark in _TEMPLATES)
    if isinstance(value, Mapping):
        return any(_holds_template(inner) for inner in value.values())
    return isinstance(value, Sequence) and any(_holds_template(inner) for inner in value)


def _shown(value: Value) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else "what is there"
