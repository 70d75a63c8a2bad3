# SPDX-License-Identifier: GPL-3.0-or-later
"""The page in a real Chromium: what a reader sees and can do, light and dark, wide and narrow."""

from __future__ import annotations

import itertools
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.plan import resolve
from ansible_collections.edpm.services.plugins.plugin_utils._dataplane.stores import snapshot_of
from ansible_collections.edpm.services.plugins.plugin_utils._report.overview import Question, overview
from ansible_collections.edpm.services.plugins.plugin_utils._report.page import page
from edpm_lab.prerequisites import Tool, require

from .browser import Browser, Scheme, chromium
from .samples import NASTY, PASSWORD, data_plane

TUTORIAL = Path(__file__).parents[3] / "docs" / "tutorial" / "manifests"
# WCAG 2 asks for this much between a text and its ground.
ENOUGH_CONTRAST = 4.5
CONTRASTS = """
(() => {
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\\d.]+/g).map((part) => part / 255)
      .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    const colour = getComputedStyle(element).backgroundColor;
    return colour.startsWith("rgba(0, 0, 0, 0") && element.parentElement ? ground(element.parentElement) : colour;
  };
  const texts = [...document.querySelectorAll("body *")].filter((element) => element.checkVisibility() &&
    [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()));
  return texts.map((element) => {
    const pair = [light(getComputedStyle(element).color), light(ground(element))].sort((a, b) => b - a);
    return [(pair[0] + 0.05) / (pair[1] + 0.05), element.outerHTML.slice(0, 80)];
  });
})()
"""
FILES_OF_NOVA = "document.querySelectorAll('#node .file[aria-label^=\"/etc/nova/nova.conf.d/\"]').length"
VISIBLE_ROWS = "[...document.querySelectorAll('#nodes tbody tr')].filter((r) => !r.hidden).map((r) => r.dataset.node)"
LAYOUTS = list(itertools.product((1280, 360), ("light", "dark")))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("page") / "page.html", data_plane())


def written(file: Path, objects: list[dict[str, Any]]) -> Path:
    plan = resolve(snapshot_of(objects, {}, namespace="openstack"))
    file.write_text(page(overview(plan, Question())))
    return file


@pytest.fixture(scope="module")
def started() -> Iterator[Browser]:
    require("a test of the page", Tool("chromium", "chromium"))
    place = tempfile.TemporaryDirectory(prefix="edpm-page-", ignore_cleanup_errors=True)
    with place as folder, chromium(Path(folder)) as browser:
        yield browser


@pytest.fixture
def browser(started: Browser) -> Iterator[Browser]:
    """The browser for one test; afterwards the page must have done nothing wrong and asked nobody for anything."""
    started.errors.clear()
    started.requests.clear()
    started.look_at()
    yield started
    assert started.errors == []
    assert {url.partition(":")[0] for url in started.requests} <= {"file", "about"}
    assert len({url.partition("#")[0] for url in started.requests} - {"about:blank"}) <= 1


def test_the_table_has_every_node_and_every_services_state(browser: Browser, file: Path) -> None:
    browser.open(file)
    assert browser.run("document.querySelector('#summary').textContent") == (
        "4 nodes: 3 ready, 1 blocked · 10 services: 6 ready, 1 held, 3 blocked · 1 left alone"
    )
    headings = browser.run("[...document.querySelectorAll('#nodes thead th')].map((h) => h.textContent)")
    assert headings == ["Node", "Cell", "libvirt", "nova_compute", "neutron_sriov_agent", "cinder_volume"]
    states = browser.run(
        "[...document.querySelectorAll('#nodes tbody tr')].map((r) => [...r.cells].map((c) => "
        "c.querySelector('.state')?.textContent ?? c.textContent))"
    )
    assert states == [
        ["edpm-compute-0", "nova-cell1", "ready", "ready", "ready", "–"],
        ["edpm-compute-1", "nova-cell1", "ready", "held", "ready", "–"],
        ["edpm-compute-2", "nova-cell2", "blocked", "blocked", "blocked", "–"],
        ["edpm-storage-0", "–", "–", "–", "–", "ready"],
    ]
    assert "edpm-network-0: no annotation asks for a service" in browser.run("document.body.innerText")
    assert browser.run("document.querySelector('#node').hidden")


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("COMPUTE-1", ["edpm-compute-1"]),
        ("blocked", ["edpm-compute-2"]),
        ("nova-cell1", ["edpm-compute-0", "edpm-compute-1"]),
        ("cpu_mode", ["edpm-compute-0"]),
        ("transport_url", ["edpm-compute-0", "edpm-compute-1"]),
        ("there is no such thing", []),
    ],
)
def test_a_search_finds_names_states_and_what_files_hold(
    browser: Browser, file: Path, text: str, nodes: list[str]
) -> None:
    browser.open(file)
    browser.run("document.querySelector('#search').focus()")
    browser.type(text)
    assert browser.run(VISIBLE_ROWS) == nodes
    assert browser.run("document.querySelector('#found').textContent") == f"{len(nodes)} of 4 nodes"
    kept = browser.run("location.hash").removeprefix("#")
    browser.open(file, kept)
    assert browser.run(VISIBLE_ROWS) == nodes
    assert browser.run("document.querySelector('#search').value") == text


