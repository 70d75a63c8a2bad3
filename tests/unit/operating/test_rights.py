# SPDX-License-Identifier: GPL-3.0-or-later
"""A kind that may not be watched is left out, and told with verb and resource."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._kube.client import Object, Resource
from ansible_collections.edpm.services.plugins.plugin_utils._kube.errors import NotAllowedError
from ansible_collections.edpm.services.plugins.plugin_utils._operator import main
from ansible_collections.edpm.services.plugins.plugin_utils._operator.main import Operator
from ansible_collections.edpm.services.plugins.plugin_utils._operator.rights import watchable
from ansible_collections.edpm.services.plugins.plugin_utils._operator.settings import OperatorSettings

SECRET, CELL = ("v1", "Secret"), ("nova.openstack.org/v1beta1", "NovaCell")


@dataclass
class FakeReviews:
    """Answers what an account may do; `forbidden` are namespace, verb, group and resource."""

    forbidden: Collection[tuple[str, str, str, str]] = ()
    answers: bool = True

    def resource(self, api_version: str, kind: str) -> Resource:
        return Resource(api_version, kind, f"{kind.lower()}s", namespaced=True)

    def create(self, resource: Resource, body: Object) -> Object:
        if not self.answers:
            raise NotAllowedError("It may not ask.")
        assert resource.plural == "selfsubjectaccessreviews"
        asked = body["spec"]["resourceAttributes"]
        key = tuple(asked[name] for name in ("namespace", "verb", "group", "resource"))
        return {**body, "status": {"allowed": key not in self.forbidden}}


def test_a_kind_that_is_forbidden_in_one_namespace_is_dropped_with_a_sentence() -> None:
    client = FakeReviews({("b", "watch", "", "secrets"), ("b", "list", "", "secrets"), ("c", "watch", "", "novacells")})
    kinds, told = watchable(client, [SECRET, CELL], ["a", "b"])  # type: ignore[arg-type]  # it has what is asked
    assert kinds == [CELL]
    assert told == [
        "The operator's account may not list and watch secrets in namespace b; changes of Secret are seen at the next "
        "resync, until a Role with these verbs is bound to it."
    ]


def test_a_group_is_part_of_the_question_and_of_the_sentence() -> None:
    client = FakeReviews({("a", "watch", "nova.openstack.org", "novacells")})
    kinds, [told] = watchable(client, [SECRET, CELL], ["a"])  # type: ignore[arg-type]  # it has what is asked
    assert kinds == [SECRET]
    assert "may not watch novacells.nova.openstack.org in namespace a;" in told


def test_who_may_not_ask_watches_all() -> None:
    client = FakeReviews(answers=False)
    assert watchable(client, [SECRET, CELL], ["a"]) == ([SECRET, CELL], [])  # type: ignore[arg-type]  # as above


def test_it_is_told_once_and_again_when_it_comes_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Nowhere:
        def __enter__(self) -> None: ...

        def __exit__(self, *_ending: object) -> None: ...

    client = FakeReviews()
    monkeypatch.setattr(main, "Connection", lambda _settings: Nowhere())
    monkeypatch.setattr(main, "Client", lambda _connection: client)
    monkeypatch.setattr(main, "served", lambda _client, _kinds: [SECRET, CELL])
    one = Operator(OperatorSettings(namespaces=("a",)))
    lost = {("a", "watch", "", "secrets")}
    for forbidden, expected, times in (
        (lost, [CELL], 1),
        (lost, [CELL], 1),
        ((), [SECRET, CELL], 1),
        (lost, [CELL], 2),
    ):
        client.forbidden = forbidden
        assert one._kinds() == expected
        assert caplog.text.count("may not watch secrets") == times
