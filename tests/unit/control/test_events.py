# SPDX-License-Identifier: GPL-3.0-or-later
"""Events are a courtesy: one that cannot be stored keeps nobody waiting."""

from __future__ import annotations

from typing import Any, cast

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._control.events import Event, post
from ansible_collections.edpm.services.plugins.plugin_utils._control.standing import standing
from ansible_collections.edpm.services.plugins.plugin_utils._kube.client import Client
from ansible_collections.edpm.services.plugins.plugin_utils._kube.errors import (
    ConflictError,
    KubernetesError,
    NotAllowedError,
    NotFoundError,
    OverloadedError,
    RefusedError,
    UnreachableError,
)

ALL = 3
BODY = {
    "apiVersion": "nova.openstack.org/v1beta1",
    "kind": "NovaExternalCompute",
    "metadata": {"name": "n0", "namespace": "openstack", "uid": "1"},
    "spec": {"dataplaneNodeName": "n0"},
}


class Server:
    """Answers each Event with the same fault."""

    def __init__(self, fault: KubernetesError | None) -> None:
        self.fault, self.asked = fault, 0

    def create(self, _resource: Any, _body: Any) -> None:
        self.asked += 1
        if self.fault is not None:
            raise self.fault


@pytest.mark.parametrize("fault", [None, ConflictError("x"), NotFoundError("x"), RefusedError("x")])
def test_one_event_that_is_not_taken_leaves_the_others(fault: KubernetesError | None) -> None:
    assert asked(fault) == ALL


@pytest.mark.parametrize("fault", [NotAllowedError("x"), OverloadedError("x"), UnreachableError("x")])
def test_a_server_in_trouble_is_asked_once(fault: KubernetesError) -> None:
    assert asked(fault) == 1


def asked(fault: KubernetesError | None) -> int:
    server, about = Server(fault), standing(BODY)
    assert about is not None
    post(cast("Client", server), [Event(about, "Normal", "Deployed", "it is there")] * ALL)
    return server.asked
