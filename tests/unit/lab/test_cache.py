# SPDX-License-Identifier: GPL-3.0-or-later
"""What is built once: whole or not at all, and once for everybody who wants it."""

from __future__ import annotations

import errno
import subprocess
import sys
import time
from pathlib import Path

import pytest
from edpm_lab import cache, places
from edpm_lab.errors import LabError

INPUTS = {"recipe": "one"}


def hello(folder: Path) -> None:
    (folder / "hello").write_text("world")


def test_a_thing_is_built_once_and_found_again() -> None:
    first = cache.folder("thing", INPUTS, hello)
    (first / "hello").write_text("kept")
    assert (cache.folder("thing", INPUTS, hello) / "hello").read_text() == "kept"


@pytest.mark.parametrize(
    "changed", [{"recipe": "two"}, {"recipe": "one", "more": ""}, {"recip": "eone"}, {"recipe": b"one\n"}]
)
def test_anything_that_goes_into_a_thing_changes_its_digest(changed: dict[str, str | bytes]) -> None:
    assert cache.digest(changed) != cache.digest(INPUTS)


def test_the_order_in_which_inputs_are_named_does_not_matter() -> None:
    assert cache.digest({"a": "1", "b": "2"}) == cache.digest({"b": "2", "a": "1"})


def test_a_build_that_fails_half_way_leaves_nothing_that_is_believed() -> None:
    def fail(folder: Path) -> None:
        hello(folder)
        raise LabError("half-way")

    with pytest.raises(LabError, match="half-way"):
        cache.folder("thing", INPUTS, fail)
    assert [entry.name for entry in places.cache().iterdir()] == [".thing.lock"]
    assert (cache.folder("thing", INPUTS, hello) / "hello").exists()


#: A program that builds `thing`, notes each time that it begins to, and takes as long as it is told.
BUILDER = """
import sys, time
from edpm_lab import cache, places
def build(folder):
    with (places.cache() / "begun").open("a") as begun:
        begun.write("x")
    time.sleep(float(sys.argv[1]))
    (folder / "hello").write_text("world")
cache.folder("thing", {"recipe": "one"}, build)
"""


def start_builder(seconds: float) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", BUILDER, str(seconds)])


def test_what_a_killed_build_left_is_removed_by_the_next_one() -> None:
    with start_builder(60) as builder:
        wait_for(places.cache() / "begun")
        builder.kill()
    assert list(places.cache().glob(".thing.building-*"))

    built = cache.folder("thing", INPUTS, hello)

    assert (built / "hello").exists()
    assert not list(places.cache().glob(".thing.building-*"))


def test_two_that_want_the_same_thing_at_once_build_it_once() -> None:
    with start_builder(0.5) as one, start_builder(0.5) as two:
        assert (one.wait(20), two.wait(20)) == (0, 0)
    assert (places.cache() / "begun").read_text() == "x"


def test_a_full_disk_is_one_sentence_with_a_remedy() -> None:
    def fill(_: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(LabError, match=r"^the disk of .* is full; free some space and run it again$"):
        cache.folder("thing", INPUTS, fill)
    assert not list(places.cache().glob("thing-*"))


def test_too_little_space_is_found_out_before_the_work_begins() -> None:
    with pytest.raises(LabError, match=r"^building all needs 99999999 GiB in .* are free; .*EDPM_LAB_CACHE"):
        cache.require_space(99999999, "building all")


@pytest.mark.parametrize("fault", [errno.EACCES, errno.EROFS])
def test_a_folder_that_cannot_be_written_is_one_sentence(fault: int) -> None:
    sentence = r"^/there cannot be written; set EDPM_LAB_CACHE and EDPM_LAB_STATE to folders of yours$"
    with pytest.raises(LabError, match=sentence), cache.translated():
        raise OSError(fault, "no", "/there")


def wait_for(path: Path) -> None:
    limit = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < limit, f"{path} did not appear"
        time.sleep(0.02)
