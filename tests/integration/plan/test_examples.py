# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples of the documentation, run as they stand there on the tutorial's data plane."""

from __future__ import annotations

import shutil

import pytest
import yaml
from ansible_collections.edpm.services.plugins.lookup import service_config
from ansible_collections.edpm.services.plugins.modules import dataplane_info

from .conftest import TUTORIAL, User


@pytest.fixture(autouse=True)
def _tutorial(user: User) -> None:
    shutil.copytree(TUTORIAL, user.folder / "manifests" / "openstack")
    user.reads("manifests")
    (user.folder / "hosts").write_text("[computes]\nedpm-compute-0\nedpm-compute-1\n")


def test_the_modules(user: User) -> None:
    run = user.play(*yaml.safe_load(dataplane_info.EXAMPLES), hosts="localhost")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "[DEFAULT] debug = True" in run.stdout
    assert (user.folder / "plan.html").exists()


def test_the_lookups(user: User) -> None:
    review = user.folder / "review"
    review.mkdir()
    examples = service_config.EXAMPLES.replace("/srv/review/nova.conf.d", str(review))
    *tasks, play = yaml.safe_load(examples)
    run = user.play(*tasks, hosts="edpm-compute-1")
    assert run.returncode == 0, run.stdout + run.stderr
    written = ["01-nova.conf", "02-nova-compute-profile.conf", "02-nova-host-specific.conf"]
    assert sorted(file.name for file in review.iterdir()) == written
    run = user.play(*play["tasks"], hosts=play["hosts"], inventory="hosts")
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("02-nova-override.conf") == 1


def test_a_node_that_logs_too_much_is_stopped_by_the_example_that_says_so(user: User) -> None:
    *tasks, _play = yaml.safe_load(service_config.EXAMPLES)
    run = user.play(tasks[-1], hosts="all")
    assert "edpm-compute-0             : ok=0    changed=0    unreachable=0    failed=1" in run.stdout
    assert "edpm-compute-1             : ok=1" in run.stdout
