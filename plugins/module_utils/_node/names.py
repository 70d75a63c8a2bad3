# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""By what the services of a node are asked for."""

from __future__ import annotations

from collections.abc import Collection


def exactly(name: str) -> str:
    """The spelling that means this service alone: `<service>@` is the one without an instance, and no other."""
    return name if "@" in name else f"{name}@"


def spellings(name: str) -> tuple[str, str, str]:
    """By what a service may be asked for: its name, the one that means it alone, and that of all its instances."""
    return (name, exactly(name), name.partition("@")[0])


def is_meant(name: str, asked: Collection[str]) -> bool:
    """Whether a service is one of those that are asked for: all are where no one is named."""
    return not asked or any(one in asked for one in spellings(name))
