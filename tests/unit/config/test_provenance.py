"""Whose value a service gets, and who else sets it."""

from __future__ import annotations

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._config.layers import ConfD, layer
from ansible_collections.edpm.services.plugins.plugin_utils._config.provenance import Explanation, Option, explain

from .samples import CELL_SECRET, SNIPPET, deployers, folder, generated, profile, snippet


def explained(*texts: str) -> Explanation:
    return explain(folder(*(generated(f"{number:02}.conf", text) for number, text in enumerate(texts))))


def option(explanation: Explanation, name: str) -> Option:
    found = explanation.find(name)
    assert found is not None
    return found


def test_every_place_that_sets_an_option_is_listed_with_its_origin_and_line_and_the_winner_is_last() -> None:
    conf_d = folder(
        generated("01-nova.conf", "# made for the cell\n[DEFAULT]\ndebug = False\n"),
        profile("[DEFAULT]\ndebug = maybe\n"),
        snippet("[DEFAULT]\n\ndebug = True\n"),
    )
    debug = option(explain(conf_d), "DEFAULT.debug")
    assert debug.value == "True"
    assert [(place.value, place.file, place.line, place.object, place.field) for place in debug.places] == [
        ("False", "01-nova.conf", 3, CELL_SECRET, "key 01-nova.conf"),
        ("maybe", "02-nova-compute-profile.conf", 2, "ServiceProfile openstack/edge", "spec.customServiceConfig"),
        (
            "True",
            "02-nova-override.conf",
            3,
            "NovaExternalCompute openstack/edpm-compute-0",
            "spec.customServiceConfig",
        ),
    ]


def test_the_snippet_wins_the_options_too_when_its_file_had_to_move() -> None:
    conf_d = folder(generated("09-late.conf", "[DEFAULT]\ndebug = False\n"), snippet("[DEFAULT]\ndebug = True\n"))
    assert option(explain(conf_d), "debug").value == "True"


def test_a_deployers_file_that_sorts_after_the_snippet_wins_over_it() -> None:
    conf_d = folder(deployers("25-last.conf", "[DEFAULT]\ndebug = False\n"), snippet("[DEFAULT]\ndebug = True\n"))
    assert option(explain(conf_d), "debug").value == "False"


def test_options_are_sorted_with_default_first_and_groups_go_by_their_lower_case_names() -> None:
    explanation = explained("[workarounds]\nb = 1\n[Libvirt]\nz = 1\na = 1\n[DEFAULT]\nx = 1\n[LIBVIRT]\na = 2\n")
    assert [found.full_name for found in explanation.options] == [
        "DEFAULT.x",
        "libvirt.a",
        "libvirt.z",
        "workarounds.b",
    ]
    assert [place.line for place in option(explanation, "LibVirt.a").places] == [5, 9]


def test_an_option_is_found_by_group_and_name_or_by_its_name_in_default() -> None:
    explanation = explained("[DEFAULT]\na = 1\n[g]\na = 2\n[my.group]\na = 3\n")
    assert [option(explanation, name).value for name in ("a", "DEFAULT.a", "G.a", "my.group.a")] == ["1", "1", "2", "3"]
    assert explanation.find("g.b") is None


def test_the_base_file_is_read_before_the_folder() -> None:
    base = generated("nova-blank.conf", "[DEFAULT]\na = base\nb = base\n")
    explanation = explain(folder(snippet("[DEFAULT]\na = human\n")), base=[base])
    assert [option(explanation, name).value for name in "ab"] == ["human", "base"]


def test_values_of_an_option_that_accumulates_add_up_over_all_files() -> None:
    explanation = explained("[pci]\nalias = a\nalias = b\n[x]\nalias = 1\n", "[PCI]\nalias = c\n[x]\nalias = 2\n")
    assert option(explanation, "pci.alias").values == ("a", "b", "c")
    assert option(explanation, "x.alias").values == ("2",)


