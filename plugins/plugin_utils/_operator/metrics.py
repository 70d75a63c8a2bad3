# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures for Prometheus, in its plain text."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping

_HELP: Mapping[str, tuple[str, str]] = {
    "edpm_operator_leader": ("gauge", "Whether this process holds the lease."),
    "edpm_operator_passes_total": ("counter", "Passes over the data plane, by result."),
    "edpm_operator_pass_seconds_total": ("counter", "Seconds spent in passes."),
    "edpm_operator_last_pass_timestamp_seconds": ("gauge", "When the last pass went well."),
    "edpm_operator_writes_total": ("counter", "Objects that passes have written, by result."),
    "edpm_operator_changes_total": ("counter", "Changes that were heard of, by kind."),
    "edpm_operator_runs_total": ("counter", "Runs that were started, by task."),
    "edpm_operator_runs_going": ("gauge", "Runs that are not over, by task."),
    "edpm_operator_service_objects": ("gauge", "Service objects by the reason of their condition Ready."),
    "edpm_operator_nodes_backing_off": ("gauge", "Nodes that were tried more than once for the same."),
}
Labels = tuple[tuple[str, str], ...]


class Metrics:
    """A few numbers that several threads count."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: defaultdict[str, dict[Labels, float]] = defaultdict(dict)

    def add(self, name: str, value: float = 1.0, **labels: str) -> None:
        """Count."""
        key = tuple(sorted(labels.items()))
        with self._lock:
            self._values[name][key] = self._values[name].get(key, 0.0) + value

    def set(self, name: str, value: float) -> None:
        """A figure as it is now."""
        with self._lock:
            self._values[name] = {(): value}

    def set_all(self, name: str, label: str, values: Mapping[str, float]) -> None:
        """A figure as it is now, for each value of a label; those that are not there any more go."""
        with self._lock:
            self._values[name] = {((label, key),): value for key, value in values.items()}

    def text(self) -> str:
        """All of them."""
        with self._lock:
            known = {name: dict(values) for name, values in self._values.items()}
        lines: list[str] = []
        for name, (kind, said) in _HELP.items():
            lines += [f"# HELP {name} {said}", f"# TYPE {name} {kind}"]
            lines += [f"{name}{_labels(labels)} {value:.17g}" for labels, value in sorted(known.get(name, {}).items())]
        return "\n".join(lines) + "\n"


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    told = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{told}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
