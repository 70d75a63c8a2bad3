# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A small REST client for Kubernetes: plain JSON in and out, paths found by kind, patient with a busy server."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Protocol, TypeVar

from .connection import Response
from .errors import (
    UNDECLARED,
    ExpiredError,
    KindNotServedError,
    NotFoundError,
    Request,
    UnreachableError,
    from_response,
)

FIELD_MANAGER = "edpm.services"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON = "application/json"
PAGE = 500
_METHODS = {"get": "GET", "list": "GET", "create": "POST", "patch": "PATCH", "delete": "DELETE"}
RELISTS = 3

Object = Mapping[str, Any]
T = TypeVar("T")


class Transport(Protocol):
    """What the client needs of a connection."""

    @property
    def server(self) -> str: ...

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        *,
        body: bytes | None = None,
        content_type: str = "application/json",
    ) -> Response: ...


@dataclass(frozen=True)
class Retry:
    """How long a busy or stumbling server is waited for."""

    attempts: int = 6
    first_pause: float = 0.5
    longest_pause: float = 30.0
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)

    def pause(self, attempt: int, retry_after: str | None) -> float:
        """The server's own wish counts, else a pause that doubles, a little uneven so that clients spread."""
        if retry_after is not None and retry_after.strip().isdigit():
            return min(float(retry_after), self.longest_pause)
        doubled: float = self.first_pause * 2**attempt
        return min(doubled, self.longest_pause) * random.uniform(0.75, 1.25)  # noqa: S311 - spreads load, hides nothing


@dataclass(frozen=True)
class Resource:
    """Where a kind is served."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool

    @property
    def title(self) -> str:
        """The name that RBAC rules and the API server's messages use."""
        group, slash, _version = self.api_version.partition("/")
        return f"{self.plural}.{group}" if slash else self.plural

    def path(self, name: str | None = None, namespace: str | None = None) -> str:
        parts = [_root(self.api_version)]
        if self.namespaced and namespace is not None:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        return "/".join(parts + ([name] if name is not None else []))


