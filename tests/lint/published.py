# SPDX-License-Identifier: GPL-3.0-or-later
"""Check that a built collection carries what users need and nothing of the workshop."""

from __future__ import annotations

import re
import sys
import tarfile

NEEDED = ("README.md", "LICENSE", "CHANGELOG.md", "MANIFEST.json", "meta/runtime.yml", "requirements.txt")
WORKSHOP = re.compile(r"(^|/)(\.|__pycache__|tests/|build/|Makefile|.*\.(pyc|tar\.gz|egg-info))")


def main() -> int:
    """Name every file that is missing or should not be there."""
    with tarfile.open(sys.argv[1]) as archive:
        names = set(archive.getnames())
    faults = [f"{name} is missing from the collection" for name in NEEDED if name not in names]
    faults += [f"{name} is in the collection; add it to build_ignore" for name in names if WORKSHOP.search(name)]
    print("\n".join(sorted(faults)) or f"the built collection has {len(names)} files, all of them for its users")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
