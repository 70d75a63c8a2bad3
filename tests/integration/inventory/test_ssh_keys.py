# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys out of Secrets open real connections, are seen nowhere, and are gone with the run."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from .conftest import Controller, Key, Sshd, data_plane, make_key

KINDS = {
    "ed25519": ("-t", "ed25519"),
    "rsa-openssh": ("-t", "rsa", "-b", "2048"),
    "rsa-pem": ("-t", "rsa", "-b", "2048", "-m", "PEM"),
    "rsa-pkcs8": ("-t", "rsa", "-b", "2048", "-m", "PKCS8"),
}


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Key]:
    return {name: make_key(tmp_path_factory.getbasetemp(), *options) for name, options in KINDS.items()}


@pytest.fixture
def users_key(tmp_path: Path) -> Key:
    return make_key(tmp_path, "-t", "ed25519")


@pytest.fixture
def users_agent(users_key: Key) -> Iterator[str]:
    """An agent of the user's, with a key that no Secret has."""
    place = f"/tmp/edpm-a{os.getpid()}"
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", place], stdout=subprocess.DEVNULL)
    while not Path(place).is_socket():
        time.sleep(0.02)
    subprocess.run(
        ["ssh-add", "-q", "-"],
        input=users_key.private,
        text=True,
        env={**os.environ, "SSH_AUTH_SOCK": place},
        check=True,
    )
    yield place
    agent.terminate()
    agent.wait(10)


def reached(run: subprocess.CompletedProcess[str]) -> set[str]:
    return set(re.findall(r"^(\S+) \| CHANGED", run.stdout, re.MULTILINE))


def test_every_kind_of_key_opens_its_node_and_is_seen_nowhere(
    sshd: Sshd, controller: Controller, keys: dict[str, Key]
) -> None:
    sshd.admit(*(key.public for key in keys.values()))
    controller.write(data_plane(sshd, keys))
    run = controller.run("ansible", "all", "-m", "ansible.builtin.raw", "-a", "true", "-vvvv")
    assert reached(run) == set(keys), run.stdout + run.stderr
    assert "IdentitiesOnly=yes" in run.stdout
    listed = controller.run("ansible-inventory", "--list")
    assert set(json.loads(listed.stdout)["_meta"]["hostvars"]) == set(keys)
    assert "ansible_ssh" not in listed.stdout
    for key in keys.values():
        assert key.line not in run.stdout + run.stderr + listed.stdout + listed.stderr
        assert controller.files_with(key.line) == []
    assert controller.wait_until_nothing_is_left() == []


def test_every_node_gets_its_own_key_and_no_other(sshd: Sshd, controller: Controller, keys: dict[str, Key]) -> None:
    sshd.admit(keys["rsa-pem"].public)
    controller.write(data_plane(sshd, keys))
    assert reached(controller.run("ansible", "all", "-m", "ansible.builtin.raw", "-a", "true")) == {"rsa-pem"}


def test_a_key_with_windows_line_ends_and_no_last_one_is_used(
    sshd: Sshd, controller: Controller, keys: dict[str, Key]
) -> None:
    key = keys["ed25519"]
    sshd.admit(key.public)
    controller.write(data_plane(sshd, {"a": Key(key.private.strip().replace("\n", "\r\n"), key.public)}))
    assert reached(controller.run("ansible", "all", "-m", "ansible.builtin.raw", "-a", "true")) == {"a"}


@pytest.mark.parametrize("options", [("-t", "ed25519"), ("-t", "rsa", "-m", "PEM"), ("-t", "rsa", "-m", "PKCS8")])
def test_a_key_with_a_passphrase_blocks_its_node_and_no_other(
    sshd: Sshd, controller: Controller, keys: dict[str, Key], options: tuple[str, ...], tmp_path: Path
) -> None:
    locked = make_key(tmp_path, *options, passphrase="correct horse")
    sshd.admit(keys["ed25519"].public)
    controller.write(data_plane(sshd, {"good": keys["ed25519"], "locked": locked}))
    run = controller.run("ansible", "ready", "-m", "ansible.builtin.raw", "-a", "true")
    assert reached(run) == {"good"}, run.stdout + run.stderr
    shown = controller.run("ansible-inventory", "--host", "locked")
    assert json.loads(shown.stdout)["edpm_blocked"] == [
        "Secret openstack/key-locked, key ssh-privatekey: is protected by a passphrase, which nobody can type here; "
        "store the key without one, or bring an agent or a key file of your own."
    ]


