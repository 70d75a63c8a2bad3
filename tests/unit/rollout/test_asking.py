# SPDX-License-Identifier: GPL-3.0-or-later
"""From the options of a task to what its node is asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import Bundle
from ansible_collections.edpm.services.plugins.module_utils._node.travel import read
from ansible_collections.edpm.services.plugins.plugin_utils._report.near import NotThereError
from ansible_collections.edpm.services.plugins.plugin_utils._rollout import asking, known_hosts
from ansible_collections.edpm.services.plugins.plugin_utils._rollout.calling import Quiet

from .nodes import AGENT, answer, compute, node, service, taken

HOST = {"inventory_hostname": "n0", "ansible_host": "192.0.2.7"}
PLAIN = {"service": "libvirt", "image": "registry/libvirt:9"}


def ask(named: Mapping[str, Any], content: str = "") -> asking.Asked:
    defaults = {name: one.get("default") for name, one in asking.SPEC.items()}
    return asking.asked({**defaults, **named}, list(named), HOST, str, lambda _path: content)


def bundle_of(found: asking.Asked) -> Bundle:
    return read(found.options["bundle"])


def test_a_service_of_the_plan_needs_no_more_than_its_name() -> None:
    with taken(node("n0", service())):
        found = ask({"service": AGENT})
    assert set(found.options) == {"bundle"}
    assert bundle_of(found).image.reference == f"registry/{AGENT}:1"


def test_options_of_the_node_are_handed_on_when_they_are_named() -> None:
    with taken(node("n0", service())):
        found = ask({"service": AGENT, "lock_timeout": 0, "state": "pulled"})
    assert (found.options["lock_timeout"], found.options["state"]) == (0, "pulled")


def test_without_a_plan_the_options_describe_the_service() -> None:
    assert bundle_of(ask(PLAIN)).image.reference == "registry/libvirt:9"


def test_a_host_that_the_plan_does_not_know_is_described_by_options() -> None:
    with taken(node("other", service("libvirt"))):
        assert bundle_of(ask(PLAIN)).image.reference == "registry/libvirt:9"


def test_the_plan_wins_over_options_unless_they_are_asked_for() -> None:
    with taken(node("n0", service("libvirt"))):
        assert bundle_of(ask(PLAIN)).image.reference == "registry/libvirt:1"
        assert bundle_of(ask({**PLAIN, "source": "options"})).image.reference == "registry/libvirt:9"


def test_a_service_that_the_plan_does_not_have_on_the_node_is_refused_by_name() -> None:
    with taken(node("n0", service())), pytest.raises(NotThereError, match="The node n0 does not run libvirt"):
        ask({"service": "libvirt"})


def test_a_service_may_be_named_with_an_empty_instance() -> None:
    with taken(node("n0", service("nova_compute"), service("nova_compute", instance="fast"))):
        assert bundle_of(ask({"service": "nova_compute@"})).name == "nova_compute"
    sentence = r"The node n0 runs only instances of nova_compute; name one with instance\."
    with taken(node("n0", service("nova_compute", instance="fast"))), pytest.raises(NotThereError, match=sentence):
        ask({"service": "nova_compute@"})


def test_a_blocked_service_is_refused_with_its_reasons() -> None:
    with taken(node("n0", service(), blocked=("Not Ready.",))), pytest.raises(NotThereError, match=r"n0: Not Ready\."):
        ask({"service": AGENT})


def test_a_held_service_is_left_alone() -> None:
    with taken(node("n0", service(hold="held by its Role."))):
        found = ask({"service": AGENT})
    assert found.answer == {"changed": False, "held": True, "msg": f"{AGENT} is held: held by its Role."}


def test_a_service_without_an_image_is_refused() -> None:
    with taken(node("n0", service(image=None))), pytest.raises(NotThereError, match="No image is named"):
        ask({"service": AGENT})


def test_bad_options_are_refused_with_a_sentence_that_names_them(tmp_path: Path) -> None:
    missing = str(tmp_path / "none.conf")
    with pytest.raises(NotThereError, match="custom_service_config_file"):
        ask({"service": AGENT, "image": "i", "custom_service_config_file": missing})


@pytest.mark.parametrize("whole", [True, False])
def test_what_is_known_to_be_right_is_not_asked_again(whole: bool) -> None:
    facts = {AGENT: answer(service())}
    with taken(node("n0", service())):
        found = ask({"service": AGENT, "known": {"services": facts} if whole else facts})
        again = ask({"service": AGENT, "known": {AGENT: answer(service(), healthy=False)}})
    assert found.answer is not None
    assert found.answer["changed"] is False
    assert again.answer is None


@pytest.mark.parametrize("state", ["previous", "absent"])
def test_going_back_and_leaving_need_neither_plan_nor_options(state: str) -> None:
    found = ask({"service": AGENT, "instance": "fast", "state": state, "force": True})
    assert found.options == {"state": state, "service": AGENT, "instance": "fast", "force": True}


def test_a_compute_of_the_plan_gets_to_know_its_whole_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    def scan(addresses: Any, port: int) -> dict[str, dict[str, str]]:
        assert (set(addresses), port) == ({"address-of-n0", "address-of-n1", "address-of-n2"}, 22)
        return {f"address-of-{name}": {"ssh-ed25519": f"key-of-{name}"} for name in ("n0", "n1")}

    monkeypatch.setattr(known_hosts, "keyscan", scan)
    with taken(*(node(name, compute(name)) for name in ("n0", "n1", "n2"))):
        found = bundle_of(ask({"service": "nova_compute"}, content="n2 ssh-ed25519 before\nx ssh-ed25519 gone\n"))
    text = next(file.content for file in found.live if file.path.endswith("known_hosts")).decode()
    assert text.splitlines() == [
        "address-of-n0,n0 ssh-ed25519 key-of-n0",
        "address-of-n1,n1 ssh-ed25519 key-of-n1",
        "n2 ssh-ed25519 before",
    ]


def test_options_that_carry_a_bundle_do_not_show_in_a_debugging_line() -> None:
    assert "secret" not in f"{Quiet({'bundle': 'secret', 'state': 'pulled'})}"
    assert "bundle" in repr(Quiet({"bundle": "secret"}))
