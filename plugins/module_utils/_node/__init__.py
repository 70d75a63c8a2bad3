# Copyright: Contributors to the edpm.services project
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What happens on a node: a bundle becomes a generation, a generation becomes a running unit.

Nothing here imports more than the standard library of Python 3.9, nor anything else of this collection. Commands, the
disk and the clock come in from outside, so that every step can be stopped, refused and repeated in a test.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from typing import Any
from zipimport import zipimporter


class Once:
    """Finds the modules of this package in the archive in which Ansible brings them to a node.

    Left to itself, Python asks the archive for the name of a module's file, and for that alone the archive compiles the
    module; then it does so once more to run it. A node would pay for that in every call.
    """

    def __init__(self, archive: Any) -> None:
        self._archive = archive

    def find_spec(self, fullname: str, *_places: object) -> ModuleSpec | None:
        """How a module of this package is loaded; None for all others."""
        package, _dot, name = fullname.rpartition(".")
        return ModuleSpec(fullname, self._archive, origin=f"{name}.py") if package == __name__ else None


# Before Python 3.10 an archive cannot run a module that somebody else has found.
if __spec__ and isinstance(__spec__.loader, zipimporter) and hasattr(zipimporter, "exec_module"):
    sys.meta_path.insert(0, Once(zipimporter(__path__[0])))
