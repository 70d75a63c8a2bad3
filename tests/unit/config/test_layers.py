"""The files of a conf.d: their names, their order, their bytes."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._config.layers import layer
from ansible_collections.edpm.services.plugins.plugin_utils._config.sources import Layer, Source
from hypothesis import given, settings
from hypothesis import strategies as st
from oslo_config import cfg

from .samples import CELL_SECRET, SNIPPET, deployers, generated, host, profile, snippet

NAMES = st.text("0129-_.aAzé\U0001f600", min_size=1, max_size=6).map(lambda stem: f"n{stem}.conf")
CONTENTS = st.binary(max_size=20)


def test_nova_reads_the_cell_then_the_profile_then_the_host_then_the_humans_snippet() -> None:
    conf_d = layer([snippet(), host(), profile(), generated("01-nova.conf")])
    assert conf_d.names == (
        "01-nova.conf",
        "02-nova-compute-profile.conf",
        "02-nova-host-specific.conf",
        "02-nova-override.conf",
    )
    assert (conf_d.notes, conf_d.errors) == ((), ())


def test_other_services_read_the_generated_files_then_the_profile_then_the_override() -> None:
    files = [snippet(name="99-override.conf"), profile(name="98-profile.conf"), generated("10-neutron-metadata.conf")]
    conf_d = layer([*files, generated("05-nova-metadata.conf")])
    assert conf_d.names == (
        "05-nova-metadata.conf",
        "10-neutron-metadata.conf",
        "98-profile.conf",
        "99-override.conf",
    )


def test_files_are_in_byte_order_not_in_natural_or_locale_order() -> None:
    names = ["10.conf", "9.conf", "B.conf", "a-b.conf", "a.conf", "a_b.conf", "ä.conf", "\U0001f600.conf"]
    assert list(layer([deployers(name) for name in reversed(names)]).names) == names
    assert sorted(names, key=str.encode) == names


def test_the_same_file_name_from_two_sources_is_an_error_that_names_both() -> None:
    conf_d = layer([snippet(), generated("02-nova-override.conf")])
    assert conf_d.errors == (
        f"02-nova-override.conf comes from {SNIPPET} and from {CELL_SECRET}, key 02-nova-override.conf; "
        "rename one of them, each file has one source",
    )


def test_equal_contents_do_not_excuse_a_file_with_two_sources() -> None:
    assert layer([deployers("03-a.conf", "x"), generated("03-a.conf", "x")]).errors


def test_a_secret_that_is_derived_and_listed_too_counts_once_as_derived() -> None:
    derived = generated("01-nova.conf")
    listed = Source(derived.name, derived.content, derived.object, derived.field, Layer.DEPLOYER, secret=True)
    for order in ([derived, listed], [listed, derived]):
        conf_d = layer(order)
        assert (conf_d.files, conf_d.errors) == ((derived,), ())


def test_the_humans_snippet_wins_over_a_generated_file_that_sorts_after_it() -> None:
    conf_d = layer([generated("01-nova.conf"), generated("09-late.conf"), snippet("[DEFAULT]\ndebug = True\n")])
    assert conf_d.names == ("01-nova.conf", "09-late.conf", "09-late.conf-02-nova-override.conf")
    assert conf_d.files[-1].content == b"[DEFAULT]\ndebug = True\n"
    assert conf_d.notes == (
        f"{SNIPPET}: its file is named 09-late.conf-02-nova-override.conf instead of 02-nova-override.conf, "
        f"to win over 09-late.conf ({CELL_SECRET}, key 09-late.conf)",
    )


def test_a_note_names_the_deployers_files_that_a_moved_snippet_passes() -> None:
    conf_d = layer([deployers("03-extra.conf"), generated("09-late.conf"), snippet()])
    assert conf_d.names == ("03-extra.conf", "09-late.conf", "09-late.conf-02-nova-override.conf")
    assert "03-extra.conf (ConfigMap openstack/nova-extra-config, key 03-extra.conf)" in conf_d.notes[0]


def test_a_moved_snippet_stays_before_a_deployers_file_that_sorts_later_still() -> None:
    conf_d = layer([generated("09-late.conf"), deployers("09-later.conf"), deployers("09-latf.conf"), snippet()])
    assert conf_d.names[-3:] == ("09-late.conf-02-nova-override.conf", "09-later.conf", "09-latf.conf")


def test_a_moved_snippet_never_takes_the_name_of_another_file() -> None:
    conf_d = layer([generated("09-late.conf"), deployers("09-late.conf-02-nova-override.conf"), snippet()])
    assert conf_d.errors == ()
    assert len(set(conf_d.names)) == 3
    assert conf_d.names[-1] != "09-late.conf"


def test_a_profile_wins_over_a_generated_file_too_and_the_host_and_the_snippet_stay_behind_it() -> None:
    conf_d = layer([generated("09-late.conf"), profile(), host(), snippet()])
    assert [file.layer for file in conf_d.files] == [Layer.GENERATED, Layer.PROFILE, Layer.HOST, Layer.OVERRIDE]
    assert len(conf_d.notes) == 3


def test_deployers_own_data_sources_sort_where_their_names_put_them() -> None:
    conf_d = layer([deployers("25-ceph.conf"), snippet(), deployers("00-first.conf"), generated("01-nova.conf")])
    assert conf_d.names == ("00-first.conf", "01-nova.conf", "02-nova-override.conf", "25-ceph.conf")
    assert conf_d.notes == ()


@pytest.mark.parametrize("content", [b"", b"\n", b" \t\r\n\n"])
def test_an_empty_or_blank_snippet_makes_no_file(content: bytes) -> None:
    conf_d = layer([snippet(content), profile(content), generated("01-nova.conf"), generated("02-nova-override.conf")])
    assert conf_d.names == ("01-nova.conf", "02-nova-override.conf")
    assert (conf_d.notes, conf_d.errors) == ((), ())


@pytest.mark.parametrize("content", [b"# nothing but a comment", b"\0", b"[DEFAULT]"])
def test_a_snippet_that_says_anything_makes_a_file(content: bytes) -> None:
    assert layer([snippet(content)]).files[0].content == content


def test_an_empty_generated_file_is_a_file() -> None:
    assert layer([generated("01-nova.conf", b"")]).names == ("01-nova.conf",)


def test_removing_a_source_removes_its_file_and_a_moved_snippet_gets_its_own_name_back() -> None:
    sources = [generated("01-nova.conf"), generated("09-late.conf"), snippet()]
    del sources[1]
    assert layer(sources).names == ("01-nova.conf", "02-nova-override.conf")


@pytest.mark.parametrize(
    "content",
    [
        b"[DEFAULT]\r\na = 1\r\n",
        b"[DEFAULT]\na = 1",
        "[DEFAULT]\na = ü\n".encode(),
        b"\xef\xbb\xbf[DEFAULT]",
        b"a\0b\xff",
    ],
    ids=["CRLF", "no newline at the end", "not ASCII", "byte order mark", "NUL and a byte that is not UTF-8"],
)
def test_bytes_are_carried_verbatim(content: bytes) -> None:
    assert layer([generated("09-late.conf"), snippet(content)]).files[-1].content == content


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("", "is empty; give it a name that ends in .conf"),
        ("a/b.conf", "holds a slash; name a file, not a path"),
        ("../b.conf", "holds a slash; name a file, not a path"),
        (".hidden.conf", "begins with a dot, and oslo.config does not read such files; rename it"),
        (".conf", "begins with a dot, and oslo.config does not read such files; rename it"),
        ("a\n.conf", "holds characters that cannot be printed; rename it"),
        ("a\0.conf", "holds characters that cannot be printed; rename it"),
        ("a\udcff.conf", "holds characters that cannot be printed; rename it"),
        ("policy.yaml", "does not end in .conf, and oslo.config reads no others; rename it"),
        ("A.CONF", "does not end in .conf, and oslo.config reads no others; rename it"),
        ("n" * 251 + ".conf", "is longer than 255 bytes; shorten it"),
    ],
)
def test_a_name_that_is_no_plain_file_name_is_an_error(name: str, fault: str) -> None:
    conf_d = layer([deployers(name), generated("01-nova.conf")])
    origin = f"ConfigMap openstack/nova-extra-config, key {name}"
    assert conf_d.errors == (f"{origin}: the file name {name!r} {fault}",)
    assert conf_d.names == ("01-nova.conf",)


@st.composite
def sources(draw: st.DrawFn) -> list[Source]:
    makers = st.sampled_from([generated, deployers, host])
    drawn = [draw(makers)(name, draw(CONTENTS)) for name in draw(st.lists(NAMES, unique=True, max_size=6))]
    for maker in (snippet, profile):
        name, content = draw(NAMES), draw(CONTENTS)
        if name not in {source.name for source in drawn} and draw(st.booleans()):
            drawn.append(maker(content, name))
    return drawn


@given(sources(), st.randoms())
def test_the_order_of_the_sources_does_not_matter(drawn: list[Source], random: object) -> None:
    shuffled = list(drawn)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert layer(shuffled) == layer(drawn)


@given(sources())
def test_for_all_sources_the_snippet_is_behind_every_generated_file_and_no_byte_changes(drawn: list[Source]) -> None:
    conf_d = layer(drawn)
    assert conf_d.errors == ()
    assert list(conf_d.names) == sorted(set(conf_d.names))
    blank = {
        source.origin for source in drawn if source.layer in {"override", "profile"} and not source.content.strip()
    }
    assert {(file.origin, file.content) for file in conf_d.files} == {
        (source.origin, source.content) for source in drawn if source.origin not in blank
    }
    layers = [file.layer for file in conf_d.files if file.layer is not Layer.DEPLOYER]
    assert Layer.OVERRIDE not in layers[:-1]
    if Layer.PROFILE in layers:
        assert Layer.GENERATED not in layers[layers.index(Layer.PROFILE) :]


@given(sources())
def test_for_all_sources_every_file_of_a_deployer_keeps_its_name(drawn: list[Source]) -> None:
    kept = {file.name for file in layer(drawn).files}
    assert {source.name for source in drawn if source.layer is Layer.DEPLOYER} <= kept


@settings(max_examples=50, deadline=None)
@given(sources())
def test_oslo_config_reads_the_files_in_exactly_this_order(drawn: list[Source]) -> None:
    conf_d = layer(drawn)
    conf = cfg.ConfigOpts()
    conf.register_opt(cfg.MultiStrOpt("read"))
    with tempfile.TemporaryDirectory() as directory:
        for file in conf_d.files:
            (Path(directory) / file.name).write_text(f"[DEFAULT]\nread = {file.name}\n")
        (Path(directory) / ".hidden.conf").write_text("[DEFAULT]\nread = hidden\n")
        (Path(directory) / "UPPER.CONF").write_text("[DEFAULT]\nread = upper\n")
        conf(["--config-dir", directory], default_config_files=[], default_config_dirs=[])
        assert tuple(conf.read or ()) == conf_d.names
