# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan as a person sees it in a terminal."""

from __future__ import annotations

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._bundle.digest import short
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.planned import Plan
from ansible_collections.edpm.services.plugins.plugin_utils._report.lines import Tone, as_text, blocks
from ansible_collections.edpm.services.plugins.plugin_utils._report.near import NotThereError
from ansible_collections.edpm.services.plugins.plugin_utils._report.overview import Question, overview
from ansible_collections.edpm.services.plugins.plugin_utils._report.table import short_image, table

from .dataplanes import DATAPLANE, PASSWORD, node, plan_of, thing

TABLE = """\
NODE       CELL        SERVICE        IMAGE                           STATE
compute-0  nova-cell1  libvirt        …/libvirt@sha256:abababababab…  ready    DIGEST1
                       nova_compute   …/nova-compute:30               ready    DIGEST2
compute-1  nova-cell1  libvirt        …/libvirt@sha256:abababababab…  ready    DIGEST1
                       nova_compute   …/nova-compute:30               held     DIGEST3  OpenStackDataPlaneNode \
openstack/compute-1, annotation nova.openstack.org/deploy: is "false"; set it to "true" or remove it to deploy.
compute-2  nova-cell2  libvirt        …/libvirt@sha256:abababababab…  blocked  OpenStackDataPlaneNode \
openstack/compute-2, annotation nova.openstack.org/cell: NovaCell openstack/nova-cell2 does not exist; name a NovaCell \
that does, for example nova-cell1, or add the cell to a Nova.
                       nova_compute   …/nova-compute:30               blocked  Secret \
openstack/nova-cell2-compute-config does not exist; NovaCell nova-cell2 makes it once it is Ready.
storage-0  –           cinder_volume  cinder:30                       ready    DIGEST4
stray-0    –           –              –                               blocked  OpenStackDataPlaneNode \
openstack/stray-0, field role: OpenStackDataPlaneRole openstack/nowhere does not exist; create it, or name one that \
does.
left out:
  Secret openstack/nova-cell1-compute-config, key user: is left out, since nova_compute has no place for such a file. \
(compute-0, compute-1)
left alone: network-0 (no annotation asks for a service)
OpenStackDataPlaneRole openstack/network, field spec.services: telemetry has no definition here and is left to its \
operator.
5 nodes: 3 ready, 2 blocked · 7 services: 4 ready, 1 held, 2 blocked · 1 left alone
"""


DIGESTS = (
    ("compute-0", "libvirt"),
    ("compute-0", "nova_compute"),
    ("compute-1", "nova_compute"),
    ("storage-0", "cinder_volume"),
)


def digest_of(node: str, service: str) -> str:
    (found,) = overview(plan_of(), Question(node, service)).services
    return short(found.bundle.digest)


def whole_table() -> str:
    text = TABLE
    for number, (name, service) in enumerate(DIGESTS, 1):
        text = text.replace(f"DIGEST{number}", digest_of(name, service))
    return text


def shown(plan: Plan, node: str = "", service: str = "") -> str:
    return as_text(table(overview(plan, Question(node, service))))


def test_the_whole_plan() -> None:
    assert shown(plan_of()) == whole_table()


def test_the_same_plan_gives_the_same_bytes() -> None:
    assert shown(plan_of()) == shown(plan_of())


def test_no_secret_shows() -> None:
    assert PASSWORD not in shown(plan_of())


def test_one_node_or_one_service_can_be_asked_for() -> None:
    assert shown(plan_of(), node="storage-0").splitlines()[1:] == [
        f"storage-0  –     cinder_volume  cinder:30  ready  {digest_of('storage-0', 'cinder_volume')}",
        "1 node: 1 ready · 1 service: 1 ready",
    ]
    lines = shown(plan_of(), service="libvirt").splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["compute-0", "compute-1", "compute-2"]
    assert lines[-1] == "3 nodes: 2 ready, 1 blocked · 3 services: 2 ready, 1 blocked"
    assert "left alone" not in "".join(lines)


def test_a_node_that_is_left_alone_is_said_to_be() -> None:
    assert shown(plan_of(), node="network-0") == (
        "left alone: network-0 (no annotation asks for a service)\n0 nodes · 0 services · 1 left alone\n"
    )


@pytest.mark.parametrize(
    ("name", "service", "sentence"),
    [
        ("compute-O", "", "The data plane has no node compute-O; did you mean compute-0, compute-1 or compute-2?"),
        (
            "xyz",
            "",
            "The data plane has no node xyz; its nodes are compute-0, compute-1, compute-2, storage-0, stray-0 and "
            "1 other.",
        ),
        ("", "Nova-Compute", "No node runs Nova-Compute; did you mean nova_compute?"),
        ("storage-0", "libvirt", "The node storage-0 does not run libvirt; its services are cinder_volume."),
        ("network-0", "libvirt", "network-0 runs nothing of ours: no annotation asks for a service."),
    ],
)
def test_what_is_not_there_is_told_with_what_is(name: str, service: str, sentence: str) -> None:
    with pytest.raises(NotThereError) as told:
        overview(plan_of(), Question(name, service))
    assert str(told.value) == sentence


def test_a_node_of_an_empty_data_plane_is_not_there() -> None:
    with pytest.raises(NotThereError, match=r"^The data plane has no node a; there are no nodes\.$"):
        overview(Plan(), Question("a"))
    assert shown(Plan()) == "0 nodes · 0 services\n"


def test_each_of_several_reasons_has_its_line() -> None:
    held_back = thing(DATAPLANE, "OpenStackDataPlaneNode", "compute-2", {"nova.openstack.org/cell": "nova-cell2"})
    held_back["spec"] = {**node("compute-2", "compute", 12)["spec"], "deployStrategy": {"deploy": False}}
    lines = shown(plan_of(held_back), node="compute-2").splitlines()
    at = lines[1].index("OpenStackDataPlaneNode")
    assert lines[1][at:].endswith("is false; set it to true to deploy.")
    assert lines[2][:at].strip() == ""
    assert lines[2][at:].startswith("OpenStackDataPlaneNode openstack/compute-2, annotation")


def test_many_nodes_with_the_same_note_are_one_line() -> None:
    more = [node(f"compute-1{number}", "compute", 100 + number) for number in range(5)]
    noted = [line for line in shown(plan_of(*more)).splitlines() if "is left out" in line]
    assert len(noted) == 1
    assert noted[0].endswith("(compute-0, compute-1, compute-10 and 4 others)")


def test_lines_of_one_tone_are_shown_together() -> None:
    pieces = list(blocks(table(overview(plan_of(), Question()))))
    assert [tone for _text, tone in pieces[:4]] == [Tone.HEADING, Tone.GOOD, Tone.REMARK, Tone.BAD]
    assert "\n".join(text for text, _tone in pieces) + "\n" == whole_table()


@pytest.mark.parametrize(
    ("image", "seen"),
    [
        (None, "–"),
        ("nova:30", "nova:30"),
        ("registry.example:5000/a/b/nova:30", "…/nova:30"),
        ("a/nova@sha256:" + "0123456789abcdef" * 4, "…/nova@sha256:0123456789ab…"),
    ],
)
def test_an_image_is_cut_to_what_tells_it_from_others(image: str | None, seen: str) -> None:
    assert short_image(image) == seen


def test_a_name_that_would_upset_a_terminal_is_written_out() -> None:
    text = shown(plan_of(node("evil\x1b[2J", "compute", 77), node("alone\x1b[2J", "network", 78)))
    assert "\x1b" not in text
    assert "\nevil\\x1b[2J  nova-cell1" in text
    assert "left alone: alone\\x1b[2J (" in text
