# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder that rendered files lie in."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_collections.edpm.services.plugins.plugin_utils._report.tree import RECORD, Entry, Output, Tree
from ansible_collections.edpm.services.plugins.plugin_utils._report.written import NotWrittenError


def tree(**files: str) -> Tree:
    """One service on one node; a file `current` is a link."""
    made = {
        name: Entry(target=text) if name == "current" else Entry(text.encode(), text.encode())
        for name, text in files.items()
    }
    return {"node-0": {"service": {f"var/{name}": entry for name, entry in made.items()}}}


def render(folder: Path, wanted: Tree, node: str = "", service: str = "") -> list[str]:
    output = Output(str(folder))
    changes = output.changes(wanted, node, service)
    output.write(changes, wanted, node, service)
    assert output.changes(wanted, node, service) == []
    return [f"{'+' if one.after else '-'}{one.path}" for one in changes]


def found(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir() or path.is_symlink())


def test_what_is_planned_is_there_and_what_is_not_any_more_is_gone_with_its_folders(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    assert render(out, tree(a="1", b="2", current="a")) == ["+node-0/var/a", "+node-0/var/b", "+node-0/var/current"]
    assert (out / "node-0/var/current").readlink() == Path("a")
    assert render(out, tree(a="1", b="3", current="b")) == ["+node-0/var/b", "+node-0/var/current"]
    assert render(out, tree(b="3")) == ["-node-0/var/a", "-node-0/var/current"]
    assert render(out, {}) == ["-node-0/var/b"]
    assert found(out) == [RECORD]
    assert not (out / "node-0").exists()


def test_everything_is_for_its_owner_alone_and_a_mode_that_differs_is_a_change(tmp_path: Path) -> None:
    render(tmp_path, tree(a="1"))
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*") if path.is_dir()}
    assert modes == {0o700}
    file = tmp_path / "node-0/var/a"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o644)
    assert render(tmp_path, tree(a="1")) == ["+node-0/var/a"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_looking_writes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert Output(str(out)).changes(tree(a="1"), "", "")
    assert not out.exists()


def test_a_folder_with_files_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(NotWrittenError, match=r"is not empty and nothing was rendered there before; name a new folder"):
        render(tmp_path, tree(a="1"))
    assert found(tmp_path) == ["thesis.txt"]


def test_files_that_somebody_puts_beside_ours_stay(tmp_path: Path) -> None:
    render(tmp_path, tree(a="1"))
    for name in ("README", "node-0/var/notes"):
        (tmp_path / name).write_text("mine")
    render(tmp_path, {})
    assert found(tmp_path) == [RECORD, "README", "node-0/var/notes"]


@pytest.mark.parametrize(
    ("node", "service", "gone"),
    [
        ("a", "", ["a/x", "a/y"]),
        ("", "one", ["a/x", "b/z"]),
        ("a", "one@fast", []),
        ("a", "two", ["a/y"]),
        ("a", "two@", []),
        ("", "one@", ["a/x", "b/z"]),
        ("", "one,two", ["a/x", "a/y", "b/z"]),
        ("c", "", []),
    ],
)
def test_only_what_was_asked_for_is_removed(tmp_path: Path, node: str, service: str, gone: list[str]) -> None:
    one = Entry(b"1")
    everything = {"a": {"one": {"x": one}, "two@fast": {"y": one}}, "b": {"one": {"z": one}}}
    render(tmp_path, everything)
    assert render(tmp_path, {}, node, service) == [f"-{path}" for path in gone]
    assert found(tmp_path) == sorted([RECORD, *({"a/x", "a/y", "b/z"} - set(gone))])
    left = {"a/x", "a/y", "b/z"} - set(gone)
    assert render(tmp_path, {}) == [f"-{path}" for path in sorted(left)]


def test_what_a_run_wrote_before_it_was_cut_off_is_known_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replaced: Callable[[Path, Path], Path] = Path.replace

    def fails_at_b(self: Path, target: Path) -> Path:
        if target.name == "b":
            raise OSError(28, "No space left on device", str(target))
        return replaced(self, target)

    monkeypatch.setattr(Path, "replace", fails_at_b)
    with pytest.raises(NotWrittenError, match=r"node-0/var/b cannot be written: No space left on device"):
        render(tmp_path, tree(a="1", b="2"))
    monkeypatch.undo()
    assert found(tmp_path) == [RECORD, "node-0/var/a"]
    render(tmp_path, {})
    assert found(tmp_path) == [RECORD]


@pytest.mark.parametrize(
    "record",
    [
        "{",
        "[]",
        '{"rendered": {"node-0": {"service": ["../../thesis.txt"]}}}',
        '{"rendered": {"node-0": {"service": ["/thesis.txt"]}}}',
    ],
)
def test_a_record_that_was_tampered_with_is_not_followed(tmp_path: Path, record: str) -> None:
    out, theirs = tmp_path / "out", tmp_path / "thesis.txt"
    render(out, tree(a="1"))
    theirs.write_text("years of work")
    (out / RECORD).write_text(record)
    with pytest.raises(NotWrittenError, match=r"cannot be read, so it is not known what was rendered there"):
        render(out, {})
    assert theirs.exists()


def test_a_link_on_the_way_is_not_followed(tmp_path: Path) -> None:
    out, theirs = tmp_path / "out", tmp_path / "theirs"
    render(out, tree(a="1"))
    (out / "node-0").rename(theirs)
    (out / "node-0").symlink_to(theirs)
    for wanted in (tree(a="2"), {}):
        with pytest.raises(NotWrittenError, match=r"out/node-0 is a link, where render has a folder; remove it"):
            render(out, wanted)
    assert (theirs / "var/a").read_text() == "1"


def test_a_file_in_the_place_of_the_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(NotWrittenError, match="is not empty"):
        render(tmp_path / "out", tree(a="1"))


def test_the_record_names_files_by_node_and_service(tmp_path: Path) -> None:
    render(tmp_path, tree(a="1"))
    assert json.loads((tmp_path / RECORD).read_text()) == {
        "version": 1,
        "rendered": {"node-0": {"service": ["var/a"]}},
    }