def test_a_nodes_files_show_the_origin_and_the_effect_of_every_line(browser: Browser, file: Path) -> None:
    browser.open(file, "node=edpm-compute-0")
    text = browser.run("document.querySelector('#node').innerText")
    assert "from Secret openstack/nova-cell1-compute-config, key 01-nova.conf" in text
    assert "from NovaExternalCompute openstack/edpm-compute-0, spec.customServiceConfig" in text
    said = browser.run(
        "[...document.querySelectorAll('#node .file tr.lost, #node .file tr.won')].map((r) => "
        "[...r.cells].map((c) => c.textContent))"
    )
    assert said == [
        ["2", "debug = False", "overridden by 02-nova-override.conf:3"],
        ["3", "debug = True", "wins over 01-nova.conf:2"],
    ]
    assert browser.run(FILES_OF_NOVA) == 3


def test_text_of_resources_stays_text_and_secrets_are_masked(browser: Browser, file: Path) -> None:
    browser.open(file, "node=edpm-compute-0")
    assert browser.run("document.title") == "Data plane"
    lines = browser.run("[...document.querySelectorAll('#node .text')].map((line) => line.textContent)")
    assert f"my_label = {NASTY}" in lines
    assert browser.run("document.querySelectorAll('img, #node script').length") == 0
    assert PASSWORD not in browser.run("document.documentElement.outerHTML")


def test_the_keyboard_is_enough(browser: Browser, file: Path) -> None:
    browser.open(file)
    seen = []
    for _step in range(3):
        browser.press("Tab")
        seen.append(browser.run("document.activeElement.id || document.activeElement.textContent.trim()"))
    assert seen[0] == "search"
    assert seen[2] == "edpm-compute-0"
    browser.press("Enter")
    browser.run("new Promise((done) => setTimeout(done, 100))")
    assert browser.run("document.activeElement.id") == "node-heading"
    assert browser.run("document.querySelector('#node h2').textContent") == "edpm-compute-0"


def test_headings_labels_and_tables_are_told_to_those_who_do_not_see_them(browser: Browser, file: Path) -> None:
    browser.open(file, "node=edpm-compute-0")
    levels = browser.run("[...document.querySelectorAll('h1, h2, h3, h4')].map((h) => Number(h.tagName[1]))")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    assert browser.run("document.querySelector('label[for=search]') !== null")
    assert browser.run("document.documentElement.lang") == "en"
    assert browser.run(
        "[...document.querySelectorAll('table')].every((t) => t.caption && t.querySelector('th[scope]'))"
    )
    names = browser.run("[...document.querySelectorAll('[id]')].map((element) => element.id)")
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("width", "scheme"), LAYOUTS)
def test_it_fits_and_can_be_read_in_every_layout(browser: Browser, file: Path, width: int, scheme: Scheme) -> None:
    browser.look_at(width=width, scheme=scheme)
    for fragment in ("", "node=edpm-compute-0&search=debug", "node=edpm-compute-2"):
        browser.open(file, fragment)
        assert browser.run("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
        contrasts = browser.run(CONTRASTS)
        assert len(contrasts) > 10
        assert [one for one in contrasts if one[0] < ENOUGH_CONTRAST] == []
    dark = browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 29)"
    assert dark == (scheme == "dark")
    if pictures := os.environ.get("PAGE_PICTURES"):
        browser.screenshot(Path(pictures) / f"{width}-{scheme}.png")


def test_a_long_name_does_not_break_the_narrow_layout(browser: Browser, tmp_path: Path) -> None:
    objects = json.loads(json.dumps(data_plane()).replace("edpm-compute-0", "edpm-compute-" + "0123456789" * 20))
    browser.look_at(width=360)
    browser.open(written(tmp_path / "long.html", objects), "node=edpm-compute-" + "0123456789" * 20)
    assert browser.run("document.documentElement.scrollWidth") == 360


def test_the_tutorials_data_plane(browser: Browser, tmp_path: Path) -> None:
    objects = [body for file in sorted(TUTORIAL.glob("*.yaml")) for body in yaml.safe_load_all(file.read_text())]
    browser.open(written(tmp_path / "tutorial.html", objects), "node=edpm-compute-1")
    assert browser.run(VISIBLE_ROWS) == ["edpm-compute-0", "edpm-compute-1"]
    assert browser.run(FILES_OF_NOVA) == 3
    assert "not-a-real-password" not in browser.run("document.documentElement.outerHTML")
