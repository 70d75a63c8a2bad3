# SPDX-License-Identifier: GPL-3.0-or-later
"""galaxy-importer without a hurry: it gives ansible-lint three minutes, which are not enough on a busy machine."""

from __future__ import annotations

import subprocess
import sys

from galaxy_importer import main
from galaxy_importer.loaders import collection


class Unhurried(subprocess.Popen[str]):
    """A process that is waited for until it ends."""

    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]:  # noqa: ARG002
        """All that it prints, however long that takes."""
        return super().communicate(input)


collection.Popen = Unhurried

if __name__ == "__main__":
    sys.exit(main.main())
