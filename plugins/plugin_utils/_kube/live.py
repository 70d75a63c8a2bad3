# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A snapshot out of a live cluster: a paged list for each kind, then exactly the Secrets and ConfigMaps they name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from .._dataplane.built_in import BUILT_IN
from .._dataplane.model import Reference, Snapshot, UnseenKind
from .._dataplane.parse import ParsedObject, parse_object, resources_of
from .._dataplane.partners import definition_sources, partners
from .._dataplane.references import references
from .._dataplane.stores import snapshot, stores_of
from .client import Client, Object, Resource
from .connection import Connection, Settings
from .errors import KindNotServedError, NotAllowedError, OverloadedError

AT_ONCE = 8
READER = "edpm-services-reader"

_DATAPLANE = "dataplane.openstack.org/v1beta1"
#: Kinds that describe nodes. A cluster that serves none of them has nothing to plan.
NODE_KINDS = tuple(
    dict.fromkeys(
        [
            (_DATAPLANE, "OpenStackDataPlane"),
            (_DATAPLANE, "OpenStackDataPlaneRole"),
            (_DATAPLANE, "OpenStackDataPlaneNode"),
            (_DATAPLANE, "OpenStackDataPlaneNodeSet"),
            *((one.api_version, one.kind) for one in BUILT_IN.values() if one.kind),
        ]
    )
)
OTHER_KINDS = (
    (_DATAPLANE, "OpenStackDataPlaneService"),
    ("nova.openstack.org/v1beta1", "Nova"),
    ("nova.openstack.org/v1beta1", "NovaCell"),
    ("edpm.openstack.org/v1beta1", "ServiceProfile"),
)
STORES = {kind: Resource("v1", kind, f"{kind.lower()}s", namespaced=True) for kind in ("Secret", "ConfigMap")}

_Asked = TypeVar("_Asked")
_Answer = TypeVar("_Answer")


def read_cluster(settings: Settings, namespaces: Sequence[str], images: Mapping[str, str]) -> Snapshot:
    """Open a connection, read, and close it."""
    with Connection(settings) as connection:
        return read_snapshot(Client(connection), namespaces, images)


def read_snapshot(client: Client, namespaces: Sequence[str], images: Mapping[str, str]) -> Snapshot:
    """The number of requests follows from kinds, namespaces, pages and named Secrets, not from the hosts."""
    objects, _none = _listed(client, _data_plane_kinds(client), namespaces)
    resources = resources_of(objects)
    held = _stored(client, definition_sources(resources))
    theirs = partners(resources, stores_of(held.values(), held.keys()))
    unseen: list[UnseenKind] = []
    if kinds := _served(client, {(one.api_version, one.kind) for one in theirs if one.kind}):
        more, unseen = _listed(client, list(kinds.values()), namespaces)
        resources = resources_of([*objects, *more])
    named = references(resources, partners=theirs)
    held |= _stored(client, named - held.keys())
    return snapshot(resources, named, held.values(), images, definitions=theirs, unseen=tuple(unseen))


def is_partners(api_version: str, kind: str) -> bool:
    """Whether a kind is a partner's, and neither the data plane's, nor ours, nor one of Kubernetes itself."""
    return "/" in api_version and (api_version, kind) not in (*NODE_KINDS, *OTHER_KINDS)


def _listed(
    client: Client, kinds: Sequence[Resource], namespaces: Sequence[str]
) -> tuple[list[ParsedObject], list[UnseenKind]]:
    """All objects of these kinds, and the partners' kinds among them that may not be listed."""
    wanted = [(kind, namespace) for kind in kinds for namespace in namespaces or (None,)]
    found = _at_once(lambda one: _list(client, *one), wanted)
    listed = [one for objects in found if isinstance(objects, list) for one in objects]
    return listed, [one for one in found if isinstance(one, UnseenKind)]


def _stored(client: Client, named: Set[Reference]) -> dict[Reference, Object]:
    """Those of the Secrets and ConfigMaps that exist."""
    refs = sorted(named)
    found = _at_once(lambda ref: _get(client, ref), refs)
    return {ref: body for ref, body in zip(refs, found, strict=True) if body is not None}


def _served(client: Client, kinds: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Resource]:
    """The kinds that the cluster knows; one whose CRD is not installed has no objects."""
    found: dict[tuple[str, str], Resource] = {}
    for api_version, kind in sorted(kinds):
        try:
            found[api_version, kind] = client.resource(api_version, kind)
        except KindNotServedError:
            continue
    return found


def _data_plane_kinds(client: Client) -> list[Resource]:
    found = _served(client, (*NODE_KINDS, *OTHER_KINDS))
    if found.keys().isdisjoint(NODE_KINDS):
        raise KindNotServedError(
            f"{client.server} serves no kind of a data plane, neither OpenStackDataPlaneNode nor any other; check that "
            "this is the cluster you mean, or install the CRDs: ansible-playbook edpm.services.install_cluster."
        )
    return list(found.values())


def _list(client: Client, kind: Resource, namespace: str | None) -> list[ParsedObject] | UnseenKind:
    """A partner's kind that cannot be listed concerns those who ask for its services; one of ours, everybody."""
    group = kind.api_version.rpartition("/")[0]
    try:
        return client.map_all(parse_object, kind, namespace)
    except OverloadedError as error:
        if not is_partners(kind.api_version, kind.kind):
            raise
        hint = (
            f"The kind comes from a partner's definition, so look at its CRD {kind.title} and the webhook in it first."
        )
        return UnseenKind(group, kind.kind, namespace or "", f"{error} {hint}")
    except NotAllowedError as error:
        if is_partners(kind.api_version, kind.kind):
            return UnseenKind(
                group,
                kind.kind,
                namespace or "",
                f"{str(error).rstrip('.')}; what helps is a ClusterRole that may get and list {kind.title}, bound to "
                f"the account as {READER} is: the kind comes from a partner's definition.",
            )
        where = (
            f"a RoleBinding to the ClusterRole {READER} in namespace {namespace}"
            if namespace is not None
            else f"a ClusterRoleBinding to the ClusterRole {READER}, or namespaces that it has a RoleBinding in"
        )
        raise NotAllowedError(f"{str(error).rstrip('.')}; what helps is {where}.") from error


def _get(client: Client, ref: Reference) -> Object | None:
    """None where it does not exist, which is for the plan to tell."""
    try:
        return client.get(STORES[ref.kind], ref.name, ref.namespace)
    except NotAllowedError as error:
        raise NotAllowedError(
            f"{str(error).rstrip('.')}; what helps is a RoleBinding to the ClusterRole {READER} "
            f"in namespace {ref.namespace}."
        ) from error


def _at_once(ask: Callable[[_Asked], _Answer], asked: Iterable[_Asked]) -> list[_Answer]:
    """All answers in the order of the questions, a few at a time; the first error ends it."""
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="edpm-kube") as threads:
        try:
            return list(threads.map(ask, asked))
        except BaseException:
            threads.shutdown(wait=True, cancel_futures=True)
            raise