def test_what_is_no_key_blocks_its_node_and_no_other(sshd: Sshd, controller: Controller, keys: dict[str, Key]) -> None:
    good = keys["ed25519"]
    sshd.admit(good.public)
    cut = Key(good.private[:150] + good.private[190:], good.public)
    bad = {"cut": cut, "public": Key(good.public, good.public), "words": Key("hello", ""), "empty": Key("", "")}
    controller.write(data_plane(sshd, {"good": good, **bad}))
    run = controller.run("ansible", "ready", "-m", "ansible.builtin.raw", "-a", "true")
    assert reached(run) == {"good"}, run.stdout + run.stderr
    for name in bad:
        shown = json.loads(controller.run("ansible-inventory", "--host", name).stdout)
        assert shown["edpm_blocked"] == [
            f"Secret openstack/key-{name}, key ssh-privatekey: is no SSH private key; "
            "store one in OpenSSH or PEM format there."
        ]


def test_a_users_own_agent_is_used_instead(
    sshd: Sshd, controller: Controller, keys: dict[str, Key], users_key: Key, users_agent: str
) -> None:
    locked = make_key(controller.folder, "-t", "ed25519", passphrase="correct horse")
    sshd.admit(users_key.public)
    controller.write(data_plane(sshd, {"a": keys["ed25519"], "locked": locked}))
    run = controller.run(
        "ansible", "ready", "-m", "ansible.builtin.raw", "-a", "true", "-vvvv", SSH_AUTH_SOCK=users_agent
    )
    assert reached(run) == {"a", "locked"}, run.stdout + run.stderr
    assert "IdentityAgent" not in run.stdout
    assert controller.leftovers() == []


def test_the_secrets_keys_are_used_beside_a_users_agent_when_that_is_asked_for(
    sshd: Sshd, controller: Controller, keys: dict[str, Key], users_agent: str
) -> None:
    sshd.admit(keys["ed25519"].public)
    controller.write(data_plane(sshd, {"a": keys["ed25519"]}), ssh_keys="secrets")
    run = controller.run("ansible", "all", "-m", "ansible.builtin.raw", "-a", "true", SSH_AUTH_SOCK=users_agent)
    assert reached(run) == {"a"}, run.stdout + run.stderr


def test_an_agent_that_is_empty_or_gone_does_not_count(
    sshd: Sshd, controller: Controller, keys: dict[str, Key]
) -> None:
    sshd.admit(keys["ed25519"].public)
    controller.write(data_plane(sshd, {"a": keys["ed25519"]}))
    run = controller.run("ansible", "all", "-m", "ansible.builtin.raw", "-a", "true", SSH_AUTH_SOCK="/nowhere/agent")
    assert reached(run) == {"a"}, run.stdout + run.stderr


@pytest.mark.parametrize("way", ["--private-key", "group_vars", "ansible.cfg"])
def test_a_users_own_key_file_is_used_instead(
    sshd: Sshd, controller: Controller, keys: dict[str, Key], users_key: Key, way: str
) -> None:
    sshd.admit(users_key.public)
    controller.write(data_plane(sshd, {"a": keys["ed25519"]}))
    file = controller.folder / "own"
    file.touch(mode=0o600)
    file.write_text(users_key.private)
    if way == "group_vars":
        (controller.folder / "group_vars").mkdir()
        (controller.folder / "group_vars" / "all.yml").write_text(f"ansible_ssh_private_key_file: {file}\n")
    if way == "ansible.cfg":
        (controller.folder / "ansible.cfg").write_text(f"[defaults]\nprivate_key_file = {file}\n")
    more = ("--private-key", file) if way == "--private-key" else ()
    run = controller.run("ansible", "all", "-m", "ansible.builtin.raw", "-a", "true", *more)
    assert reached(run) == {"a"}, run.stdout + run.stderr


