# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts asked for their keys over the network, by an ssh-keyscan made for it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._rollout.known_hosts import keyscan

# The options are those of OpenSSH 8; what is newer makes an older one refuse the whole question.
OLD = """#!/bin/sh
while getopts 46cDHvf:p:T:t: option; do case $option in p) port=$OPTARG ;; '?') exit 1 ;; esac; done
while read -r name || [ -n "$name" ]; do
  [ "$port" = 22 ] || name="[$name]:$port"
  echo "# $name SSH-2.0-OpenSSH_8.0"
  [ "$name" = silent ] || echo "$name ssh-ed25519 AAAA"
done
"""


@pytest.fixture(autouse=True)
def _program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "ssh-keyscan"
    program.write_text(OLD)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")


def test_an_old_ssh_keyscan_is_understood_and_who_is_silent_is_left_out() -> None:
    assert keyscan(["192.0.2.1", "silent"], 22) == {"192.0.2.1": {"ssh-ed25519": "AAAA"}}


def test_a_port_of_ones_own_is_no_part_of_the_name() -> None:
    assert keyscan(["192.0.2.1", "2001:db8::1"], 2222) == {
        "192.0.2.1": {"ssh-ed25519": "AAAA"},
        "2001:db8::1": {"ssh-ed25519": "AAAA"},
    }
