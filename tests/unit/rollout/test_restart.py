# SPDX-License-Identifier: GPL-3.0-or-later
"""Which units the playbook restart restarts: what it says itself, evaluated as Jinja."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ansible_collections.edpm.services.plugins.plugin_utils._report.overview import Question
from jinja2 import Environment

PLAYBOOK = Path(__file__).parents[3] / "playbooks/restart.yml"
RUNNING = ("libvirt", "nova_compute", "nova_compute@fast")


def restarted(asked: str | None) -> list[str]:
    """The services that a run with `-e service=<asked>` restarts."""
    play = next(one for one in yaml.safe_load(PLAYBOOK.read_text()) if "tasks" in one)
    condition = next(task["when"] for task in play["tasks"] if "loop" in task)
    jinja = Environment(autoescape=False)
    given = {} if asked is None else {"service": asked}
    names = jinja.compile_expression(play["vars"]["edpm_restart_names"].strip().strip("{}"))(given)
    chosen = jinja.compile_expression(condition)
    return [name for name in RUNNING if chosen(edpm_restart_names=names, item={"key": name})]


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        (None, ["libvirt", "nova_compute", "nova_compute@fast"]),
        ("nova_compute", ["nova_compute", "nova_compute@fast"]),
        ("nova_compute@", ["nova_compute"]),
        ("nova_compute@fast", ["nova_compute@fast"]),
        ("libvirt@, nova_compute@", ["libvirt", "nova_compute"]),
    ],
)
def test_the_playbook_restarts_what_the_other_playbooks_would_mean(asked: str | None, meant: list[str]) -> None:
    assert restarted(asked) == meant
    assert [name for name in RUNNING if Question(service=asked or "").asks(name)] == meant