def test_a_refreshed_inventory_uses_the_same_agent_and_a_new_key(
    sshd: Sshd, controller: Controller, keys: dict[str, Key]
) -> None:
    sshd.admit(*(key.public for key in keys.values()))
    controller.write(data_plane(sshd, {"a": keys["ed25519"], "b": keys["rsa-pem"]}))
    (controller.folder / "both.yaml").write_text(yaml.safe_dump_all(data_plane(sshd, {"a": keys["rsa-pem"]})))
    tasks = [
        {"ansible.builtin.raw": "true"},
        {"ansible.builtin.command": "cp both.yaml manifests.yaml", "delegate_to": "localhost"},
        {"ansible.builtin.meta": "refresh_inventory"},
        {"ansible.builtin.raw": "true"},
        {"ansible.builtin.debug": {"msg": "{{ lookup('env', 'SSH_AUTH_SOCK') }}"}},
    ]
    play = [{"hosts": "a", "gather_facts": False, "tasks": tasks}]
    (controller.folder / "play.yml").write_text(yaml.safe_dump(play))
    run = controller.run("ansible-playbook", "play.yml")
    assert run.returncode == 0, run.stdout + run.stderr
    assert controller.wait_until_nothing_is_left() == []


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_killed_leaves_no_agent_and_no_folder(
    sshd: Sshd, controller: Controller, keys: dict[str, Key], how: signal.Signals
) -> None:
    sshd.admit(keys["ed25519"].public)
    controller.write(data_plane(sshd, {"a": keys["ed25519"]}))
    on_the_node = f"sleep 3.{secrets.randbelow(10**9)}"
    command = controller.command("ansible", "all", "-m", "ansible.builtin.raw", "-a", f"echo begun; {on_the_node}")
    with subprocess.Popen(
        command,
        cwd=controller.folder,
        env=controller.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as run:
        deadline = time.monotonic() + 60
        while on_the_node not in processes():
            assert time.monotonic() < deadline, "the command has not come to the node"
            time.sleep(0.1)
        assert any(place.startswith(str(controller.temporary)) for place in controller.leftovers())
        run.send_signal(how)
        run.wait(60)
    assert controller.wait_until_nothing_is_left() == []


def processes() -> list[str]:
    """All of this host, with their arguments."""
    return subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout.splitlines()


def test_a_folder_whose_agent_was_killed_with_its_watch_is_removed_by_the_next_run(
    sshd: Sshd, controller: Controller, keys: dict[str, Key]
) -> None:
    sshd.admit(keys["ed25519"].public)
    controller.write(data_plane(sshd, {"a": keys["ed25519"]}))
    dead = controller.temporary / "edpm-ssh-dead"
    dead.mkdir(mode=0o700)
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", dead / "agent"], stdout=subprocess.DEVNULL)
    while not (dead / "agent").is_socket():
        time.sleep(0.02)
    agent.kill()
    agent.wait(10)
    assert dead.exists()
    controller.run("ansible", "all", "-m", "ansible.builtin.raw", "-a", "true")
    assert not dead.exists()


@pytest.mark.parametrize("program", ["ansible-inventory", "ansible-playbook"])
def test_nothing_is_started_when_nothing_will_connect(
    sshd: Sshd, controller: Controller, keys: dict[str, Key], program: str
) -> None:
    controller.write(data_plane(sshd, {"a": keys["ed25519"]}))
    (controller.folder / "play.yml").write_text("- hosts: all\n")
    (controller.folder / "bin").mkdir()
    spy = controller.folder / "bin" / "ssh-agent"
    spy.write_text(f"#!/bin/sh\ntouch {controller.folder}/started\n")
    spy.chmod(0o755)
    arguments = ["--graph"] if program == "ansible-inventory" else ["play.yml", "--list-hosts"]
    environment = controller.environment()
    run = controller.run(program, *arguments, PATH=f"{controller.folder}/bin:{environment['PATH']}")
    assert run.returncode == 0, run.stdout + run.stderr
    assert not (controller.folder / "started").exists()
