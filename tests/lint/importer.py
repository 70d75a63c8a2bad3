# SPDX-License-Identifier: GPL-3.0-or-later
"""galaxy-importer, whose three minutes for ansible-lint are counted in the processor's time: machines are shared."""

from __future__ import annotations

import resource
import subprocess
import sys

from galaxy_importer import main
from galaxy_importer.loaders import collection


class Counted(subprocess.Popen[str]):
    """A process whose time limit is one of work, its children's included, and not of waiting for a processor."""

    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]:
        """All that it prints; as ever, one that takes too long is an error."""
        before = _worked()
        told = super().communicate(input)
        if timeout is not None and _worked() - before > timeout:
            raise subprocess.TimeoutExpired(self.args, timeout)
        return told


def _worked() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


collection.Popen = Counted

if __name__ == "__main__":
    sys.exit(main.main())
