# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of CRs and the plan that is made of them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest
import yaml
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.built_in import BUILT_IN
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.definitions import ServiceDefinition
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.plan import resolve
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import NodePlan, Plan, ServicePlan
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.stores import snapshot_of

Json = dict[str, Any]
Objects = list[Json]
Change = Callable[[Objects, str, Json], Objects]
T = TypeVar("T")
FIXTURES = Path(__file__).parents[2] / "fixtures"


def read(name: str) -> Objects:
    """The objects of a fixture's file or folder, the caller's own to change."""
    return copy.deepcopy(_read(FIXTURES / name))


@cache
def _read(path: Path) -> Objects:
    files = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
    return [body for file in files for body in yaml.safe_load_all(file.read_text()) if body]


class Planned:
    """A plan with its nodes and services by name, for tests."""

    def __init__(self, plan: Plan):
        self.plan = plan

    def node(self, name: str) -> NodePlan:
        found = [node for node in self.plan.nodes if node.name == name]
        assert len(found) == 1, f"{name} is planned {len(found)} times"
        return found[0]

    def service(self, node: str, name: str = "nova_compute") -> ServicePlan:
        return next(service for service in self.node(node).services if service.name == name)

    def services(self, node: str) -> list[str]:
        return [service.name for service in self.node(node).services]

    def files(self, node: str, name: str = "nova_compute") -> dict[str, bytes]:
        return {f"{one.directory}/{one.file_name}": one.content for one in self.service(node, name).sources}

    def said(self, node: str) -> str:
        return "\n".join(self.node(node).sentences)


class Load(Protocol):
    def __call__(self, *names: str) -> Objects: ...


class PlanOf(Protocol):
    def __call__(
        self,
        objects: Iterable[Mapping[str, Any]],
        images: Mapping[str, str] | None = None,
        *,
        definitions: Mapping[str, ServiceDefinition] = BUILT_IN,
    ) -> Planned: ...


def known(value: T | None) -> T:
    """What a plan leaves open in general and a test counts on."""
    assert value is not None
    return value


@pytest.fixture
def load() -> Load:
    """Objects of fixture files, those of a later file in place of earlier ones with the same name."""

    def loaded(*names: str) -> Objects:
        found: dict[tuple[str, str], Json] = {}
        for name in names:
            for body in read(f"dataplane/{name}.yaml"):
                found[body["kind"], body["metadata"]["name"]] = body
        return list(found.values())

    return loaded


@pytest.fixture
def plan_of() -> PlanOf:
    def planned(
        objects: Iterable[Mapping[str, Any]],
        images: Mapping[str, str] | None = None,
        *,
        definitions: Mapping[str, ServiceDefinition] = BUILT_IN,
    ) -> Planned:
        taken = snapshot_of(objects, images, namespace="openstack", definitions=definitions)
        return Planned(resolve(taken, definitions))

    return planned


@pytest.fixture
def change() -> Change:
    """Merge a change into the one object with this name: a mapping deeply, anything else whole."""

    def changed(objects: Objects, name: str, update: Json) -> Objects:
        kind, _, rest = name.partition("/")
        body = next(one for one in objects if (one["kind"], one["metadata"]["name"]) == (kind, rest))
        _merge(body, update)
        return objects

    return changed


def _merge(body: Json, update: Mapping[str, Any]) -> None:
    for key, value in update.items():
        if isinstance(value, Mapping) and isinstance(body.get(key), dict):
            _merge(body[key], value)
        else:
            body[key] = value
