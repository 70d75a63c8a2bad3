# SPDX-License-Identifier: GPL-3.0-or-later
"""What an operator is told when it starts: a YAML file, and every fault in it as a sentence."""

from __future__ import annotations

import json
import math
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from .._jobs.options import SPEC
from .._kube.errors import one_line

#: Options of ee_job that the operator decides by itself.
_OWN = frozenset(
    (
        *("namespace", "playbook", "play", "name", "run", "rerun", "nodes", "limit", "tags", "skip_tags"),
        *("engine", "wait", "wait_timeout", "inventory", "inventory_config_maps", "ssh_key_secret"),
    )
)
#: A run that hangs is ended, so that its nodes can be tried again.
DEADLINE = 7200
LAST_PORT = 65535
#: The lease's name is a label of Jobs, too.
LONGEST_LABEL = 63
_POSITIVE = ("resync", "first_pause", "longest_pause", "removals_at_once", "lease_duration", "port")


class BadSettingsFileError(Exception):
    """The file cannot be used; the text is a sentence for a person."""


@dataclass(frozen=True)
class OperatorSettings:
    """All of them. Times are seconds.

    `kinds` are the kinds of service objects that it manages, all where none is named. `run` are options of ee_job for
    its runs, `extra_vars` variables for every playbook. `settle` is how long it waits for more after the first sign of
    a change, `resync` how long it waits for any sign at all.
    """

    namespaces: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    run: Mapping[str, Any] = field(default_factory=dict)
    extra_vars: Mapping[str, Any] = field(default_factory=dict)
    settle: float = 2.0
    resync: float = 300.0
    first_pause: float = 30.0
    longest_pause: float = 1800.0
    removals_at_once: int = 10
    lease: str = "edpm-services-operator"
    lease_namespace: str = ""
    lease_duration: int = 15
    port: int = 8080
    identity: str = field(default_factory=lambda: f"{os.environ.get('HOSTNAME') or socket.gethostname()}-{os.getpid()}")

    def __post_init__(self) -> None:
        if not self.namespaces:
            raise BadSettingsFileError("No namespace is named; list those of the data plane under namespaces.")
        if unknown := sorted(set(self.run) - (set(SPEC) - _OWN)):
            raise BadSettingsFileError(
                f"run names {', '.join(unknown)}, which the operator decides by itself or ee_job does not know; "
                "leave it out."
            )
        object.__setattr__(self, "run", _options(self.run))
        _refuse_what_cannot_be_told(self.extra_vars)
        if len(self.lease) > LONGEST_LABEL:
            raise BadSettingsFileError(f"lease has {len(self.lease)} characters; choose {LONGEST_LABEL} or fewer.")
        for name in _POSITIVE:
            value = getattr(self, name)
            if value <= 0 or math.isnan(value):
                raise BadSettingsFileError(f"{name} is {value}; choose more than 0.")
        if self.settle < 0 or math.isnan(self.settle):
            raise BadSettingsFileError(f"settle is {self.settle}; choose 0 or more.")
        if self.port > LAST_PORT:
            raise BadSettingsFileError(f"port is {self.port}; choose 1 to {LAST_PORT}.")

    @property
    def lease_place(self) -> str:
        """The namespace that the Lease lies in: its own, else the first of the data plane's."""
        return self.lease_namespace or self.namespaces[0]

    def options(self, **more: Any) -> dict[str, Any]:
        """All options of ee_job for a run."""
        usual = {name: one.get("default") for name, one in SPEC.items()}
        return {**usual, "deadline": DEADLINE, **self.run, **more}

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Out of a file."""
        try:
            told = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise BadSettingsFileError(f"{path} cannot be read ({error.strerror}); name the settings file.") from error
        except yaml.YAMLError as error:
            raise BadSettingsFileError(f"{path} is not YAML; correct it.") from error
        if not isinstance(told, Mapping):
            raise BadSettingsFileError(f"{path} is no mapping; write name: value lines.")
        if unknown := sorted(set(told) - set(cls.__dataclass_fields__)):
            known = ", ".join(sorted(cls.__dataclass_fields__))
            raise BadSettingsFileError(f"{path} names {', '.join(unknown)}; it may name {known}.")
        return cls(**{name: _typed(path, name, value) for name, value in told.items()})


def _refuse_what_cannot_be_told(variables: Mapping[str, Any]) -> None:
    """Variables travel as JSON, which has no dates, though YAML has."""
    for name, value in variables.items():
        try:
            json.dumps(value)
        except TypeError as error:
            raise BadSettingsFileError(
                f"extra_vars: {name} has a date or something else that is no text; put it in quotes."
            ) from error


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options of ee_job as the action itself would take them."""
    spec = {name: SPEC[name] for name in given}
    empty = sorted(name for name, value in given.items() if value is None and spec[name].get("default") is not None)
    if empty:
        raise BadSettingsFileError(f"run has no value for {', '.join(empty)}; write one, or leave it out.")
    found = ArgumentSpecValidator(spec).validate(given)
    if found.error_messages:
        raise BadSettingsFileError(f"run cannot be used ({one_line('; '.join(found.error_messages))}); correct it.")
    return {name: found.validated_parameters[name] for name in given}


def _typed(path: str | Path, name: str, value: Any) -> Any:
    kind = _KINDS.get(name, str)
    fits: Any = value
    if kind is tuple and isinstance(value, list) and all(isinstance(one, str) for one in value):
        return tuple(value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        fits = float(value)
    if not isinstance(fits, kind) or isinstance(fits, bool):
        raise BadSettingsFileError(f"{path}: {name} is {value!r}, and {_WORDS[kind]} is wanted; correct it.")
    return fits


_KINDS: Mapping[str, type] = {
    **dict.fromkeys(("namespaces", "kinds"), tuple),
    **dict.fromkeys(("run", "extra_vars"), dict),
    **dict.fromkeys(("settle", "resync", "first_pause", "longest_pause"), float),
    **dict.fromkeys(("removals_at_once", "lease_duration", "port"), int),
}
_WORDS = {tuple: "a list of names", dict: "a mapping", float: "a number", int: "a whole number", str: "a text"}
