# SPDX-License-Identifier: GPL-3.0-or-later
"""The SR-IOV agent runs from its unit with the snippet above its files, and without privileges."""

from __future__ import annotations

from typing import Any

SNIPPET = "[sriov_nic]\nphysical_device_mappings =\nexclude_devices =\n"


def test_the_agent_is_up_and_reads_the_snippet_last(service: Any) -> None:
    agent = service("neutron_sriov_agent")
    assert agent.is_up()
    assert agent.text("conf.d/99-override.conf") == SNIPPET
    assert agent.inside("ls /etc/neutron.conf.d").split() == ["01-neutron.conf", "99-override.conf"]
    assert agent.inside("cat /etc/neutron.conf.d/99-override.conf") + "\n" == SNIPPET


def test_nobody_but_root_reads_its_files(service: Any) -> None:
    assert service("neutron_sriov_agent").modes() <= {("root", "700"), ("root", "600")}


def test_it_has_the_privileges_of_its_definition_and_no_more(service: Any) -> None:
    agent = service("neutron_sriov_agent")
    assert agent.facts(".HostConfig.Privileged") == "false"
    assert set(agent.facts("range .HostConfig.CapAdd}}{{.}} {{end").split()) == {
        *("CAP_DAC_READ_SEARCH", "CAP_NET_ADMIN", "CAP_SYS_ADMIN"),
    }
