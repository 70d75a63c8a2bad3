# SPDX-License-Identifier: GPL-3.0-or-later
"""Judges oslo.config files by the options that the programs of this image know.

The words are files; those after `--strict` are a human's, and an option there that nobody knows is an error. A group
that nobody knows may be one that another option names, so it is only told.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import entry_points
from typing import Any

UNKNOWN, UNREADABLE = 1, 3
Known = dict[str, set[str]]


def loaders() -> Iterator[Any]:
    """What lists options, of every package of the image."""
    found: Any = entry_points()
    listed = found.select(group="oslo.config.opts") if hasattr(found, "select") else found.get("oslo.config.opts", ())
    for one in listed:
        try:
            yield one.load()()
        except Exception as error:  # noqa: BLE001 (a package's broken list is no fault of the files)
            print(f"the options of {one.name} cannot be listed: {error}")


def known_options(lists: Iterable[Any]) -> Known:
    """The names by group, old names too; `DEFAULT` is a group like the others."""
    known: Known = {"DEFAULT": set()}
    for group, option in ((group, option) for pairs in lists for group, options in pairs for option in options):
        name = str(getattr(group, "name", group) or "DEFAULT")
        known.setdefault(name, set()).update((option.dest, option.name.replace("-", "_"), option.name))
        for old in option.deprecated_opts:
            names = known.setdefault(str(old.group or name), set())
            names.update((old.name or option.name, (old.name or option.name).replace("-", "_")))
    return known


def settings(file: str) -> dict[str, dict[str, Any]]:
    """What a file sets, by group."""
    from oslo_config import cfg  # noqa: PLC0415 (only the image has it)

    sections: dict[str, dict[str, Any]] = {}
    cfg.ConfigParser(file, sections).parse()
    return sections


def strangers(file: str, known: Known) -> Iterator[str]:
    """A sentence for each option that nobody knows."""
    for group, values in settings(file).items():
        if group not in known:
            print(f"{file}: nothing in the image reads the group {group} by this name")
            continue
        for name in values:
            if name not in known[group]:
                yield f"{file}: {name} in the group {group} is an option that nothing in the image knows"


def main(words: list[str]) -> int:
    """The exit code."""
    at = words.index("--strict") if "--strict" in words else len(words)
    files, strict = words[:at], words[at + 1 :]
    known, code = known_options(loaders()), 0
    for file in (*files, *strict):
        try:
            for sentence in strangers(file, known):
                print(sentence)
                code = code or (UNKNOWN if file in strict else 0)
        except Exception as error:  # noqa: BLE001 (whatever it is, the service would meet it too)
            print(f"{file}: {error}")
            code = UNREADABLE
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
