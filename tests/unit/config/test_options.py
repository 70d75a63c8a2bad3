"""What one file sets, on which line, and what is said of a file that oslo.config cannot read."""

from __future__ import annotations

import builtins
from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._config import options
from ansible_collections.edpm.services.plugins.plugin_utils._config.options import (
    OsloConfigMissingError,
    parse,
    parse_errors,
)

from .samples import SNIPPET, generated, snippet


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[DEFAULT]\na = 1\nb: 2\n", [("DEFAULT", "a", "1", 2), ("DEFAULT", "b", "2", 3)]),
        ("[DEFAULT]\na = 1", [("DEFAULT", "a", "1", 2)]),
        ("[DEFAULT]\r\na = 1\r\n\r\nb = 2\r\n", [("DEFAULT", "a", "1", 2), ("DEFAULT", "b", "2", 4)]),
        ("[DEFAULT]\ra = 1\rb = 2", [("DEFAULT", "a", "1", 2), ("DEFAULT", "b", "2", 3)]),
        ("[DEFAULT]\na = 1\n  2\n\t3\nb = 4", [("DEFAULT", "a", "1\n2\n3", 2), ("DEFAULT", "b", "4", 5)]),
        ("[DEFAULT]\na = 1\n  2\n\n\nb = 4\n  5", [("DEFAULT", "a", "1\n2", 2), ("DEFAULT", "b", "4\n5", 6)]),
        ("[DEFAULT]\na =\n  2\n", [("DEFAULT", "a", "\n2", 2)]),
        ("[DEFAULT]\na =\n", [("DEFAULT", "a", "", 2)]),
        ("[DEFAULT]\na = 1\na = 2\n", [("DEFAULT", "a", "1", 2), ("DEFAULT", "a", "2", 3)]),
        ("[g]\na = 1\n[h]\n[g]\na = 2\n", [("g", "a", "1", 2), ("g", "a", "2", 5)]),
        ("[LibVirt]\nA = 1\n", [("libvirt", "A", "1", 2)]),
        ("[default]\na = 1\n", [("default", "a", "1", 2)]),
        ("# a = 0\n; a = 0\n[DEFAULT]\n# a = 0\na = 1 # 2\n", [("DEFAULT", "a", "1 # 2", 5)]),
        ("[DEFAULT]\na = \" 1 \"\nb = '2'\n", [("DEFAULT", "a", " 1 ", 2), ("DEFAULT", "b", "2", 3)]),
        ("[DEFAULT]\na = \"3'\nb = '\n", [("DEFAULT", "a", "\"3'", 2), ("DEFAULT", "b", "", 3)]),
        ("[DEFAULT]\nname with spaces = ü → \U0001f600\n", [("DEFAULT", "name with spaces", "ü → \U0001f600", 2)]),
        ("[DEFAULT]\na = x\0y\n", [("DEFAULT", "a", "x\0y", 2)]),
        ("[DEFAULT]\na = x\u2028b = y\x0c\n", [("DEFAULT", "a", "x\u2028b = y", 2)]),
        ("", []),
    ],
)  # fmt: skip
def test_every_setting_has_its_group_its_text_and_the_line_of_its_name(text: str, expected: list[Any]) -> None:
    parsed = parse(text.encode())
    assert parsed.fault is None
    assert [(found.group, found.name, found.value, found.line) for found in parsed.settings] == expected


@pytest.mark.parametrize(
    ("content", "line", "words"),
    [
        (b"[DEFAULT]\n\nhunter2\n", 3, "no = or : on this line; write it as name = value or remove it"),
        (b"[DEFAULT]\r\n= 1\r\n", 2, "no name before the = or :; write it as name = value or remove it"),
        (
            b"[DEFAULT]\na = 1\n\n  hunter2\n",
            4,
            "an indented line with no value above it to continue; remove the spaces at its beginning",
        ),
        (
            b"[DEFAULT] # general\n",
            1,
            "a [group] line that does not end with ]; put nothing behind the group's name but ]",
        ),
        (b"\n[]\n", 2, "a [group] line without a name; write the group's name between the brackets"),
        (b"# x\ndebug = 1\n  2\n\n", 2, "an option before any [group]; put [DEFAULT] or its group above it"),
        (b"debug = 1", 1, "an option before any [group]; put [DEFAULT] or its group above it"),
        (
            b"\xef\xbb\xbf[DEFAULT]\na = 1\n",
            1,
            "the text begins with a byte order mark; save it as UTF-8 without one",
        ),
        (b"[DEFAULT]\r\na = 1\rb = \xff\n", 3, "a byte here is not UTF-8; save the text as UTF-8"),
    ],
)
def test_text_that_oslo_config_cannot_parse_is_named_by_object_field_and_line(
    content: bytes, line: int, words: str
) -> None:
    good = generated("01-nova.conf", "[DEFAULT]\na = 1\n")
    assert parse_errors([good, snippet(content)]) == (f"{SNIPPET}, line {line}: {words}",)


def test_an_error_never_quotes_the_line_which_may_be_half_a_password() -> None:
    (sentence,) = parse_errors([snippet("[DEFAULT]\npassword\nhunter2\n")])
    assert "hunter2" not in sentence
    assert "password" not in sentence


def test_a_values_text_is_not_in_the_repr_of_a_source_or_a_setting() -> None:
    source = snippet("[DEFAULT]\npassword = hunter2\n")
    assert "hunter2" not in repr(source) + repr(parse(source.content))


def test_without_oslo_config_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_oslo(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("oslo_config"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    options._parser_class.cache_clear()
    monkeypatch.setattr(builtins, "__import__", without_oslo)
    with pytest.raises(
        OsloConfigMissingError, match=r"install oslo\.config 9\.4 or later for the Python that runs Ans"
    ):
        parse(b"[DEFAULT]\nnever_read_before = 1\n")
