# SPDX-License-Identifier: GPL-3.0-or-later
"""Judges oslo.config files by the options that the programs of this image know.

The words are files; those after `--strict` are a human's, and an option there that nobody knows is an error. In other
files it is only told, and so is a group that nobody knows and no option names. Who has nothing to tell is silent.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import entry_points
from typing import Any

UNKNOWN, UNREADABLE = 1, 3
#: Says how a service logs in at Keystone, and so which other options there are in its group.
_LOGIN = "auth_type"
Known = dict[str, set[str]]
#: What files set, by group.
Sections = dict[str, dict[str, Any]]


def loaders(broken: list[str]) -> Iterator[Any]:
    """What lists options, of every package of the image; `broken` gets a sentence for each that cannot."""
    found: Any = entry_points()
    listed = found.select(group="oslo.config.opts") if hasattr(found, "select") else found.get("oslo.config.opts", ())
    for one in listed:
        try:
            yield one.load()()
        except Exception as error:  # noqa: BLE001 (a package's broken list is no fault of the files)
            broken.append(f"the options of {one.name} cannot be listed: {error}")


def known_options(lists: Iterable[Any]) -> Known:
    """The names by group, old names too; `DEFAULT` is a group like the others."""
    known: Known = {"DEFAULT": set()}
    for group, option in ((group, option) for pairs in lists for group, options in pairs for option in options):
        add(known, str(getattr(group, "name", group) or "DEFAULT"), option)
    return known


def add(known: Known, group: str, option: Any) -> None:
    """Know an option by all its names."""
    known.setdefault(group, set()).update((option.dest, option.name.replace("-", "_"), option.name))
    for old in option.deprecated_opts:
        names = known.setdefault(str(old.group or group), set())
        names.update((old.name or option.name, (old.name or option.name).replace("-", "_")))


def know_logins(known: Known, every: Iterable[Sections]) -> None:
    """Know what comes with the ways to log in that files choose; no package lists it before it has read them."""
    for group, values in ((group, values) for sections in every for group, values in sections.items()):
        for way in values.get(_LOGIN, ()) if _LOGIN in known.get(group, ()) else ():
            try:
                from keystoneauth1 import loading  # noqa: PLC0415 (only the image has it)

                options = loading.get_auth_plugin_conf_options(way)
            except Exception:  # noqa: BLE001 (whoever reads the group tells that there is no such way)
                options = []
            for option in options:
                add(known, group, option)


def settings(file: str) -> Sections:
    """What a file sets."""
    from oslo_config import cfg  # noqa: PLC0415 (only the image has it)

    sections: Sections = {}
    cfg.ConfigParser(file, sections).parse()
    return sections


def words_in(every: Iterable[Sections]) -> set[str]:
    """The words of all values: a group may be one of them, as that of a backend."""
    values = (str(value) for sections in every for options in sections.values() for value in options.values())
    return {word for value in values for word in re.split(r"[^\w.:-]+", value)}


def strange_groups(sections: Sections, known: Iterable[str]) -> Iterator[str]:
    """A sentence for each group that nobody knows."""
    for group in sections:
        if group not in known:
            yield f"nothing in the image reads the group {group} by this name"


def strange_options(sections: Sections, known: Known) -> Iterator[str]:
    """A sentence for each option that nobody knows."""
    for group, values in sections.items():
        for name in values:
            if group in known and name not in known[group]:
                yield f"{name} in the group {group} is an option that nothing in the image knows"


def main(words: list[str]) -> int:
    """The exit code."""
    at = words.index("--strict") if "--strict" in words else len(words)
    files, strict = words[:at], words[at + 1 :]
    broken: list[str] = []
    told: list[str] = []
    known, read, code = known_options(loaders(broken)), {}, 0
    for file in (*files, *strict):
        try:
            read[file] = settings(file)
        except Exception as error:  # noqa: BLE001 (whatever it is, the service would meet it too)
            told.append(f"{file}: {error}")
            code = UNREADABLE
    know_logins(known, read.values())
    groups = {*known, *words_in(read.values())}
    for file, sections in read.items():
        options = list(strange_options(sections, known))
        told += [f"{file}: {sentence}" for sentence in (*strange_groups(sections, groups), *options)]
        code = code or (UNKNOWN if options and file in strict else 0)
    for sentence in (*broken, *told) if told else ():
        print(sentence)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
