# SPDX-License-Identifier: GPL-3.0-or-later
"""What the lab is doing, in lines that read well in a terminal and in a log."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

#: A step that takes longer tells so each time this many seconds have passed.
STILL_EVERY = 30.0

_began = time.monotonic()
_lock = threading.Lock()


def say(text: str) -> None:
    """Print one line with the seconds since the start."""
    with _lock:
        print(f"[{time.monotonic() - _began:6.1f} s] {text}", file=sys.stderr, flush=True)


@contextmanager
def step(what: str) -> Iterator[None]:
    """Tell that `what` begins, that it goes on, and how long it took."""
    start = time.monotonic()
    done = threading.Event()

    def remind() -> None:
        while not done.wait(STILL_EVERY):
            say(f"{what}: still at it after {time.monotonic() - start:.0f} s")

    say(f"{what} ...")
    reminder = threading.Thread(target=remind, daemon=True)
    reminder.start()
    try:
        yield
    except BaseException:
        done.set()
        say(f"{what}: stopped after {time.monotonic() - start:.1f} s")
        raise
    done.set()
    say(f"{what}: done in {time.monotonic() - start:.1f} s")