class Client:
    """Reads and writes objects. With `dry_run` the server judges every write and stores none."""

    def __init__(self, transport: Transport, *, dry_run: bool = False, retry: Retry | None = None) -> None:
        self._transport = transport
        self._retry = retry or Retry()
        self._kinds: dict[str, dict[str, Resource]] = {}
        self.dry_run = dry_run

    @property
    def server(self) -> str:
        return self._transport.server

    def resource(self, api_version: str, kind: str) -> Resource:
        """Find a kind; one request per API version, and again only for a kind that was not there before."""
        if kind not in self._kinds.get(api_version, {}):
            self._kinds[api_version] = self._discover(api_version)
        try:
            return self._kinds[api_version][kind]
        except KeyError:
            raise KindNotServedError(
                f"{self.server} does not serve {kind} ({api_version}); install its CRD "
                "(edpm.services.install_cluster brings those of this collection) or use a Kubernetes that has it."
            ) from None

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object | None:
        try:
            return self._send("get", resource, name, namespace)
        except NotFoundError:
            return None

    def get_all(
        self,
        resource: Resource,
        namespace: str | None = None,
        labels: str | None = None,
        *,
        fields: str | None = None,
    ) -> list[Object]:
        """All objects, page by page; those alone that the selectors of labels and fields choose."""
        return self.map_all(lambda one: one, resource, namespace, labels, fields=fields)

    def map_all(
        self,
        made: Callable[[Object], T],
        resource: Resource,
        namespace: str | None = None,
        labels: str | None = None,
        *,
        fields: str | None = None,
    ) -> list[T]:
        """What is made of every object, so that no more than two pages of them are held at a time.

        A read that the server has forgotten meanwhile starts over: `made` must have no effect but what it returns.
        """
        query = {"limit": str(PAGE)}
        query |= {name: text for name, text in (("labelSelector", labels), ("fieldSelector", fields)) if text}
        for _attempt in range(RELISTS):
            try:
                return self._pages(made, resource, namespace, query)
            except ExpiredError as error:
                expired = error
        raise expired

    def apply(
        self, resource: Resource, body: Object, *, force: bool, manager: str = FIELD_MANAGER, subresource: str = ""
    ) -> Object:
        """Server-side apply. Without `force` a field that another manager holds is a ConflictError.

        Where the body has a `metadata.uid`, an object that was made anew or is gone meanwhile is a ConflictError too.
        """
        metadata = body["metadata"]
        query = {"fieldManager": manager, "force": str(force).lower(), "fieldValidation": "Strict"}
        place = (metadata["name"], metadata.get("namespace"))
        return self._send("patch", resource, *place, query=query, body=body, subresource=subresource)

    def merge(self, resource: Resource, body: Object) -> Object:
        """A merge patch that names the `metadata.resourceVersion` it is meant for: another one is a ConflictError."""
        metadata = body["metadata"]
        query = {"fieldManager": FIELD_MANAGER}
        place = (metadata["name"], metadata.get("namespace"))
        return self._send("patch", resource, *place, query=query, body=body, content_type=MERGE)

    def create(self, resource: Resource, body: Object) -> Object:
        """A new object; one of that name that is there already is a ConflictError."""
        metadata = body["metadata"]
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"}
        place = (metadata["name"], metadata.get("namespace"))
        return self._send("create", resource, *place, query=query, body=body, content_type=JSON)

    def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        uid: str | None = None,
        *,
        propagation: str | None = None,
    ) -> Object:
        """With `uid`, another object of that name is a ConflictError.

        `propagation` says what becomes of what the object owns: by itself a Job leaves its pods behind.
        """
        asked: dict[str, Any] = {"preconditions": {"uid": uid}} if uid else {}
        asked |= {"propagationPolicy": propagation} if propagation else {}
        options = {"apiVersion": "v1", "kind": "DeleteOptions", **asked} if asked else None
        return self._send("delete", resource, name, namespace, body=options, content_type=JSON)

    def _pages(
        self, made: Callable[[Object], T], resource: Resource, namespace: str | None, query: Mapping[str, str]
    ) -> list[T]:
        """A page is worked on while the server makes the next one."""
        found: list[T] = []
        # The server leaves these two out of a list's items.
        named = {"apiVersion": resource.api_version, "kind": resource.kind}
        page = self._send("list", resource, None, namespace, query=query)
        with ThreadPoolExecutor(1, thread_name_prefix="edpm-kube-ahead") as ahead:
            while following := page.get("metadata", {}).get("continue"):
                rest = {**query, "continue": following}
                coming = ahead.submit(self._send, "list", resource, None, namespace, query=rest)
                found += [made(named | item) for item in page.get("items") or ()]
                page = coming.result()
        found += [made(named | item) for item in page.get("items") or ()]
        return found

    def _discover(self, api_version: str) -> dict[str, Resource]:
        subject = Request(self.server, "get", "the API's own description", f"the API {api_version}")
        try:
            found = self._ask("GET", _root(api_version), {}, subject)
        except NotFoundError:
            return {}
        return {
            entry["kind"]: Resource(api_version, entry["kind"], entry["name"], entry["namespaced"])
            for entry in found.get("resources") or ()
            if "/" not in entry["name"]
        }

    def _send(
        self,
        verb: str,
        resource: Resource,
        name: str | None,
        namespace: str | None,
        *,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
        content_type: str = APPLY,
        subresource: str = "",
    ) -> Object:
        method = _METHODS[verb]
        wanted = dict(query or {})
        if self.dry_run and method != "GET":
            wanted["dryRun"] = "All"
        shown = "/".join(part for part in (namespace, name) if part) or "objects"
        below = f"/{subresource}" if subresource else ""
        subject = Request(self.server, verb, f"{resource.title}{below}", f"{resource.kind} {shown}")
        path = resource.path(name if verb != "create" else None, namespace) + below
        return self._ask(method, path, wanted, subject, body=body, content_type=content_type)

    def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        subject: Request,
        *,
        body: Object | None = None,
        content_type: str = APPLY,
    ) -> Object:
        sent = None if body is None else json.dumps(body).encode()
        response = self._patiently(method, path, query, sent, content_type)
        if not HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
            raise from_response(response.status, response.body, subject)
        try:
            answer = json.loads(response.body)
        except ValueError:
            answer = None
        if not isinstance(answer, Mapping):
            raise UnreachableError(
                f"{self.server} does not answer like a Kubernetes API; check the address in the kubeconfig or host."
            )
        return answer

    def _patiently(
        self, method: str, path: str, query: Mapping[str, str], body: bytes | None, content_type: str
    ) -> Response:
        """Every request here may be sent twice: reads, deletes, server-side apply and what names a version all are."""
        for attempt in range(self._retry.attempts):
            last = attempt + 1 == self._retry.attempts
            try:
                response = self._transport.request(method, path, query, body=body, content_type=content_type)
            except UnreachableError as error:
                if last or not error.transient:
                    raise
                self._retry.sleep(self._retry.pause(attempt, None))
                continue
            if last or not _is_busy(response):
                break
            self._retry.sleep(self._retry.pause(attempt, response.headers.get("Retry-After")))
        return response


def _is_busy(response: Response) -> bool:
    """Whether to ask again may help. A field that the CRD lacks is a 500 too, and stays one."""
    if response.status == HTTPStatus.INTERNAL_SERVER_ERROR and UNDECLARED in response.body:
        return False
    return response.status == HTTPStatus.TOO_MANY_REQUESTS or response.status >= HTTPStatus.INTERNAL_SERVER_ERROR


def _root(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
