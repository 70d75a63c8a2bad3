"""The explanation of a folder against a real ConfigOpts that loads the same folder from disk, for all folders."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ansible_collections.edpm.services.plugins.plugin_utils._config.layers import ConfD
from ansible_collections.edpm.services.plugins.plugin_utils._config.options import parse
from ansible_collections.edpm.services.plugins.plugin_utils._config.provenance import Explanation, Option, explain
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from oslo_config import cfg

from .samples import folder, generated

EXAMPLES = int(os.environ.get("EDPM_CONFIG_EXAMPLES", "250"))

GROUPS = ("DEFAULT", "g", "G", "libvirt", "LibVirt", "default", "a.b", "Ä", " g ", "h-1")
NAMES = ("a", "b", "c", "d", "A", "with_underscore", "with-dash", "g", "b.c", "ü", "two words")
TEXTS = (
    "", " ", "x", "yes", "/var/lib/nova", "ü → \U0001f600", "a=b", "c: d", "# no comment", "; none", "[g]", "\t", "  ",
    "\\", "%s", "%(a)s", "{", "}", "\u00a0", "\u2028", "\x0c", "\0", "\x1c", "'", '"', '""', "' '", '"quoted"', "'q'",
)  # fmt: skip
REFERENCES = (
    "$a", "${a}", "$b", "${b}", "$c", "$d", "$A", "$g.a", "${g.b}", "$libvirt.c", "${libvirt.d}", "$default.a", "$g",
    "$b.c", "${a.b.c}", "$DEFAULT.a", "$LibVirt.a", "$nowhere", "$a.", "$$", "$$a", "\\$a", "$", "${", "${}", "$1",
    "$with_underscore", "$with-dash", "${ a}", "$_x", "$ü", "$h.",
)  # fmt: skip
KNOWN_REFERENCES = ("$a", "${b}", "$c", "$d", "$e", "${g.a}", "$g.b", "$g.f", "${libvirt.c}", "$libvirt.h")
EQUALS = ("=", " = ", ":", " : ", "= ", "  =\t")
INDENTS = (" ", "  ", "\t")

values = st.lists(st.one_of(st.sampled_from(TEXTS), st.sampled_from(REFERENCES)), max_size=4).map("".join)
plain_values = st.lists(st.sampled_from(TEXTS), max_size=3).map("".join)


@st.composite
def lines(draw: st.DrawFn) -> str:
    """One setting as people write it, with whatever stands around it."""
    name = draw(st.sampled_from(NAMES))
    written = name + draw(st.sampled_from(EQUALS)) + draw(st.one_of(values, plain_values))
    rest = [draw(st.sampled_from(INDENTS)) + text for text in draw(st.lists(values, max_size=2)) if text.strip()]
    around = draw(st.sampled_from(("", "\n", "# a comment\n", "; a = b\n", "   \n")))
    return "\n".join([around + written, *rest])


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    """A file: sections, some of them twice, in one of the line ends."""
    parts = []
    for group in draw(st.lists(st.sampled_from(GROUPS), max_size=4)):
        parts.append(f"[{group}]")
        parts.extend(draw(st.lists(lines(), max_size=5)))
    text = "\n".join(parts) + draw(st.sampled_from(("", "\n", "\n\n")))
    return text.replace("\n", draw(st.sampled_from(("\n", "\n", "\r\n", "\r")))).encode()


@st.composite
def referring_texts(draw: st.DrawFn) -> bytes:
    """A file whose references find what they name, through several groups, and sometimes in a circle."""
    parts = []
    for group in ("DEFAULT", "g", "LibVirt"):
        set_here = [f"{name} = {draw(plain_values)}" for name in draw(st.sets(st.sampled_from("abcd")))]
        parts += [f"[{group}]", *sorted(set_here)]
    for group in draw(st.lists(st.sampled_from(("DEFAULT", "g", "libvirt")), min_size=1, max_size=3)):
        chunks = st.lists(st.one_of(st.sampled_from(TEXTS), st.sampled_from(KNOWN_REFERENCES)), min_size=1, max_size=4)
        settings_here = [f"{draw(st.sampled_from('cdefh'))} = {''.join(draw(chunks))}" for _ in range(3)]
        parts += [f"[{group}]", *settings_here]
    return "\n".join(parts).encode()


folders = st.lists(st.one_of(texts(), referring_texts()), min_size=1, max_size=4).map(
    lambda contents: folder(*(generated(f"{number:02}.conf", content) for number, content in enumerate(contents)))
)
multi_options = st.frozensets(
    st.tuples(st.sampled_from(("DEFAULT", "g", "libvirt")), st.sampled_from("abcd")), max_size=4
)
noise = st.text("[]=:#; \t\n\r\"'$\\{}.ab_-é\u2028\0\x0c\ufeff", max_size=40).map(str.encode)


@contextmanager
def on_disk(conf_d: ConfD) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as directory:
        for file in conf_d.files:
            (Path(directory) / file.name).write_bytes(file.content)
        yield directory


def can_be_registered(option: Option) -> bool:
    """oslo.config has no option with such a name; files may say what they like."""
    return "-" not in option.name and not option.name.startswith("_")


def loaded(conf_d: ConfD, explanation: Explanation, *, by_default: bool = False) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    for option in filter(can_be_registered, explanation.options):
        kind = cfg.MultiStrOpt if option.accumulates else cfg.StrOpt
        conf.register_opt(kind(option.name), group=None if option.group == "DEFAULT" else option.group)
    with on_disk(conf_d) as directory:
        arguments = [] if by_default else ["--config-dir", directory]
        conf(arguments, default_config_files=[], default_config_dirs=[directory] if by_default else [])
    return conf


def value_in(conf: cfg.ConfigOpts, option: Option) -> Any:
    return conf[option.name] if option.group == "DEFAULT" else conf[option.group][option.name]


def assert_agreement(conf: cfg.ConfigOpts, explanation: Explanation) -> None:
    groups = {option.group for option in explanation.options}
    for option in filter(can_be_registered, explanation.options):
        if option.group == "DEFAULT" and option.name in groups:
            continue  # ConfigOpts gives the group under that name
        doubtful = bool(option.unresolved or option.endless)
        try:
            value = value_in(conf, option)
        except (cfg.Error, RecursionError):
            assert doubtful, f"oslo.config refuses {option.full_name}, and the explanation does not say so"
            continue
        if not doubtful:
            assert (tuple(value) if option.accumulates else (value,)) == option.values, option.full_name


@settings(max_examples=EXAMPLES, deadline=None)
@given(folders, multi_options)
def test_every_value_equals_what_a_service_gets_that_loads_the_same_folder(
    conf_d: ConfD, multi: frozenset[tuple[str, str]]
) -> None:
    explanation = explain(conf_d, accumulating=multi)
    try:
        conf = loaded(conf_d, explanation)
    except cfg.ConfigFileParseError:
        event("refused by oslo.config")
        assert explanation.errors
        return
    resolved = [option for option in explanation.options if option.references and not option.unresolved]
    event("with references that resolve" if resolved else "without")
    assert not [error for error in explanation.errors if "in a circle" not in error]
    assert_agreement(conf, explanation)


@settings(max_examples=50, deadline=None)
@given(folders)
def test_a_folder_that_a_service_reads_by_default_gives_the_same_values(conf_d: ConfD) -> None:
    explanation = explain(conf_d)
    assume(not explanation.errors)
    assert_agreement(loaded(conf_d, explanation, by_default=True), explanation)


@settings(max_examples=EXAMPLES, deadline=None)
@given(texts())
def test_the_places_of_a_file_are_all_that_oslo_configs_own_parser_finds_in_it(content: bytes) -> None:
    sections: dict[str, dict[str, list[str]]] = {}
    with on_disk(folder(generated("01.conf", content))) as directory:
        parser = cfg.ConfigParser(str(Path(directory) / "01.conf"), sections)
        normalized: dict[str, dict[str, list[str]]] = {}
        parser._add_normalized(normalized)
        try:
            parser.parse()
        except cfg.ParseError:
            assert parse(content).fault
            return
    ours: dict[str, dict[str, list[str]]] = {}
    for setting in parse(content).settings:
        ours.setdefault(setting.group, {}).setdefault(setting.name, []).append(setting.value)
    assert ours == {group: options for group, options in normalized.items() if options}


@settings(max_examples=EXAMPLES, deadline=None)
@given(texts())
def test_the_line_of_a_place_is_the_line_that_names_the_option(content: bytes) -> None:
    written = content.decode().replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for setting in parse(content).settings:
        assert written[setting.line - 1].startswith(setting.name)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.one_of(noise, st.builds(lambda text: b"[g]\na = 1\n" + text, noise), st.binary(max_size=30)))
def test_any_bytes_are_refused_exactly_when_oslo_config_refuses_them(content: bytes) -> None:
    refused = refusal(content)
    fault = parse(content).fault
    assert (fault is None) == (refused is None)
    # Of an option before any group oslo.config says so a line or more too late.
    if fault and isinstance(refused, cfg.ParseError) and "Section must be started" not in str(refused):
        assert fault.line == refused.lineno


def refusal(content: bytes) -> Exception | None:
    with on_disk(folder(generated("01.conf", content))) as directory:
        try:
            cfg.ConfigParser(str(Path(directory) / "01.conf"), {}).parse()
        except (cfg.ParseError, UnicodeDecodeError) as refused:
            return refused
    return None
