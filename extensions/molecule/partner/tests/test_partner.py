# SPDX-License-Identifier: GPL-3.0-or-later
"""A service that only its definition describes."""

from __future__ import annotations

from typing import Any


def test_it_runs_and_has_read_its_files_in_their_order(host: Any, service: Any) -> None:
    assert service("acme-agent").is_up()
    seen = host.file("/var/lib/acme/seen").content_string
    assert seen == "[DEFAULT]\ninterval = 60\n[DEFAULT]\ninterval = 5\n"


def test_its_container_is_confined(service: Any) -> None:
    agent = service("acme-agent")
    assert agent.facts(".HostConfig.Privileged") == "false"
    assert agent.facts(".HostConfig.CapAdd") == "[]"
