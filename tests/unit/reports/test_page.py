# SPDX-License-Identifier: GPL-3.0-or-later
"""The page's markup; what it does in a browser is tested in one."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._config.sources import Layer, Source
from ansible_collections.edpm.services.plugins.plugin_utils._report.content import shown_lines
from ansible_collections.edpm.services.plugins.plugin_utils._report.overview import Question, overview
from ansible_collections.edpm.services.plugins.plugin_utils._report.page import page

from .dataplanes import NASTY, PASSWORD, plan_of


class Elements(HTMLParser):
    """Every element with its attributes, and what the scripts and styles hold."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=False)
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.raw: dict[str, str] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        tag, attributes = self.found[-1] if self.found else ("", {})
        if tag in ("script", "style"):
            self.raw.setdefault(attributes.get("type") or tag, data)


@pytest.fixture(scope="module")
def text() -> str:
    return page(overview(plan_of(), Question()))


@pytest.fixture(scope="module")
def elements(text: str) -> Elements:
    return Elements(text)


def data(elements: Elements) -> dict[str, Any]:
    return dict(json.loads(elements.raw["application/json"]))


def test_text_of_resources_never_is_markup(text: str, elements: Elements) -> None:
    assert NASTY not in text
    assert len([tag for tag, _attributes in elements.found if tag == "script"]) == 2
    lines = [line for file in data(elements)["files"] for line in file["lines"]]
    assert f"label = {NASTY}" in lines


def test_no_secret_is_in_it(text: str) -> None:
    assert PASSWORD not in text


def test_it_names_no_other_file_or_server(elements: Elements) -> None:
    for _tag, attributes in elements.found:
        assert not {"src", "srcset", "action", "data", "poster"} & set(attributes)
        assert attributes.get("href") in (None, "#")
    assert not re.search(r"url\(|@import|https?:", elements.raw["style"] + elements.raw["script"])


def test_it_allows_itself_its_own_script_and_style_alone(elements: Elements) -> None:
    policy = next(a["content"] for t, a in elements.found if t == "meta" and "http-equiv" in a)
    for part in ("style", "script"):
        digest = base64.b64encode(hashlib.sha256(elements.raw[part].encode()).digest()).decode()
        assert f"{part}-src 'sha256-{digest}'" in (policy or "")
    assert (policy or "").startswith("default-src 'none';")


def test_a_file_that_nodes_share_is_there_once(elements: Elements) -> None:
    found = data(elements)
    paths = [file["path"] for file in found["files"]]
    assert paths.count("/etc/nova/nova.conf.d/01-nova.conf") == 1
    computes = [(node["name"], s) for node in found["nodes"] for s in node["services"] if s["name"] == "nova_compute"]
    assert [name for name, s in computes if s["files"]] == ["compute-0", "compute-1", "compute-2"]


def test_lines_know_who_overrides_them(elements: Elements) -> None:
    found = data(elements)
    compute = found["nodes"][0]["services"][1]
    marks = {found["files"][index]["path"].rpartition("/")[2]: mark for index, mark in compute["files"]}
    assert marks == {
        "01-nova.conf": {"2": ["-", "02-nova-override.conf:2"]},
        "02-nova-host-specific.conf": {},
        "02-nova-override.conf": {"2": ["+", "01-nova.conf:2"]},
    }


def source(content: bytes, name: str = "a.conf", *, secret: bool = False) -> Source:
    return Source(name, content, "ConfigMap o/c", "key k", Layer.DEPLOYER, secret)


@pytest.mark.parametrize(
    ("content", "lines"),
    [(b"", ()), (b"a\n", ("a",)), (b"a\r\nb\rc", ("a", "b", "c")), ("a\u2028b\n".encode(), ("a\u2028b",))],
)
def test_lines_are_counted_as_oslo_config_counts_them(content: bytes, lines: tuple[str, ...]) -> None:
    assert shown_lines(source(content)) == lines


def test_of_what_is_no_text_the_size_is_shown() -> None:
    assert shown_lines(source(b"\xff\x00", "provider.yaml")) == ("(2 bytes that are no text)",)
    assert shown_lines(source(b"\xff\x00", "provider.yaml", secret=True)) == ("***",)
