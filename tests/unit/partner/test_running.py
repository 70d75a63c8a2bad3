# SPDX-License-Identifier: GPL-3.0-or-later
"""How a partner's service runs: the how-to page's example field by field, and what follows where nothing is said."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.partner import running
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.running import (
    Account,
    Folder,
    Health,
    Mount,
    OwnFile,
    Running,
)
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.partner_schema import SCHEMA
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.partners import definition_of
from hypothesis import given
from hypothesis import strategies as st

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "partner-service.md"
EXAMPLE = next(yaml.safe_load_all(re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)[0]))
TEXT = EXAMPLE["data"]["edpm-service.yaml"]


def made(text: str | dict[str, Any], name: str = "telemetry-probe") -> Running:
    definition = definition_of(text, "a test", name).partner
    assert definition is not None
    assert definition.faults == ()
    return running(definition.says)


def test_the_pages_example_runs_as_it_says() -> None:
    assert made(TEXT) == Running(
        service="telemetry-probe",
        title="Telemetry probe",
        command="probe --config-dir /etc/probe/conf.d",
        user="probe",
        mounts=(Mount("/var/lib/probe{suffix}", "/var/lib/probe", own=True), Mount("/run/openvswitch")),
        log_folder="/var/log/kolla/probe",
        capabilities=("NET_ADMIN",),
        podman_options=("--device=/dev/net/tun",),
        environment=(("PROBE_COLOUR", "no"),),
        after=("openvswitch.service",),
        stop_seconds=20,
        files=(OwnFile("/etc/probe", "filters.yaml", "drop: []\n"),),
        accounts=(Account("probe", 42990, "/var/lib/probe"),),
        folders=(Folder("/var/lib/probe{suffix}", "probe", 0o755),),
        sysctls=(("net.core.rmem_max", "8388608"),),
        modules=("tun",),
        health=Health(connected="probe", timeout=90),
        validates=True,
        reload=("kill", "-HUP", "1"),
        ports=("tcp 9100",),
        busy=("probe", "--sessions"),
        data=("/var/lib/probe{suffix}",),
    )


def test_what_is_not_said_is_the_least_that_can_be() -> None:
    assert made({"version": 1, "user": "a", "command": "b"}, "x") == Running("x", "x", "b", "a")


def test_commands_privileges_and_modes_are_taken_as_they_are_said() -> None:
    found = made(
        {
            "version": 1,
            "user": "root",
            "command": "b",
            "privileges": {"privileged": True, "devices": ["/dev/kvm"], "podman_options": ["--pid=host"]},
            "health": {"command": ["check", "--fast"], "settle": 0},
            "validation": {"command": ["b", "--check"]},
            "files": [{"path": "/etc/b/run", "content": "#!/bin/sh\n", "mode": "0700"}],
            "accounts": [{"name": "b", "number": 7}],
            "order": {"wants": ["c.service"]},
        },
        "x",
    )
    assert found.privileged
    assert found.podman_options == ("--device=/dev/kvm", "--pid=host")
    assert found.health == Health(("check", "--fast"), settle=0)
    assert (found.validates, found.validation) == (False, ("b", "--check"))
    assert found.files == (OwnFile("/etc/b", "run", "#!/bin/sh\n", mode=0o700),)
    assert found.accounts == (Account("b", 7, "/var/lib/b"),)
    assert found.wants == ("c.service",)


def test_a_container_is_confined_where_its_definition_says_so() -> None:
    least = {"version": 1, "user": "a", "command": "b"}
    assert [made({**least, "privileges": {"confined": said}}, "x").confined for said in (True, False)] == [True, False]


def test_a_definition_is_read_once_for_all_nodes() -> None:
    definition = definition_of(TEXT, "a test", "telemetry-probe").partner
    assert definition is not None
    assert running(definition.says) is running(definition.says)
    assert running(dict(definition.says)) == running(definition.says)


@given(
    st.dictionaries(
        st.sampled_from(list(SCHEMA.fields)),
        st.recursive(
            st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8)),
            lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner)),
            max_leaves=5,
        ),
    )
)
def test_a_definition_with_faults_can_still_be_shown(says: dict[str, Any]) -> None:
    definition = definition_of(says, "a test", "x").partner
    assert definition is not None
    assert running(definition.says).service == "x"