def test_a_replication_device_accumulates_in_any_backends_group() -> None:
    explanation = explained("[lvm]\nreplication_device = a\nreplication_device = b\n")
    assert option(explanation, "lvm.replication_device").values == ("a", "b")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("$state_path/x", "/var/x"),
        ("${state_path}x", "/varx"),
        ("$here", "in g"),
        ("$both", "g's"),
        ("${h.there}-$h.there", "in h-in h"),
        ("$chain", "/var/a/b"),
        (r"\$state_path $$state_path", "$state_path $state_path"),
        ("$", "$"),
        ("${unclosed", "${unclosed"),
        ("$1", "$1"),
    ],
)
def test_references_are_substituted_from_the_own_group_then_default_or_from_the_group_they_name(
    value: str, expected: str
) -> None:
    explanation = explained(
        "[DEFAULT]\nstate_path = /var\nboth = DEFAULT's\nchain = $link/b\nlink = $state_path/a\n"
        "[h]\nthere = in h\n[g]\nlink = not this\nhere = in g\nboth = g's\n",
        f"[g]\nvalue = {value}\n",
    )
    assert option(explanation, "g.value").value == expected
    assert option(explanation, "g.value").unresolved == ()


@pytest.mark.parametrize("reference", ["nowhere", "g.nowhere", "nogroup.a", "DEFAULT.a", "G.a", "a.", "g"])
def test_a_reference_to_what_no_file_sets_stays_as_written_and_is_named(reference: str) -> None:
    explanation = explained(
        f"[DEFAULT]\na = 1\ng = hidden by the group\n[g]\nvalue = <${{{reference}}}>\n[g]\nb = $value\n"
    )
    for name in ("g.value", "g.b"):
        assert option(explanation, name).value == f"<${{{reference}}}>"
        assert option(explanation, name).unresolved == (reference,)
    assert explanation.errors == ()


def test_a_reference_to_an_option_that_accumulates_gives_its_list_as_oslo_config_does() -> None:
    assert option(explained("[pci]\nalias = a\nalias = b\nx = <$alias>\n"), "pci.x").value == "<['a', 'b']>"


def test_references_in_a_circle_are_an_error_of_each_option_that_leads_there() -> None:
    explanation = explained("[g]\na = $b\nb = $a\nc = x$b\nd = fine\n")
    origin = f"{CELL_SECRET}, key 00.conf"
    assert explanation.errors == tuple(
        f"{origin}, line {line}: the references of {name} lead in a circle; write its value out"
        for line, name in ((2, "a"), (3, "b"), (4, "c"))
    )
    assert option(explanation, "g.d").value == "fine"


def test_a_text_that_would_double_without_end_is_cut_short() -> None:
    doubling = "".join(f"a{number} = $a{number + 1}$a{number + 1}\n" for number in range(60))
    explanation = explained(f"[g]\n{doubling}a60 = xxxxxxxx\n")
    assert max(len(found.value) for found in explanation.options) < 1 << 22
    assert explanation.errors


def test_a_chain_of_references_that_is_too_long_for_a_service_is_an_error_not_a_crash() -> None:
    chain = "".join(f"a{number} = $a{number + 1}\n" for number in range(5000))
    assert explained(f"[g]\n{chain}a5000 = x\n").errors


def test_text_that_cannot_be_parsed_is_an_error_and_the_other_files_are_still_explained() -> None:
    conf_d = folder(generated("01-nova.conf", "[DEFAULT]\na = 1\n"), snippet("[DEFAULT]\na = 2\noops\n"))
    explanation = explain(conf_d)
    assert explanation.errors == (f"{SNIPPET}, line 3: no = or : on this line; write it as name = value or remove it",)
    assert option(explanation, "a").value == "1"


def test_a_dash_in_an_options_name_is_pointed_out() -> None:
    assert explained("[DEFAULT]\nmy-ip = 1\n").notes == (
        f"{CELL_SECRET}, key 00.conf, line 2: oslo.config looks for my_ip, not for my-ip; write it with underscores",
    )


def test_a_default_group_in_small_letters_is_pointed_out() -> None:
    assert explained("[Default]\ndebug = 1\n").notes == (
        f"{CELL_SECRET}, key 00.conf, line 2: [default] is not [DEFAULT], and no service reads it; "
        "write the group in capitals",
    )


def test_an_empty_folder_has_nothing_to_explain() -> None:
    assert explain(layer([])) == explain(ConfD()) == Explanation()


def test_values_are_not_in_the_repr_of_an_explanation() -> None:
    assert "hunter2" not in repr(explained("[DEFAULT]\npassword = hunter2\nb = $password\n"))
