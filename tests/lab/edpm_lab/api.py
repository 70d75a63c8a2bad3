# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects in an API server, made and read from this process as its administrator: kubectl is started for each of them.

What is made is made as kubectl makes it, down to the name of who did it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from .access import Access
from .errors import LabError

Body = dict[str, Any]

#: How often a server is asked that has too much to do, and the seconds in between.
_TRIES, _PAUSE = 50, 0.2
_AS_KUBECTL = urlencode({"fieldManager": "kubectl-create", "fieldValidation": "Strict"})


@dataclass(frozen=True)
class Kind:
    """A kind of objects: where they are, and every name that kubectl knows it by."""

    api_version: str
    kind: str
    plural: str
    names: frozenset[str]
    namespaced: bool

    def path(self, namespace: str | None, name: str = "") -> str:
        """Where its objects are, or one of them."""
        root = f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        place = f"/namespaces/{namespace}" if self.namespaced and namespace is not None else ""
        return f"{root}{place}/{self.plural}" + (f"/{name}" if name else "")


@dataclass
class Api:
    """The objects of one server."""

    access: Access
    _kinds: list[Kind] = field(default_factory=list)

    def create(self, body: Body, namespace: str | None = None) -> Body:
        """Make an object, as `kubectl create` does."""
        place = namespace if namespace is not None else body["metadata"].get("namespace")
        kind = self._kind(lambda one: (one.api_version, one.kind) == (body["apiVersion"], body["kind"]), body["kind"])
        return self._ask("POST", f"{kind.path(place)}?{_AS_KUBECTL}", body)

    def get(self, kind: str, name: str, namespace: str | None = None) -> Body:
        """An object with all that the server tells of it."""
        return self._ask("GET", self._named(kind).path(namespace, name))

    def all(self, kind: str, namespace: str | None = None) -> list[Body]:
        """The objects of a kind; who holds which field is left out, as kubectl leaves it out."""
        found = self._named(kind)
        listed = self._ask("GET", found.path(namespace))["items"]
        for one in listed:
            one["metadata"].pop("managedFields", None)
        return [{"apiVersion": found.api_version, "kind": found.kind, **one} for one in listed]

    def delete(self, kind: str, name: str, namespace: str | None = None) -> None:
        """Ask for an object to go, without waiting until it has gone."""
        self._ask("DELETE", self._named(kind).path(namespace, name), {"propagationPolicy": "Background"})

    def allowed(self, user: str, verb: str, group: str, resource: str, namespace: str) -> bool:
        """Whether a user may do something now."""
        asked = {"namespace": namespace, "verb": verb, "group": group, "resource": resource}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        told = self._ask("POST", path, {**review, "spec": {"user": user, "resourceAttributes": asked}})
        return bool(told["status"]["allowed"])

    def _named(self, name: str) -> Kind:
        return self._kind(lambda one: name.lower() in one.names, name)

    def _kind(self, fits: Callable[[Kind], bool], name: str) -> Kind:
        """Kinds come and go with their definitions, so an unknown one is looked for once more."""
        for fresh in (False, True):
            if fresh or not self._kinds:
                self._kinds = list(self._discovered())
            if found := next(filter(fits, self._kinds), None):
                return found
        raise LabError(f"{self.access.url} has no kind {name}")

    def _discovered(self) -> Iterator[Kind]:
        for root in ("/api", "/apis"):
            for group in self._ask("GET", root, accept=_DISCOVERY)["items"]:
                of = group["metadata"].get("name", "")
                for version in group["versions"]:
                    for one in version["resources"]:
                        kind, plural = one["responseKind"]["kind"], one["resource"]
                        names = {plural, one.get("singularResource", ""), kind.lower(), *one.get("shortNames", ())}
                        yield Kind(
                            f"{of}/{version['version']}" if of else version["version"],
                            kind,
                            plural,
                            frozenset({*names, *(f"{name}.{of}" for name in names)}),
                            one["scope"] == "Namespaced",
                        )

    def _ask(self, method: str, path: str, body: Body | None = None, accept: str = "application/json") -> Body:
        for _again in range(_TRIES):
            status, text = self.access.ask(method, path, body, accept)
            if status != HTTPStatus.TOO_MANY_REQUESTS:
                break
            time.sleep(_PAUSE)  # the server makes room for a kind that is new, for instance
        if status >= HTTPStatus.BAD_REQUEST:
            raise LabError(f"{method} {path.partition('?')[0]}: {status}: {_message(text)}")
        found: Body = json.loads(text)
        return found


_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


def _message(text: str) -> str:
    try:
        return str(json.loads(text)["message"])
    except (ValueError, TypeError, KeyError):
        return text.strip()
