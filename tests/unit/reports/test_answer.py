# SPDX-License-Identifier: GPL-3.0-or-later
"""What is displayed, written and returned."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._report.answer import Output, answer
from ansible_collections.edpm.services.plugins.plugin_utils._report.lines import as_text
from ansible_collections.edpm.services.plugins.plugin_utils._report.near import NotThereError
from ansible_collections.edpm.services.plugins.plugin_utils._report.overview import Question
from ansible_collections.edpm.services.plugins.plugin_utils._report.written import NotWrittenError

from .dataplanes import PASSWORD, plan_of

ALL = Question()


def test_json_is_what_the_module_returns() -> None:
    found = answer(plan_of(), ALL, output="json")
    assert json.loads(as_text(found.lines)) == {"plan": found.result["plan"]}
    node = found.result["plan"]["nodes"][0]
    assert (node["name"], node["cell"], node["ready"], node["blocked"]) == ("compute-0", "nova-cell1", True, [])
    compute = node["services"][1]
    assert compute["image"] == "images.example/openstack/nova-compute:30"
    assert compute["image_source"] == "environment variable RELATED_IMAGE_NOVA_COMPUTE_IMAGE_URL_DEFAULT"
    assert [file["path"].rpartition("/")[2] for file in compute["files"]] == [
        "01-nova.conf",
        "02-nova-host-specific.conf",
        "02-nova-override.conf",
    ]
    assert len(compute["digest"]) == 64


def test_an_option_implies_an_explanation() -> None:
    found = answer(plan_of(), Question("compute-0", "nova_compute", "debug"))
    assert "plan" not in found.result
    option = found.result["explanations"][0]["options"][0]
    assert (option["group"], option["name"], option["value"]) == ("DEFAULT", "debug", "True")
    assert [place["file"] for place in option["places"]] == ["01-nova.conf", "02-nova-override.conf"]


@pytest.mark.parametrize("explain", [False, True])
@pytest.mark.parametrize("output", ["text", "json", "html"])
def test_no_secret_is_displayed_written_or_returned(output: Output, explain: bool, tmp_path: Path) -> None:
    file = tmp_path / "out"
    found = answer(plan_of(), ALL, explain=explain, output=output, output_file=str(file))
    assert file.read_text()
    assert PASSWORD not in file.read_text() + as_text(found.lines) + json.dumps(found.result)


def test_a_file_is_for_its_owner_and_is_written_only_when_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    would = answer(plan_of(), ALL, output="json", output_file=str(file), check=True)
    assert would.result["changed"]
    assert "would be written" in would.result["msg"]
    assert list(tmp_path.iterdir()) == []

    assert answer(plan_of(), ALL, output="json", output_file=str(file)).result["changed"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    written = file.stat().st_mtime_ns
    again = answer(plan_of(), ALL, output="json", output_file=str(file))
    assert not again.result["changed"]
    assert again.result["msg"].startswith(f"{file} is up to date. 5 nodes: ")
    assert file.stat().st_mtime_ns == written
    assert list(tmp_path.iterdir()) == [file]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "file")
    answer(plan_of(), ALL, output_file=str(link))
    assert link.is_symlink()
    assert (tmp_path / "file").read_text().startswith("NODE")


def test_what_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    missing = tmp_path / "missing" / "plan.txt"
    with pytest.raises(NotWrittenError) as told:
        answer(plan_of(), ALL, output_file=str(missing))
    assert str(told.value) == f"{missing} cannot be written: No such file or directory; name another file."
    with pytest.raises(NotWrittenError, match=r"^/dev/null is not a file; name a file"):
        answer(plan_of(), ALL, output_file="/dev/null")


def test_a_page_without_a_file_is_refused() -> None:
    with pytest.raises(NotThereError, match=r"^An HTML page is for a file; name it with output_file"):
        answer(plan_of(), ALL, output="html")
