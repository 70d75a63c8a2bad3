# SPDX-License-Identifier: GPL-3.0-or-later
"""Who set an option, and who was overridden."""

from __future__ import annotations

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import Plan
from ansible_collections.edpm.services.plugins.plugin_utils._report.explained import explained, explained_lines
from ansible_collections.edpm.services.plugins.plugin_utils._report.lines import as_text
from ansible_collections.edpm.services.plugins.plugin_utils._report.near import NotThereError
from ansible_collections.edpm.services.plugins.plugin_utils._report.overview import Question, overview

from .dataplanes import NOVA, PASSWORD, plan_of, thing

DEBUG = """\
compute-0 · nova_compute · [DEFAULT] debug = True
  False     01-nova.conf:2           Secret openstack/nova-cell1-compute-config, key 01-nova.conf
  True   ◄  02-nova-override.conf:2  NovaExternalCompute openstack/compute-0, spec.customServiceConfig
"""


def shown(node: str, service: str = "nova_compute", option: str = "", plan: Plan | None = None) -> str:
    question = Question(node, service, option)
    return as_text(explained_lines(explained(overview(plan or plan_of(), question), question), question))


def with_snippet(text: str) -> Plan:
    spec = {"dataplaneNodeName": "compute-0", "cellName": "nova-cell1", "customServiceConfig": text}
    return plan_of(thing(NOVA, "NovaExternalCompute", "compute-0", spec=spec))


@pytest.mark.parametrize("option", ["DEFAULT.debug", "debug"])
def test_an_option_with_its_value_who_set_it_and_who_was_overridden(option: str) -> None:
    assert shown("compute-0", option=option) == DEBUG


def test_without_a_node_every_node_that_sets_the_option_is_shown() -> None:
    blocks = shown("", "", "debug").split("\n\n")
    assert [block.splitlines()[0] for block in blocks] == [
        "compute-0 · nova_compute · [DEFAULT] debug = True",
        "compute-1 · nova_compute · [DEFAULT] debug = False",
    ]


def test_without_an_option_all_are_shown_below_one_title() -> None:
    lines = shown("compute-0").splitlines()
    assert lines[0] == "compute-0 · nova_compute"
    names = [line.strip().split(" = ")[0] for line in lines if line.startswith("  [")]
    assert names[:3] == ["[DEFAULT] debug", "[DEFAULT] host", "[DEFAULT] label"]
    assert "  [pci] alias: 2 values, which add up" in lines
    assert sum("◄" in line for line in lines if "alias" not in line) == len(names) + 1


def test_secrets_are_masked() -> None:
    text = shown("compute-0")
    assert PASSWORD not in text
    assert "  [keystone_authtoken] password = ***" in text
    assert "rabbit://nova:***@rabbit.example/" in text


def test_a_password_with_a_dollar_sign_does_not_show_in_the_reference_that_it_seems_to_hold() -> None:
    text = "[keystone_authtoken]\npassword = very$hidden\n[DEFAULT]\ntransport_url = rabbit://u:so$hidden@h/\n"
    assert "hidden" not in shown("compute-0", plan=with_snippet(text))


def test_what_would_upset_a_terminal_is_written_out() -> None:
    text = shown("compute-0", option="evil", plan=with_snippet("[DEFAULT]\nevil = a\x1b[31m\u202eb\n"))
    assert text.splitlines()[0].endswith("[DEFAULT] evil = a\\x1b[31m\\u202eb")


def test_a_reference_that_only_the_service_can_resolve_is_said_to_be() -> None:
    text = shown("compute-0", option="path", plan=with_snippet("[DEFAULT]\npath = $pybasedir/x\n"))
    assert "  $pybasedir is set nowhere; the service puts its own default there" in text.splitlines()


def test_a_blocked_service_is_explained_as_far_as_it_goes() -> None:
    lines = shown("compute-2").splitlines()
    assert "  [DEFAULT] host = compute-2" in lines
    assert (
        "blocked: Secret openstack/nova-cell2-compute-config does not exist; NovaCell nova-cell2 makes it once it is "
        "Ready." in lines
    )


@pytest.mark.parametrize(
    ("node", "service", "option", "sentence"),
    [
        (
            "compute-0",
            "nova_compute",
            "DEFAULT.debgu",
            "No file of nova_compute on compute-0 sets DEFAULT.debgu; did you mean DEFAULT.debug?",
        ),
        ("", "nova_compute", "keystone_authtoken.pasword", "No file sets keystone_authtoken.pasword; did you mean "),
        (
            "compute-0",
            "libvirt",
            "",
            "libvirt has no configuration of oslo.config's kind, so there is nothing",
        ),
        ("network-0", "", "", "network-0 runs nothing of ours: no annotation asks for a service."),
    ],
)
def test_what_cannot_be_explained_is_one_sentence(node: str, service: str, option: str, sentence: str) -> None:
    with pytest.raises(NotThereError) as told:
        shown(node, service, option)
    assert str(told.value).startswith(sentence)
