# SPDX-License-Identifier: GPL-3.0-or-later
"""Which keys count, which are refused, and where the variables go that lead to them."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.model import Reference, Store
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import Connection, NodePlan, Plan, SSHKey
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.values import Value
from ansible_collections.edpm.services.plugins.plugin_utils._inventory import ssh_access, ssh_agent
from ansible_collections.edpm.services.plugins.plugin_utils._inventory.ssh_keys import BadKeyError, is_locked, usable

KEY = "ssh-privatekey"


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[bytes]:
    """The keys that an agent was given; ssh-keygen takes what begins with `good`, ssh-add refuses `good-refused`."""
    keys: list[bytes] = []

    def public(key: bytes) -> str:
        if not key.startswith(b"good"):
            raise BadKeyError("is bad; mend it.")
        return key.decode().strip()

    class Agent(ssh_agent.Agent):
        def add(self, key: bytes, public: str) -> Path:
            if public == "good-refused":
                raise BadKeyError("is refused; mend it.")
            keys.append(key)
            return self.folder / public

    monkeypatch.setattr(ssh_access, "public_key", public)
    monkeypatch.setattr(ssh_access, "own_agent", lambda: Agent(tmp_path, -1))
    monkeypatch.setattr(ssh_access, "users_agent_has_keys", lambda: False)
    monkeypatch.setenv("SSH_AUTH_SOCK", "")
    return keys


def node(name: str, secret: str | None, role: str | None = "r", exists: bool = True, **variables: Value) -> NodePlan:
    key = SSHKey(Reference("Secret", "openstack", secret), KEY, exists) if secret else None
    origin = Reference("OpenStackDataPlaneNode", "openstack", name)
    connection = Connection(name, variables=variables, ssh_key=key)
    return NodePlan(name, "openstack", name, origin, role=role, connection=connection)


def opened(*nodes: NodePlan, connecting: bool = True) -> ssh_access.Access:
    secrets = {one.connection.ssh_key.secret for one in nodes if one.connection.ssh_key is not None}
    stores = {ref: Store(ref, {KEY: ref.name.encode()}) for ref in secrets}
    return ssh_access.open_nodes(Plan(nodes), stores, connecting=connecting)


def test_a_key_that_a_whole_role_has_is_the_groups_so_that_group_vars_win(loaded: list[bytes]) -> None:
    access = opened(node("a", "good-1"), node("b", "good-1"))
    assert access.of_hosts == {}
    assert access.of_groups["role_r"]["ansible_ssh_private_key_file"].endswith("/good-1")
    assert "IdentitiesOnly=yes" in access.of_groups["role_r"]["ansible_ssh_extra_args"]
    assert "ServerAliveInterval=30" in access.of_groups["role_r"]["ansible_ssh_extra_args"]
    assert loaded == [b"good-1\n"]


@pytest.mark.usefixtures("loaded")
def test_keys_that_differ_in_a_role_are_the_hosts() -> None:
    access = opened(node("a", "good-1"), node("b", "good-2"), node("c", None), node("d", "good-1", role=None))
    assert access.of_groups == {}
    assert {name: Path(found["ansible_ssh_private_key_file"]).name for name, found in access.of_hosts.items()} == {
        "a": "good-1",
        "b": "good-2",
        "d": "good-1",
    }


@pytest.mark.usefixtures("loaded")
def test_roles_whose_groups_have_one_name_share_nothing_by_mistake() -> None:
    access = opened(node("a", "good-1", role="r-x"), node("b", "good-2", role="r.x"))
    assert access.of_groups == {}
    assert set(access.of_hosts) == {"a", "b"}


@pytest.mark.usefixtures("loaded")
@pytest.mark.parametrize("connecting", [True, False])
def test_a_bad_key_blocks_all_nodes_that_have_it_and_no_other(connecting: bool) -> None:
    access = opened(node("a", "bad"), node("b", "good"), node("c", "bad"), connecting=connecting)
    sentence = "Secret openstack/bad, key ssh-privatekey: is bad; mend it."
    assert [one.sentences for one in access.plan.nodes] == [(sentence,), (), (sentence,)]
    assert set(access.of_hosts) == ({"b"} if connecting else set())


@pytest.mark.usefixtures("loaded")
def test_a_key_that_the_agent_refuses_blocks_its_node() -> None:
    access = opened(node("a", "good-refused"))
    assert access.plan.nodes[0].sentences == (
        "Secret openstack/good-refused, key ssh-privatekey: is refused; mend it.",
    )


@pytest.mark.parametrize(
    "one",
    [
        node("a", None),
        node("a", "bad", exists=False),
        node("a", "bad", ansible_connection="local"),
        node("a", "bad", ansible_ssh_private_key_file="/own"),
        node("a", "bad", ansible_private_key_file="/own"),
    ],
)
def test_a_node_that_is_reached_by_other_means_needs_no_key(loaded: list[bytes], one: NodePlan) -> None:
    access = opened(one)
    assert access.plan.nodes == (one,)
    assert access.of_hosts == access.of_groups == {}
    assert loaded == []


def test_without_openssh_the_run_goes_on_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    access = opened(node("a", "good"))
    assert access.plan.nodes[0].ready
    assert access.warnings == (
        "ssh-keygen is not on this machine, so no key of the nodes' Secrets is used; install the OpenSSH client.",
    )


@pytest.mark.parametrize(
    ("choice", "key_file", "agent", "brought"),
    [
        ("auto", None, False, False),
        ("auto", None, True, True),
        ("auto", "/own", False, True),
        ("own", None, False, True),
        ("secrets", "/own", True, False),
    ],
)
def test_whose_keys_count(
    monkeypatch: pytest.MonkeyPatch, choice: str, key_file: str | None, agent: bool, brought: bool
) -> None:
    monkeypatch.setattr(ssh_access, "users_agent_has_keys", lambda: agent)
    assert ssh_access.own_keys_are_brought(choice, key_file) is brought


def openssh(cipher: bytes) -> bytes:
    blob = b"openssh-key-v1\0" + len(cipher).to_bytes(4, "big") + cipher + b"\0" * 40
    text = base64.encodebytes(blob)
    return b"-----BEGIN OPENSSH PRIVATE KEY-----\n" + text + b"-----END OPENSSH PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    ("key", "locked"),
    [
        (openssh(b"none"), False),
        (openssh(b"aes256-ctr"), True),
        (b"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n", True),
        (b"-----BEGIN ENCRYPTED PRIVATE KEY-----\n", True),
        (b"-----BEGIN PRIVATE KEY-----\n", False),
        (b"-----BEGIN OPENSSH PRIVATE KEY-----\n%%%\n-----END OPENSSH PRIVATE KEY-----\n", False),
        (b"", False),
    ],
)
def test_a_passphrase_is_seen_in_every_format(key: bytes, locked: bool) -> None:
    assert is_locked(key) is locked


def test_a_key_gets_the_line_ends_that_openssh_wants() -> None:
    assert usable(b"\n a\r\nb") == b"a\nb\n"
