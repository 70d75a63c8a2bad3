# SPDX-License-Identifier: GPL-3.0-or-later
"""Which kinds this account may watch: one that it may not would end the watch of all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .._kube.client import Client, Resource
from .._kube.errors import NotAllowedError
from .._watch.watch import Kind

REVIEWS = Resource("authorization.k8s.io/v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False)
VERBS = ("list", "watch")


def watchable(client: Client, kinds: Iterable[Kind], namespaces: Sequence[str]) -> tuple[list[Kind], list[str]]:
    """The kinds that may be watched in all namespaces, and a sentence for each of the others."""
    allowed: list[Kind] = []
    sentences: list[str] = []
    for kind in kinds:
        found = _forbidden(client, client.resource(*kind), namespaces)
        if found is None:
            allowed.append(kind)
        else:
            sentences.append(found)
    return allowed, sentences


def _forbidden(client: Client, resource: Resource, namespaces: Sequence[str]) -> str | None:
    for namespace in namespaces:
        if verbs := [verb for verb in VERBS if not _may(client, verb, resource, namespace)]:
            return (
                f"The operator's account may not {' and '.join(verbs)} {resource.title} in namespace {namespace}; "
                f"changes of {resource.kind} are seen at the next resync, until a Role with these verbs is bound to it."
            )
    return None


def _may(client: Client, verb: str, resource: Resource, namespace: str) -> bool:
    group = resource.api_version.rpartition("/")[0]
    asked = {"namespace": namespace, "verb": verb, "group": group, "resource": resource.plural}
    body = {
        "apiVersion": REVIEWS.api_version,
        "kind": REVIEWS.kind,
        "metadata": {"name": ""},
        "spec": {"resourceAttributes": asked},
    }
    try:
        answer = client.create(REVIEWS, body)
    except NotAllowedError:
        return True  # who may not even ask finds out by trying
    return bool((answer.get("status") or {}).get("allowed"))
