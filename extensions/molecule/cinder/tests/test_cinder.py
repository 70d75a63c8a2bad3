# SPDX-License-Identifier: GPL-3.0-or-later
"""cinder-volume runs with the back end of its snippet, and with what was deployed even after somebody edited it."""

from __future__ import annotations

from typing import Any

PROGRAM = """from oslo_config import cfg
conf = cfg.ConfigOpts()
conf.register_opt(cfg.ListOpt("enabled_backends"))
conf([], default_config_files=[], default_config_dirs=["/etc/cinder/cinder.conf.d"])
print(*conf.enabled_backends)"""


def test_the_back_end_of_the_snippet_wins(service: Any) -> None:
    assert service("cinder_volume").inside(f"python3 -c '{PROGRAM}'") == "share"


def test_nothing_that_was_edited_by_hand_stays(host: Any, service: Any) -> None:
    volume = service("cinder_volume")
    assert volume.is_up()
    assert "by hand" not in volume.text("conf.d/01-cinder.conf")
    assert "edited by hand" not in host.file("/etc/containers/systemd/edpm_cinder_volume.container").content_string


def test_it_has_the_privileges_of_its_definition_and_no_more(service: Any) -> None:
    volume = service("cinder_volume")
    assert volume.facts(".HostConfig.Privileged") == "false"
    assert set(volume.facts("range .HostConfig.CapAdd}}{{.}} {{end").split()) == {
        "CAP_DAC_READ_SEARCH",
        "CAP_SYS_ADMIN",
    }
