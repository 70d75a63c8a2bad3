# SPDX-License-Identifier: GPL-3.0-or-later
"""The metadata agent runs from its unit, before and after a reboot of its node."""

from __future__ import annotations

from typing import Any


def test_its_files_are_in_the_order_in_which_they_win(service: Any) -> None:
    agent = service("ovn_metadata_agent")
    assert agent.inside("ls /etc/neutron.conf.d").split() == [
        *("05-nova-metadata.conf", "10-neutron-metadata.conf", "98-profile.conf", "99-override.conf"),
    ]


def test_its_program_runs_as_the_images_user(service: Any) -> None:
    assert "neutron-ovn-metadata-agent" in service("ovn_metadata_agent").inside(
        "sh -c 'cat /proc/[0-9]*/cmdline; true'"
    )
    assert service("ovn_metadata_agent").inside("id -un") == "neutron"


def test_it_starts_with_the_node(host: Any, service: Any) -> None:
    agent = service("ovn_metadata_agent")
    assert agent.is_up()
    assert "multi-user.target" in host.check_output(f"systemctl show --value -p WantedBy {agent.unit}")


def test_it_is_registered_with_ovn_as_the_agent_of_its_chassis(host: Any, service: Any) -> None:
    assert service("ovn_metadata_agent").is_up()
    ask = '["OVN_Southbound",{"op":"select","table":"Chassis_Private","where":[],"columns":["external_ids"]}]'
    found = host.check_output(f"ovsdb-client transact tcp:127.0.0.1:6642 '{ask}'")
    assert "neutron:ovn-metadata-id" in found
