# SPDX-License-Identifier: GPL-3.0-or-later
"""How programs are run on a node."""

from __future__ import annotations

import os
import signal

from ansible_collections.edpm.services.plugins.module_utils._node.commands import NOT_FOUND, run


def test_words_reach_a_program_as_they_are() -> None:
    assert run(["printf", "%s|", "$HOME", "~", "a b"], {}).out == "$HOME|~|a b|"


def test_what_it_says_on_both_ways_and_how_it_ends_is_told() -> None:
    done = run(["sh", "-c", "echo out; echo err >&2; exit 3"], {})
    assert (done.rc, done.out, done.err, done.said) == (3, "out\n", "err\n", "err")


def test_its_environment_is_the_nodes_with_additions_and_one_language() -> None:
    said = run(["sh", "-c", 'echo "$A $LC_ALL ${PATH:+has a path}"'], {"A": "b"}).out
    assert said == "b C.UTF-8 has a path\n"


def test_a_program_that_is_not_there_is_an_answer() -> None:
    gone = run(["no-such-program-here"], {})
    assert (gone.rc, gone.err) == (NOT_FOUND, "no-such-program-here: No such file or directory")


def test_bytes_that_are_no_text_do_not_hurt() -> None:
    assert run(["printf", r"a\377b"], {}).out == "a\ufffdb"


def test_it_is_given_nothing_to_read() -> None:
    assert run(["cat"], {}).out == ""


def test_much_is_told_whole() -> None:
    assert len(run(["head", "-c", "3000000", "/dev/zero"], {}).out) == 3000000


def test_what_it_leaves_running_is_not_waited_for() -> None:
    left = int(run(["sh", "-c", "sleep 30 & echo $!"], {}).out)
    os.kill(left, signal.SIGKILL)
