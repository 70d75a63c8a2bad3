# SPDX-License-Identifier: GPL-3.0-or-later
"""The lookup in plays: what a snippet holds arrives as it is, wherever the play puts it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .conftest import User, thing

DATAPLANE = "dataplane.openstack.org/v1beta1"
NOVA = "nova.openstack.org/v1beta1"
LOOKUP = "'edpm.services.service_config', 'nova_compute'"
OVERRIDE = "lookup('edpm.services.service_config', 'nova_compute', file='02-nova-override.conf')"
SNIPPET = "# ü {{ 1 + 1 }} {% if x %} {# gone #}\r\n[DEFAULT]\nlabel = {{ lookup('pipe', 'id') }}\nlast = no line end"


def data_plane(*snippets: str) -> list[dict[str, Any]]:
    """A node for each snippet, named `n0`, `n1`, …"""
    role = thing(DATAPLANE, "OpenStackDataPlaneRole", "r", spec={})
    role["metadata"]["annotations"] = {"nova.openstack.org/cell": "nova-cell1"}
    objects = [
        role,
        thing(NOVA, "NovaCell", "nova-cell1", spec={"cellName": "cell1"}),
        thing("v1", "Secret", "nova-cell1-compute-config", stringData={"01-nova.conf": "[DEFAULT]\ndebug = False\n"}),
    ]
    for number, snippet in enumerate(snippets):
        name, address = f"n{number}", f"10.0.{number // 250}.{number % 250 + 1}"
        spec = {"role": "r", "hostName": name, "ansibleHost": address}
        compute = {"dataplaneNodeName": name, "cellName": "nova-cell1", "customServiceConfig": snippet}
        objects.append(thing(DATAPLANE, "OpenStackDataPlaneNode", name, spec=spec))
        objects.append(thing(NOVA, "NovaExternalCompute", name, spec=compute))
    return objects


def done(user: User, *tasks: dict[str, Any], **play: Any) -> str:
    run = user.play(*tasks, **play)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_a_snippet_is_never_templated_on_its_way_through_copy_template_debug_and_facts(user: User) -> None:
    user.has(data_plane(SNIPPET))
    (user.folder / "text.j2").write_bytes(b"{{ text }}")
    out = done(
        user,
        {"ansible.builtin.copy": {"content": "{{ " + OVERRIDE + " }}", "dest": "copied", "mode": "0600"}},
        {"ansible.builtin.set_fact": {"fact": "{{ query(" + LOOKUP + ") | last }}"}},
        {"ansible.builtin.copy": {"content": "{{ fact.content }}", "dest": "from_fact", "mode": "0600"}},
        {
            "ansible.builtin.template": {"src": "text.j2", "dest": "from_template", "mode": "0600"},
            "vars": {"text": "{{ inner }}", "inner": "{{ " + OVERRIDE + " }}"},
        },
        {
            "ansible.builtin.copy": {"content": "{{ item.content }}", "dest": "loop-{{ item.name }}", "mode": "0600"},
            "loop": "{{ query(" + LOOKUP + ") }}",
            "no_log": True,
        },
        {"ansible.builtin.debug": {"msg": "{{ " + OVERRIDE + " }}"}},
        vars={"ansible_remote_tmp": str(user.folder / "tmp")},
    )
    for name in ("copied", "from_fact", "from_template", "loop-02-nova-override.conf"):
        assert (user.folder / name).read_bytes() == SNIPPET.encode(), name
    assert "{{ lookup('pipe', 'id') }}" in out
    assert "uid=" not in out


WORDS = st.sampled_from(
    ["{{ 1 + 1 }}", "{% raw %}", "{#", "}}", "{{", "\r\n", "\n\n", "\r", "'", '"', "\\n", "\t", "!unsafe "]
)
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=30)
# Every line is a comment, so that oslo.config has nothing against it.
SNIPPETS = st.lists(st.one_of(WORDS, TEXTS), max_size=6).map(
    lambda parts: "#" + "#".join("".join(parts).splitlines(True))
)


@settings(
    max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.lists(SNIPPETS, min_size=80, max_size=120))
def test_whatever_a_snippet_holds_arrives_byte_for_byte(user: User, snippets: list[str]) -> None:
    user.has(data_plane(*snippets))
    all_of_them = (
        "{% set found = {} %}{% for host in groups.all %}"
        "{% set _ = found.update({host: query(" + LOOKUP + ", host=host)}) %}"
        "{% endfor %}{{ found | to_json }}"
    )
    dest = str(user.folder / "found.json")
    done(
        user,
        {"ansible.builtin.copy": {"content": all_of_them, "dest": dest, "mode": "0600"}, "no_log": True},
        hosts="n0",
    )
    found = json.loads(Path(dest).read_text())
    for number, snippet in enumerate(snippets):
        last = found[f"n{number}"][-1]
        assert (last["name"], last["content"].encode()) == ("02-nova-override.conf", snippet.encode())


def test_a_keyword_of_the_play_reads_manifests_once_for_the_whole_run(user: User) -> None:
    user.has(data_plane("[DEFAULT]\nlabel = one\n", "[DEFAULT]\nlabel = two\n"))
    (user.folder / "hosts").write_text("n0\nn1\n")
    source = f"query({LOOKUP}, host='n0', manifests='manifests.yaml')"
    out = done(
        user,
        {"ansible.builtin.file": {"path": str(user.folder / "manifests.yaml"), "state": "absent"}, "run_once": True},
        {"ansible.builtin.debug": {"msg": "{{ " + OVERRIDE + " }}"}},
        hosts="{{ 'all' if " + source + " else '' }}",
        inventory="hosts",
    )
    assert "label = one" in out
    assert "label = two" in out


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        ("query(" + LOOKUP + ", host='n9')", "The data plane has no node n9; its nodes are n0."),
        ("query('edpm.services.service_config', 'nova-compute')", "did you mean nova_compute?"),
        ("lookup(" + LOOKUP + ", file='99-override.conf')", "nova_compute on n0 has no file 99-override.conf;"),
        ("query(" + LOOKUP + ", manifests='none')", "none"),
    ],
)
def test_what_cannot_be_given_fails_the_task_with_the_reason(user: User, expression: str, sentence: str) -> None:
    user.has(data_plane("[DEFAULT]\n"))
    run = user.play({"ansible.builtin.debug": {"msg": "{{ " + expression + " }}"}})
    assert run.returncode != 0
    assert sentence in " ".join((run.stdout + run.stderr).split())
    assert "Traceback" not in run.stdout + run.stderr
