# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A compute never moves between cells, and never takes another name: the node remembers both."""

from __future__ import annotations

from collections.abc import Mapping

from .errors import Guarded
from .generations import Home

FILE = "identity.json"
_WORDS = {
    "cell": (
        "belongs to the cell {old} and was asked to join {new}; Nova cannot move a compute between cells: set the cell "
        "back to {old}, or remove the service from the node first"
    ),
    "host": (
        "goes by the host name {old} and was asked to take the name {new}, under which its instances would be lost; "
        "set it back to {old}, or remove the service from the node first"
    ),
}


def check(home: Home, guards: Mapping[str, str]) -> None:
    """Refuse what would make the service another one."""
    known = home.note(FILE)
    for key, new in guards.items():
        old = known.get(key, new)
        if old != new:
            raise Guarded(f"{home.name} on this node {_WORDS[key].format(old=old, new=new)}. Nothing was touched.")


def remember(home: Home, guards: Mapping[str, str]) -> None:
    """Write down what is not known yet. It stays when a first start fails: by then others may know the service."""
    known = home.note(FILE)
    if not guards.keys() <= known.keys():
        home.write_note(FILE, {**guards, **known})


def known(home: Home) -> dict[str, str]:
    """What the node remembers of the service's place."""
    return {key: value for key, value in home.note(FILE).items() if key in _WORDS}
